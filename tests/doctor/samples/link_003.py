"""BatchNorm needs the whole GPU, and none of the exchange is hidden; or half of it is."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import bucket, facts  # isort: skip


def firing() -> Case:
    return Case(facts=_facts(hidden_transfer_us=100.0))


def silent() -> Case:
    return Case(facts=_facts(hidden_transfer_us=15_000.0))


def _facts(**given: float):
    return facts(
        compute=0.44, exposed_transfer=0.5, num_persistent=106.0,
        buckets=(bucket(27_000_000, 3.65),), **given,
    )  # fmt: skip
