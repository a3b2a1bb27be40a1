"""Which finding becomes the verdict, and what is said where none does."""

from __future__ import annotations

import pytest

from ringside.doctor import Case, diagnose
from ringside.doctor.clocks import window_ms
from ringside.doctor.weighing import weight_of
from ringside.environment_lint import lint
from ringside.rank_windows import RankParts
from ringside.spec import FsdpConfig

from tests.doctor.making import (  # isort: skip
    baseline, bucket, changed, facts, log, machine, observed, rank_facts, record, request, series,
    sweep,
)  # fmt: skip

FORCED = {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}


def codes(diagnosis):
    return [diagnosis.verdict.code, *(one.code for one in diagnosis.others)]


def test_nothing_at_all_is_not_enough():
    diagnosis = diagnose(Case())
    assert diagnosis.verdict.confidence == "not enough data"
    assert diagnosis.verdict.sentence.endswith("no trace was recorded.")
    assert diagnosis.others == ()


def test_too_short_a_trace_is_not_enough():
    diagnosis = diagnose(Case(facts=facts(num_events=10, host_wait=0.9)))
    assert codes(diagnosis) == ["UNEXPLAINED-002"]


def test_too_short_a_trace_does_not_hide_what_the_run_measured():
    case = Case(record=record(data_ms=20.0), facts=facts(num_events=10))
    assert diagnose(case).verdict.code == "DATA-010"


def test_a_trace_without_a_cause_is_unexplained():
    diagnosis = diagnose(Case(facts=facts(compute=0.3, overlapped_us=0.0)))
    assert codes(diagnosis) == ["UNEXPLAINED-001"]
    assert diagnosis.verdict.evidence


def test_a_run_that_nothing_explains_says_so():
    spec = request()
    case = Case(record=record(spec, step_ms=60.0), baseline=baseline(spec, step_ms=50.0))
    diagnosis = diagnose(case)
    assert diagnosis.verdict.code == "UNEXPLAINED-001"
    assert [one.code for one in diagnosis.others] == ["NONE-010"]
    assert diagnosis.missing


def test_a_run_that_scales_well_has_no_cause():
    spec = request()
    fine = facts(compute=0.4, exposed_transfer=0.02)
    case = Case(record=record(spec, step_ms=51.0), baseline=baseline(spec), facts=fine)
    verdict = diagnose(case).verdict
    assert (verdict.code, verdict.confidence) == ("NONE-001", "high")


def test_a_run_that_scales_well_and_waits_for_images_still_does():
    """One device waits as well, so the speed-up shows nothing."""
    spec = request()
    case = Case(record=record(spec, data_ms=20.0), baseline=baseline(spec))
    assert diagnose(case).verdict.code == "DATA-010"


def test_handicaps_go_before_data_and_data_before_the_link():
    step = {"compute": 0.2, "data_idle": 0.3, "exposed_transfer": 0.3, "data_wait_us": 30_000}
    plain = diagnose(Case(facts=facts(**step)))
    assert [one.cause for one in (plain.verdict, *plain.others)][:2] == ["data", "link"]
    handicapped = diagnose(Case(facts=facts(**step, num_data_parallel=1.0, num_devices=2)))
    causes = [one.cause for one in (handicapped.verdict, *handicapped.others)]
    assert causes[:3] == ["data_parallel", "data", "link"]


def test_variables_that_shut_a_way_and_the_cost_of_it_are_one_card():
    slow = facts(compute=0.4, exposed_transfer=0.4, buckets=(bucket(27_000_000, 2.9),))
    case = Case(facts=slow, nccl=log("NET", "Socket", environment=FORCED), variables=lint(FORCED))
    diagnosis = diagnose(case)
    verdict = diagnosis.verdict
    assert codes(diagnosis) == ["LINK-014"]
    assert (verdict.share_ratio, verdict.severity) == (pytest.approx(0.4), "critical")
    assert verdict.next_step.startswith("Unset NCCL_P2P_DISABLE and NCCL_SHM_DISABLE, then")
    assert verdict.unset == ("NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE")
    shown = {one.label: one.value for one in verdict.evidence}
    assert shown["moving data while nothing computes"] == "40 %"  # of LINK-001
    assert shown["one all-reduce"] == "27.00 MB in 9.31 ms, 2.90 GB/s"


def test_a_shut_way_that_costs_nothing_is_a_note():
    """Over sockets, but the GPU computes and the exchange is hidden."""
    fine = facts(compute=0.9, exposed_transfer=0.04, buckets=(bucket(27_000_000, 2.9),))
    case = Case(facts=fine, nccl=log("NET", "Socket", environment=FORCED), variables=lint(FORCED))
    diagnosis = diagnose(case)
    assert diagnosis.verdict.code == "COMPUTE-001"
    sockets = next(one for one in diagnosis.others if one.code == "LINK-014")
    assert sockets.severity == "note"
    assert "at most 4.0 %" in sockets.sentence


