"""The exchange costs 20 of 50 ms and the messages alone need 15 or so; or they need 1."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import experiment, record, series, sweep  # isort: skip

ARMS = experiment(many=50.0, many_without_reduction=30.0)


def firing() -> Case:
    return Case(record=record(), experiment=ARMS, sweep=sweep(series(6.0)))


def silent() -> Case:
    return Case(record=record(), experiment=ARMS, sweep=sweep(series(200.0)))
