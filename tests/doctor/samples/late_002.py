"""One rank's trace that waits for 40 % of the step; with both there is no guessing."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import facts, rank_facts  # isort: skip


def firing() -> Case:
    return Case(facts=facts(rank_facts(0, compute=0.4, exposed_wait=0.4)))


def silent() -> Case:
    return Case(facts=facts(compute=0.4, exposed_wait=0.4))