def test_a_handicap_of_the_program_goes_before_compute_and_after_what_costs_more():
    spec = request(settings={"sync_batchnorm": True})
    busy = Case(record=record(spec), facts=facts(compute=0.9))
    assert diagnose(busy).verdict.code == "BATCHNORM-010"
    starved = Case(record=record(spec, data_ms=25.0), facts=facts(compute=0.4, data_idle=0.5))
    assert diagnose(starved).verdict.cause == "data"


def test_without_a_measured_cost_a_variable_is_the_verdict():
    off = {"NCCL_P2P_DISABLE": "1"}
    case = Case(nccl=log("SHM", "direct/direct", environment=off), variables=lint(off))
    assert codes(diagnose(case)) == ["LINK-011"]
    assert diagnose(case).verdict.share_ratio is None


def test_the_late_rank_counts_not_those_that_wait():
    waiting, late = rank_facts(0, compute=0.3, exposed_wait=0.5), rank_facts(1, compute=0.8)
    diagnosis = diagnose(Case(facts=facts(waiting, late)))
    assert diagnosis.verdict.code == "LATE-001"
    assert "link" not in {one.cause for one in diagnosis.others}


def test_the_ranks_own_lines_name_the_late_one():
    """Rank 1 needs 20 ms longer forward; rank 0 spends them in its backward pass."""
    common = {"num_steps": 100, "step_ms": 100.0, "data_ms": 1.0, "optimizer_ms": 9.0}
    early = RankParts(rank=0, forward_ms=30.0, backward_ms=60.0, **common)
    late = RankParts(rank=1, forward_ms=50.0, backward_ms=40.0, **common)
    verdict = diagnose(Case(ranks=(early, late))).verdict
    assert (verdict.code, verdict.cause) == ("LATE-010", "late_rank")
    assert verdict.sentence.startswith("Rank 1 is late by 20.0 ms a step (forward)")
    busy = RankParts(rank=1, forward_ms=50.0, backward_ms=60.0, **common)
    assert diagnose(Case(ranks=(early, busy))).verdict.code == "UNEXPLAINED-002"


@pytest.mark.parametrize(("share", "severity"), [(0.25, "critical"), (0.15, "warning")])
def test_the_bands(share, severity):
    verdict = diagnose(Case(facts=facts(compute=0.3, data_idle=share))).verdict
    assert (verdict.cause, verdict.severity) == ("data", severity)
    assert verdict.gain_ratio == pytest.approx(share)


def test_the_order_is_by_weight_first():
    case = Case(
        record=record(request(), data_ms=8.0), machine=machine(), sweep=sweep(series(200.0)),
        facts=facts(compute=0.1, host_wait=0.6, data_idle=0.15),
    )  # fmt: skip
    diagnosis = diagnose(case)
    weights = [weight_of(one) for one in (diagnosis.verdict, *diagnosis.others)]
    assert weights == sorted(weights)
    assert diagnosis.verdict.code == "LAUNCH-001"


def test_single_devices_are_not_asked_for_an_exchange():
    missing = " ".join(diagnose(Case(record=record(request("single")))).missing)
    assert "experiment" not in missing
    assert "`ringside doctor`" not in missing
    assert "trace" in missing


def test_a_healthy_machine_has_nothing_that_holds_back():
    diagnosis = diagnose(Case(machine=machine(), sweep=sweep(series(200.0))))
    assert codes(diagnosis) == ["NONE-002"]
    assert (diagnosis.verdict.cause, diagnosis.verdict.confidence) == ("none", "high")
    assert diagnose(Case(machine=machine())).verdict.confidence == "medium"
    full = changed(machine(), disk_free_bytes=2**30)
    assert codes(diagnose(Case(machine=full))) == ["MACHINE-009"]


def test_the_commands_for_what_is_missing_are_whole():
    spec = request(precision="bf16", batch=128, epochs=5, seed=3)
    baseline_missing = next(one for one in diagnose(Case(record=record(spec))).missing[1:])
    assert baseline_missing.endswith(
        "`ringside run single --data=emoji --model=resnet50 --batch=64 --image-size=32 --epochs=5 "
        "--seed=3 --set=mixed_precision=bf16`."
    )
    assert "--profile=5" in diagnose(Case(record=record(spec))).missing[0]


def test_one_step_that_waits_for_the_loader_is_no_cause():
    """The first step of an epoch waits 245 ms for workers to start; the others for nothing."""
    run = record()
    first = changed(run.windows[4], num_steps=1, data_ms=245.0, step_ms=290.0)
    for one_only in ([first], [first, *run.windows[5:8]]):
        short = changed(run, windows=[*run.windows[:4], *one_only])
        assert "DATA-010" not in codes(diagnose(Case(record=short)))


