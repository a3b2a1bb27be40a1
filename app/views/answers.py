"""The gate's answer about two sides, in a sentence and the lines below it."""

from __future__ import annotations

from app.views import figures
from ringside.compare.answer import MIN_CLASS_COUNT, Answer, LostClass, ScoreAnswer
from ringside.compare.power import Needed
from ringside.words import say

MAX_NAMED = 3
"""Classes that a sentence names."""


def answer_sentence(found: Answer) -> str:
    """Such as "worse: macro F1 −0.021, 95 % −0.027 to −0.015"."""
    if found.reason is not None:
        return say("gate.answer_no_evidence", reason=found.reason)
    if found.verdict == "same" and found.bound is not None:
        return say("gate.answer_same", bound=f"{found.bound:.3f}")
    if found.decisive is None:
        return say("gate.answer_worse_classes", classes=_classes(found.lost_classes))
    decisive = next(one for one in found.scores if one.metric == found.decisive)
    values = {"metric": say(f"compare.metric_{decisive.metric}"), **_numbers(decisive)}
    if found.lost_classes:
        return say("gate.answer_also_classes", classes=_classes(found.lost_classes), **values)
    if found.needed is not None:
        values["needed"] = needed_words(found.needed)
    return say(f"gate.answer_{found.verdict}", **values)


def answer_notes(found: Answer) -> list[str]:
    """What the answer rests on."""
    notes = [_seeds(found)]
    if found.num_class_tests:
        lost = len(found.lost_classes)
        least, n = MIN_CLASS_COUNT, found.num_class_tests
        notes.append(say("gate.classes_tested", n=n, least=least, lost=lost))
    if found.needed is not None and (found.needed.seeds or found.needed.images):
        notes.append(say("gate.would_tell"))
    return notes


def needed_words(needed: Needed) -> str:
    """What would tell; images with two figures, as more of them would be false precision."""
    seeds = _count("seed", needed.seeds) if needed.seeds is not None else None
    images = _count("image", rounded_up(needed.images)) if needed.images is not None else None
    if seeds and images:
        return say("gate.need_both", seeds=seeds, images=images)
    if seeds:
        return say("gate.need_seeds", seeds=seeds)
    return say("gate.need_images", images=images) if images else say("gate.need_nothing")


def rounded_up(value: int) -> int:
    """To two figures: 1,834 to 1,900."""
    unit = int(10 ** max(0, len(str(value)) - 2))
    return -(-value // unit) * unit


def _count(noun: str, count: int) -> str:
    return say(f"gate.{noun}_one" if count == 1 else f"gate.{noun}", n=count)


def _seeds(found: Answer) -> str:
    a, b = len(found.reference_seeds), len(found.candidate_seeds)
    if a == b == 1:
        return say("gate.of_one_seed")
    return say("gate.of_pairs", n=a) if found.is_paired else say("gate.of_sides", a=a, b=b)


def _numbers(one: ScoreAnswer | LostClass) -> dict[str, str]:
    return {
        "delta": figures.delta(one.delta), "low": figures.delta(one.low),
        "high": figures.delta(one.high),
    }  # fmt: skip


def _classes(lost: tuple[LostClass, ...]) -> str:
    named = ", ".join(
        say("gate.lost_class", name=one.name, metric=say(f"gate.metric_{one.metric}"),
            **_numbers(one))
        for one in lost[:MAX_NAMED]
    )  # fmt: skip
    more = len(lost) - MAX_NAMED
    return say("gate.lost_more", classes=named, n=more) if more > 0 else named
