"""The machine is read in full with a driver, in part with a poor one, and without any."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from types import SimpleNamespace

import msgspec
import psutil
import pynvml
import pytest

from ringside.errors import LaunchError
from ringside.identity import RUN_TOKEN
from ringside.machine import Machine, Process, TorchReport, host, links, read_machine

GIB = 2**30
PAIR = frozenset((0, 1))


def report(**fields) -> TorchReport:
    return TorchReport(version="2.11.0", **fields)


def asking(answer: TorchReport, times: int = 1):
    """A torch that answers at once, after `times` looks at the links."""

    def ask(*, load: bool, meanwhile) -> TorchReport:
        for _ in range(times):
            meanwhile()
        ask.load = load
        return answer

    return ask


def test_a_gpu_with_everything(driver, fake_gpu, tmp_path):
    driver(fake_gpu(reasons=0x1 | 0x40))
    gpu = read_machine(tmp_path).gpus[0]
    assert gpu.name == "NVIDIA H200"
    assert (gpu.memory_used_bytes, gpu.memory_total_bytes) == (GIB, 140 * GIB)
    assert (gpu.utilisation_ratio, gpu.power_w, gpu.power_limit_w) == (0.37, 76.5, 700.0)
    assert (gpu.temperature_c, gpu.sm_clock_mhz, gpu.max_sm_clock_mhz) == (31, 345, 1980)
    assert gpu.throttle_reasons == ("idle", "hardware thermal slowdown")
    assert (gpu.pcie_generation, gpu.pcie_width) == (5, 16)
    assert (gpu.max_pcie_generation, gpu.max_pcie_width) == (5, 16)
    assert not gpu.is_pcie_loaded
    assert gpu.num_nvlinks is None


def test_what_the_driver_refuses_is_unknown_and_never_zero(driver, fake_gpu, tmp_path):
    everything = [name for name in dir(pynvml) if name.startswith("nvmlDeviceGet")]
    kept = {"nvmlDeviceGetHandleByIndex", "nvmlDeviceGetMemoryInfo"}
    kept |= {"nvmlDeviceGetName", "nvmlDeviceGetUUID"}
    driver(fake_gpu(refuses=frozenset(everything) - kept), fake_gpu(place=(0, 0x2A, 0)))
    machine = read_machine(tmp_path)
    poor, rich = machine.gpus
    unknown = {name for name in poor.__struct_fields__ if getattr(poor, name) is None}
    assert unknown >= {
        "utilisation_ratio", "power_w", "power_limit_w", "temperature_c", "sm_clock_mhz",
        "max_sm_clock_mhz", "pcie_generation", "max_pcie_generation", "pcie_width",
        "max_pcie_width", "num_nvlinks", "numa_node",
    }  # fmt: skip
    assert (poor.throttle_reasons, poor.processes) == ((), ())
    assert rich.power_w == 76.5
    assert machine.links[0].kind == "unknown"
    assert machine.links[0].p2p is None


def test_the_older_name_of_the_reasons_is_asked_too(driver, fake_gpu, tmp_path):
    """Drivers before 535 know throttle reasons only."""
    driver(fake_gpu(reasons=0x80, refuses=frozenset({"nvmlDeviceGetCurrentClocksEventReasons"})))
    assert read_machine(tmp_path).gpus[0].throttle_reasons == ("power brake",)


def test_a_virtual_machine_that_hides_its_link_is_unknown(driver, fake_gpu, tmp_path):
    driver(fake_gpu(pcie=(0, 0), max_pcie=(0, 0)))
    gpu = read_machine(tmp_path).gpus[0]
    assert (gpu.pcie_generation, gpu.pcie_width) == (None, None)
    assert (gpu.max_pcie_generation, gpu.max_pcie_width) == (None, None)


def test_nvml_is_closed_again(driver, fake_gpu, tmp_path):
    fake = driver(fake_gpu())
    read_machine(tmp_path)
    assert fake.num_open == 0


def test_a_library_that_breaks_costs_a_sentence(driver, fake_gpu, tmp_path, monkeypatch):
    driver(fake_gpu())

    def broken(*_):
        raise OverflowError("int too large")

    monkeypatch.setattr(pynvml, "nvmlDeviceGetPowerUsage", broken)
    machine = read_machine(tmp_path)
    assert machine.gpus[0].memory_total_bytes == 140 * GIB
    assert machine.problems == ("GPU 0 could not be read in full: int too large.",)


def test_a_driver_that_goes_away_costs_a_sentence(driver, fake_gpu, tmp_path, monkeypatch):
    fake = driver(fake_gpu())
    hardware = read_machine(tmp_path).hardware
    fake.is_dead = True
    monkeypatch.setattr("ringside.machine.reading.read_hardware", lambda: hardware)
    machine = read_machine(tmp_path)
    assert [gpu.name for gpu in machine.gpus] == ["NVIDIA H200"]
    assert "NVML does not answer (Driver Not Loaded)" in machine.problems[0]


def test_only_visible_gpus_are_read(driver, fake_gpu, tmp_path, monkeypatch):
    driver(*(fake_gpu(place=(0, bus, 0)) for bus in (1, 2, 3)))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,0")
    machine = read_machine(tmp_path)
    assert [gpu.index for gpu in machine.gpus] == [2, 0]
    assert [(link.a, link.b) for link in machine.links] == [(0, 2)]


# --- links ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("level", "kind"),
    [(0, "same"), (10, "pix"), (20, "pxb"), (30, "phb"), (40, "node"), (50, "sys"), (7, "unknown")],
)
def test_levels_have_the_names_of_nvidia_smi(driver, fake_gpu, tmp_path, level, kind):
    fake = driver(fake_gpu(), fake_gpu(place=(0, 0x2A, 0)))
    fake.ancestor[PAIR] = level
    fake.p2p[PAIR, 0] = pynvml.NVML_P2P_STATUS_NOT_SUPPORTED
    link = read_machine(tmp_path).links[0]
    assert (link.a, link.b, link.kind, link.p2p, link.num_nvlinks) == (0, 1, kind, False, None)


def test_gpus_on_a_switch_have_as_many_links_as_the_poorer(driver, fake_gpu, tmp_path):
    fake = driver(
        fake_gpu(nvlinks=["switch"] * 18), fake_gpu(place=(0, 0x2A, 0), nvlinks=["switch"] * 16)
    )
    fake.ancestor[PAIR] = 50
    fake.p2p[PAIR, 0] = pynvml.NVML_P2P_STATUS_OK
    machine = read_machine(tmp_path)
    assert [gpu.num_nvlinks for gpu in machine.gpus] == [18, 16]
    assert machine.links[0].kind == "nvlink"
    assert (machine.links[0].num_nvlinks, machine.links[0].p2p) == (16, True)


def test_bridges_join_only_their_pair(driver, fake_gpu, tmp_path):
    """Four GPUs, two bridges: 0-1 and 2-3."""
    fake = driver(
        *(
            fake_gpu(place=(0, 0x10 + index, 0), nvlinks=[index ^ 1] * 4)
            for index in range(4)
        )
    )  # fmt: skip
    for a in range(4):
        for b in range(a):
            fake.ancestor[frozenset((a, b))] = 40
    kinds = {(link.a, link.b): link.kind for link in read_machine(tmp_path).links}
    joined = {pair for pair, kind in kinds.items() if kind == "nvlink"}
    assert joined == {(0, 1), (2, 3)}
    assert set(kinds.values()) == {"nvlink", "node"}


def test_hidden_ends_are_believed_where_the_driver_says_nvlink(driver, fake_gpu, tmp_path):
    """A virtual machine may count the links and hide where they lead."""
    hides = frozenset({"nvmlDeviceGetNvLinkRemoteDeviceType", "nvmlDeviceGetNvLinkRemotePciInfo"})
    fake = driver(
        fake_gpu(nvlinks=[1] * 18, refuses=hides),
        fake_gpu(place=(0, 0x2A, 0), nvlinks=[0] * 18, refuses=hides),
    )
    fake.ancestor[PAIR] = 40
    assert read_machine(tmp_path).links[0].kind == "node"
    fake.p2p[PAIR, 2] = pynvml.NVML_P2P_STATUS_OK
    link = read_machine(tmp_path).links[0]
    assert (link.kind, link.num_nvlinks) == ("nvlink", None)


def test_the_numa_node_stands_beside_the_pci_device(driver, fake_gpu, tmp_path, monkeypatch):
    monkeypatch.setattr(links, "PCI_DEVICES", tmp_path)
    for name, node in (("0000:18:00.0", "1"), ("0001:2a:00.0", "-1")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "numa_node").write_text(f"{node}\n")
    driver(fake_gpu(), fake_gpu(place=(1, 0x2A, 0)), fake_gpu(place=(0, 0x3A, 0)))
    assert [gpu.numa_node for gpu in read_machine(tmp_path).gpus] == [1, None, None]


# --- processes --------------------------------------------------------------------------------


@pytest.fixture
def sleeper():
    """Starts processes that wait, with variables of their own and no parent of ours."""
    started = []

    def start(**environment: str) -> int:
        # The middle one ends at once, so that this process is no parent of the sleeper.
        code = (
            "import subprocess, sys; "
            "print(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'],"
            " stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).pid)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], env=os.environ | environment, capture_output=True,
            text=True, check=True,
        )  # fmt: skip
        started.append(int(done.stdout))
        return started[-1]

    yield start
    for pid in started:
        psutil.Process(pid).kill()


def test_processes_have_names_and_owners(driver, fake_gpu, tmp_path, sleeper):
    ours, stranger = sleeper(**{RUN_TOKEN: "20260101-000000-calm-otter"}), sleeper()
    gone = 2**22 - 1
    shares = [(ours, GIB), (stranger, 2 * GIB), (gone, None), (os.getpid(), 5)]
    driver(fake_gpu(processes=shares))
    found = {one.pid: one for one in read_machine(tmp_path).gpus[0].processes}
    user = psutil.Process().username()
    assert found[ours].is_ours
    assert found[os.getpid()].is_ours
    assert not found[stranger].is_ours
    assert (found[stranger].user, found[stranger].memory_bytes) == (user, 2 * GIB)
    assert "python" in found[stranger].name
    assert found[gone] == Process(pid=gone)


# --- what torch knows -------------------------------------------------------------------------


def test_torch_fills_what_nvml_does_not_say(driver, fake_gpu, tmp_path):
    driver(fake_gpu(), fake_gpu(place=(0, 0x2A, 0)))
    answer = report(
        arch_list=("sm_90",), cuda="12.9", nccl="2.28.9", num_devices=2, peers=((0, 1), (1, 0))
    )
    machine = read_machine(tmp_path, ask_torch=asking(answer))
    assert (machine.arch_list, machine.torch_cuda, machine.nccl) == (("sm_90",), "12.9", "2.28.9")
    assert machine.links[0].p2p is True


def test_one_way_is_no_peer_access(driver, fake_gpu, tmp_path):
    driver(fake_gpu(), fake_gpu(place=(0, 0x2A, 0)))
    answer = report(num_devices=2, peers=((0, 1),))
    assert read_machine(tmp_path, ask_torch=asking(answer)).links[0].p2p is False


def test_nvml_is_believed_before_torch(driver, fake_gpu, tmp_path):
    fake = driver(fake_gpu(), fake_gpu(place=(0, 0x2A, 0)))
    fake.p2p[PAIR, 0] = pynvml.NVML_P2P_STATUS_OK
    answer = report(num_devices=2)
    assert read_machine(tmp_path, ask_torch=asking(answer)).links[0].p2p is True


def test_a_busy_link_is_read_while_it_is_busy(driver, fake_gpu, tmp_path):
    """At rest generation 1; while copies run one link goes to 5 and the other stays at 3."""
    gpus = fake_gpu(pcie=(1, 16)), fake_gpu(place=(0, 0x2A, 0), pcie=(1, 8))
    driver(*gpus)

    def ask(*, load: bool, meanwhile) -> TorchReport:
        assert load
        meanwhile()
        gpus[0].pcie, gpus[1].pcie = (5, 16), (3, 8)
        meanwhile()
        gpus[0].pcie, gpus[1].pcie = (1, 16), (1, 8)
        meanwhile()
        return report(num_devices=2, copy_bytes_per_s=(55e9, None))

    first, second = read_machine(tmp_path, load_links=True, ask_torch=ask).gpus
    assert (first.pcie_generation, first.pcie_width, first.is_pcie_loaded) == (5, 16, True)
    assert first.copy_bytes_per_s == 55e9
    # No copy reached the second, so nothing is claimed about it under load.
    assert (second.pcie_generation, second.is_pcie_loaded) == (1, False)


def test_torch_that_fails_costs_a_sentence(tmp_path):
    def ask(*, load: bool, meanwhile) -> TorchReport:
        raise LaunchError("torch did not say what it knows of this machine within 60 s.")

    machine = read_machine(tmp_path, ask_torch=ask)
    assert machine.problems == ("torch did not say what it knows of this machine within 60 s.",)
    assert machine.arch_list == ()


def test_gpus_that_torch_cannot_use_are_said(driver, fake_gpu, tmp_path):
    driver(fake_gpu())
    answer = report(problems=("torch cannot use CUDA here: driver too old.",))
    problems = read_machine(tmp_path, ask_torch=asking(answer)).problems
    assert problems[0] == "torch cannot use CUDA here: driver too old."
    assert "torch can use none of them" in problems[1]


# --- the host ---------------------------------------------------------------------------------


def test_the_real_host(tmp_path):
    machine = read_machine(tmp_path / "not" / "made" / "yet")
    assert machine.num_cores == len(os.sched_getaffinity(0)) or machine.num_cores >= 1
    assert machine.disk_free_bytes == pytest.approx(psutil.disk_usage(str(tmp_path)).free, rel=0.2)
    assert machine.shm_total_bytes >= machine.shm_free_bytes > 0
    assert machine.load_average >= 0
    assert not (tmp_path / "not").exists()


def test_ports_in_use_are_counted(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setattr(host, "FIRST_PORT", taken.getsockname()[1])
        monkeypatch.setattr(host, "NUM_PORTS", 1)
        assert host.free_ports() == 0
    assert host.free_ports() == 1


@pytest.mark.parametrize(
    ("text", "threads"), [(None, None), ("4", 4), ("4,2", 4), ("", None), ("many", None)]
)
def test_threads(monkeypatch, text, threads):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if text is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", text)
    assert host.omp_num_threads() == threads


def test_without_shared_memory_it_is_unknown(tmp_path, monkeypatch):
    """macOS has none; its disk must not be taken for it."""
    monkeypatch.setattr(host, "SHARED_MEMORY", tmp_path / "missing")
    assert host.shared_memory() == (None, None)


def test_variables_are_looked_at(tmp_path, monkeypatch):
    monkeypatch.setenv("NCCL_ALGO", "Tree")
    found = {one.name: one.level for one in read_machine(tmp_path).variables}
    assert found["NCCL_ALGO"] == "handicap"


def test_a_machine_survives_a_file(driver, fake_gpu, tmp_path):
    driver(fake_gpu(nvlinks=[1]), fake_gpu(place=(0, 0x2A, 0), nvlinks=[0]))
    machine = read_machine(tmp_path)
    assert msgspec.json.decode(msgspec.json.encode(machine), type=Machine) == machine


def test_ourselves_are_known_without_a_token(monkeypatch):
    from ringside.machine import gpus

    trainer = SimpleNamespace(
        pid=2, uids=lambda: SimpleNamespace(real=os.getuid()), parents=list, environ=dict,
        cmdline=lambda: ["python", "-u", "-m", "training.train", "--preset", "ddp"],
    )  # fmt: skip
    assert gpus._is_ours(trainer)
    trainer.cmdline = lambda: ["python", "train.py"]
    assert not gpus._is_ours(trainer)
