"""The checks of a machine: where they begin, where they stay silent, and what they advise."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ringside.doctor import Case
from ringside.doctor.checks import (
    environment_handicap,
    environment_leftover,
    environment_unknown,
    machine_architecture,
    machine_cores,
    machine_disk,
    machine_foreign_process,
    machine_nvlink_pairs,
    machine_pcie,
    machine_peer_access,
    machine_shared_memory,
    machine_throttled,
)
from ringside.doctor.machine_check import machine_findings
from ringside.environment_lint import lint
from ringside.events import RunStarted
from ringside.hardware import Gpu, Hardware
from ringside.machine import GpuState, Link, Machine, Process
from ringside.nccl_log import NcclLog
from ringside.run import RunRecord
from ringside.spec import Observed

MIB, GIB = 2**20, 2**30


def state(index: int = 0, **fields) -> GpuState:
    return GpuState(index=index, **{"name": "NVIDIA H200", "memory_used_bytes": GIB, **fields})


def hardware(capability=(9, 0)) -> Hardware:
    return Hardware(
        gpus=(
            Gpu(
                index=0, name="NVIDIA H200", uuid="GPU-0", memory_total_bytes=140 * GIB,
                memory_used_bytes=GIB, compute_capability=capability,
            ),
        ),
        num_cores=16,
    )  # fmt: skip


def machine(*gpus: GpuState, **fields) -> Machine:
    """A healthy one but for `fields`."""
    healthy = {
        "num_cores": 64, "shm_total_bytes": 64 * GIB, "shm_free_bytes": 60 * GIB,
        "disk_free_bytes": 900 * GIB, "arch_list": ("sm_80", "sm_90"), "torch_cuda": "12.9",
    }  # fmt: skip
    return Machine(**{"t": 1000.0, "hardware": hardware(), "gpus": gpus, **healthy, **fields})


def found(check, *gpus: GpuState, **fields):
    return check.check(Case(machine=machine(*gpus, **fields)))


ALL = (
    environment_handicap, environment_leftover, environment_unknown, machine_architecture,
    machine_cores, machine_disk, machine_foreign_process, machine_nvlink_pairs, machine_pcie,
    machine_peer_access, machine_shared_memory, machine_throttled,
)  # fmt: skip


@pytest.mark.parametrize("check", ALL, ids=lambda check: check.CODE)
def test_a_check_without_a_machine_and_on_a_healthy_one_is_silent(check):
    assert check.check(Case()) is None
    assert found(check, state(), state(1)) is None


def test_a_healthy_machine_has_no_findings():
    link = Link(a=0, b=1, kind="nvlink", num_nvlinks=18, p2p=True)
    assert machine_findings(machine(state(), state(1), links=(link,))) == ()


# --- who else is there ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("process", "fires"),
    [
        (Process(pid=7, name="python", user="ann", memory_bytes=3 * GIB), True),
        (Process(pid=7, name="python", user="ann"), True),
        (Process(pid=7, name="Xorg", user="root", memory_bytes=40 * MIB), False),
        (Process(pid=7, name="python", memory_bytes=3 * GIB, is_ours=True), False),
    ],
)
def test_strangers_on_a_gpu(process, fires):
    used = GIB + (process.memory_bytes or 0)
    gpus = state(0), state(1, memory_used_bytes=used, processes=(process,))
    finding = found(machine_foreign_process, *gpus)
    assert (finding is not None) == fires
    if finding:
        assert finding.sentence.startswith("GPU 1:")
        assert "python of ann, pid 7" in finding.evidence[0].value
        assert finding.confidence == "high"


def test_memory_that_nobody_accounts_for():
    """A container sees no process of the host; the driver's reserve is no user."""
    assert found(machine_foreign_process, state(memory_used_bytes=2 * GIB)) is None
    finding = found(machine_foreign_process, state(memory_used_bytes=30 * GIB))
    assert finding.confidence == "medium"
    assert finding.evidence[0].value == "30.0 GiB of processes not seen here"


def test_a_process_that_a_container_cannot_name():
    """It sees the number of a process outside and nothing else of it."""
    outside = Process(pid=7, memory_bytes=3 * GIB)
    finding = found(machine_foreign_process, state(processes=(outside,)))
    assert finding.confidence == "medium"
    told = "a process this container cannot name, pid 7, 3.0 GiB"
    assert finding.evidence[0].value == told
    named = Process(pid=8, user="ann", memory_bytes=3 * GIB)
    assert found(machine_foreign_process, state(processes=(outside, named))).confidence == "high"


