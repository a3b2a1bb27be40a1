"""Host memory at a healthy 10 GB/s that costs 30 % of the step; or far below that."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import bucket, facts, log  # isort: skip


def firing() -> Case:
    return Case(
        nccl=log("SHM", "direct/direct"),
        facts=facts(compute=0.5, exposed_transfer=0.3, buckets=(bucket(27_000_000, 10.0),)),
    )


def silent() -> Case:
    return Case(
        nccl=log("SHM", "direct/direct"),
        facts=facts(compute=0.5, exposed_transfer=0.3, buckets=(bucket(27_000_000, 1.0),)),
    )
