"""The sampler beside a run: what it asks a driver and a system, and that it is in nobody's way."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
import time
from collections import namedtuple
from types import SimpleNamespace

import msgspec
import psutil
import pynvml
import pytest

from ringside import identity
from ringside.hardware import Gpu
from ringside.identity import wait_until
from ringside.launch import sampling
from ringside.launch.rank_load import RankLoad
from ringside.launch.sampling import Sampler, thinned
from ringside.machine.gpu_sample import GpuSampler
from ringside.samples import Sample, read_samples

GIB = 2**30


class Driver:
    """Answers what the installed nvidia-ml-py asks for GPU 2; `refuses` names what it does not."""

    def __init__(self, monkeypatch) -> None:
        self.refuses: set[str] = set()
        self.links = [0, 0]  # KiB received, sent
        self.pcie = {pynvml.NVML_PCIE_UTIL_RX_BYTES: 5, pynvml.NVML_PCIE_UTIL_TX_BYTES: 7}
        answers = {
            "nvmlInit": lambda: None,
            "nvmlShutdown": lambda: None,
            "nvmlDeviceGetHandleByIndex": lambda index: f"handle {index}",
            "nvmlDeviceGetUtilizationRates": lambda _: SimpleNamespace(gpu=93),
            "nvmlDeviceGetMemoryInfo": lambda _: SimpleNamespace(used=40 * GIB, total=140 * GIB),
            "nvmlDeviceGetPowerUsage": lambda _: 512_500,
            "nvmlDeviceGetClockInfo": lambda _, kind: {pynvml.NVML_CLOCK_SM: 1755}[kind],
            "nvmlDeviceGetTemperature": lambda _, sensor: 61,
            "nvmlDeviceGetPcieThroughput": lambda _, counter: self.pcie[counter],
            "nvmlDeviceGetCurrentClocksEventReasons": lambda _: 0x5,
            "nvmlDeviceGetFieldValues": self.fields,
        }
        for name, answer in answers.items():
            assert hasattr(pynvml, name)
            monkeypatch.setattr(pynvml, name, self.guarded(name, answer))

    def guarded(self, name, answer):
        def call(*arguments):
            if name in self.refuses:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
            return answer(*arguments)

        return call

    def fields(self, _handle, fields):
        """nvml.h: 139 is what came, 138 what went, in KiB; the first two links are there."""
        ((number, _), *_) = fields
        assert [link for _, link in fields] == list(range(pynvml.NVML_NVLINK_MAX_LINKS))
        value = SimpleNamespace(ullVal=self.links[{139: 0, 138: 1}[number]] // 2)
        absent = pynvml.NVML_ERROR_NOT_SUPPORTED
        return [
            SimpleNamespace(nvmlReturn=absent if link > 1 else 0, value=value) for _, link in fields
        ]


@pytest.fixture
def driver(monkeypatch):
    return Driver(monkeypatch)


def test_what_a_driver_says_in_its_units(driver):
    sampler = GpuSampler(2, "handle 2")
    first = sampler.sample()
    assert (first.index, first.utilisation_ratio, first.power_w) == (2, 0.93, 512.5)
    assert (first.memory_used_bytes, first.memory_total_bytes) == (40 * GIB, 140 * GIB)
    assert (first.sm_clock_mhz, first.temperature_c) == (1755, 61)
    assert (first.pcie_rx_bytes_per_s, first.pcie_tx_bytes_per_s) == (5000.0, 7000.0)
    assert first.throttle_reasons == ("power cap",)  # idle is none
    assert first.nvlink_rx_bytes_per_s is None


def test_links_are_counted_between_two_samples(driver, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr("ringside.machine.gpu_sample.time.monotonic", lambda: clock[0])
    sampler = GpuSampler(0, "handle")
    sampler.sample()
    clock[0], driver.links = 104.0, [4000, 8000]
    second = sampler.sample()
    assert second.nvlink_rx_bytes_per_s == 1000 * 1024
    assert second.nvlink_tx_bytes_per_s == 2000 * 1024
    clock[0], driver.links = 106.0, [10, 10]  # the driver began anew
    assert sampler.sample().nvlink_rx_bytes_per_s is None


def test_what_is_refused_is_not_known_and_the_rest_is(driver):
    driver.refuses = {
        "nvmlDeviceGetPcieThroughput", "nvmlDeviceGetFieldValues", "nvmlDeviceGetPowerUsage",
        "nvmlDeviceGetUtilizationRates",
    }  # fmt: skip
    sample = GpuSampler(0, "handle").sample()
    assert (sample.power_w, sample.pcie_rx_bytes_per_s, sample.utilisation_ratio) == (None,) * 3
    assert sample.temperature_c == 61


FORKS = """
import os, time
block = bytearray(b"1" * (256 * 2**20))
for _ in range(3):
    if os.fork() == 0:
        time.sleep(30)
        os._exit(0)
