"""One rank is 10 ms longer in forward, the others wait 10 ms in backward; or all alike."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import record  # isort: skip


def firing() -> Case:
    return Case(
        record=record(forward_ms=20.0, forward_ms_min=10.0, backward_ms=28.0, backward_ms_min=18.0)
    )


def silent() -> Case:
    return Case(record=record())
