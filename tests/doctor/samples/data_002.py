"""Made-up images make a step of 50 ms 20 ms shorter, or half a millisecond."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import experiment  # isort: skip


def firing() -> Case:
    return Case(experiment=experiment(many=50.0, many_synthetic=30.0))


def silent() -> Case:
    return Case(experiment=experiment(many=50.0, many_synthetic=49.5))
