"""Without P2P the sweep is twice as fast; or as fast as with it, whatever the path."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import log, series, sweep  # isort: skip

OFF = {"NCCL_P2P_DISABLE": "1"}


def firing() -> Case:
    return Case(
        nccl=log("P2P", "CUMEM", path="SYS"), sweep=sweep(series(3.0), series(6.0, environment=OFF))
    )


def silent() -> Case:
    return Case(
        nccl=log("P2P", "CUMEM", path="SYS"), sweep=sweep(series(6.0), series(6.0, environment=OFF))
    )