def test_each_step_counts_once_however_many_a_window_holds():
    run = record()
    long = changed(run.windows[4], num_steps=30, step_ms=40.0)
    short = changed(run.windows[5], num_steps=10, step_ms=80.0)
    case = Case(record=changed(run, windows=[*run.windows[:4], long, short]))
    assert window_ms(case, "step") == pytest.approx((30 * 40 + 10 * 80) / 40)


@pytest.mark.parametrize(
    ("field", "got"),
    [("compiled", True), ("channels_last", False), ("find_unused_parameters", True),
     ("freeze", "backbone"), ("num_devices", 1), ("gradient_as_bucket_view", True)],
)  # fmt: skip
def test_whatever_the_trainer_compares_is_compared(field, got):
    spec = request()
    verdict = diagnose(Case(record=record(spec, seen=observed(spec, **{field: got})))).verdict
    assert verdict.code == "ENVIRONMENT-011"
    told = field.replace("compiled", "compile").replace("_", " ")
    assert told in verdict.sentence


def test_what_an_older_ringside_did_not_look_at_is_not_apart():
    spec = request()
    case = Case(record=record(spec, seen=observed(spec, num_devices=None)))
    assert diagnose(case).verdict.code != "ENVIRONMENT-011"


@pytest.mark.parametrize(
    ("used_gib", "offload", "fires"),
    [(80, False, True), (126, False, False), (125, False, True), (10, True, False)],
)
def test_fsdp_is_for_what_ddp_cannot_hold(used_gib, offload, fires):
    """Two devices of 140 GiB; DDP takes 8 bytes of 24 million parameters more: 0.18 GiB."""
    spec = request("fsdp")
    config = FsdpConfig(fsdp_offload_params=offload)
    spec = changed(spec, accelerate=changed(spec.accelerate, fsdp_config=config))
    case = Case(record=record(spec, memory_bytes=used_gib * 2**30), machine=machine())
    assert ("LINK-019" in codes(diagnose(case))) == fires


@pytest.mark.parametrize("steps", [4, 8])
def test_accumulating_is_no_loss(steps):
    """A step of several micro-steps against one device's step of one: per image it is as fast."""
    spec = request(batch=128 * steps, settings={"accumulation_steps": steps})
    case = Case(
        record=record(spec, step_ms=50.5 * steps), baseline=baseline(spec), sweep=sweep(series(200))
    )
    verdict = diagnose(case).verdict
    assert verdict.code == "NONE-001"
    assert codes(diagnose(case)) == ["NONE-001", "NONE-010"]
    slow = Case(
        record=record(spec, step_ms=75.0 * steps), baseline=baseline(spec), sweep=sweep(series(200))
    )
    lost = next(one for one in (diagnose(slow).verdict, *diagnose(slow).others)
                if one.code == "UNEXPLAINED-010")  # fmt: skip
    assert lost.share_ratio == pytest.approx(1 / 3)
    assert lost.evidence[0].value == f"{25 * steps}.0 ms a step"


def test_one_device_bounds_what_an_exchange_costs():
    """62 % of the step is exposed, and one device needs 34 of the 40 ms: the host sets the pace."""
    spec = request()
    waiting = facts(
        compute=0.2, exposed_transfer=0.62, host_wait=0.15, buckets=(bucket(27_000_000, 2.9),)
    )
    case = Case(
        record=record(spec, step_ms=40.0), baseline=baseline(spec, step_ms=34.0), facts=waiting
    )
    diagnosis = diagnose(case)
    link = next(one for one in (diagnosis.verdict, *diagnosis.others) if one.cause == "link")
    assert (link.share_ratio, link.severity) == (pytest.approx(0.15), "warning")
    assert link.gain_ratio <= 0.15 + 1e-9
    assert "One device alone needs 34.0 of the 40.0 ms for as many images" in link.sentence
    assert (link.evidence[0].value, link.evidence[0].source) == (
        "34.0 of 40.0 ms", "20260101-000000-mild-crane"
    )  # fmt: skip
    slow = Case(
        record=record(spec, step_ms=100.0), baseline=baseline(spec, step_ms=34.0), facts=waiting
    )
    # Four micro-steps have one optimizer step, and cost less than four steps of one device.
    many = request(batch=512, settings={"accumulation_steps": 4})
    accumulating = Case(
        record=record(many, step_ms=130.8), baseline=baseline(spec, step_ms=26.6), facts=waiting
    )
    told = diagnose(accumulating).verdict
    assert (told.cause, told.share_ratio) == ("link", pytest.approx(0.62))
    free = diagnose(slow).verdict
    assert (free.cause, free.share_ratio) == ("link", pytest.approx(0.62))
    assert "One device alone" not in free.sentence
