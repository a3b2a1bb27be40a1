"""DDP warns that it found no unused parameters; or that some are."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import record, request  # isort: skip

SPEC = request(settings={"find_unused_parameters": True})


def firing() -> Case:
    return Case(
        record=record(SPEC), console="did not find any unused parameters in the forward pass"
    )


def silent() -> Case:
    from ringside.events import DdpReported

    made = record(SPEC)
    made.ddp = DdpReported(epoch=1, step=9, find_unused_parameters=True, unused_parameter_bytes=400)
    return Case(record=made)
