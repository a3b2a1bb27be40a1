"""The GPU runs dry for want of launches: 60 %, or 20, which the profiler itself can cost."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import facts  # isort: skip


def firing() -> Case:
    return Case(facts=facts(host_wait=0.6, compute=0.3))


def silent() -> Case:
    return Case(facts=facts(host_wait=0.2, compute=0.7))
