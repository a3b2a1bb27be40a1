"""No peer access over PCIe; or over a bridge of the same host, where there is."""

from __future__ import annotations

from ringside.doctor import Case
from ringside.machine import Link

from tests.doctor.making import changed, machine  # isort: skip


def firing() -> Case:
    return Case(machine=changed(machine(), links=(Link(a=0, b=1, kind="phb", p2p=False),)))


def silent() -> Case:
    return Case(machine=changed(machine(), links=(Link(a=0, b=1, kind="phb", p2p=True),)))
