"""The six points with what a run measured, against figures that are known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ringside.doctor import Case
from ringside.doctor.figures import bucket_bytes
from ringside.doctor.walkthrough import POINTS, walk
from ringside.environment_lint import lint
from ringside.events import DdpReported

from tests.doctor.making import (  # isort: skip
    BUCKETS, baseline, description, facts, log, observed, record, request, series, sweep,
)  # fmt: skip

DDP = request(precision="bf16")
WHOLE = Case(
    record=record(DDP, step_ms=60.0), baseline=baseline(DDP), nccl=log("NET", "Socket"),
    facts=facts(compute=0.5, exposed_transfer=0.4, overlapped_us=10_000.0),
    sweep=sweep(series(2.9)), description=description(host_us=1.0, device_us=100_000.0),
)  # fmt: skip


def point(case, name):
    return next(one for one in walk(case) if one.name == name)


def values(case, name):
    return {one.label: one.value for one in point(case, name).figures}


def test_all_six_have_words_and_nothing_is_known_of_nothing():
    points = walk(Case())
    assert [one.number for one in points] == [1, 2, 3, 4, 5, 6]
    assert {one.state for one in points} == {"unknown"}
    for one in points:
        assert one.title
        assert one.claim
        assert one.truth
        assert all(figure.value is None and figure.how for figure in one.figures)


def test_bytes_on_the_wire_are_those_of_a_ring():
    found = values(WHOLE, "bytes")
    assert found["trained parameters"] == "23,712,932"
    assert found["gradients an optimizer step"] == "94.85 MB"
    # 2(n-1)/n at n = 2: as many as there are
    assert found["on the wire per device"] == "94.85 MB = 2(n-1)/n, n = 2"
    # five messages: 20 µs each, then 2.9 GB/s
    assert found["exchange of them alone"] == f"{5 * 0.02 + sum(BUCKETS) / 2.9e6:.2f} ms"
    assert found["backward pass of one device"] == "60.00 ms"


def test_the_backward_pass_of_one_device_may_hide_the_exchange():
    """The run's own holds the exchange already, so that it is never shorter."""
    hidden = replace(WHOLE, facts=None)
    assert point(hidden, "bytes").state == "ok"  # 32.8 ms behind 60
    slower = replace(hidden, description=description(host_us=1.0, device_us=50_000.0))
    assert point(slower, "bytes").state == "attention"  # 32.8 ms behind 30
    assert point(replace(hidden, description=None), "bytes").state == "unknown"
    other = replace(hidden, description=description(host_us=1.0, device_us=1e5, batch=256))
    assert point(other, "bytes").state == "unknown"


def test_an_exchange_that_a_trace_saw_exposed_is_not_hidden():
    assert point(WHOLE, "bytes").state == "attention"


def test_the_layout_that_ddp_settled_on_counts_and_a_hook_halves_it():
    spec = request(precision="bf16", settings={"comm_hook": "bf16"})
    half = record(spec, seen=observed(spec, reduced_bytes_per_step=47_000_000))
    half.ddp = DdpReported(epoch=1, step=9, rebuilt_bucket_bytes=(64_000_000, 30_000_000))
    case = Case(record=half, sweep=sweep(series(2.9)))
    assert bucket_bytes(case) == (32_000_000, 15_000_000)
    assert values(case, "bytes")["exchange of them alone"] == f"{2 * 0.02 + 47 / 2.9:.2f} ms"


def test_fsdp_moves_half_as_much_again():
    spec = request("fsdp")
    case = Case(record=record(spec, seen=observed(spec, reduced_bytes_per_step=94_851_728)))
    assert values(case, "bytes")["on the wire per device"] == "142.28 MB = 3(n-1)/n, n = 2"


def test_settings_of_nccl():
    found = point(WHOLE, "nccl")
    assert found.state == "ok"
    assert [one.value for one in found.figures][:2] == ["none that costs speed", "NET/Socket"]
    forced = replace(WHOLE, variables=lint({"NCCL_ALGO": "Ring"}))
    assert point(forced, "nccl").state == "attention"
    assert "NCCL_ALGO=Ring" in point(forced, "nccl").figures[0].value
    unchosen = replace(WHOLE, variables=lint({"OMP_NUM_THREADS": "1", "NCCL_DEBUG": "INFO"}))
    assert point(unchosen, "nccl").state == "ok"  # torchrun and the log set them


@pytest.mark.parametrize(("exposed", "state"), [(0.4, "attention"), (0.05, "ok")])
def test_the_exposed_share_decides_and_not_the_overlap(exposed, state):
    case = Case(facts=facts(compute=0.5, exposed_transfer=exposed, overlapped_us=100.0))
    assert point(case, "overlap").state == state
    assert values(case, "overlap")["overlap"] == "0 %" if exposed == 0.4 else "2 %"
    assert values(case, "overlap")["exposed, of the step"] == f"{100 * exposed:.1f} %"


def test_no_communication_is_no_overlap():
    case = Case(facts=facts(compute=0.9, overlapped_us=0.0))
    assert values(case, "overlap")["overlap"] == "no communication"


def test_accumulation_has_a_bound():
    found = point(WHOLE, "accumulation")
    assert found.state == "attention"
    assert found.figures[-1].value == "30.0 %"  # 40 % · (1 - 1/4)
    four = {"accumulation_steps": 4}
    grown = Case(record=record(request(batch=512, settings=four)))
    assert point(grown, "accumulation").state == "ok"
    kept = Case(record=record(request(batch=512, settings=four, keeps_global_batch=True)))
    assert point(kept, "accumulation").state == "attention"


def test_autocast_leaves_four_bytes_a_gradient():
    assert values(WHOLE, "precision")["bytes that a gradient sends"] == "4"
    assert point(WHOLE, "precision").state == "attention"
    spec = request(precision="bf16", settings={"comm_hook": "bf16"})
    half = observed(spec, reduced_bytes_per_step=sum(BUCKETS) // 2)
    hooked = replace(WHOLE, record=record(spec, seen=half))
    assert values(hooked, "precision")["bytes that a gradient sends"] == "2"
    assert point(hooked, "precision").state == "ok"


@pytest.mark.parametrize(("own", "state"), [(0.90, "ok"), (0.86, "attention")])
def test_scores_stand_beside_the_baselines(own, state):
    """Without kept predictions a fall by more than a point needs attention."""
    case = Case(record=record(DDP), baseline=baseline(DDP))
    for made, auc in ((case.record, own), (case.baseline, 0.9)):
        made.epochs[-1].num_evaluated = 100
        made.epochs[-1].auc_macro, made.epochs[-1].f1_macro = auc, 0.5
    assert values(case, "scores")["macro AUC, one device"] == "0.9000"
    assert point(case, "scores").state == state


def test_a_run_of_one_device_is_not_asked_for_one():
    alone = Case(record=baseline(DDP))
    alone.record.epochs[-1].num_evaluated, alone.record.epochs[-1].auc_macro = 100, 0.9
    assert values(alone, "scores")["macro AUC"] == "0.9000"
    assert "macro AUC, one device" not in values(alone, "scores")
    assert point(alone, "scores").state == "ok"
    assert values(alone, "bytes") == {
        "trained parameters": "23,712,932", "gradients an optimizer step": "none: one device",
    }  # fmt: skip
    assert point(alone, "bytes").state == "ok"


def test_there_are_six_points():
    assert len(POINTS) == 6
