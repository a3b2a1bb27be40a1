"""A bridge between two of three GPUs; or NVLink between all."""

from __future__ import annotations

from ringside.doctor import Case
from ringside.machine import Link, Machine
from ringside.machine.facts import LinkKind

from tests.doctor.making import changed, machine  # isort: skip


def joined(others: LinkKind) -> Machine:
    links = (
        Link(a=0, b=1, kind="nvlink"),
        Link(a=0, b=2, kind=others),
        Link(a=1, b=2, kind=others),
    )
    return changed(machine(num_gpus=3), links=links)


def firing() -> Case:
    return Case(machine=joined("node"))


def silent() -> Case:
    return Case(machine=joined("nvlink"))
