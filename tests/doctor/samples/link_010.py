"""P2P over PCIe at 1.5 GB/s; or over NVLink, or as fast as PCIe is."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import log, series, sweep  # isort: skip


def firing() -> Case:
    return Case(nccl=log("P2P", "CUMEM", path="PIX"), sweep=sweep(series(1.5)))


def silent() -> Case:
    return Case(nccl=log("P2P", "CUMEM", path="PIX"), sweep=sweep(series(12.0)))
