"""Asks a process of its own what torch knows of this machine: neither `ringside` nor the page
loads torch."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from ringside.errors import LaunchError
from ringside.identity import RUN_TOKEN
from ringside.launch.plan import import_environment
from ringside.machine import Machine, TorchReport, read_machine

# A cold disk reads torch for half a minute, and eight GPUs take their time to start.
TIMEOUT_S = 90.0
LOOK_EVERY_S = 0.05


def check_machine(runs_root: Path, *, load_links: bool = False) -> Machine:
    """`read_machine` with what torch knows."""
    return read_machine(runs_root, load_links=load_links, ask_torch=ask_torch)


def ask_torch(
    *, load: bool, meanwhile: Callable[[], None], timeout_s: float = TIMEOUT_S
) -> TorchReport:
    """Run `training.describe_torch`, calling `meanwhile` until it ends; LaunchError where it fails.

    It never outlives this call.
    """
    with tempfile.TemporaryDirectory(prefix="ringside-") as folder:
        out, log = Path(folder) / "torch.json", Path(folder) / "log"
        child = _start(out, log, load=load)
        try:
            _wait(child, meanwhile, timeout_s)
            return msgspec.json.decode(out.read_bytes(), type=TorchReport)
        except subprocess.TimeoutExpired:
            raise LaunchError(
                f"torch did not say what it knows of this machine within {timeout_s:.0f} s."
            ) from None
        except (OSError, msgspec.MsgspecError):
            raise LaunchError(
                f"torch could not say what it knows of this machine: {_last_line(log)}"
            ) from None
        finally:
            child.kill()
            child.wait()


def _start(out: Path, log: Path, *, load: bool) -> subprocess.Popen[bytes]:
    environment = os.environ | import_environment()
    environment.pop(RUN_TOKEN, None)
    # So that torch counts the GPUs as `ringside.hardware` does.
    environment["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    argv = [sys.executable, "-m", "training.describe_torch", "--out", str(out)]
    with log.open("wb") as stream:
        return subprocess.Popen(
            [*argv, "--load"] if load else argv,
            cwd=out.parent,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _wait(child: subprocess.Popen[bytes], meanwhile: Callable[[], None], timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while True:
        meanwhile()
        try:
            child.wait(LOOK_EVERY_S)
            return
        except subprocess.TimeoutExpired:
            if time.monotonic() >= deadline:
                raise


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing."
