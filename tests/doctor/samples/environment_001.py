"""A forced algorithm in the environment; or only a choice of interface."""

from __future__ import annotations

from ringside.doctor import Case
from ringside.environment_lint import lint

from tests.doctor.making import changed, machine  # isort: skip


def firing() -> Case:
    return Case(machine=changed(machine(), variables=lint({"NCCL_ALGO": "Tree"})))


def silent() -> Case:
    return Case(machine=changed(machine(), variables=lint({"NCCL_SOCKET_IFNAME": "eth0"})))
