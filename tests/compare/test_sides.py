"""Which runs stand for one set-up, and what keeps two from being compared."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ringside.compare.quality import answers
from ringside.compare.sides import side_of, sides_of
from ringside.errors import SpecError
from ringside.predictions import Predictions, read_predictions, write_predictions
from ringside.run import fold_run
from ringside.rundir import RunDir


@pytest.fixture
def runs(make_spec, write_run, keep_predictions):
    """`runs("ddp", 0, 1, noise=0.2)`: trained runs of these seeds, with their predictions."""

    def make(preset, *seeds, noise=0.15, day=1, keep=True, **fields):
        found = []
        for seed in seeds:
            run_id = f"202601{day:02d}-00000{seed}-{preset}-fox"
            run = write_run(make_spec(preset, seed=seed, **fields), run_id)
            if keep:
                keep_predictions(run, noise, seed=100 * day + seed)
            found.append(fold_run(run))
        return found

    return make


def test_runs_that_differ_in_the_seed_alone_stand_together(runs):
    a, b = runs("single", 2, 0, 1), runs("ddp", 0, 1, 2, day=2)
    first, second = sides_of([a[0], b[0], a[1], b[2], b[1], a[2]])
    assert (first.preset, first.seeds) == ("single", (0, 1, 2))
    assert (second.preset, second.seeds) == ("ddp", (0, 1, 2))


def test_of_two_runs_each_is_a_side_whatever_they_are(runs):
    one, other = runs("ddp", 0), runs("ddp", 0, day=2)
    assert [side.seeds for side in sides_of(one + other)] == [(0,), (0,)]


def test_what_does_not_form_two_sides_is_said(runs):
    with pytest.raises(SpecError, match="no two sides"):
        sides_of(runs("ddp", 0, 1, 2))
    with pytest.raises(SpecError, match="both have seed 0"):
        side_of(runs("ddp", 0, day=2) + runs("ddp", 0, day=3))
    mixed = runs("single", 0, day=4) + runs("single", 1, day=5, training={"learning_rate": 0.1})
    with pytest.raises(SpecError, match="they differ in training"):
        side_of(mixed)


def test_three_seeds_a_side_by_themselves_and_by_hand(runs):
    a, b = runs("single", 0, 1, 2), runs("ddp", 0, 1, 2, day=2, noise=0.6)
    (found,) = answers([*a, *b])
    assert (found.verdict, found.is_paired, found.num_images) == ("worse", True, 400)
    assert found.candidate == tuple(run.id for run in b)
    assert answers(b, a) == [found]
    (unlike,) = answers(b[:2], a[1:])
    assert (unlike.is_paired, unlike.reference_seeds, unlike.candidate_seeds) == (
        False, (1, 2), (0, 1),
    )  # fmt: skip
    with pytest.raises(SpecError, match="stands on both sides"):
        answers([*b, a[0]], a)


def test_what_cannot_be_compared_is_no_answer(runs, root):
    base = runs("single", 0)
    with pytest.raises(SpecError, match=r"cannot be compared .* model: resnet50 and resnet18"):
        answers([*base, *runs("ddp", 0, day=2, model="resnet18")])
    with pytest.raises(SpecError, match="kept no predictions"):
        answers([*base, *runs("ddp", 0, day=3, keep=False)])


def test_padding_counted_twice_is_seen_as_other_images(runs):
    """Validation images that the sampler repeats to make ranks even must not be scored twice."""
    base, (padded,) = runs("single", 0), runs("ddp", 0, day=2)
    run = RunDir(Path(padded.path))
    kept = read_predictions(run)
    again = [np.concatenate([one, one[:8]]) for one in (kept.probabilities, kept.targets)]
    write_predictions(run, Predictions(kept.epoch, kept.task, *again, kept.num_trained))
    with pytest.raises(SpecError, match=r"not evaluated on the same images \(408 and 400\)"):
        answers([*base, padded])
