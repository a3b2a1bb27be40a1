"""Lanes of one step: what each rank did, beside the others, in closed form."""

from __future__ import annotations

import pytest

from ringside.trace import read_traces
from ringside.trace.lanes import MAX_SPANS, lanes


def steps(sketch, *, late=0):
    """Two whole steps of 1,000 µs and the start of a third; rank-wise late by `late` µs a step.

    Host: images for `late`; GPU: 200 compute, then an all-reduce that ends at 700 on all ranks.
    """
    for number, at in enumerate((0, 1000, 2000)):
        sketch.step(number, at, 1000)
        if late:
            sketch.host("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, late,
                        "user_annotation")  # fmt: skip
        sketch.kernel(at + late, 200)
        sketch.collective(at + late + 200, 500 - late)
    return sketch


def by_name(rank):
    return {lane.name: lane for lane in rank.lanes}


def test_ranks_lie_beside_each_other_whatever_their_clocks_say(sketch, write):
    first, second = steps(sketch(0)), steps(sketch(1, start=7_500_000), late=300)
    traces, _ = read_traces([write(first, "rank0.json"), write(second, "rank1.json")])
    one, two = lanes(traces)
    assert (one.rank, two.rank) == (0, 1)
    assert one.wall_us == two.wall_us == 1000
    quick, late = by_name(one), by_name(two)
    # Both all-reduces end at 700; the late rank's takes 200, so that is the transfer.
    assert quick["compute"].spans == ((0, 200),)
    assert late["compute"].spans == ((300, 500),)
    assert quick["wait"].spans == ((200, 500),)
    assert late["wait"].spans == ()
    assert quick["transfer"].spans == late["transfer"].spans == ((500, 700),)
    assert late["data"].spans == ((0, 300),)
    assert quick["idle"].spans == late["idle"].spans == ((700, 1000),)


def test_lanes_of_one_rank_without_other_work_cover_the_step(sketch, write):
    traces, _ = read_traces([write(steps(sketch(0, world_size=1), late=300))])
    (only,) = lanes(traces)
    found = by_name(only)
    parts = sum(found[name].total_us for name in ("compute", "transfer", "wait", "data", "idle"))
    assert parts == pytest.approx(only.wall_us)


def test_thousands_of_kernels_become_few_spans_and_the_time_stays_true(sketch, write):
    many = sketch(0, world_size=1)
    for number, at in enumerate((0, 100_000, 200_000)):
        many.step(number, at, 100_000)
        for i in range(2000):
            many.kernel(at + 50 * i, 20)
    traces, _ = read_traces([write(many)])
    compute = by_name(lanes(traces)[0])["compute"]
    assert 0 < len(compute.spans) <= MAX_SPANS
    assert compute.total_us == pytest.approx(2000 * 20)
    flat = [moment for span in compute.spans for moment in span]
    assert flat == sorted(flat)


def test_far_apart_kernels_are_never_more_than_can_be_drawn(sketch, write):
    many = sketch(0, world_size=1)
    for number, at in enumerate((0, 1_000_000, 2_000_000)):
        many.step(number, at, 1_000_000)
        for i in range(900):
            many.kernel(at + 1100 * i, 50)  # gaps of more than a thousandth of the step
    traces, _ = read_traces([write(many)])
    assert len(by_name(lanes(traces)[0])["compute"].spans) <= MAX_SPANS
