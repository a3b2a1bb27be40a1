"""/dev/shm is full, by the output of a worker; or all is well."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import record  # isort: skip


def firing() -> Case:
    return Case(
        record=record(),
        console="RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error.\n",
    )


def silent() -> Case:
    return Case(record=record(), console="epoch 1\n")
