"""Says what torch knows of this machine, for `ringside doctor`; trains nothing.

    python -m training.describe_torch --out FILE [--load]

The file is a `ringside.machine.TorchReport`. `--load`: also copies from pinned host memory to each
GPU in turn, so that PCIe links show what they can do.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import torch

from ringside.machine import TorchReport
from ringside.rundir import write_atomic
from ringside.words import say

COPY_BYTES = 2**28
COPY_S = 1.0
ALL_COPIES_S = 6.0


def main(argv: Sequence[str] | None = None) -> None:
    """Write the report."""
    parser = argparse.ArgumentParser(prog="python -m training.describe_torch")
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--load", action="store_true")
    options = parser.parse_args(argv)
    write_atomic(options.out, msgspec.json.encode(describe(load=options.load)))


def describe(*, load: bool) -> TorchReport:
    """What torch was built for, which GPUs it can use, and which of them see each other."""
    problems: list[str] = []
    num = _num_devices(problems)
    rates = tuple(_copy_rate(i, num, problems) for i in range(num)) if load else ()
    return TorchReport(
        version=str(torch.__version__),
        arch_list=_arch_list(),
        cuda=torch.version.cuda,
        nccl=_nccl(),
        num_devices=num,
        peers=_peers(num, problems),
        copy_bytes_per_s=rates,
        problems=tuple(problems),
    )


def _num_devices(problems: list[str]) -> int:
    """torch warns where the driver is too old for it and then counts none; here it says why."""
    if torch.version.cuda is None:
        return 0
    num = torch.cuda.device_count()
    try:
        if num:
            torch.cuda.init()
    except (RuntimeError, AssertionError) as error:
        problems.append(say("machine.torch_cuda", why=_first_line(error)))
        return 0
    return num


def _arch_list() -> tuple[str, ...]:
    """As `torch.cuda.get_arch_list`, which answers nothing where there is no GPU."""
    try:
        flags = torch._C._cuda_getArchFlags()
    except AttributeError:  # a torch without CUDA
        return ()
    return tuple(flags.split()) if flags else ()


def _nccl() -> str | None:
    """The version of the NCCL that torch was built with, in dots."""
    try:
        version = torch.cuda.nccl.version()
    except (AttributeError, RuntimeError):
        return None
    return ".".join(map(str, version))


def _peers(num: int, problems: list[str]) -> tuple[tuple[int, int], ...]:
    pairs = [(a, b) for a in range(num) for b in range(num) if a != b]
    try:
        return tuple(pair for pair in pairs if torch.cuda.can_device_access_peer(*pair))
    except (RuntimeError, AssertionError) as error:
        problems.append(say("machine.torch_cuda", why=_first_line(error)))
        return ()


def _copy_rate(device: int, num: int, problems: list[str]) -> float | None:
    """Bytes a second from pinned host memory, over about a second; None where it fails."""
    try:
        source = torch.empty(COPY_BYTES, dtype=torch.uint8, pin_memory=True)
        target = torch.empty(COPY_BYTES, dtype=torch.uint8, device=f"cuda:{device}")
        target.copy_(source)
        torch.cuda.synchronize(device)
        start, copies = time.perf_counter(), 0
        while time.perf_counter() - start < min(COPY_S, ALL_COPIES_S / num):
            target.copy_(source, non_blocking=True)
            torch.cuda.synchronize(device)
            copies += 1
        return copies * COPY_BYTES / (time.perf_counter() - start)
    except RuntimeError as error:  # torch.OutOfMemoryError is one
        problems.append(say("machine.copy", index=device, why=_first_line(error)))
        return None


def _first_line(error: BaseException) -> str:
    """Without its full stop: a sentence goes around it."""
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(". ")


if __name__ == "__main__":
    main()