print("ready", flush=True)
time.sleep(30)
"""


def test_memory_that_forked_workers_share_counts_once():
    """Resident sizes would add up to four times the block."""
    with subprocess.Popen([sys.executable, "-c", FORKS], stdout=subprocess.PIPE) as rank:
        family = [psutil.Process(rank.pid)]
        try:
            assert rank.stdout.readline() == b"ready\n"
            family += family[0].children()
            (sample,) = RankLoad(lambda: {0: identity.of(rank.pid)}).now()
            resident = sum(process.memory_info().rss for process in family)
        finally:
            for process in family:
                process.kill()
    assert sample.num_processes == 4
    assert resident > 4 * 256 * 2**20
    assert 256 * 2**20 < sample.memory_bytes < 1.5 * 256 * 2**20


@pytest.mark.parametrize(("full", "expected"), [({"uss": 3}, 3), ({"uss": 3, "pss": 2}, 2)])
def test_memory_is_what_the_system_can_tell(monkeypatch, full, expected):
    """Only Linux divides shared pages among processes; macOS knows what is a process's own."""
    known = namedtuple("Known", full)(**full)
    monkeypatch.setattr(psutil.Process, "memory_full_info", lambda _: known)
    # A process of its own: of this one's children some may have ended and not been reaped.
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as rank:
        (sample,) = RankLoad(lambda: {0: identity.of(rank.pid)}).now()
        rank.communicate(b"\n")
    assert (sample.num_processes, sample.memory_bytes) == (1, expected)


def test_memory_that_nobody_may_read_is_not_known(monkeypatch):
    def refuse(_):
        raise psutil.AccessDenied

    monkeypatch.setattr(psutil.Process, "memory_full_info", refuse)
    (sample,) = RankLoad(lambda: {0: identity.of(os.getpid())}).now()
    assert sample.memory_bytes is None


BURN = """
import subprocess, sys, time
code = "import time; end = time.monotonic() + 30\\nwhile time.monotonic() < end: pass"
worker = subprocess.Popen([sys.executable, "-c", code])
print("ready", flush=True)
worker.wait()
"""


def test_a_rank_s_load_is_its_own_and_its_workers():
    """Against the processor time that the system itself counted in between."""
    with subprocess.Popen([sys.executable, "-c", BURN], stdout=subprocess.PIPE) as rank:
        try:
            assert rank.stdout.readline() == b"ready\n"
            (worker,) = psutil.Process(rank.pid).children()
            load = RankLoad(lambda: {1: identity.of(rank.pid), 2: None})
            begin, (before,) = worker.cpu_times(), load.now()
            time.sleep(1.0)
            (after,) = load.now()
            end = worker.cpu_times()
        finally:
            for process in (worker, rank):
                process.kill()
    assert (before.rank, before.cpu_cores, before.num_processes) == (1, None, 2)
    assert after.cpu_cores == pytest.approx(
        end.user - begin.user + end.system - begin.system, abs=0.15
    )
    assert after.memory_bytes > 2**20
    assert wait_until(lambda: load.now() == (), 5.0)


@pytest.fixture
def run(make_run, hardware, spec):
    run = make_run("")
    gpus = tuple(
        Gpu(index=n, name="H200", uuid=f"GPU-{n}", memory_total_bytes=1, memory_used_bytes=0)
        for n in range(4)
    )
    run.write(run.hardware, msgspec.structs.replace(hardware, gpus=gpus))
    run.write(run.spec, msgspec.structs.replace(spec, device="cuda", gpu_ids=(1, 3)))
    return run


