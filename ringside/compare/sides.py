"""The two sides of a comparison: runs that differ in nothing but the seed stand for one set-up."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ringside.errors import SpecError
from ringside.run import RunRecord, require_spec
from ringside.spec import RunSpec
from ringside.words import say

WITHOUT_EFFECT = frozenset({
    "format", "seed", "sources", "request_id", "gpu_ids", "queue", "beside", "time_limit_s",
    "retries", "retry_of", "profile_steps",
})  # fmt: skip
"""Of a request: when and on which of equal devices it runs, and what is recorded afterwards."""


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of one set-up, each with another seed, in the order of the seeds."""

    runs: tuple[RunRecord, ...]

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds, ascending."""
        return tuple(require_spec(run).seed for run in self.runs)

    @property
    def preset(self) -> str:
        """The preset of all of them."""
        return require_spec(self.runs[0]).preset


def side_of(records: Sequence[RunRecord]) -> Side:
    """One side, as a person put it together; SpecError where more than the seed differs."""
    first, facts = records[0], _facts(require_spec(records[0]))
    for record in records[1:]:
        other = _facts(require_spec(record))
        if apart := [name for name in facts if facts[name] != other[name]]:
            names = ", ".join(apart)
            raise SpecError(say("gate.not_one_side", a=first.name, b=record.name, names=names))
    ordered = sorted(records, key=lambda record: require_spec(record).seed)
    side = Side(runs=tuple(ordered))
    for one, other_run in itertools.pairwise(ordered):
        if require_spec(one).seed == require_spec(other_run).seed:
            seed = require_spec(one).seed
            raise SpecError(say("gate.seed_twice", a=one.name, b=other_run.name, seed=seed))
    return side


def sides_of(records: Sequence[RunRecord]) -> list[Side]:
    """The sides among these runs, in their order; of two runs each is one.

    SpecError where there is only one side, or a side has a seed twice.
    """
    if len(records) == 2:
        return [side_of([record]) for record in records]
    found = [side_of(group) for group in _groups(records)]
    if len(found) < 2:
        raise SpecError(say("gate.one_side", n=len(records)))
    return found


def groups_of(records: Sequence[RunRecord]) -> list[Side]:
    """As `sides_of`, where one side is enough."""
    return [side_of(group) for group in _groups(records)]


def _groups(records: Sequence[RunRecord]) -> Iterator[list[RunRecord]]:
    left = list(records)
    while left:
        facts = _facts(require_spec(left[0]))
        alike = [record for record in left if _facts(require_spec(record)) == facts]
        yield alike
        left = [record for record in left if record not in alike]


def _facts(spec: RunSpec) -> dict[str, Any]:
    names = [name for name in spec.__struct_fields__ if name not in WITHOUT_EFFECT]
    return {name: getattr(spec, name) for name in names} | {"num_devices": spec.num_devices}
