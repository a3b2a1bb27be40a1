"""Transfer and waiting across ranks, the breakdown of a step, buckets and what the host did."""

from __future__ import annotations

import random

import pytest

from ringside.trace import analyse, read_trace, read_traces
from ringside.trace.bandwidth import bus_bandwidth


@pytest.fixture
def facts(write):
    """The facts of sketches, one per rank."""

    def of(*sketches):
        files = [write(made, f"rank{made.rank}.json") for made in sketches]
        return analyse(read_traces(files)[0])

    return of


def steps(made, num=3, length=1000):
    for number in range(num):
        made.step(number, number * length, length)
    return made


# --- transfer and waiting -----------------------------------------------------------------------


def test_who_comes_first_waits_and_the_shortest_is_the_transfer(sketch, facts):
    """Rank 0 is ready at 100, rank 1 at 400; from then on both move the bytes for 50 µs."""
    early, late = steps(sketch(0)), steps(sketch(1))
    early.collective(100, 350)
    late.collective(400, 50)
    found = facts(early, late)
    assert [rank.transfer_us for rank in found.ranks] == [50, 50]
    assert [rank.wait_us for rank in found.ranks] == [300, 0]
    assert found.pace.rank == 1
    assert found.is_matched


def test_the_clocks_of_the_ranks_need_not_agree(sketch, facts):
    early, late = steps(sketch(0)), steps(sketch(1, start=9e9))
    early.collective(100, 350)
    late.collective(400, 50)
    assert [rank.wait_us for rank in facts(early, late).ranks] == [300, 0]


def test_sequence_numbers_match_calls_that_order_would_not(sketch, facts):
    """Rank 1's trace lacks the first call; only the numbers tell which two belong together."""
    a, b = steps(sketch(0)), steps(sketch(1))
    a.collective(100, 80, Seq=7)
    a.collective(300, 200, Seq=8)
    b.collective(450, 50, Seq=8)
    b.collective(600, 90, Seq=9)
    ranks = facts(a, b).ranks
    assert [rank.num_matched for rank in ranks] == [1, 1]
    # Unmatched: the fastest repetition of the same size on the same rank, 80 and 50.
    assert [rank.transfer_us for rank in ranks] == [80 + 50, 50 + 50]


def test_without_numbers_unequal_counts_are_not_matched_by_order(sketch, facts):
    a, b = steps(sketch(0)), steps(sketch(1))
    a.collective(100, 80)
    a.collective(300, 200)
    b.collective(450, 50)
    assert [rank.num_matched for rank in facts(a, b).ranks] == [0, 0]


def test_groups_are_matched_apart(sketch, facts):
    a, b = steps(sketch(0)), steps(sketch(1))
    a.collective(100, 300, **{"Process Group Name": "dp"})
    b.collective(100, 60, **{"Process Group Name": "tp"})
    assert [rank.num_matched for rank in facts(a, b).ranks] == [0, 0]


def test_one_rank_alone_is_estimated_from_repetitions(sketch, facts):
    """The example of the A100 trace: 2.52, 3.31 and 5.99 ms for the same bytes."""
    made = steps(sketch(0), length=10_000)
    for number, took in enumerate((2520, 3310, 5990)):
        made.collective(number * 10_000 + 100, took)
        made.collective(number * 10_000 + 7000, 50 * (number + 1), elements=10)
    rank = facts(made).ranks[0]
    assert rank.is_wait_estimate
    assert rank.transfer_us == 2 * 2520 + 2 * 50
    assert rank.wait_us == 3310 - 2520 + 50


def test_other_sizes_bound_the_estimate(sketch, facts):
    """No longer than a larger message, no longer per byte than a smaller one: t = α + S/β."""
    made = steps(sketch(0), length=10_000)
    for number in range(3):
        at = number * 10_000
        made.collective(at, 5000, elements=1_000_000)  # somebody is always late for this one
        made.collective(at + 6000, 300, elements=2_000_000)
        made.collective(at + 7000, 1500, elements=6_000_000)  # and for this one
    buckets = {b.num_bytes: b for b in facts(made).ranks[0].buckets}
    assert buckets[4_000_000].transfer_us == 300
    assert buckets[8_000_000].transfer_us == 300
    assert buckets[24_000_000].transfer_us == 900


def test_calls_from_before_the_trace_are_the_tail_of_a_step(sketch, facts):
    """They have no size; the last of a step stands for them, the excess is waiting."""
    made = steps(sketch(0))
    made.kernel(10, 300, name="ncclDevKernel_AllReduce_Sum_f32", stream=17, launch=-1)
    for number in range(3):
        made.collective(number * 1000 + 400, 90, elements=1000)
        made.collective(number * 1000 + 500, 40, elements=10)
    parts = facts(made).ranks[0].breakdown
    assert parts.exposed_transfer_us == 2 * (90 + 40) + 40
    assert parts.exposed_wait_us == 300 - 40


# --- the breakdown ------------------------------------------------------------------------------


