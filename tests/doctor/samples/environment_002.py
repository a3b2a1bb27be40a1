"""The longest log of NCCL left on; or none."""

from __future__ import annotations

from ringside.doctor import Case
from ringside.environment_lint import lint

from tests.doctor.making import changed, machine  # isort: skip


def firing() -> Case:
    return Case(machine=changed(machine(), variables=lint({"NCCL_DEBUG": "TRACE"})))


def silent() -> Case:
    return Case(machine=changed(machine(), variables=lint({"NCCL_DEBUG": "WARN"})))
