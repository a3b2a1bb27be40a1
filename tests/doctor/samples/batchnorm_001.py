"""53 synchronised BatchNorms with small messages, or none."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import bucket, facts  # isort: skip


def firing() -> Case:
    return Case(facts=facts(compute=0.5, num_sync_batchnorms=53.0, buckets=(bucket(1000, 0.0001),)))


def silent() -> Case:
    return Case(facts=facts(compute=0.5, buckets=(bucket(1000, 0.0001),)))
