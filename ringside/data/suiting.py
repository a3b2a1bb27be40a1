"""Refuses settings that belong to another task than the data's, before anything is launched."""

from __future__ import annotations

from ringside.data.discovery import task_of
from ringside.errors import OtherTaskError
from ringside.spec import RunSpec
from ringside.words import say


def refuse_other_task(spec: RunSpec) -> None:
    """`OtherTaskError` for a score or a loss that the task of the data does not have.

    Data whose task is not known in a moment (large folders, a data set of the Hub) pass; the
    trainer looks at them again when they are open.
    """
    cap, by_accuracy = spec.training.pos_weight_cap, spec.training.best_by == "accuracy"
    if cap is None and not by_accuracy:
        return  # then the data need not be read
    task = task_of(spec.data)
    if task == "multi_label" and by_accuracy:
        raise OtherTaskError(say("refused.best_by"))
    if task == "single_label" and cap is not None:
        raise OtherTaskError(say("refused.pos_weight", cap=cap))
