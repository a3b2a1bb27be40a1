"""Sockets between hosts at 0.5 GB/s that cost 40 % of the step; or inside one host."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import bucket, facts, log  # isort: skip

SLOW = (bucket(27_000_000, 0.5),)


def firing() -> Case:
    return Case(
        nccl=log("NET", "Socket", hosts=2),
        facts=facts(compute=0.5, exposed_transfer=0.4, buckets=SLOW),
    )


def silent() -> Case:
    return Case(
        nccl=log("NET", "Socket"),
        facts=facts(compute=0.5, exposed_transfer=0.4, buckets=SLOW),
    )
