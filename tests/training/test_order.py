"""Which sample is seen when: the same for every number of processes, disjoint over ranks."""

from __future__ import annotations

import itertools

import pytest

from ringside.errors import DataError
from training.order import TrainingOrder, epoch_order, evaluation_batches


def global_batches(make_spec, *, num_processes, k=1, num_samples=200, epoch=1):
    """The set of indices of each optimizer step, over all ranks and micro-steps."""
    spec = make_spec(
        "single" if num_processes == 1 else "ddp",
        num_processes=num_processes,
        micro_batch=24 // (num_processes * k),
        training={"accumulation_steps": k},
    )
    steps = None
    for rank in range(num_processes):
        order = TrainingOrder(spec, num_samples, rank)
        order.epoch = epoch
        micro = [[index for _, index in batch] for batch in order]
        groups = [list(itertools.chain(*micro[i : i + k])) for i in range(0, len(micro), k)]
        steps = groups if steps is None else [a + b for a, b in zip(steps, groups, strict=True)]
    return steps


@pytest.mark.parametrize(("num_processes", "k"), [(2, 1), (3, 1), (4, 2), (1, 4)])
def test_a_global_batch_does_not_depend_on_processes_or_micro_steps(num_processes, k, make_spec):
    one = global_batches(make_spec, num_processes=1)
    many = global_batches(make_spec, num_processes=num_processes, k=k)
    assert [sorted(step) for step in many] == [sorted(step) for step in one]
    assert all(len(set(step)) == len(step) == 24 for step in many)


def test_epochs_differ_and_repeat_with_the_seed(make_spec):
    first = global_batches(make_spec, num_processes=2, epoch=1)
    assert global_batches(make_spec, num_processes=2, epoch=1) == first
    assert global_batches(make_spec, num_processes=2, epoch=2) != first
    assert sorted(epoch_order(50, seed=3, epoch=1)) == list(range(50))
    assert list(epoch_order(50, 3, 1)) != list(epoch_order(50, 4, 1))


def test_too_little_data_for_one_batch_is_a_sentence(make_spec):
    spec = make_spec("ddp", micro_batch=32)
    with pytest.raises(DataError, match=r"20 training images.*batch is 64.*at most 20"):
        TrainingOrder(spec, 20, 0)


@pytest.mark.parametrize("world", [1, 2, 3, 4])
def test_evaluation_batches_are_fixed_and_cover_everything_once(world):
    ranks = [evaluation_batches(13, 4, rank, world) for rank in range(world)]
    batches = sorted(batch for rank in ranks for batch in rank)
    assert batches == sorted(evaluation_batches(13, 4, 0, 1))
    assert sorted(index for batch in batches for _, index in batch) == list(range(13))
