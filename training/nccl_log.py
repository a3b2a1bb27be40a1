"""NCCL's own log of a run: `nccl/HOST.PID.log`, one file a rank, written by NCCL.

NCCL reads its variables when its first communicator is made. torch makes that one for the first
collective, unless the process group is bound to a device, and Accelerate's is not (1.15). So the
folder may be named after a plain launch has found its run directory.
"""

from __future__ import annotations

import os

from ringside.rundir import RunDir
from ringside.spec import RunSpec
from ringside.words import say

VARIABLES = ("NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE")
FILE = "/nccl/%h.%p.log"
# What is printed while communicators are made, and nothing for each call: COLL prints a line for
# every collective, and TUNING one in NCCL 2.20 to 2.23.
SUBSYSTEMS = "INIT,ENV,GRAPH,P2P,SHM,NET"


def log_into(spec: RunSpec, run: RunDir) -> None:
    """Have NCCL write its log into the run; before the first collective.

    Nothing on a CPU or with one process, nor where a person or the preset set one of `VARIABLES`.
    """
    if not _talks(spec) or any(name in os.environ for name in VARIABLES):
        return
    try:
        run.nccl.mkdir(exist_ok=True)
    except OSError:
        return  # The log is no reason to stop a run; a full disk is told of elsewhere.
    os.environ["NCCL_DEBUG"] = "INFO"
    os.environ["NCCL_DEBUG_SUBSYS"] = SUBSYSTEMS
    os.environ["NCCL_DEBUG_FILE"] = _pattern(run)


def why_not(spec: RunSpec, run: RunDir) -> str | None:
    """A sentence where the log goes elsewhere because somebody said so; None where all is well."""
    if not _talks(spec) or os.environ.get("NCCL_DEBUG_FILE") == _pattern(run):
        return None
    named = [f"{name}={os.environ[name]}" for name in VARIABLES if name in os.environ]
    if not named:
        return None
    key = "log_elsewhere_one" if len(named) == 1 else "log_elsewhere"
    return say(f"noted.{key}", names=" and ".join(named))


def ours() -> frozenset[str]:
    """The variables that this module has set here, which are not part of what a rank got."""
    is_ours = os.environ.get("NCCL_DEBUG_FILE", "").endswith(FILE)
    return frozenset(VARIABLES) if is_ours else frozenset()


def _talks(spec: RunSpec) -> bool:
    return spec.device == "cuda" and spec.num_processes > 1


def _pattern(run: RunDir) -> str:
    """The path as NCCL reads it: %h is the host, %p the process, and %% a percent sign."""
    return str(run.nccl.parent).replace("%", "%%") + FILE
