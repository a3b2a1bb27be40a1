"""How busy a run's devices were: read on from a cursor, thinned, and summed up by time."""

from __future__ import annotations

import itertools
import statistics

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringside.launch.sampling import NUM_OLD, RECENT_S, thinned
from ringside.rundir import RunDir, write_atomic
from ringside.samples import (
    GpuSample,
    RankSample,
    Sample,
    SampleReader,
    read_samples,
    series_of,
    thin_points,
    throttled,
)


def sample(t: float, *values: float, **fields) -> Sample:
    gpus = (GpuSample(index=n, power_w=value, **fields) for n, value in enumerate(values))
    return Sample(t=t, gpus=tuple(gpus))


def lines(samples) -> bytes:
    return b"".join(msgspec.json.encode(one) + b"\n" for one in samples)


@pytest.fixture
def run(tmp_path):
    return RunDir(tmp_path)


def test_a_reader_goes_on_where_it_was(run):
    reader = SampleReader(run)
    assert not reader.poll()
    run.gpus.write_bytes(lines([sample(1.0, 5.0)]) + b'{"t":2.0,')
    assert reader.poll()
    assert [one.t for one in reader.samples] == [1.0]
    assert not reader.poll()
    with run.gpus.open("ab") as stream:
        stream.write(b'"gpus":[]}\nnot a line\n' + lines([sample(3.0, 7.0)]))
    assert reader.poll()
    assert [one.t for one in reader.samples] == [1.0, 2.0, 3.0]


def test_a_file_that_was_thinned_is_read_anew(run):
    reader = SampleReader(run)
    run.gpus.write_bytes(lines(sample(t, 1.0) for t in range(10)))
    reader.poll()
    write_atomic(run.gpus, lines(sample(t, 1.0) for t in (0, 4, 8, 9, 10, 11, 12, 13, 14, 15)))
    assert reader.poll()
    assert [one.t for one in reader.samples] == [0, 4, 8, 9, 10, 11, 12, 13, 14, 15]
    assert read_samples(run) == reader.samples


def test_a_file_that_was_thinned_twice_unseen_is_read_anew(run):
    """ext4 gives the second new file the number of the first old one."""
    reader = SampleReader(run)
    run.gpus.write_bytes(lines(sample(t, 1.0) for t in range(10)))
    reader.poll()
    times = [0, *range(4, 30, 2)]
    run.gpus.write_bytes(lines(sample(t, 1.0) for t in times))
    assert reader.poll()
    assert [one.t for one in reader.samples] == times
    assert not reader.poll()


def test_a_week_stays_small_and_is_seen_from_its_first_to_its_last_sample():
    """As the writer does it: again and again, whenever the file is full."""
    kept: list[Sample] = []
    end = 7 * 86_400
    for t in range(0, end, 2):
        kept.append(Sample(t=float(t)))
        if len(kept) >= 3000:
            kept = thinned(kept)
    assert len(kept) <= 3000
    times = [one.t for one in kept]
    assert times[0] == 0.0
    assert times[-1] == end - 2
    recent = [t for t in times if t >= times[-1] - RECENT_S]
    assert len(recent) == RECENT_S / 2 + 1
    old_gaps = [b - a for a, b in itertools.pairwise(times) if b < end - 12_000]
    assert max(old_gaps) < 3 * end / NUM_OLD


def test_the_median_is_by_time_not_by_line():
    """Old samples lie further apart: ten minutes at 300 W, then one minute at 500 W."""
    old = [sample(60.0 * minute, 300.0) for minute in range(10)]
    new = [sample(600.0 + 2 * n, 500.0) for n in range(30)]
    (power,) = series_of([*old, *new])
    assert statistics.median([300.0] * 10 + [500.0] * 30) == 500.0
    assert (power.p50, power.max, power.last) == (300.0, 500.0, 500.0)


def test_a_clock_that_was_set_back_is_no_time():
    """One high sample before an hour that went backwards."""
    times = (0.0, 2.0, 4.0, 6.0, -3600.0, -3598.0, -3596.0)
    (power,) = series_of([sample(t, 900.0 if t == -3600.0 else 100.0) for t in times])
    assert (power.p50, power.max) == (100.0, 900.0)


def test_a_curve_for_each_gpu_and_rank_and_none_for_what_is_not_told():
    gpu = GpuSample(index=3, power_w=9.0, memory_used_bytes=5, memory_total_bytes=8)
    first = Sample(t=1.0, gpus=(gpu,), ranks=(RankSample(rank=0, memory_bytes=7),))
    second = Sample(t=3.0, ranks=(RankSample(rank=0, cpu_cores=1.5, memory_bytes=8),))
    found = {(one.of, one.index, one.name): one for one in series_of([first, second])}
    assert list(found) == [
        ("gpu", 3, "memory_used_bytes"), ("gpu", 3, "power_w"),
        ("rank", 0, "cpu_cores"), ("rank", 0, "memory_bytes"),
    ]  # fmt: skip
    assert found["gpu", 3, "memory_used_bytes"].limit == 8
    assert found["rank", 0, "cpu_cores"].points == ((3.0, 1.5),)
    assert found["rank", 0, "memory_bytes"].points == ((1.0, 7.0), (3.0, 8.0))
    assert series_of([]) == ()


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=2000),
    st.integers(min_value=4, max_value=50),
)
def test_thinning_keeps_the_extremes_the_order_and_the_newest(values, limit):
    points = [(float(t), value) for t, value in enumerate(values)]
    kept = thin_points(points, limit)
    assert len(kept) <= limit
    assert kept == sorted(kept)
    assert set(kept) <= set(points)
    assert kept[-1] == points[-1]
    assert {max(values), min(values)} <= {value for _, value in kept}


def test_what_held_the_clocks_down_as_a_share_of_the_time():
    slow = {"throttle_reasons": ("power cap",)}
    samples = [sample(1.0, 1.0, **slow), sample(2.0, 1.0, 1.0), sample(3.0, 1.0), sample(4.0, 1.0)]
    assert throttled(samples) == {0: {"power cap": 0.25}, 1: {}}
    # Thinned: nine minutes at ease in as many lines as the one in which it was slowed.
    eased = [sample(30.0 * n, 1.0) for n in range(18)]
    slowed = [sample(540.0 + 60.0 * n / 18, 1.0, **slow) for n in range(18)]
    assert throttled([*eased, *slowed])[0]["power cap"] == pytest.approx(0.1)
    assert throttled([]) == {}
