"""Runs all checks over a case."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from typing import Protocol, cast

from ringside.preflight import checks
from ringside.preflight.case import Case
from ringside.preflight.items import LEVELS, Item, Preflight, Remark
from ringside.words import say


class Check(Protocol):
    """What every module of `ringside.preflight.checks` has."""

    CODE: str
    ORDER: int
    __doc__: str | None

    def check(self, case: Case) -> Remark | None: ...


@cache
def all_checks() -> tuple[Check, ...]:
    """All checks, in their order."""
    names = [module.name for module in pkgutil.iter_modules(checks.__path__)]
    modules = [importlib.import_module(f"{checks.__name__}.{name}") for name in names]
    return tuple(sorted((cast(Check, m) for m in modules), key=lambda check: check.ORDER))


def preflight(case: Case) -> Preflight:
    """Everything that the checks say; they never raise."""
    items = sorted(_items(case), key=lambda item: LEVELS.index(item.level))
    return Preflight(preset=case.request.preset, items=tuple(items))


def _items(case: Case) -> Iterator[Item]:
    if case.faults:
        yield from case.faults
    else:
        yield Item(code="request", level="fine", sentence=say("preflight.request_fine"))
    for check in all_checks():
        found = check.check(case)
        if found is not None:
            yield Item(code=check.CODE, level=found.level, sentence=found.sentence)
