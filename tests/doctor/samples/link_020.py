"""bf16 computation, fp32 gradients, 30 % of the step exposed; or with a hook."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import facts, observed, record, request  # isort: skip

SLOW = facts(compute=0.5, exposed_transfer=0.3)


def firing() -> Case:
    return Case(record=record(request(precision="bf16")), facts=SLOW)


def silent() -> Case:
    spec = request(precision="bf16", settings={"comm_hook": "bf16"})
    half = observed(spec, reduced_bytes_per_step=47_425_864)
    return Case(record=record(spec, seen=half), facts=SLOW)
