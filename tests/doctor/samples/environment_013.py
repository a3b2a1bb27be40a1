"""Two processes take 40 ms without an exchange where one takes 30; or 30.5."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import experiment  # isort: skip


def firing() -> Case:
    return Case(experiment=experiment(one=30.0, many=50.0, many_without_reduction=40.0))


def silent() -> Case:
    return Case(experiment=experiment(one=30.0, many=50.0, many_without_reduction=30.5))
