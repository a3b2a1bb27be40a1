"""Sums of real traces, against values that HolisticTraceAnalysis 0.5 gives for them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ringside.trace import analyse, read_trace
from ringside.trace.idle import idle_of
from ringside.trace.intervals import total
from ringside.trace.totals import totals

SHARED = Path(__file__).parents[3] / "shared"
PUBLIC = SHARED / "traces"
LAB = SHARED / "lab" / "h200x2"
KEYS = ("comm_us", "overlapped_us", "exposed_us", "compute_us", "idle_us", "span_us")


def expected(folder):
    path = folder / "expected.json"
    if not path.exists():
        return [pytest.param("", {}, marks=pytest.mark.skip(reason=f"no traces in {folder}"))]
    return list(json.loads(path.read_text()).items())


@pytest.mark.parametrize(("name", "values"), expected(PUBLIC))
def test_public_traces_to_the_microsecond(name, values):
    trace = read_trace(PUBLIC / name)
    if not values["gpu"]:
        assert trace.is_cpu_estimate
        assert trace.num_devices == 0
        return
    sums = totals(trace, keep_fractions=False)
    assert {key: getattr(sums, key) for key in KEYS} == {key: values[key] for key in KEYS}
    assert sums.num_events == values["gpu"]
    steps = [round((mark.end - mark.start) / 1e6, 2) for mark in trace.steps]
    assert steps == values["step_ms"]
    overlap = None if sums.overlap_ratio is None else round(100 * sums.overlap_ratio, 2)
    assert overlap == values["overlap_pct"]


@pytest.mark.parametrize(("name", "values"), expected(LAB))
def test_the_lab_to_a_tenth_of_a_microsecond(name, values):
    """Its values are sums of floats, ours of whole nanoseconds."""
    trace = read_trace(LAB / name)
    sums = totals(trace)
    got = {key: getattr(sums, key) for key in KEYS}
    assert got == pytest.approx({key: values[key] for key in KEYS}, abs=0.15)
    assert sums.num_events == values["gpu"]


def public(name):
    path = PUBLIC / f"{name}.json.gz"
    if not path.exists():
        pytest.skip(f"no traces in {PUBLIC}")
    return read_trace(path)


def test_steps_of_the_a100_trace():
    """Per-step truths that stand beside the file; its gradients are those of ResNet-50."""
    rank = analyse([public("ddp_resnet50_2xa100")]).ranks[0]
    exposed = [100 * step.exposed_us / step.step_us for step in rank.steps]
    assert exposed == pytest.approx([4.57, 4.80, 8.38], abs=0.005)
    assert [step.comm_us for step in rank.steps] == pytest.approx([11989, 12300, 22587], abs=1)
    reduces = [bucket for bucket in rank.buckets if bucket.operation == "all_reduce"]
    num_elements = sum(b.num_per_step * b.num_bytes / 4 for b in reduces)
    assert num_elements == 25_557_032
    assert {bucket.num_bytes // 4 for bucket in reduces} == {
        2_049_000, 7_875_584, 6_563_840, 6_637_568, 2_431_040,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "host_ratio"),
    [
        ("resnet50_v100_workers0", 0.97),
        ("resnet50_v100_workers4", 0.94),
        ("ddp_resnet50_2xa100", 0.99),
    ],
)
def test_idle_time_is_the_hosts_as_in_hta(name, host_ratio):
    """HTA classes the gaps of one stream; one stream has nearly all the work of these traces."""
    trace = public(name)
    kept = trace.work.launch < trace.steps[-1].start
    idle = idle_of(trace, int(trace.work.start[0]), int(trace.work.end[kept].max()))
    parts = [total(part) for part in (idle.host_wait, idle.kernel_wait, idle.other)]
    data = total(idle.data)
    assert (parts[0] + data) / (sum(parts) + data) == pytest.approx(host_ratio, abs=0.03)


# --- the rule, on traces made by hand -----------------------------------------------------------


def test_work_without_a_launch_and_of_the_last_step_is_left_out(write, sketch):
    made = sketch()
    made.step(1, 0, 100)
    made.step(2, 100, 100)
    made.kernel(10, 20)
    made.kernel(40, 20, launch=-1)
    made.kernel(120, 20, launch=99)
    made.kernel(150, 20, launch=100)
    sums = totals(read_trace(write(made)))
    assert sums.num_events == 2
    assert (sums.compute_us, sums.span_us, sums.idle_us) == (40, 130, 90)


def test_fractions_are_rounded_inwards(write, sketch):
    made = sketch()
    made.kernel(0.4, 10)
    trace = read_trace(write(made))
    assert totals(trace).compute_us == 10
    assert totals(trace, keep_fractions=False).compute_us == 9


def test_nothing_counted_is_nothing_not_an_error(write, sketch):
    made = sketch()
    made.kernel(0, 10, launch=-1)
    sums = totals(read_trace(write(made)))
    assert (sums.num_events, sums.span_us, sums.overlap_ratio) == (0, 0, None)
