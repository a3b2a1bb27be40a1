"""Exchange and input hide behind each other: 20 of 50 ms are neither's; or all adds up."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import experiment  # isort: skip


def firing() -> Case:
    return Case(
        experiment=experiment(
            many=50.0,
            many_without_reduction=50.0,
            many_synthetic=50.0,
            many_synthetic_without_reduction=30.0,
        )
    )


def silent() -> Case:
    return Case(
        experiment=experiment(
            many=50.0,
            many_without_reduction=40.0,
            many_synthetic=40.0,
            many_synthetic_without_reduction=30.0,
        )
    )
