"""The GPU waits for images in 40 % of a step, or in 4 %."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import facts  # isort: skip


def firing() -> Case:
    return Case(facts=facts(data_idle=0.4, compute=0.3, data_wait_us=40_000))


def silent() -> Case:
    return Case(facts=facts(data_idle=0.04, compute=0.7))
