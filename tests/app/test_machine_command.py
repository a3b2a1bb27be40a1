"""`ringside doctor` without a run: what people read, what scripts rely on, and the real thing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from ringside.environment_lint import lint
from ringside.errors import LaunchError
from ringside.hardware import Gpu, Hardware
from ringside.machine import GpuState, Link, Machine, Process
from ringside.measurements import Point, Series, Sweep

CLONE = Path(__file__).resolve().parents[2]
GIB, MIB = 2**30, 2**20
US_BY_SIZE = {16 * 1024: 60.0, MIB: 70.0, 16 * MIB: 120.0, 64 * MIB: 320.0, 256 * MIB: 1000.0}


def two_gpus(**fields) -> Machine:
    gpus = tuple(
        Gpu(
            index=index, name="NVIDIA H200", uuid=f"GPU-{index}", memory_total_bytes=140 * GIB,
            memory_used_bytes=GIB, compute_capability=(9, 0),
        )
        for index in range(2)
    )  # fmt: skip
    states = tuple(
        GpuState(
            index=index, name="NVIDIA H200", memory_used_bytes=GIB, memory_total_bytes=140 * GIB,
            utilisation_ratio=0.0, power_w=76.5, power_limit_w=700.0, temperature_c=31.0,
            sm_clock_mhz=345, max_sm_clock_mhz=1980, throttle_reasons=("idle",),
            pcie_generation=5, max_pcie_generation=5, pcie_width=16, max_pcie_width=16,
            is_pcie_loaded=True, copy_bytes_per_s=55.1e9, num_nvlinks=18, numa_node=index,
            processes=(Process(pid=7, name="python", user="ann", memory_bytes=GIB // 2),),
        )
        for index in range(2)
    )  # fmt: skip
    whole = {
        "t": 1000.0, "gpus": states, "num_cores": 16, "load_average": 0.6, "free_ports": 16,
        "hardware": Hardware(
            gpus=gpus, num_cores=16, memory_bytes=128 * GIB, driver="570.86.15", python="3.12.3",
            versions={"torch": "2.11.0"},
        ),
        "links": (Link(a=0, b=1, kind="nvlink", num_nvlinks=18, p2p=True),),
        "shm_total_bytes": 64 * GIB, "shm_free_bytes": 60 * GIB, "disk_free_bytes": 100 * GIB,
        "arch_list": ("sm_90",), "torch_cuda": "12.9", "nccl": "2.28.9",
        "variables": lint({"NCCL_ALGO": "Tree"}),
    }  # fmt: skip
    return Machine(**{**whole, **fields})


def sweep_of(machine: Machine) -> Sweep:
    def series(times, **fields) -> Series:
        points = tuple(
            Point(num_bytes=n, median_us=us, p90_us=us * 1.02, repeats=20)
            for n, us in times.items()
        )
        named = {"operation": "all_reduce", "dtype": "fp32", "backend": "nccl", "num_ranks": 2}
        return Series(points=points, **named, **fields)

    without_p2p = {size: 10 * us for size, us in US_BY_SIZE.items() if size >= MIB}
    return Sweep(
        t=1000.0, key="abc", device_name="NVIDIA H200", num_ranks=2, versions={"torch": "2.11.0"},
        series=(
            series(US_BY_SIZE, transport="P2P/CUMEM"),
            series(without_p2p, transport="SHM", environment={"NCCL_P2P_DISABLE": "1"}),
        ),
        failed=("NCCL_ALGO=Tree did not start: no algorithm/protocol available.",),
    )  # fmt: skip


@pytest.fixture
def here(monkeypatch):
    """This machine is that one; a sweep of it takes no time."""

    def be(machine: Machine, sweep: Sweep | Exception | None = None) -> None:
        import ringside.launch.probing as probing
        import ringside.launch.torch_report as torch_report

        def measure(hardware, num_ranks, **_):
            assert num_ranks == (len(hardware.gpus) or 2)
            if isinstance(sweep, Exception):
                raise sweep
            return sweep

        monkeypatch.setattr(torch_report, "check_machine", lambda root, load_links: machine)
        monkeypatch.setattr(probing, "measure_sweep", measure)

    return be


def test_people_read_it(ringside, here, root):
    machine = two_gpus()
    here(machine, sweep_of(machine))
    code, out, err = ringside("doctor")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == (
        "2 x NVIDIA H200, 16 cores, 128 GiB memory, driver 570.86.15, torch 2.11.0, CUDA 12.9, "
        "NCCL 2.28.9, Python 3.12.3"
    )
    gpu = next(line for line in lines if line.startswith("0    NVIDIA H200"))
    for cell in ("1.0/140.0", "0 %", "76/700", "31 °C", "345/1980", "idle", "5 x16", "55.1 GB/s"):
        assert f"  {cell}" in gpu
    assert "python (ann) 0.5 GiB" in gpu
    assert any(re.fullmatch(r"0 +NVLink x18, P2P", line) for line in lines)
    assert "16 of 16 ports free" in out
    assert "NCCL_ALGO=Tree (handicap): Forces the algorithm" in out
    assert re.search(r"^  256 MiB +1\.000 ms +1\.020 ms +268\.44 GB/s +268\.44 GB/s$", out, re.M)
    assert "268.44 GB/s at 256 MiB is within the healthy range, 200 to 482 GB/s (2 x H200" in out
    assert "NCCL_P2P_DISABLE=1: slower (0.10x at 1 MiB" in out
    assert "NCCL_ALGO=Tree did not start" in out
    assert "warning, ENVIRONMENT-001 (confidence medium)" in out
    assert "Next: Unset NCCL_ALGO" in out
    assert err == "Looking at this machine.\n"


def test_both_are_kept(ringside, here, root):
    machine = two_gpus()
    here(machine, sweep_of(machine))
    stored = json.loads(ringside("doctor", "--json")[1])["stored"]
    assert Path(stored["machine"]) == root / "measurements" / "machine.json"
    kept = msgspec.json.decode(Path(stored["machine"]).read_bytes(), type=Machine)
    assert kept == machine
    assert msgspec.json.decode(Path(stored["sweep"]).read_bytes(), type=Sweep).key == "abc"


# Named in the same lines: values that a key may take, and another command.
VALUES = {
    "nvlink", "pix", "pxb", "phb", "node", "sys", "same", "unknown", "critical", "warning", "note",
    "nccl", "null", "above", "healthy", "below", "faster", "slower", "mixed",
}  # fmt: skip


def paragraph(name: str) -> set[str]:
    """The names in the list item of docs/cli-json.md that begins with `name`."""
    text = (CLONE / "docs" / "cli-json.md").read_text()
    section = text.partition("## `ringside doctor --json`")[2].partition("\n## ")[0]
    (line,) = re.findall(rf"^\* (?:Each of )?`{name}`.*$", section, re.MULTILINE)
    return set(re.findall(r"`([a-z][\w]*)`", line)) - {name}


def test_its_json_is_what_the_documents_say(ringside, here, root):
    machine = two_gpus()
    here(machine, sweep_of(machine))
    code, out, _ = ringside("doctor", "--json")
    report = json.loads(out)
    assert code == 0
    text = (CLONE / "docs" / "cli-json.md").read_text()
    section = text.partition("## `ringside doctor --json`")[2].partition("\n## ")[0]
    rows = set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))
    assert set(report) == rows == {
        "machine", "findings", "sweep", "stored", "problems", "taken_s",
    }  # fmt: skip
    assert set(report["stored"]) == {"machine", "sweep"}
    gpu = report["machine"]["gpus"][0]
    series = report["sweep"]["series"][0]
    experiment = report["sweep"]["experiments"][0]
    for name, value, inner in (
        ("machine", report["machine"], ()),
        ("gpus", gpu, gpu["processes"][:1]),
        ("links", report["machine"]["links"][0], ()),
        ("findings", report["findings"][0], report["findings"][0]["evidence"][:1]),
        ("sweep", report["sweep"], ()),
        ("series", series, series["points"][:1]),
        ("healthy", series["healthy"], ()),
        ("experiments", experiment, experiment["ratios"][:1]),
    ):
        keys = set(value).union(*inner)
        assert paragraph(name) - VALUES == keys - VALUES, name


def test_its_figures(ringside, here, root):
    machine = two_gpus()
    here(machine, sweep_of(machine))
    report = json.loads(ringside("doctor", "--json")[1])
    plain, tried = report["sweep"]["series"]
    last = plain["points"][-1]
    assert last["algbw_bytes_per_s"] == pytest.approx(256 * MIB / 1e-3)
    assert last["busbw_bytes_per_s"] == pytest.approx(256 * MIB / 1e-3)  # two ranks: factor 1
    assert plain["healthy"]["standing"] == "healthy"
    assert tried["healthy"]["standing"] == "healthy"  # for host memory, which it went through
    assert plain["alpha_us"] > 0
    assert report["sweep"]["experiments"][0]["outcome"] == "slower"
    assert report["problems"] == []
    assert report["findings"][0]["code"].startswith("MACHINE-001")


def test_devices_that_cannot_talk_are_a_failure(ringside, here, root):
    here(two_gpus(), LaunchError("The sweep did not start: unhandled system error."))
    code, out, err = ringside("doctor")
    assert code == 1
    assert "unhandled system error" in err
    assert "Kept in" in out
    code, out, _ = ringside("doctor", "--json")
    report = json.loads(out)
    assert code == 1
    assert report["sweep"] is None
    assert report["problems"] == ["The sweep did not start: unhandled system error."]


def test_beside_a_run_the_machine_is_looked_at_but_nothing_is_timed(
    ringside, here, root, write_run, make_spec
):
    here(two_gpus(), AssertionError("measured"))
    spec = make_spec("ddp", device="cuda", gpu_ids=(0, 1))
    write_run(spec, "20260102-030402-calm-otter", state=None)
    code, out, err = ringside("doctor")
    assert code == 2
    assert out.startswith("2 x NVIDIA H200")
    assert err.splitlines()[-1].startswith("calm-otter uses the devices of this machine")
    code, out, _ = ringside("doctor", "--json")
    report = json.loads(out)
    assert (code, report["sweep"]) == (2, None)
    assert report["problems"][-1].startswith("calm-otter uses")
    assert ringside("doctor", "--no-sweep")[0] == 0


def test_one_gpu_has_nobody_to_talk_to(ringside, here, root):
    whole = two_gpus()
    one = two_gpus(
        gpus=whole.gpus[:1], links=(), hardware=Hardware(gpus=whole.hardware.gpus[:1], num_cores=8)
    )
    here(one, AssertionError("no sweep of one device"))
    code, _, err = ringside("doctor")
    assert code == 0
    assert "nobody to talk to" in err


def test_little_is_known_of_a_poor_machine(ringside, here, root):
    """Everything that may be missing is: dashes, no tracebacks."""
    gpus = tuple(GpuState(index=index, name="GPU") for index in range(2))
    bare = Machine(
        t=0.0, hardware=two_gpus().hardware, gpus=gpus, problems=("NVML does not answer (x).",),
        links=(Link(a=0, b=1, kind="unknown"),),
    )  # fmt: skip
    here(bare)
    code, out, _ = ringside("doctor", "--no-sweep")
    assert code == 0
    assert re.search(r"^0 +GPU( +–){11}$", out, re.MULTILINE)
    assert "NVML does not answer" in out


def test_measure_needs_a_run(ringside, root):
    code, _, err = ringside("doctor", "--measure")
    assert code == 2
    assert "name one" in err


def test_this_machine_as_it_is(root):
    """A process of its own, with torch asked in another."""
    done = subprocess.run(
        [sys.executable, "-m", "app", "doctor", "--no-sweep", "--json"],
        cwd=CLONE, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    machine = report["machine"]
    assert report["problems"] == []
    assert machine["num_cores"] >= 1
    assert machine["shm_total_bytes"] > 0
    assert machine["hardware"]["versions"]["torch"]
    # A torch with CUDA says what it was built for, also where there is no GPU.
    assert (machine["torch_cuda"] is None) == (machine["arch_list"] == [])
    assert json.loads((root / "measurements" / "machine.json").read_text()) == machine