def test_each_moment_of_a_step_is_counted_once(sketch, facts):
    made = steps(sketch(0), num=2)
    made.host("data", 0, 100, "user_annotation")
    made.kernel(150, 200, launch=140)
    made.collective(300, 150)  # 50 of it hidden
    made.kernel(450, 50, name="Memcpy HtoD (Pinned -> Device)", category="gpu_memcpy", launch=150)
    made.kernel(510, 90, launch=160)  # 10 after the copy, long launched: a gap between kernels
    made.kernel(700, 100, launch=650)  # the host was late
    made.kernel(900, 100, launch=660)  # launched in time: it waited for something else
    parts = facts(made).ranks[0].breakdown
    assert parts.wall_us == 1000
    assert parts.compute_us == 200 + 90 + 100 + 100
    assert parts.exposed_transfer_us + parts.exposed_wait_us == 100
    assert parts.memory_us == 50
    assert parts.data_idle_us == 100
    assert parts.host_wait_us == 50 + 100
    assert parts.kernel_wait_us == 10
    assert parts.other_idle_us == 100


@pytest.mark.parametrize("seed", range(20))
def test_the_parts_add_up_to_the_wall(sketch, facts, seed):
    """Any mess of overlapping work on several streams."""
    dice = random.Random(seed)
    made = steps(sketch(0), num=4)
    for _ in range(60):
        at, took = dice.uniform(-200, 4200), dice.uniform(0, 150)
        launch = dice.choice([at, at - dice.uniform(0, 300), -1])
        kind = dice.choice(["gemm", "ncclDevKernel_AllReduce", "Memcpy DtoD"])
        category = "gpu_memcpy" if "Memcpy" in kind else "kernel"
        made.kernel(
            at, took, name=kind, launch=launch, category=category, stream=dice.choice([7, 9])
        )
    for _ in range(5):
        made.host("data", dice.uniform(0, 4000), dice.uniform(0, 100), "user_annotation")
    rank = facts(made).ranks[0]
    parts = rank.breakdown
    values = [getattr(parts, name) for name in parts.__struct_fields__ if name != "wall_us"]
    assert min(values) >= 0
    assert sum(values) == pytest.approx(parts.wall_us, abs=1e-6)
    assert rank.transfer_us + rank.wait_us == pytest.approx(rank.totals.comm_us, abs=1e-6)


def test_a_trace_without_marks_is_one_window(sketch, facts):
    made = sketch(0)
    made.kernel(0, 100, launch=-1)
    made.kernel(300, 100)
    rank = facts(made).ranks[0]
    assert (rank.num_steps, rank.breakdown.wall_us) == (0, 400)
    assert rank.breakdown.compute_us == 200


# --- buckets and the host -----------------------------------------------------------------------


def test_buckets_have_bytes_and_bus_bandwidth(sketch, facts):
    made = steps(sketch(0, world_size=4))
    for number in range(3):
        made.collective(number * 1000 + 100, 400, elements=1_000_000)
    (bucket,) = facts(made).ranks[0].buckets
    assert (bucket.operation, bucket.num_bytes, bucket.num_per_step) == ("all_reduce", 4_000_000, 1)
    # 2 · 3/4 · 4 MB in 400 µs
    assert bucket.busbw_bytes_per_s == pytest.approx(15e9)


@pytest.mark.parametrize(
    ("operation", "num_bytes", "size", "seconds", "expected"),
    [
        # nccl-tests, doc/PERFORMANCE.md: S is the whole array.
        ("all_reduce", 8e9, 8, 1, 14e9),
        ("reduce_scatter", 8e9, 8, 1, 7e9),
        ("all_gather", 1e9, 8, 1, 7e9),
        ("all_to_all", 8e9, 8, 1, 7e9),
        ("broadcast", 8e9, 8, 2, 4e9),
        ("all_reduce", 8e9, 1, 1, None),
        ("all_reduce", 8e9, 8, 0, None),
        ("barrier", 8e9, 8, 1, None),
    ],
)
def test_bus_bandwidth(operation, num_bytes, size, seconds, expected):
    assert bus_bandwidth(operation, int(num_bytes), size, seconds) == expected


def test_what_the_host_did_is_counted_per_step(sketch, facts):
    """The last step is left out, and so is the profiler's own synchronisation after it."""
    made = steps(sketch(0))
    for number in range(3):
        made.kernel(number * 1000 + 100, 200)
        made.host("aten::item", number * 1000 + 400, 120)
        made.host("aten::_local_scalar_dense", number * 1000 + 405, 110)
        made.host("cudaStreamSynchronize", number * 1000 + 410, 100, "cuda_runtime")
    made.host("cudaDeviceSynchronize", 3010, 5000, "cuda_runtime")
    host = facts(made).ranks[0].host
    assert (host.num_items, host.item_us) == (1, 240)
    assert (host.num_synchronisations, host.synchronised_us) == (1, 200)
    assert host.blocked_us == 0


def test_reading_many_ranks_keeps_their_order(sketch, write):
    files = []
    for rank in (10, 2, 0):
        made = steps(sketch(rank, world_size=16))
        made.kernel(10, 10)
        files.append(write(made, f"rank{rank}.json"))
    assert [rank.rank for rank in analyse(read_traces(files)[0]).ranks] == [0, 2, 10]
    assert read_trace(files[0]).world_size == 16
