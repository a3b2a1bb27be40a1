"""Moving bytes while nothing computes: 30 % of the step, or 5."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import bucket, facts  # isort: skip


def firing() -> Case:
    return Case(facts=facts(compute=0.5, exposed_transfer=0.3, buckets=(bucket(27_000_000, 2.9),)))


def silent() -> Case:
    return Case(facts=facts(compute=0.8, exposed_transfer=0.05))
