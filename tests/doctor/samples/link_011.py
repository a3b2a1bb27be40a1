"""P2P is forbidden by a variable, or by nothing."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import log  # isort: skip


def firing() -> Case:
    return Case(nccl=log("SHM", "direct/direct", environment={"NCCL_P2P_DISABLE": "1"}))


def silent() -> Case:
    return Case(nccl=log("SHM", "direct/direct"))
