"""Host memory between GeForce cards; or because a variable says so."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import log, machine  # isort: skip


def firing() -> Case:
    return Case(nccl=log("SHM", "direct/direct"), machine=machine(name="NVIDIA GeForce RTX 4090"))


def silent() -> Case:
    return Case(
        nccl=log("SHM", "direct/direct", environment={"NCCL_P2P_DISABLE": "1"}),
        machine=machine(name="NVIDIA GeForce RTX 4090"),
    )
