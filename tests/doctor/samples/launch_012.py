"""Four micro-steps share a batch that was kept, or multiply it."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import record, request  # isort: skip

FOUR = {"accumulation_steps": 4}


def firing() -> Case:
    return Case(record=record(request(batch=512, settings=FOUR, keeps_global_batch=True)))


def silent() -> Case:
    return Case(record=record(request(batch=512, settings=FOUR)))
