"""The gate over run directories: which runs stand on which side, and the answer about each side."""

from __future__ import annotations

from collections.abc import Sequence

from ringside.compare.answer import Answer, answer_of
from ringside.compare.comparison import kept_predictions, scores_apart
from ringside.compare.sides import Side, groups_of, side_of, sides_of
from ringside.errors import SpecError
from ringside.predictions import Predictions
from ringside.run import RunRecord
from ringside.words import say


def answers(records: Sequence[RunRecord], against: Sequence[RunRecord] = ()) -> list[Answer]:
    """One answer for each side but the reference: `against`, else the side of the first run.

    SpecError where runs cannot be compared, or do not form two sides.
    """
    if against:
        reference, others = side_of(against), groups_of(records)
        both = {run.id for run in reference.runs} & {record.id for record in records}
        if both:
            raise SpecError(say("gate.both_sides", run=min(both)))
    else:
        reference, *others = sides_of(records)
    kept = {run.id: _predictions(run, reference.runs[0]) for run in reference.runs}
    return [_answer(reference, side, kept) for side in others]


def _answer(reference: Side, candidate: Side, kept: dict[str, Predictions]) -> Answer:
    first = reference.runs[0]
    new = [_predictions(run, first) for run in candidate.runs]
    everything = [kept[run.id] for run in reference.runs] + new
    for run, one in zip((*reference.runs, *candidate.runs), everything, strict=True):
        _require_same_images(run, one, first, everything[0])
    return answer_of(reference, candidate, everything)


def _predictions(run: RunRecord, first: RunRecord) -> Predictions:
    if apart := scores_apart(first, run):
        why = "; ".join(apart)
        raise SpecError(say("gate.apart", run=run.name, reference=first.name, why=why))
    kept = kept_predictions(run)
    if kept is None:
        raise SpecError(say("gate.no_predictions", run=run.name))
    return kept


def _require_same_images(
    run: RunRecord, one: Predictions, first: RunRecord, base: Predictions
) -> None:
    import numpy as np

    names = {"run": run.name, "reference": first.name}
    if one.task != base.task or not np.array_equal(one.targets, base.targets):
        n, m = len(one.targets), len(base.targets)
        raise SpecError(say("gate.other_images", n=n, m=m, **names))
    if one.untrained != base.untrained:
        raise SpecError(say("gate.other_classes", **names))
