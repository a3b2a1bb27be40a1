"""Two processes with 8 threads on 4 cores, or on 16."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import machine, observed, record, request  # isort: skip

SPEC = request()
CROWD = observed(SPEC, environment={"OMP_NUM_THREADS": "8"})


def firing() -> Case:
    return Case(record=record(SPEC, seen=CROWD), machine=machine(num_cores=4))


def silent() -> Case:
    return Case(record=record(SPEC, seen=CROWD), machine=machine(num_cores=16))