def test_a_look_long_after_a_run_says_nothing_about_it():
    busy = machine(
        state(memory_used_bytes=30 * GIB, throttle_reasons=("power brake",)),
        disk_free_bytes=GIB, shm_total_bytes=64 * MIB,
    )  # fmt: skip
    run = RunRecord(id="r", name="r", path="/r", created_t=900.0, finished_t=950.0)
    for check in (machine_foreign_process, machine_throttled, machine_disk, machine_shared_memory):
        assert check.check(Case(machine=busy, record=run)) is not None
        assert check.check(Case(machine=replace(busy, t=5000.0), record=run)) is None


@pytest.mark.parametrize(
    ("reasons", "fires"),
    [
        (("idle",), False),
        (("power cap",), False),
        (("application clocks",), False),
        (("hardware thermal slowdown", "idle"), True),
        (("software thermal slowdown",), True),
        (("power brake",), True),
    ],
)
def test_clocks_held_down(reasons, fires):
    gpu = state(1, throttle_reasons=reasons, sm_clock_mhz=600, max_sm_clock_mhz=1980)
    finding = found(machine_throttled, state(), gpu)
    assert (finding is not None) == fires
    if finding:
        assert "GPU 1 " in finding.sentence
        assert "idle" not in finding.sentence
        assert "600 of 1980 MHz" in finding.evidence[0].value


# --- links ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("now", "most", "is_loaded", "fires"),
    [
        ((5, 16), (5, 16), True, False),
        ((1, 16), (5, 16), False, False),
        ((3, 16), (5, 16), True, True),
        ((5, 8), (5, 16), True, True),
        ((None, None), (5, 16), True, False),
        ((5, 16), (None, None), True, False),
    ],
)
def test_a_link_that_is_trained_down(now, most, is_loaded, fires):
    gpu = state(
        pcie_generation=now[0], pcie_width=now[1], max_pcie_generation=most[0],
        max_pcie_width=most[1], is_pcie_loaded=is_loaded, copy_bytes_per_s=6e9,
    )  # fmt: skip
    finding = found(machine_pcie, gpu)
    assert (finding is not None) == fires
    if finding:
        assert finding.cause == "link"
        assert "6.0 GB/s from the host" in finding.evidence[0].value


@pytest.mark.parametrize(
    ("kind", "p2p", "severity"),
    [
        ("phb", False, "warning"),
        ("sys", False, "warning"),
        ("sys", True, "note"),
        ("node", True, "note"),
        ("pix", True, None),
        ("phb", True, None),
        ("nvlink", False, None),
        ("sys", None, None),
    ],
)
def test_peer_access(kind, p2p, severity):
    finding = found(
        machine_peer_access, state(), state(1), links=(Link(a=0, b=1, kind=kind, p2p=p2p),)
    )
    assert (finding.severity if finding else None) == severity


def test_geforce_is_told_from_a_card_that_is_forbidden():
    links = (Link(a=0, b=1, kind="phb", p2p=False),)
    gaming = [state(index, name="NVIDIA GeForce RTX 4090") for index in range(2)]
    assert "GeForce" in found(machine_peer_access, *gaming, links=links).sentence
    assert "driver refuses" in found(machine_peer_access, state(), state(1), links=links).sentence


def test_nvlink_in_pairs():
    pairs = [(a, b) for a in range(4) for b in range(a + 1, 4)]
    links = tuple(Link(a=a, b=b, kind="nvlink" if a ^ b == 1 else "node") for a, b in pairs)
    gpus = [state(index) for index in range(4)]
    finding = found(machine_nvlink_pairs, *gpus, links=links)
    assert "2 of 6 pairs of GPUs (0-1, 2-3)" in finding.sentence
    every = tuple(replace(link, kind="nvlink") for link in links)
    assert found(machine_nvlink_pairs, *gpus, links=every) is None
    assert found(machine_nvlink_pairs, *gpus, links=(Link(a=0, b=1, kind="sys"),)) is None


# --- host and versions ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("total", "free", "fires"),
    [
        (64 * MIB, 64 * MIB, True),
        (1023 * MIB, 1023 * MIB, True),
        (1024 * MIB, 1000 * MIB, False),
        (64 * GIB, 100 * MIB, True),
        (64 * GIB, None, False),
        (None, None, False),
    ],
)
def test_shared_memory(total, free, fires):
    finding = found(machine_shared_memory, shm_total_bytes=total, shm_free_bytes=free)
    assert (finding is not None) == fires
    if finding:
        assert "--shm-size" in finding.next_step
        assert "Not NCCL_SHM_DISABLE=1" in finding.next_step


def test_few_cores_for_the_gpus_of_a_machine():
    gpus = [state(index) for index in range(4)]
    assert found(machine_cores, *gpus, num_cores=16) is None
    assert found(machine_cores, *gpus, num_cores=15).severity == "note"
    assert found(machine_cores, num_cores=1) is None


