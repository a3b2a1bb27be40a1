"""One denominator, the run's own step; and bounds of what a command saves."""

from __future__ import annotations

import pytest

from ringside.doctor import Case, diagnose
from ringside.doctor.gains import bound_of, fewer_bytes_of
from ringside.doctor.phrasing import Remedy
from ringside.doctor.shares import exposed_share, share_of, transfer_share

from tests.doctor.making import (  # isort: skip
    STEPS, WALL_US, bucket, facts, record, request, series, sweep,
)  # fmt: skip

PROFILED_MS = WALL_US / (STEPS - 1) / 1000  # 33.3


def found(case, code):
    diagnosis = diagnose(case)
    return next(one for one in (diagnosis.verdict, *diagnosis.others) if one.code == code)


def test_launches_that_the_profiler_slowed_are_not_blamed_in_full():
    """33.3 ms profiled, of which 20 wait for the host; the run itself takes 20 ms."""
    traced = facts(compute=0.3, host_wait=0.6)
    alone = diagnose(Case(facts=traced)).verdict
    assert (alone.code, alone.confidence) == ("LAUNCH-001", "high")
    launch = found(Case(record=record(step_ms=20.0), facts=traced), "LAUNCH-001")
    assert launch.confidence == "medium"
    assert launch.share_ratio == pytest.approx((0.6 * PROFILED_MS - (PROFILED_MS - 20)) / 20)
    label = {one.label: one.value for one in launch.evidence}
    assert label["this run's own step"] == "20.0 ms, profiled 33.3 ms"
    assert launch.sentence.endswith(f"up to {100 * launch.share_ratio:.0f} %.")
    # In a run of 12 ms the profiler added 21, more than the 20 that wait for the host.
    assert found(Case(record=record(step_ms=12.0), facts=traced), "LAUNCH-001").severity == "note"


def test_waits_for_the_gpu_cost_what_the_host_is_late_for_afterwards():
    """The host waits for 60 % of a profiled step of 33.3 ms and the GPU for 40: 13.3 ms, of which
    the profiler added as many as the step is longer."""
    given = {"num_synchronisations": 1.0, "synchronised_us": 0.6 * WALL_US}
    traced = facts(compute=0.3, host_wait=0.4, **given)
    assert found(Case(facts=traced), "HOST-001").share_ratio == pytest.approx(0.4)
    sync = found(Case(record=record(step_ms=28.0), facts=traced), "HOST-001")
    assert sync.share_ratio == pytest.approx((0.4 * PROFILED_MS - (PROFILED_MS - 28)) / 28)
    # In a run of 20 ms the profiler explains it all.
    assert found(Case(record=record(step_ms=20.0), facts=traced), "HOST-001").severity == "note"


def test_the_log_of_ddp_is_shown_where_it_takes_long():
    traced = facts(compute=0.3, host_wait=0.6, num_logging_syncs=8.0, logging_us=0.4 * WALL_US)
    shown = {one.label: one.value for one in found(Case(facts=traced), "LAUNCH-001").evidence}
    label = "waits of DDP's own log (in its first eleven steps and every hundredth)"
    assert shown[label] == f"{0.4 * PROFILED_MS:.1f} ms"
    assert found(Case(facts=traced), "LAUNCH-001").cause == "launch"


def test_what_the_device_does_takes_as_long_in_the_shorter_step():
    """10 ms exposed of 33.3 are 10 of 20, and of 12 at most what does not compute: 5.3."""
    traced = facts(compute=0.2, exposed_transfer=0.3)
    for own, ms in ((20.0, 0.3 * PROFILED_MS), (12.0, 12 - 0.2 * PROFILED_MS)):
        case = Case(record=record(step_ms=own), facts=traced)
        assert transfer_share(case) == pytest.approx(ms / own)
        assert exposed_share(case) == transfer_share(case)
        assert found(case, "LINK-001").share_ratio == transfer_share(case)


@pytest.mark.parametrize("own", [29.5, 33.3, 50.0])
def test_steps_that_are_alike_are_one(own):
    case = Case(record=record(step_ms=own), facts=facts(compute=0.2, exposed_transfer=0.3))
    assert transfer_share(case) == pytest.approx(0.3)
    assert not any("profiled" in one.value for one in found(case, "LINK-001").evidence)


def test_a_profiler_on_a_cpu_slows_everything_alike():
    traced = facts(compute=0.2, exposed_transfer=0.3, is_cpu_estimate=True)
    assert share_of(Case(record=record(step_ms=12.0), facts=traced), 0.3) == 0.3


def test_half_the_bytes_save_half_a_transfer_at_most():
    """DDP over sockets took 42.1 ms, with a bf16 hook 35.8: 15 % less."""
    num_bytes, gb_per_s = 94_851_728, 2.9
    exposed = facts(compute=0.38, exposed_transfer=0.6, buckets=(bucket(num_bytes, gb_per_s),))
    case = Case(record=record(request(precision="bf16"), step_ms=42.1), facts=exposed)
    transfer = num_bytes / gb_per_s / 1e6 / PROFILED_MS
    assert transfer > 0.9
    bound = fewer_bytes_of(case).gain_ratio
    assert bound == pytest.approx(transfer / 2)
    assert 1 - 35.8 / 42.1 <= bound < transfer_share(case)
    for code in ("LINK-001", "LINK-020"):
        assert found(case, code).gain_ratio == bound


def test_what_is_hidden_saves_nothing():
    hidden = facts(compute=0.7, exposed_transfer=0.12, buckets=(bucket(94_851_728, 2.9),))
    assert fewer_bytes_of(Case(record=record(), facts=hidden)).gain_ratio == pytest.approx(0.12)


def test_micro_steps_save_all_but_a_part_of_what_is_exposed():
    case = Case(record=record(), facts=facts(compute=0.4, exposed_transfer=0.4))
    more = Remedy(overrides={"accumulation_steps": "4"})
    assert bound_of(more, case) == pytest.approx(0.4 * (1 - 1 / 4))
    spec = request(batch=512, settings={"accumulation_steps": 4, "comm_hook": "bf16"})
    case = Case(record=record(spec), facts=facts(compute=0.4, exposed_transfer=0.4))
    remedy = fewer_bytes_of(case)
    assert remedy.overrides == {"accumulation_steps": "16"}
    assert remedy.gain_ratio == pytest.approx(0.4 * (1 - 1 / 4))


def test_without_a_trace_the_sweep_bounds_the_transfer():
    from tests.doctor.making import experiment

    arms = experiment(many=50.0, many_without_reduction=20.0)
    case = Case(record=record(), experiment=arms, sweep=sweep(series(6.0)))
    alone_ms = 5 * 0.02 + 94_851_728 / 6e6
    assert found(case, "LINK-002").gain_ratio == pytest.approx(alone_ms / 2 / 50)
    assert found(case, "LINK-002").share_ratio == pytest.approx(0.6)


def test_nobody_measured_and_nothing_is_bound():
    assert bound_of(Remedy(overrides={"comm_hook": "bf16"}), Case(record=record())) is None
