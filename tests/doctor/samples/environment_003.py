"""A slip of the keyboard; or a name that is like no other."""

from __future__ import annotations

from ringside.doctor import Case
from ringside.environment_lint import lint

from tests.doctor.making import changed, machine  # isort: skip


def firing() -> Case:
    return Case(machine=changed(machine(), variables=lint({"NCCL_P2P_DISABEL": "1"})))


def silent() -> Case:
    return Case(machine=changed(machine(), variables=lint({"NCCL_OUR_OWN_MARK": "1"})))
