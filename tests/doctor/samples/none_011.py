"""15 % overlap and 5 % exposed, or 40 % exposed."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import facts  # isort: skip


def firing() -> Case:
    return Case(facts=facts(compute=0.3, exposed_transfer=0.05, overlapped_us=900.0))


def silent() -> Case:
    return Case(facts=facts(compute=0.3, exposed_transfer=0.4, overlapped_us=900.0))
