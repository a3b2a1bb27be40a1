"""50 ms lost over NVLink, which moves these bytes in one; or over a link of 1 GB/s."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import baseline, record, request, series, sweep  # isort: skip

SPEC = request()


def firing() -> Case:
    return Case(
        record=record(SPEC, step_ms=100.0), baseline=baseline(SPEC), sweep=sweep(series(200.0))
    )


def silent() -> Case:
    return Case(
        record=record(SPEC, step_ms=100.0), baseline=baseline(SPEC), sweep=sweep(series(1.0))
    )
