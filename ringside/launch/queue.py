"""Runs that wait until their devices are free: who holds what, whose turn it is, and the order.

Nobody hands out turns. The supervisor of each waiting run looks by itself, and takes its turn under
one lock of the runs folder, which also covers a start without waiting: so no two decide at once.
Machines that share a folder each have a queue of their own.
"""

from __future__ import annotations

import platform
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ringside.errors import LaunchError
from ringside.launch.claims import Claim, Claims, ClaimState, devices_of, gpu_ids
from ringside.launch.queue_order import Direction, Order, change_order, moved, read_order
from ringside.records import read_owner
from ringside.rundir import RunDir
from ringside.spec import RunSpec
from ringside.words import say


@dataclass(frozen=True)
class Holder:
    """A run that holds devices; with the state `queued` it waits for them and comes first.

    `gpu_ids` are all of its GPUs, empty on a CPU, which one run holds as a whole.
    """

    run_id: str
    name: str
    gpu_ids: tuple[int, ...]
    state: ClaimState


@dataclass(frozen=True)
class Place:
    """Where a waiting run stands in the queue of its machine, 1 for the next; and for whom."""

    run_id: str
    host: str
    position: int
    gpu_ids: tuple[int, ...]
    waits_for: tuple[Holder, ...]
    is_paused: bool

    @property
    def name(self) -> str:
        """The two words of the run."""
        return RunDir(Path(self.run_id)).name


def holders(root: Path, spec: RunSpec) -> tuple[Holder, ...]:
    """The unfinished runs below `root` that stand between `spec` and its devices, oldest first.

    Those of this machine alone. Reads a few small files for each unfinished run (milliseconds).
    """
    claims = Claims(root).read(platform.node())
    return _as_holders(others_on(devices_of(spec), claims))


def refuse_held(root: Path, spec: RunSpec) -> None:
    """LaunchError for GPUs that another run holds, unless `spec` may wait or share them.

    Runs on a CPU may stand beside each other. A retry takes over what the run that failed held.
    """
    if spec.device == "cpu" or spec.queue or spec.beside or spec.retry_of is not None:
        return
    for holder in holders(root, spec):
        shared = [gpu for gpu in holder.gpu_ids if gpu in spec.gpu_ids]
        many = "one" if len(shared) == 1 else "many"
        kind = "awaited" if holder.state == "queued" else "held"
        gpus = ", ".join(map(str, shared))
        raise LaunchError(say(f"queue.{kind}_{many}", gpus=gpus, name=holder.name))


def others_on(devices: frozenset[int], claims: Iterable[Claim]) -> list[Claim]:
    """The claims that share a device, in the order in which they were asked for."""
    return sorted(
        (claim for claim in claims if claim.devices & devices), key=lambda c: (c.since, c.run_id)
    )


def line_of(claims: Iterable[Claim], order: Sequence[str] = ()) -> list[Claim]:
    """The waiting ones in their order: those that were moved as `order` says, then as they came."""
    rank = {run_id: number for number, run_id in enumerate(order)}
    waiting = [claim for claim in claims if claim.is_waiting]
    return sorted(waiting, key=lambda c: (rank.get(c.run_id, len(rank)), c.since, c.run_id))


def blockers(run_id: str, claims: Collection[Claim], order: Sequence[str] = ()) -> list[Claim]:
    """What keeps a waiting run from its turn: who holds one of its devices, or comes before it.

    A later run on other devices may pass; on a device that an earlier one waits for, nobody does.
    """
    line = line_of(claims, order)
    place = next((n for n, claim in enumerate(line) if claim.run_id == run_id), None)
    if place is None:
        return []
    holding = [claim for claim in claims if not claim.is_waiting]
    return others_on(line[place].devices, [*holding, *line[:place]])


def is_next(run_id: str, claims: Collection[Claim], order: Order) -> bool:
    """Whether a waiting run may start now."""
    waits = any(claim.run_id == run_id and claim.is_waiting for claim in claims)
    return waits and not order.is_paused and not blockers(run_id, claims, order.runs)


def places(claims: Claims) -> list[Place]:
    """All waiting runs in the order of their queue, machine by machine."""
    found = claims.read()
    hosts = sorted({claim.host for claim in found if claim.is_waiting})
    return [place for host in hosts for place in _places_on(host, claims.root, found)]


def _places_on(host: str, root: Path, found: Iterable[Claim]) -> list[Place]:
    claims, order = [claim for claim in found if claim.host == host], read_order(root, host)
    return [
        Place(
            run_id=claim.run_id,
            host=host,
            position=position,
            gpu_ids=gpu_ids(claim.devices),
            waits_for=_as_holders(blockers(claim.run_id, claims, order.runs)),
            is_paused=order.is_paused,
        )
        for position, claim in enumerate(line_of(claims, order.runs), start=1)
    ]


def move(run: RunDir, direction: Direction) -> None:
    """Give a waiting run another place in its queue; LaunchError for one that does not wait."""
    root, owner = run.path.parent, read_owner(run)
    host = owner.host if owner and owner.host else platform.node()

    def change(order: Order) -> Order:
        line = [claim.run_id for claim in line_of(Claims(root).read(host), order.runs)]
        if run.id not in line:
            raise LaunchError(say("queue.not_waiting", name=run.name))
        return msgspec.structs.replace(order, runs=tuple(moved(line, run.id, direction)))

    change_order(root, host, change)


def set_paused(root: Path, is_paused: bool) -> None:
    """Let no run of this machine out of the queue, or let them out again; those under way go on."""
    change_order(
        root, platform.node(), lambda order: msgspec.structs.replace(order, is_paused=is_paused)
    )


def is_paused(root: Path) -> bool:
    """Whether the queue of this machine lets no run out."""
    return read_order(root, platform.node()).is_paused


def _as_holders(claims: Iterable[Claim]) -> tuple[Holder, ...]:
    return tuple(Holder(c.run_id, c.name, gpu_ids(c.devices), c.state) for c in claims)
