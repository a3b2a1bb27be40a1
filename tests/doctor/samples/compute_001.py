"""The GPU computes 90 % of the step, or 40."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import facts  # isort: skip


def firing() -> Case:
    return Case(facts=facts(compute=0.9))


def silent() -> Case:
    return Case(facts=facts(compute=0.4))
