"""50 ms lost over NVLink, which moves these bytes in one; or 950 over what nobody timed."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import baseline, log, record, request, series, sweep  # isort: skip

SPEC = request()


def firing() -> Case:
    return Case(
        record=record(SPEC, step_ms=100.0), baseline=baseline(SPEC), sweep=sweep(series(200.0))
    )


def silent() -> Case:
    return Case(
        record=record(SPEC, step_ms=1000.0), baseline=baseline(SPEC), nccl=log("NET", "Socket")
    )
