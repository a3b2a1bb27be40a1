"""Decoding on the GPU is advised where there is one that does not decode yet, and nowhere else."""

from __future__ import annotations

import pytest

from ringside.doctor import Case, diagnose
from ringside.machine import GpuState
from ringside.words import speaking

from tests.doctor.making import (  # isort: skip
    changed, experiment, facts, machine, record, request,
)  # fmt: skip

FLAG = "--set decoder=gpu"
STARVED = facts(compute=0.4, data_idle=0.4, data_wait_us=40_000.0)
ON_CPU = facts(compute=0.4, data_idle=0.4, data_wait_us=40_000.0, is_cpu_estimate=True)
ARMS = experiment(many=50.0, many_synthetic=30.0)
CODES = ("DATA-001", "DATA-002", "DATA-010", "MACHINE-005")


def run(asked="auto", used=None, gpu_rate=None, **fields):
    """A run that waits for images."""
    spec = request(settings={"decoder": asked}, **fields)
    started = {"decoder": used, "decode_rate_gpu": gpu_rate}
    return record(spec, data_ms=20.0, started=started)


def ways(record, code):
    """A case of a run in which this code is found; no two of them are told as one."""
    given = {
        "DATA-001": {"facts": STARVED, "record": changed(record, windows=[])},
        "DATA-002": {"experiment": ARMS, "record": record},
        "DATA-010": {"record": record},
        "MACHINE-005": {"machine": machine(num_cores=4), "record": record},
    }
    return Case(**given[code])


def advice(case, code):
    diagnosis = diagnose(case)
    found = {one.code: one for one in (diagnosis.verdict, *diagnosis.others)}
    return found[code].next_step


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize(
    ("fields", "is_advised"),
    [
        ({"asked": "cpu", "used": "cpu"}, True),
        ({}, True),  # an older run, which did not say
        ({"used": "gpu"}, False),
        ({"asked": "gpu"}, False),
        ({"used": "cpu"}, False),  # auto had the choice
        ({"asked": "cpu", "used": "cpu", "device": "cpu", "gpu_ids": ()}, False),
    ],
)
def test_a_run_is_told_to_decode_on_its_gpu_where_that_can_help(code, fields, is_advised):
    case = ways(run(**fields), code)
    for language, rest in (("en", "or prepared images"), ("zh", "，或使用预处理过的图片")):
        with speaking(language):
            told = advice(case, code)
        assert (FLAG in told) == is_advised
        assert rest in told
        assert "{" not in told
        assert ",," not in told


@pytest.mark.parametrize(("times", "is_advised"), [(0.9, False), (1.1, True)])
def test_auto_is_doubted_where_training_is_slower_than_its_gpu_decoded(times, is_advised):
    slow = run(used="cpu")
    rate = times * slow.steady_samples_per_s / slow.spec.num_processes
    case = Case(record=run(used="cpu", gpu_rate=rate))
    assert (FLAG in advice(case, "DATA-010")) == is_advised


def test_without_the_gpu_the_list_still_reads_well():
    case = Case(record=run(device="cpu", gpu_ids=()))
    assert advice(case, "DATA-010") == (
        "More loader workers as far as there are cores, or prepared images "
        "(`ringside data prepare`)."
    )


@pytest.mark.parametrize(("arms_decoder", "is_advised"), [("gpu", False), (None, True)])
def test_what_the_experiment_decoded_with_counts_where_the_run_did_not_say(
    arms_decoder, is_advised
):
    arms = tuple(changed(arm, decoder=arms_decoder) for arm in ARMS.arms)
    case = Case(experiment=changed(ARMS, arms=arms))
    assert (FLAG in advice(case, "DATA-002")) == is_advised


@pytest.mark.parametrize(("traced", "is_advised"), [(STARVED, True), (ON_CPU, False)])
def test_somebodys_trace_says_whether_there_was_a_gpu(traced, is_advised):
    assert (FLAG in advice(Case(facts=traced), "DATA-001")) == is_advised


def test_a_machine_with_few_cores_has_its_gpus_decode():
    gpus = tuple(GpuState(index=index, name="NVIDIA H200") for index in range(2))
    told = advice(Case(machine=changed(machine(num_cores=4), gpus=gpus)), "MACHINE-005")
    assert FLAG in told
