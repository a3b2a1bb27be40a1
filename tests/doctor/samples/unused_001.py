"""DDP's search for unused parameters in a trace, or none."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import facts  # isort: skip


def firing() -> Case:
    return Case(facts=facts(compute=0.5, num_searches=1.0, search_us=1000.0))


def silent() -> Case:
    return Case(facts=facts(compute=0.5))