@pytest.mark.parametrize(("workers", "fires"), [(None, False), (0, False), (7, False), (8, True)])
def test_more_workers_than_cores(make_spec, workers, fires):
    started = RunStarted(
        num_train=1, num_val=1, num_classes=2, task="multi_label", data_fingerprint="f",
        data_title="t", steps_per_epoch=1, learning_rate=0.1, num_workers=workers,
        observed=Observed(
            num_processes=2, strategy="ddp", mixed_precision="no", backend="nccl", device="cuda",
            device_name="NVIDIA H200", num_parameters=1,
        ),
    )  # fmt: skip
    record = RunRecord(id="r", name="r", path="/r", spec=make_spec("ddp"), started=started)
    gpus = state(), state(1)
    finding = machine_cores.check(Case(machine=machine(*gpus, num_cores=16), record=record))
    assert (finding is not None) == fires
    if finding:
        assert (finding.cause, finding.severity) == ("data", "warning")
        assert "together are 18 and there are 16 cores" in finding.sentence


@pytest.mark.parametrize(
    ("arch_list", "capability", "fits"),
    [
        ("sm_80 sm_90", (9, 0), True),
        ("sm_80", (8, 6), True),
        ("sm_86", (8, 0), False),
        ("sm_80 sm_90", (10, 0), False),
        ("sm_80 compute_80", (10, 0), True),
        ("sm_90a", (9, 0), True),
        ("sm_100a", (10, 3), False),
        ("sm_100f", (10, 3), True),
        ("sm_75 sm_80 sm_86 sm_90 sm_100 sm_120", (12, 0), True),
        ("sm_75 sm_80 sm_86 sm_90 sm_100 sm_120", (7, 0), False),
        ("gfx942", (9, 0), True),
        ("", (9, 0), True),
    ],
)
def test_kernels_for_the_gpu(arch_list, capability, fits):
    finding = found(
        machine_architecture, arch_list=tuple(arch_list.split()), hardware=hardware(capability)
    )
    assert (finding is None) == fits
    if finding:
        assert finding.severity == "critical"


def test_a_gpu_of_unknown_capability_is_no_alarm():
    assert found(machine_architecture, hardware=hardware(None)) is None


@pytest.mark.parametrize(("gib", "fires"), [(4.9, True), (5, False), (None, False)])
def test_disk(gib, fires):
    free = None if gib is None else int(gib * GIB)
    assert (found(machine_disk, disk_free_bytes=free) is not None) == fires


# --- variables --------------------------------------------------------------------------------


def test_variables_by_level():
    variables = lint(
        {"NCCL_ALGO": "Tree", "NCCL_DEBUG": "TRACE", "NCCL_P2P_DISABEL": "1", "NCCL_XYZZY_QQQ": "1"}
    )
    handicap = found(environment_handicap, variables=variables)
    assert "NCCL_ALGO" in handicap.sentence
    assert "DDP at its start" in handicap.evidence[0].value
    assert "NCCL_DEBUG" in found(environment_leftover, variables=variables).sentence
    slip = found(environment_unknown, variables=variables)
    assert "Is NCCL_P2P_DISABLE meant?" in slip.sentence
    assert "XYZZY" not in slip.sentence


def test_a_run_is_judged_by_its_own_variables():
    mine = machine(variables=lint({"NCCL_P2P_DISABLE": "1"}))
    record = RunRecord(id="r", name="r", path="/r")
    assert environment_handicap.check(Case(machine=mine, record=record)) is None
    theirs = lint({"NCCL_SHM_DISABLE": "1"})
    finding = environment_handicap.check(Case(machine=mine, record=record, variables=theirs))
    assert "NCCL_SHM_DISABLE" in finding.sentence


def test_what_nobody_chose_is_no_leftover(make_spec):
    """torchrun sets one thread for several processes; a log that is read had to be switched on."""
    variables = lint({"OMP_NUM_THREADS": "1", "NCCL_DEBUG": "INFO"})
    spec = make_spec("ddp", device="cuda", gpu_ids=(0, 1))
    run = RunRecord(id="r", name="r", path="/r", spec=spec)
    chosen = environment_leftover.check(Case(record=run, variables=variables))
    assert "OMP_NUM_THREADS" not in chosen.sentence
    log = NcclLog(num_lines=1)
    assert environment_leftover.check(Case(record=run, variables=variables, nccl=log)) is None
    assert environment_leftover.check(Case(machine=machine(variables=variables))) is not None


def test_what_stops_a_run_comes_first():
    sick = machine(
        state(throttle_reasons=("power brake",)), arch_list=("sm_80",), disk_free_bytes=GIB,
        variables=lint({"NCCL_DEBUG": "TRACE"}),
    )  # fmt: skip
    codes = [finding.code for finding in machine_findings(sick)]
    assert codes == ["MACHINE-006", "MACHINE-002", "MACHINE-009", "ENVIRONMENT-002"]
