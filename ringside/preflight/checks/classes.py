"""Whether every class has a picture to learn from and one to be judged by."""

from __future__ import annotations

from ringside.errors import RingsideError
from ringside.preflight.case import Case, class_counts
from ringside.preflight.items import Remark, remark
from ringside.words import say_few

CODE, ORDER = "classes", 35


def check(case: Case) -> Remark | None:
    counts = _counts(case)
    if not counts:
        return None
    untrained = [name for name, train, _ in counts if not train]
    unseen = [name for name, train, val in counts if train and not val]
    sentences = []
    if untrained:
        names = say_few(untrained)
        sentences.append(remark("warning", "classes_untrained", n=len(untrained), names=names))
    if unseen:
        names = say_few(unseen)
        sentences.append(remark("warning", "classes_unseen", n=len(unseen), names=names))
    if sentences:
        return Remark("warning", " ".join(one.sentence for one in sentences))
    return remark("fine", "classes_fine", n=len(counts))


def _counts(case: Case) -> tuple[tuple[str, int, int], ...]:
    """Of the last check; of built-in data always, because opening them takes a moment only."""
    if case.report is not None:
        return tuple((one.name, one.train, one.val) for one in case.report.classes)
    if case.data is None or case.data.path is not None or case.data.repository is not None:
        return ()
    try:
        return class_counts(case.data)
    except (RingsideError, OSError, ValueError):
        return ()
