"""The 64 MiB that Docker gives; or 8 GiB."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import changed, machine  # isort: skip


def firing() -> Case:
    return Case(machine=changed(machine(), shm_total_bytes=2**26, shm_free_bytes=2**26))


def silent() -> Case:
    return Case(machine=changed(machine(), shm_total_bytes=2**33, shm_free_bytes=2**33))
