"""Probes as they are launched, with two gloo processes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import psutil
import pytest

from ringside import identity, yaml_text
from ringside.errors import LaunchError
from ringside.hardware import read_hardware
from ringside.identity import run_processes, wait_gone, wait_until
from ringside.launch.probe import launch_probe, probe_folder
from ringside.launch.probing import measure_sweep
from ringside.measurements import Experiment, Sweep
from ringside.measurements.interpolation import interpolate_us
from ringside.measurements.store import Store, key_of_machine
from ringside.presets import accelerate_config
from ringside.spec import RunSpec

pytestmark = pytest.mark.distributed
ARMS = Path(__file__).parent / "step_arms.py"
MIB = 2**20


def test_a_sweep_has_every_collective_and_size(root: Path) -> None:
    hardware, heard = read_hardware(), []
    sweep = measure_sweep(hardware, 2, seconds=1.5, sizes=[3 * MIB + 3], say=heard.append)
    assert [(one.operation, one.dtype) for one in sweep.series] == [
        ("all_reduce", "fp32"), ("all_reduce", "bf16"), ("reduce_scatter", "fp32"),
        ("all_gather", "fp32"), ("reduce_scatter", "bf16"), ("all_gather", "bf16"),
    ]  # fmt: skip
    for series in sweep.series:
        sizes = [point.num_bytes for point in series.points]
        assert sizes[0] == 16 * 2**10
        assert sizes[-1] == 16 * MIB
        assert sizes == sorted(set(sizes))
        assert len(sizes) >= 8
        assert 3 * MIB in sizes  # A whole element for each rank.
        assert (series.backend, series.num_ranks, series.transport) == ("gloo", 2, None)
        for point in series.points:
            assert point.repeats >= 5
            assert 0 < point.median_us <= point.p90_us
        # The memory alone needs longer for 16 MiB than gloo does for 64 KiB.
        large, small = interpolate_us(series, 16 * MIB), interpolate_us(series, 2**16)
        assert large is not None
        assert small is not None
        assert large > small
    assert (sweep.num_ranks, sweep.failed, len(heard)) == (2, (), 1)
    assert sweep.key == key_of_machine(hardware, 2, os.environ)
    store = Store(root)
    store.save(sweep)
    assert store.sweep(hardware, 2) == sweep


def test_a_step_without_reduction_reduces_nothing(
    make_request: Callable[..., RunSpec], tmp_path: Path
) -> None:
    """By the process group's own counter, and by the weights, which then go apart."""
    ddp, local = make_request("ddp"), make_request("local_sgd")
    arms = [(ddp, True, False), (ddp, False, False), (ddp, False, True), (local, False, True)]
    config, listed, out = tmp_path / "a.yaml", tmp_path / "arms.json", tmp_path / "out.json"
    config.write_text(yaml_text.dump(accelerate_config(ddp.accelerate, 2)))
    listed.write_bytes(msgspec.json.encode(arms))
    launch = [sys.executable, "-m", "accelerate.commands.launch", "--config_file", str(config)]
    words = [str(ARMS), str(listed), str(out)]
    subprocess.run([*launch, *words], check=True, timeout=240, capture_output=True)
    found, (together, apart) = json.loads(out.read_bytes())
    measured = [msgspec.convert(one, Experiment).arms[0] for one in found]
    assert measured[0].collectives_per_step is not None
    assert measured[0].collectives_per_step >= 1
    assert [arm.collectives_per_step for arm in measured[1:]] == [0, 0, 0]
    assert all(len(arm.step_ms) >= 3 and min(arm.step_ms) > 0 for arm in measured)
    waits = [arm.data_ms for arm in measured]
    assert waits[1] > 10 * waits[2]  # Reading and decoding, against nothing at all.
    assert together == 0
    assert apart > 0


def test_a_measurement_that_takes_too_long_leaves_nothing_behind(
    make_request: Callable[..., RunSpec],
) -> None:
    with probe_folder() as run:
        with pytest.raises(LaunchError, match="took longer than 4 s and was ended"):
            launch_probe(make_request("ddp"), run, "sweep", ["--seconds", "60"], Sweep, timeout_s=4)
        assert run_processes(run.id) == set()
    assert not run.path.exists()


def test_ranks_end_when_whoever_asked_is_killed(tmp_path: Path) -> None:
    script = (
        "from ringside.launch.probing import *; from ringside.hardware import read_hardware\n"
        "measure_sweep(read_hardware(), 2, seconds=60)"
    )
    # Nobody is left to take its folder away.
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    asker = subprocess.Popen([sys.executable, "-c", script], env=environment)
    try:
        assert wait_until(lambda: len(_ranks(asker.pid)) == 2, 60)
        family = identity.descendants(asker.pid)
        asker.send_signal(signal.SIGKILL)
        asker.wait()
        assert wait_gone(family, 30) == set()
    finally:
        asker.kill()


def _ranks(pid: int) -> list[psutil.Process]:
    """Descendants that measure: the launcher has the same words after its own."""
    found = []
    for child in psutil.Process(pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # also one that has just ended
            words = child.cmdline()
            if "training.probe" in words and "accelerate.commands.launch" not in words:
                found.append(child)
    return found
