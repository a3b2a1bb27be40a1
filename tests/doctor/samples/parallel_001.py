"""nn.DataParallel in a trace, or not."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import facts  # isort: skip


def firing() -> Case:
    return Case(facts=facts(compute=0.3, num_data_parallel=1.0, num_devices=2))


def silent() -> Case:
    return Case(facts=facts(compute=0.3, num_devices=2))
