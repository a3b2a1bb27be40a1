"""What is left in English of what a person reads, but for names, units and what is typed."""

from __future__ import annotations

import re

from tests.app.test_measuring_languages import english

NAMES = {
    "accelerate", "acs", "algbw", "all_reduce", "allreduce", "alpha", "ap", "auc", "autocast",
    "bf16", "busbw", "byte", "c", "cmyk", "collnetchain", "collnetdirect", "cpu", "cumem", "dev",
    "direct", "docker", "driver", "emoji", "exif", "f1", "fn", "fp", "h200", "holm", "hz", "ib",
    "index.html", "iommu", "jpeg", "k", "kib", "ll", "local", "map", "mhz", "mib", "n",
    "nccl_algo", "net", "nn", "no", "numa", "nvidia", "nvlink", "nvls", "nvlstree", "nvswitch",
    "omp", "p2p", "pat", "pcie", "per-class", "rdma", "resnet", "resnet-50", "rgb", "ring", "run",
    "sgd", "sharp", "shm", "simple", "skip", "socket", "timm", "tn", "torch", "tp", "tree", "user",
    "w", "y", "yaml",
}  # fmt: skip
"""Units, and names of models, scores, transports, algorithms and tools."""
TYPED = re.compile(
    r"(?<=：)ringside .*$|https?://\S+|(?<![\w.])/[\w./-]+|\b[\w/-]+\.(?:jsonl?|toml|yaml|py)\b",
    re.MULTILINE,
)
"""Commands behind a colon, addresses and files."""


def untold(text: str, *names: object) -> list[str]:
    """English words of a text; `names` are those of the test: runs, paths, classes."""
    text = TYPED.sub(" ", text)
    for name in sorted(map(str, names), key=len, reverse=True):
        text = text.replace(name, " ")
    return [word for word in english(text) if word.lower() not in NAMES]


def nothing_english(called: tuple[int, str, str], *names: object) -> tuple[str, str]:
    """Output and errors of a command that ended well, in which nothing is English."""
    code, out, err = called
    assert code == 0, err
    left = untold(out + err, *names)
    assert left == []
    return out, err
