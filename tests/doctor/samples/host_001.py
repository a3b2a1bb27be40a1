"""A value is read in every step for 30 % of it; the GPU runs dry, or never does."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import facts  # isort: skip


def firing() -> Case:
    return Case(
        facts=facts(
            compute=0.5, host_wait=0.3, num_items=1.0, item_us=30_000, num_synchronisations=1.0
        )
    )


def silent() -> Case:
    return Case(
        facts=facts(
            compute=0.95, host_wait=0.01, num_items=1.0, item_us=30_000, num_synchronisations=1.0
        )
    )
