"""A torch without kernels for an H200; or with them."""

from __future__ import annotations

from ringside.doctor import Case
from ringside.machine import Machine

from tests.doctor.making import changed, machine  # isort: skip


def built_for(*names: str) -> Machine:
    here = machine(num_gpus=1)
    gpu = changed(here.hardware.gpus[0], compute_capability=(9, 0))
    return changed(here, hardware=changed(here.hardware, gpus=(gpu,)), arch_list=names)


def firing() -> Case:
    return Case(machine=built_for("sm_70", "sm_80"))


def silent() -> Case:
    return Case(machine=built_for("sm_80", "sm_90"))
