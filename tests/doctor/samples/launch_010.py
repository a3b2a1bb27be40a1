"""Kernels of 200 µs and a GPU that is idle for 30 %, or kernels of 10 µs."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import facts  # isort: skip


def firing() -> Case:
    return Case(facts=facts(compute=0.6, host_wait=0.3, num_events=300))


def silent() -> Case:
    return Case(facts=facts(compute=0.6, host_wait=0.3, num_events=6000))
