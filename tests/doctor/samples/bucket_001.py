"""161 all-reduces of 60 kB, or DDP's five."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import facts  # isort: skip


def firing() -> Case:
    return Case(
        facts=facts(
            compute=0.5,
            num_all_reduces=161.0,
            all_reduce_bytes=60_000.0,
            reduce_stretch_us=30_000.0,
        )
    )


def silent() -> Case:
    return Case(facts=facts(compute=0.5, reduce_stretch_us=30_000.0))
