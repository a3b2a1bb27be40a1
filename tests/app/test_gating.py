"""`ringside compare --gate`: its exit codes, its sentence, and the JSON that scripts read."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from app import cli
from app.commands.gating import exit_code
from ringside.compare.answer import Answer
from ringside.predictions import Predictions, write_predictions

DOCUMENT = Path(cli.__file__).parents[1] / "docs" / "cli-json.md"


@pytest.fixture
def trained(make_spec, write_run):
    """`trained("ddp", "calm-fox", seed=1, noise=0.3)`: a run with predictions of 700 images."""
    targets = (np.random.default_rng(7).random((700, 3)) < 0.3).astype(np.uint8)

    def make(preset, words, *, seed=0, noise=0.0):
        run = write_run(make_spec(preset, seed=seed), f"20260101-000000-{words}")
        rng = np.random.default_rng([seed, len(preset)])
        guess = (0.5 + (targets - 0.5) * 0.5 + rng.normal(0, noise, targets.shape)).clip(0, 1)
        write_predictions(
            run, Predictions(3, "multi_label", guess.astype(np.float32), targets, [9, 9, 9])
        )

    return make


def test_same_worse_and_not_known(ringside, trained):
    trained("single", "calm-fox")
    trained("ddp", "swift-hare")
    trained("fsdp", "warm-seal", noise=0.5)
    code, out, _ = ringside("compare", "calm", "swift", "--gate")
    assert (code, out.splitlines()[0]) == (
        0, "ddp (swift-hare) against single (calm-fox): same within ±0.000",
    )  # fmt: skip
    assert "One seed a side" in out
    code, out, _ = ringside("compare", "calm", "warm", "--gate")
    assert code == 1
    assert re.search(r"worse: mAP −0\.\d{3}, 95 % −0\.\d{3} to −0\.\d{3}", out)
    assert ringside("compare", "calm", "swift", "warm", "--gate")[0] == 1


def test_two_seeds_too_few(ringside, trained):
    for seed, animal in enumerate(("fox", "seal")):
        trained("single", f"calm-{animal}", seed=seed, noise=0.35)
        trained("ddp", f"swift-{animal}", seed=seed, noise=0.37)
    names = ("calm-fox", "swift-fox", "swift-seal", "calm-seal")
    code, out, _ = ringside("compare", *names, "--gate")
    assert code == 4
    assert out.startswith("ddp (seeds 0, 1) against single (seeds 0, 1): not enough data: ")
    assert "would tell" in out
    again = ringside("compare", *names[1:3], "--against", "calm-fox,calm-seal", "--gate")
    assert again == (code, out, "")


def test_the_json_has_the_documented_keys(ringside, trained):
    trained("single", "calm-fox")
    trained("ddp", "swift-hare")
    (found,) = json.loads(ringside("compare", "calm", "swift", "--gate", "--json")[1])
    text = DOCUMENT.read_text(encoding="utf-8").partition("--gate --json`\n")[2]
    section = text.partition("\n## ")[0]
    assert set(found) == set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))
    assert set(found["scores"][0]) == {"metric", "delta", "low", "high", "p_adjusted"}
    assert (found["verdict"], found["needed"], found["num_images"]) == ("same", None, 700)


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        ("compare calm --gate", "two runs or more"),
        ("compare calm calm-fox --gate", "all of one run, calm-fox"),
        ("compare calm swift --against calm", "needs `--gate`"),
        ("compare calm swift --gate --baseline calm", "not `--baseline`"),
        ("compare calm warm --gate", "kept no predictions"),
        ("compare calm swift --gate --against swift", "stands on both sides"),
    ],
)
def test_mistakes_are_one_sentence(ringside, trained, make_spec, write_run, argv, sentence):
    trained("single", "calm-fox")
    trained("ddp", "swift-hare")
    write_run(make_spec("ddp", training={"clip_norm": 2.0}), "20260101-000000-warm-seal")
    code, out, err = ringside(*argv.split())
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert sentence in err


def test_the_worst_answer_decides_the_exit_code():
    def answer(verdict):
        return Answer(
            verdict=verdict, reference=(), candidate=(), reference_seeds=(), candidate_seeds=(),
            is_paired=True, num_images=0,
        )  # fmt: skip

    codes = [
        exit_code([answer(name) for name in names])
        for names in (("same", "no_worse"), ("same", "not_enough_data"),
                      ("not_enough_data", "worse"))
    ]  # fmt: skip
    assert codes == [0, 4, 1]
