"""Rank 1 computes 30 % of the step longer than rank 0, which waits; or both compute alike."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import facts, rank_facts  # isort: skip


def firing() -> Case:
    return Case(
        facts=facts(rank_facts(0, compute=0.4, exposed_wait=0.4), rank_facts(1, compute=0.7))
    )


def silent() -> Case:
    return Case(
        facts=facts(rank_facts(0, compute=0.4, exposed_wait=0.4), rank_facts(1, compute=0.4))
    )
