"""The experiment outranks what a trace or a clock only suggests."""

from __future__ import annotations

import pytest

from ringside.doctor import Case, diagnose

from tests.doctor.making import experiment, facts, record, series, sweep  # isort: skip

STARVED = facts(compute=0.4, data_idle=0.4, data_wait_us=40_000.0)
SLOW = facts(compute=0.4, exposed_transfer=0.4)


def found(diagnosis, code):
    return next(one for one in (diagnosis.verdict, *diagnosis.others) if one.code == code)


def test_a_trace_that_the_experiment_contradicts_is_lowered():
    """The trace says that 40 % of the step wait for images; without them the step is as long."""
    case = Case(facts=STARVED, experiment=experiment(many=100.0, many_synthetic=99.0))
    diagnosis = diagnose(case)
    assert found(diagnosis, "DATA-001").confidence == "low"
    assert "disagrees: 1.0" in found(diagnosis, "DATA-001").evidence[0].value
    assert "DATA-002" not in {one.code for one in diagnosis.others}


def test_a_trace_that_the_experiment_confirms_is_sure():
    """Shares of a tenth are of medium confidence; taken away and timed they are sure."""
    little = facts(compute=0.6, data_idle=0.15, data_wait_us=15_000.0)
    alone = diagnose(Case(facts=little))
    assert found(alone, "DATA-001").confidence == "medium"
    both = Case(facts=little, experiment=experiment(many=100.0, many_synthetic=80.0))
    diagnosis = diagnose(both)
    assert found(diagnosis, "DATA-001").confidence == "high"
    assert diagnosis.verdict.code == "DATA-002"
    assert diagnosis.verdict.share_ratio == pytest.approx(0.2)


def test_another_cause_that_was_only_suspected_takes_its_place():
    """The exchange is exposed by the trace, and costs nothing when it is left out: images do."""
    arms = experiment(many=100.0, many_without_reduction=99.0, many_synthetic=60.0)
    diagnosis = diagnose(Case(facts=SLOW, experiment=arms))
    assert diagnosis.verdict.code == "DATA-002"
    assert found(diagnosis, "LINK-001").confidence == "low"


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
