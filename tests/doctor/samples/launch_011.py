"""The host needs 20 ms to launch what the device does in 8, or in 30."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import description  # isort: skip


def firing() -> Case:
    return Case(description=description(host_us=20_000, device_us=8_000))


def silent() -> Case:
    return Case(description=description(host_us=20_000, device_us=30_000))