def test_only_the_gpus_of_the_run_are_asked(driver, run, monkeypatch):
    monkeypatch.setattr(sampling, "PERIOD_S", 0.05)
    sampler = Sampler(run, dict)
    sampler.start()
    assert wait_until(lambda: len(read_samples(run)) >= 3, 5.0)
    sampler.end()
    assert [[gpu.index for gpu in sample.gpus] for sample in read_samples(run)[:3]] == [[1, 3]] * 3


def test_the_file_is_thinned_where_it_is_written(driver, run, monkeypatch):
    limits = {"PERIOD_S": 0.002, "MAX_LINES": 60, "NUM_OLD": 10, "RECENT_S": 0.02}
    for name, value in limits.items():
        monkeypatch.setattr(sampling, name, value)
    sampler = Sampler(run, dict)
    sampler.start()
    first = []
    wait_until(lambda: bool(first or first.extend(read_samples(run)[:1])), 5.0)
    time.sleep(1.0)
    sampler.end()
    samples = read_samples(run)
    assert len(samples) <= 60
    assert samples[0].t == first[0].t
    assert samples[-1].t - samples[0].t > 0.5


def test_a_driver_that_hangs_holds_up_nobody(driver, run, monkeypatch):
    monkeypatch.setattr(sampling, "PERIOD_S", 0.01)
    monkeypatch.setattr(sampling, "JOIN_S", 0.2)
    asked, for_ever = threading.Event(), threading.Event()

    def hang(_handle):
        asked.set()
        for_ever.wait(20)

    monkeypatch.setattr(pynvml, "nvmlDeviceGetUtilizationRates", hang)
    sampler = Sampler(run, dict)
    begin = time.monotonic()
    sampler.start()
    assert asked.wait(5.0)
    sampler.end()
    assert time.monotonic() - begin < 3.0
    for_ever.set()
    assert read_samples(run) == []


def test_a_driver_that_is_gone_leaves_the_ranks(driver, run, monkeypatch):
    driver.refuses = {"nvmlInit"}
    monkeypatch.setattr(sampling, "PERIOD_S", 0.02)
    sampler = Sampler(run, lambda: {0: identity.of(os.getpid())})
    sampler.start()
    assert wait_until(lambda: len(read_samples(run)) >= 2, 5.0)
    sampler.end()
    newest = read_samples(run)[-1]
    assert newest.gpus == ()
    assert newest.ranks[0].cpu_cores is not None


def test_a_disk_that_is_full_costs_samples_only(driver, run, monkeypatch):
    monkeypatch.setattr(sampling, "PERIOD_S", 0.01)
    run.gpus.symlink_to("/dev/full")
    sampler = Sampler(run, dict)
    sampler.start()
    time.sleep(0.2)
    assert sampler._thread.is_alive()
    sampler.end()
    assert not sampler._thread.is_alive()


def test_a_clock_that_was_set_back_is_thinned_all_the_same():
    """By an hour, after the file was filled once."""
    times = [*(2.0 * n for n in range(2700)), *(2.0 * n - 3600.0 for n in range(2700, 3000))]
    samples = [Sample(t=t) for t in times]
    kept = thinned(samples)
    assert kept[-301:] == samples[-301:]
    assert kept[0] == samples[0]
    gaps = {after.t - before.t for before, after in itertools.pairwise(kept[:-301])}
    assert gaps == {6.0}  # more than a 1200th of 1 h 30 min
    # And when it was set back in the middle of what is old by now.
    middle = samples[:1000] + [Sample(t=sample.t - 3600.0) for sample in samples[1000:]]
    assert 900 <= len(thinned(middle)) - 301 <= 1201


def test_a_sample_that_cannot_be_taken_costs_that_one_only(run, monkeypatch):
    """A folder on a server that does not answer once."""
    monkeypatch.setattr(sampling, "PERIOD_S", 0.01)
    asked = []

    def ranks():
        asked.append(1)
        if len(asked) == 1:
            raise OSError("Stale file handle")
        return {0: identity.of(os.getpid())}

    sampler = Sampler(run, ranks)
    sampler.start()
    assert wait_until(lambda: len(read_samples(run)) >= 2, 5.0)
    sampler.end()
