"""One GiB left for runs; or a hundred."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import changed, machine  # isort: skip


def firing() -> Case:
    return Case(machine=changed(machine(), disk_free_bytes=2**30))


def silent() -> Case:
    return Case(machine=changed(machine(), disk_free_bytes=100 * 2**30))
