"""20 collectives an optimizer step with 4 micro-steps and 5 buckets; or 5."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import record, request  # isort: skip

SPEC = request(batch=512, settings={"accumulation_steps": 4})


def firing() -> Case:
    return Case(record=record(SPEC, epoch={"collectives_per_step": 20.0}))


def silent() -> Case:
    return Case(record=record(SPEC, epoch={"collectives_per_step": 5.0}))
