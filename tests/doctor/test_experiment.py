"""The experiment outranks what a trace or a clock only suggests."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ringside.doctor import Case, all_checks, diagnose
from ringside.doctor.checks import data_clocked
from ringside.doctor.merging import SAME_COST
from ringside.doctor.tested import tested as as_tested
from ringside.environment_lint import lint
from ringside.trace.judging import all_checks as trace_checks

from tests.doctor.making import (  # isort: skip
    baseline, experiment, facts, log, machine, observed, record, request, series, sweep,
)  # fmt: skip

STARVED = facts(compute=0.4, data_idle=0.4, data_wait_us=40_000.0)
SLOW = facts(compute=0.4, exposed_transfer=0.4)


def found(diagnosis, code):
    return next(one for one in (diagnosis.verdict, *diagnosis.others) if one.code == code)


def test_a_trace_that_the_experiment_contradicts_is_lowered():
    """The trace says that 40 % of the step wait for images; without them the step is as long."""
    case = Case(facts=STARVED, experiment=experiment(many=100.0, many_synthetic=99.0))
    diagnosis = diagnose(case)
    starved = found(diagnosis, "DATA-001")
    assert (starved.confidence, starved.severity) == ("low", "note")
    assert starved.share_ratio == pytest.approx(0.01)
    assert diagnosis.verdict.code == "UNEXPLAINED-001"
    assert "disagrees: 1.0" in found(diagnosis, "DATA-001").evidence[0].value
    assert "DATA-002" not in {one.code for one in diagnosis.others}


def test_a_clock_that_the_experiment_confirms_is_sure():
    """Shares of a tenth are of medium confidence; taken away and timed they are sure."""
    case = Case(record=record(data_ms=7.5), experiment=experiment(many=100.0, many_synthetic=80.0))
    alone = data_clocked.check(case)
    assert (alone.confidence, alone.severity) == ("medium", "warning")
    starved = as_tested(alone, case)
    assert (starved.confidence, starved.severity) == ("high", "critical")
    assert (starved.share_ratio, starved.gain_ratio) == (pytest.approx(0.2), pytest.approx(0.2))
    assert diagnose(case).verdict.share_ratio == pytest.approx(0.2)


def thrice_measured(many_synthetic):
    """Clocks, a trace and the experiment: a step of 50 ms beside one with made-up images."""
    return Case(
        record=record(data_ms=20.0), facts=STARVED, machine=machine(num_cores=32),
        experiment=experiment(many=50.0, many_synthetic=many_synthetic),
    )  # fmt: skip


def test_images_cost_once_and_the_experiment_tells_of_it():
    """Clocks and a trace saw the same wait: they stand behind it, with the clocks' command."""
    diagnosis = diagnose(thrice_measured(many_synthetic=30.0))
    verdict = diagnosis.verdict
    assert (verdict.code, verdict.confidence) == ("DATA-002", "high")
    assert "data" not in {one.cause for one in diagnosis.others}
    shown = [(one.label, one.value) for one in verdict.evidence]
    assert ("less with made-up images", "20.0 ± 0.6 ms, 40 %") in shown
    assert ("waiting for images", "20.0 ms a step") in shown
    assert ("waiting for images a step, rank 0", "13.3 ms") in shown  # 40 ms in three steps
    assert "the experiment" not in dict(shown)  # what it says of the others is the finding itself
    assert verdict.overrides == {"num_workers": "15"}


def test_a_run_without_an_experiment_waits_once_by_its_clocks():
    diagnosis = diagnose(Case(record=record(data_ms=20.0), facts=STARVED))
    verdict = diagnosis.verdict
    assert (verdict.code, verdict.share_ratio) == ("DATA-010", pytest.approx(0.4))
    assert "data" not in {one.cause for one in diagnosis.others}
    assert "waiting for images a step, rank 0" in {one.label for one in verdict.evidence}


@pytest.mark.parametrize("clocked_ms", [12.0, 1.0])
def test_of_clocks_and_a_trace_the_larger_share_is_told(clocked_ms):
    """Else a slow loader looks like the link on which the other ranks wait for it."""
    seen_in_trace = facts(compute=0.3, data_idle=0.4, data_wait_us=40_000.0, exposed_transfer=0.25)
    case = Case(record=record(step_ms=100.0, data_ms=clocked_ms), facts=seen_in_trace)
    diagnosis = diagnose(case)
    verdict = diagnosis.verdict
    assert (verdict.code, verdict.share_ratio) == ("DATA-001", pytest.approx(0.4))
    assert "DATA-010" not in {one.code for one in diagnosis.others}
    has_clocks = "waiting for images" in {one.label for one in verdict.evidence}
    assert has_clocks == (clocked_ms > 10)


