"""A check of data as the page shows it, and what leaving bad files out means for a run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from app.views import figures
from app.views.check_messages import OddPicture
from app.views.checks import CheckState
from app.views.data import png_uri
from ringside.data import DataReport
from ringside.data.check.report import RULES, ClassCount
from ringside.data.enough import refuse_too_few
from ringside.spec import RunSpec
from ringside.words import say, say_count

MAX_BAD = 20
MAX_BARS, MAX_FOLDED = 12, 200


@dataclass(frozen=True)
class ClassBar:
    """One class; the shares are of the largest class, from 0 to 1."""

    name: str
    train: str
    val: str
    train_share: float
    val_share: float


@dataclass(frozen=True)
class OddKind:
    """One kind of unusual picture: a line, and (file, PNG as data URI) of a few."""

    line: str
    pictures: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class CheckView:
    """A finished check; `bad` are (file, reason). What is not listed is counted in `more_*`."""

    verdict: str
    is_fine: bool
    facts: tuple[str, ...]
    layout: str
    bars: tuple[ClassBar, ...]
    folded_bars: tuple[ClassBar, ...]
    more_classes: str
    bad: tuple[tuple[str, str], ...]
    more_bad: str
    odd: tuple[OddKind, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]


def check_view(
    report: DataReport, odd: Iterable[OddPicture], finished_t: float | None
) -> CheckView:
    """The report in sentences, bars and lists of a bounded length."""
    bars = _bars(report.classes)
    shown = bars[: MAX_BARS + MAX_FOLDED]
    return CheckView(
        verdict=_verdict(report),
        is_fine=report.is_fine,
        facts=(
            say("check.usable", n=figures.count(report.num_usable), of=images(report.num_files)),
            say(
                "data.split",
                train=figures.count(report.num_train),
                val=figures.count(report.num_val),
            ),
            say("check.when", when=figures.clock(finished_t)),
        ),
        layout=f"{say(f'check.{report.task}')} {report.layout}",
        bars=shown[:MAX_BARS],
        folded_bars=shown[MAX_BARS:],
        more_classes=_more(len(bars) - len(shown)),
        bad=tuple(_bad_line(report, i) for i in range(min(MAX_BAD, len(report.bad)))),
        more_bad=_more(len(report.bad) - MAX_BAD),
        odd=tuple(_odd_kinds(report, odd)),
        warnings=tuple(note.message for note in report.warnings),
        notes=tuple(note.message for note in report.notes),
    )


def progress_line(state: CheckState) -> str:
    """What a check under way does."""
    if state.kind == "stopping":
        return say("check.stopping")
    if not state.total:
        return say("check.reading")
    done, total = figures.count(state.done), figures.count(state.total)
    return say("check.progress", done=done, total=total)


def without_bad_files(spec: RunSpec, report: DataReport) -> RunSpec:
    """The spec with every bad file left out; SpecError when too few images remain."""
    data = msgspec.structs.replace(spec.data, skip=tuple(sorted(report.skip)))
    spec = msgspec.structs.replace(spec, data=data)
    refuse_too_few(spec)
    return spec


def images(number: int) -> str:
    """`1 image`, `1,200 images`."""
    return say_count("image", number)


def _verdict(report: DataReport) -> str:
    if not report.num_usable:
        return say("check.nothing")
    num_bad = len(report.skip)
    return say("check.bad", bad=say_count("bad_file", num_bad)) if num_bad else say("check.fine")


def _bars(classes: Iterable[ClassCount]) -> tuple[ClassBar, ...]:
    """The rarest first: they are what may spoil a training."""
    counts = sorted(classes, key=lambda one: (one.train + one.val, one.name))
    top = max((one.train + one.val for one in counts), default=0) or 1
    return tuple(
        ClassBar(
            one.name, figures.count(one.train), figures.count(one.val), one.train / top,
            one.val / top,
        )
        for one in counts
    )  # fmt: skip


def _bad_line(report: DataReport, i: int) -> tuple[str, str]:
    bad = report.bad[i]
    unused = "" if bad.is_used else f" ({say('check.unused')})"
    return bad.file, f"{bad.reason.rstrip('.。')}{unused}"


def _odd_kinds(report: DataReport, odd: Iterable[OddPicture]) -> Iterable[OddKind]:
    pictures = list(odd)
    for unusual in report.unusual:
        line = say(
            "check.odd_kind", images=images(unusual.num_images), kind=_kind(unusual.kind),
            rule=say(RULES[unusual.kind]),
        )  # fmt: skip
        found = ((p.file, png_uri(p.png)) for p in pictures if p.kind == unusual.kind)
        yield OddKind(line, tuple(found))


def _kind(kind: str) -> str:
    return say(f"picture.kind_{kind.lower().replace('-', '_')}")


def _more(number: int) -> str:
    return say("check.more", n=figures.count(number)) if number > 0 else ""
