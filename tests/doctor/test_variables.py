"""Variables that shut a way: which they are, who tells of them, and how they are taken away."""

from __future__ import annotations

import pytest

from ringside.doctor import Case, diagnose
from ringside.doctor.applying import command_for
from ringside.doctor.variables import forced_ways
from ringside.environment_lint import lint
from ringside.presets import Library

from tests.doctor.making import bucket, changed, facts, log, record, request  # isort: skip

P2P, SHM = {"NCCL_P2P_DISABLE": "1"}, {"NCCL_SHM_DISABLE": "1"}
SLOW = facts(compute=0.4, exposed_transfer=0.4, buckets=(bucket(27_000_000, 2.9),))


def codes(diagnosis):
    return [diagnosis.verdict.code, *(one.code for one in diagnosis.others)]


@pytest.mark.parametrize(
    ("nccl", "is_set", "names"),
    [
        (log("P2P", "CUMEM"), {"NCCL_ALGO": "Ring"}, ()),
        (log("P2P", "CUMEM"), P2P, ()),
        (log("SHM", "direct"), P2P | SHM, ("NCCL_P2P_DISABLE",)),
        (log("NET", "Socket"), P2P | SHM, ("NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE")),
        (log("NET", "Socket"), {"NCCL_ALGO": "Ring", "NCCL_MAX_CTAS": "1"}, ()),
        (log("NET", "Socket", hosts=2), {"NCCL_IB_DISABLE": "1"}, ("NCCL_IB_DISABLE",)),
        (None, P2P, ("NCCL_P2P_DISABLE",)),
        (None, {"NCCL_PROTO": "Simple"}, ()),
    ],
)
def test_only_what_shuts_a_way_makes_it_slower(nccl, is_set, names):
    assert forced_ways(Case(nccl=nccl, variables=lint(is_set))) == names


def test_an_algorithm_over_nvlink_is_not_what_an_exposed_exchange_is_blamed_on():
    case = Case(
        record=record(request()), facts=SLOW, nccl=log("P2P", "CUMEM", path="NVL"),
        variables=lint({"NCCL_ALGO": "Ring"}),
    )  # fmt: skip
    diagnosis = diagnose(case)
    assert (diagnosis.verdict.code, diagnosis.verdict.unset) == ("LINK-001", ())
    assert "ENVIRONMENT-001" in codes(diagnosis)


def test_what_no_link_tells_stays_in_the_list_of_variables():
    is_set = P2P | {"CUDA_LAUNCH_BLOCKING": "1"}
    case = Case(
        record=record(request()), facts=SLOW, nccl=log("SHM", "direct", environment=P2P),
        variables=lint(is_set),
    )  # fmt: skip
    diagnosis = diagnose(case)
    assert codes(diagnosis)[:2] == ["LINK-011", "ENVIRONMENT-001"]
    assert diagnosis.verdict.confidence == "high"
    assert diagnosis.others[0].unset == ("CUDA_LAUNCH_BLOCKING",)
    assert "NCCL_P2P_DISABLE" not in diagnosis.others[0].sentence


def test_a_shut_way_is_opened_before_anything_is_said_of_what_hides_the_exchange():
    slow = facts(compute=0.4, exposed_transfer=0.4, num_persistent=106.0, hidden_transfer_us=0.0)
    spec = request()
    alone = diagnose(Case(record=record(spec), facts=slow))
    assert codes(alone) == ["LINK-003"]
    labels = [one.label for one in alone.verdict.evidence]
    assert "kernels a step that need the whole GPU, rank 0" in labels
    assert "moving data while nothing computes" in labels  # of LINK-001
    assert len(labels) == len(set(labels))
    case = Case(
        record=record(spec), facts=slow, nccl=log("SHM", "direct", environment=P2P),
        variables=lint(P2P),
    )  # fmt: skip
    found = codes(diagnose(case))
    assert found[0] == "LINK-011"
    assert "LINK-003" not in found


@pytest.mark.parametrize(
    ("preset", "precision", "words"),
    [
        ("ddp", "no", ["ringside run ddp_bf16 "]),
        ("ddp_accum4", "no", ["ringside run ddp_accum4 ", "--set=mixed_precision=bf16"]),
        ("ddp", "fp16", ["ringside run ddp ", "--set=mixed_precision=bf16"]),
        ("ddp", "bf16", None),
    ],
)
def test_what_shuts_the_exchange_out_is_left_in_bf16(preset, precision, words):
    slow = facts(compute=0.4, exposed_transfer=0.4, num_persistent=106.0, hidden_transfer_us=0.0)
    spec = request(preset, precision=precision)
    verdict = diagnose(Case(record=record(spec), facts=slow)).verdict
    command = command_for(verdict, spec)
    assert verdict.code == "LINK-003"
    assert (command is None) == (words is None)
    assert [word for word in words or [] if word not in command] == []


def test_no_card_repeats_a_command_that_stands_above():
    """The exchange is exposed, the gradients are wide: half the bytes is the remedy of both."""
    spec = request(precision="bf16")
    diagnosis = diagnose(Case(record=record(spec), facts=SLOW))
    assert codes(diagnosis)[:2] == ["LINK-001", "LINK-020"]
    commands = [command_for(one, spec) for one in (diagnosis.verdict, *diagnosis.others)]
    assert commands[0].endswith("--set=comm_hook=bf16 --set=mixed_precision=bf16")
    assert commands[1] is None


def test_a_variable_of_the_preset_is_taken_out_there(monkeypatch):
    """`env -u` would not undo it: the preset sets it again."""
    plain = changed(Library().get("ddp").file, environment=P2P)
    monkeypatch.setattr("ringside.doctor.applying.file_of", lambda _: plain)
    monkeypatch.setattr("ringside.doctor.variables.file_of", lambda _: plain)
    spec = request(environment=P2P)
    case = Case(
        record=record(spec), facts=SLOW, variables=lint(P2P | SHM),
        nccl=log("NET", "Socket", environment=P2P | SHM),
    )  # fmt: skip
    verdict = diagnose(case).verdict
    assert verdict.next_step.startswith(
        "Unset NCCL_SHM_DISABLE, and take NCCL_P2P_DISABLE out of the preset ddp, then"
    )
    assert verdict.unset == ("NCCL_SHM_DISABLE",)
    assert "NCCL_P2P_DISABLE" not in command_for(verdict, spec)
    only = Case(
        record=record(spec), facts=SLOW, variables=lint(P2P),
        nccl=log("SHM", "direct", environment=P2P),
    )  # fmt: skip
    verdict = diagnose(only).verdict
    assert verdict.next_step.startswith("Take NCCL_P2P_DISABLE out of the preset ddp,")
    assert command_for(verdict, spec) is None


def test_infiniband_that_somebody_forbade_is_one_card_too():
    off = {"NCCL_IB_DISABLE": "1"}
    case = Case(
        record=record(request()), facts=SLOW, variables=lint(off),
        nccl=log("NET", "Socket", hosts=2, environment=off),
    )  # fmt: skip
    diagnosis = diagnose(case)
    assert codes(diagnosis) == ["LINK-015"]
    assert diagnosis.verdict.next_step.startswith("Unset NCCL_IB_DISABLE. Run `ibv_devinfo`")
    assert diagnosis.verdict.unset == ("NCCL_IB_DISABLE",)
