"""Which runs hold a machine's devices, and which wait for them, from their small files.

A run that waits for its turn claims its devices too: later ones do not overtake it.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ringside.errors import RingsideError
from ringside.launch.reconcile import is_forsaken
from ringside.records import Owner, is_gone, is_queued
from ringside.rundir import RunDir, list_run_dirs
from ringside.spec import RunSpec

CPU = -1
"""All cores of a machine without GPUs, as one device."""

ClaimState = Literal["queued", "running", "stopping"]


@dataclass(frozen=True)
class Claim:
    """The devices that an unfinished run holds, or with the state `queued` waits for.

    `since` is when it was asked for, in seconds since 1970. Devices are those of the machine
    `host`; a run that nobody took yet counts for this one.
    """

    run_id: str
    host: str
    devices: frozenset[int]
    state: ClaimState
    since: float

    @property
    def name(self) -> str:
        """The two words of the run."""
        return RunDir(Path(self.run_id)).name

    @property
    def is_waiting(self) -> bool:
        """Whether it has not been launched yet."""
        return self.state == "queued"


def devices_of(spec: RunSpec) -> frozenset[int]:
    """Physical indices of its GPUs, or the CPU."""
    return frozenset(spec.gpu_ids) if spec.device == "cuda" else frozenset({CPU})


def gpu_ids(devices: frozenset[int]) -> tuple[int, ...]:
    """The GPUs among the devices, in order; empty for the CPU."""
    return tuple(sorted(devices - {CPU}))


class Claims:
    """Reads the claims in a folder of runs; a run that has ended is never looked at again."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._ended: set[str] = set()

    def read(self, host: str | None = None) -> list[Claim]:
        """The claims at this moment, of all machines or of one; unreadable runs have none.

        Nor have runs whose owner is gone, and such as nobody took: `reconcile` closes their books.
        """
        claims = (claim_of(run) for run in self.unfinished())
        return [claim for claim in claims if claim and host in (None, claim.host)]

    def unfinished(self) -> list[RunDir]:
        """Runs without an exit record, newest first."""
        runs = [run for run in list_run_dirs(self.root) if run.id not in self._ended]
        self._ended |= {run.id for run in runs if run.exit.exists()}
        return [run for run in runs if run.id not in self._ended]


def claim_of(run: RunDir) -> Claim | None:
    """What one run claims at this moment; None for one that has ended or cannot be read."""
    try:
        return None if run.exit.exists() else _claim(run)
    except (RingsideError, FileNotFoundError):
        return None  # written by a newer Ringside, or deleted meanwhile


def _claim(run: RunDir) -> Claim | None:
    spec, owner = run.read(run.spec, RunSpec), run.read(run.owner, Owner)
    if spec is None or is_forsaken(run) or (owner is not None and is_gone(owner)):
        return None
    since = run.spec.stat().st_mtime
    host = owner.host if owner and owner.host else platform.node()
    return Claim(run.id, host, devices_of(spec), _state(run, spec, owner), since)


def _state(run: RunDir, spec: RunSpec, owner: Owner | None) -> ClaimState:
    if run.requested("stop"):
        return "stopping"
    return "queued" if is_queued(spec, owner) else "running"