def test_clocks_are_no_surer_for_a_trace_of_a_smaller_share():
    little = facts(compute=0.6, data_idle=0.15, data_wait_us=15_000.0)
    case = Case(record=record(step_ms=100.0, data_ms=30.0), facts=little)
    alone, verdict = data_clocked.check(case), diagnose(case).verdict
    assert (verdict.code, verdict.confidence) == ("DATA-010", alone.confidence)


def test_a_wait_that_the_experiment_contradicts_is_one_note():
    diagnosis = diagnose(thrice_measured(many_synthetic=49.5))
    told = [one for one in diagnosis.others if one.cause == "data"]
    assert [(one.code, one.severity, one.overrides) for one in told] == [("DATA-010", "note", {})]
    assert [one.label for one in told[0].evidence].count("the experiment") == 1


def test_a_shut_way_and_a_wait_for_images_are_both_told_once():
    shut = {"NCCL_P2P_DISABLE": "1"}
    both = facts(compute=0.2, data_idle=0.3, data_wait_us=30_000.0, exposed_transfer=0.3)
    case = Case(
        record=record(step_ms=100.0, data_ms=30.0), facts=both,
        nccl=log("SHM", "direct/direct", environment=shut), variables=lint(shut),
    )  # fmt: skip
    diagnosis = diagnose(case)
    codes = [one.code for one in (diagnosis.verdict, *diagnosis.others)]
    assert codes[:2] == ["DATA-010", "LINK-011"]
    assert not {"DATA-001", "LINK-001"} & set(codes)


def test_the_codes_of_one_cost_are_codes_of_checks():
    codes = [code for group in SAME_COST for code in group]
    known = {check.CODE: check.CAUSE for check in (*all_checks(), *trace_checks())}
    assert set(codes) <= set(known)
    assert len(codes) == len(set(codes))
    assert [len({known[code] for code in group}) for group in SAME_COST] == [1] * len(SAME_COST)


def test_another_cause_that_was_only_suspected_takes_its_place():
    """The exchange is exposed by the trace, and costs nothing when it is left out: images do."""
    arms = experiment(many=100.0, many_without_reduction=99.0, many_synthetic=60.0)
    diagnosis = diagnose(Case(facts=SLOW, experiment=arms))
    assert diagnosis.verdict.code == "DATA-002"
    link = found(diagnosis, "LINK-001")
    assert (link.confidence, link.severity, link.overrides) == ("low", "note", {})


def test_an_exchange_that_costs_more_than_the_link_can_is_not_the_links():
    """13 of 37 ms are saved without the exchange, of which NVLink needs half a millisecond."""
    arms = experiment(many=36.8, many_without_reduction=23.7)
    case = Case(record=record(step_ms=36.8), experiment=arms, sweep=sweep(series(200.0)))
    verdict = diagnose(case).verdict
    assert (verdict.code, verdict.cause) == ("UNEXPLAINED-010", "unexplained")
    assert "Not the link" in verdict.sentence
    # 94.85 MB a step in 13.1 ms
    assert verdict.evidence[2].value == "7.24 GB/s"


def test_within_noise_is_no_cost():
    arms = experiment(spread=0.3, many=100.0, many_synthetic=85.0)
    assert diagnose(Case(experiment=arms)).verdict.cause == "unexplained"
    assert diagnose(Case(experiment=arms)).others == ()


def test_an_experiment_whose_arms_failed_says_nothing():
    assert diagnose(Case(experiment=experiment(one=50.0))).others == ()


def test_a_link_that_costs_nothing_when_it_is_taken_away_is_not_the_verdict():
    arms = experiment(many=100.0, many_without_reduction=98.0)
    shut = {"NCCL_P2P_DISABLE": "1"}
    for log_ in (None, log("SHM", "direct/direct", environment=shut)):
        case = Case(facts=SLOW, experiment=arms, nccl=log_)
        diagnosis = diagnose(case)
        assert diagnosis.verdict.code == "UNEXPLAINED-001"
        assert {one.severity for one in diagnosis.others} == {"note"}
        assert max(one.share_ratio for one in diagnosis.others) == pytest.approx(0.02)


def test_the_share_of_a_link_is_the_experiments():
    """The trace saw 40 % exposed; leaving the exchange out saves 25 of 100 ms."""
    arms = experiment(many=100.0, many_without_reduction=75.0)
    spec = request(precision="bf16")
    case = Case(record=record(spec, step_ms=100.0), facts=SLOW, experiment=arms)
    diagnosis = diagnose(case)
    assert diagnosis.verdict.code == "LINK-002"
    for code in ("LINK-002", "LINK-020"):
        assert found(diagnosis, code).share_ratio == pytest.approx(0.25)
        assert found(diagnosis, code).severity == "critical"


def test_one_exchange_is_told_once_by_what_says_most_of_it():
    """The experiment, and what the trace saw; a shut way or the kernels before either."""
    arms = experiment(many=100.0, many_without_reduction=75.0)
    kernels = facts(compute=0.5, exposed_transfer=0.4, num_persistent=106.0, hidden_transfer_us=0.0)
    shut = log("SHM", "direct/direct", environment={"NCCL_P2P_DISABLE": "1"})
    plain = Case(record=record(request(precision="bf16"), step_ms=100.0), facts=SLOW)
    for case, code in (
        (plain, "LINK-002"),
        (replace(plain, nccl=shut, variables=lint({"NCCL_P2P_DISABLE": "1"})), "LINK-011"),
        (Case(record=record(request(), step_ms=100.0), facts=kernels), "LINK-003"),
    ):
        diagnosis = diagnose(replace(case, experiment=arms))
        told = {one.code for one in (diagnosis.verdict, *diagnosis.others)}
        assert told & {"LINK-001", "LINK-002", "LINK-003", "LINK-011"} == {code}
        labels = [one.label for one in found(diagnosis, code).evidence]
        assert "moving data while nothing computes" in labels  # the trace
        assert "less without the exchange" in labels  # the experiment
        assert len(labels) == len(set(labels))


def test_the_experiment_decides_on_an_exchange_that_takes_turns_with_compute():
    slow = facts(compute=0.5, exposed_transfer=0.4, num_persistent=106.0, hidden_transfer_us=0.0)
    for without, severity in ((75.0, "critical"), (98.0, "note")):
        arms = experiment(many=100.0, many_without_reduction=without)
        case = Case(record=record(request(), step_ms=100.0), facts=slow, experiment=arms)
        held = found(diagnose(case), "LINK-003")
        assert held.share_ratio == pytest.approx(1 - without / 100)
        assert (held.severity, held.preset is None) == (severity, severity == "note")


def test_arms_that_spread_too_far_decide_nothing():
    """12 of 100 ms, give or take 21: less than a tenth is as likely as a fifth."""
    arms = experiment(spread=0.2, many=100.0, many_synthetic=88.0)
    starved = found(diagnose(Case(facts=STARVED, experiment=arms)), "DATA-001")
    assert (starved.severity, starved.share_ratio) == ("critical", pytest.approx(0.4))
    assert starved.evidence[0].value.startswith("cannot tell: 12.0")


def test_time_that_the_experiment_does_not_tell_is_the_baselines():
    """Its arm without the exchange failed: what is lost comes from the runs, and is said so."""
    spec = request()
    case = Case(
        record=record(spec, step_ms=100.0), baseline=baseline(spec), sweep=sweep(series(200.0)),
        experiment=experiment(many=100.0, one=50.0),
    )  # fmt: skip
    told = found(diagnose(case), "UNEXPLAINED-010")
    assert (told.evidence[0].value, told.evidence[0].source) == ("50.0 ms a step", "events.jsonl")


def test_fsdp_moves_its_bytes_three_times():
    spec = request("fsdp")
    seen = observed(spec, reduced_bytes_per_step=94_851_728)
    case = Case(
        record=record(spec, step_ms=36.8, seen=seen), sweep=sweep(series(200.0)),
        experiment=experiment(many=36.8, many_without_reduction=23.7),
    )  # fmt: skip
    told = found(diagnose(case), "UNEXPLAINED-010")
    assert told.evidence[1].value == "142.3 MB a step"  # 3/2 of 94.85
    assert told.evidence[2].value == "10.86 GB/s"  # in 13.1 ms
