"""The check of data as HTML: the verdict and what cannot be used first, then all else."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from app.page.draw import items, soft, with_code
from app.views.check import CheckView, ClassBar, OddKind, check_view, progress_line
from app.views.checks import CheckState
from ringside.words import say


def check_panel(state: CheckState) -> str:
    """What a check does now, found, or why it ended; one sentence before there was one."""
    if state.kind == "none":
        return soft(say("check.idle"))
    if state.under_way:
        return _progress(state)
    if state.report is None:
        return f'<p class="rs-bad" role="alert">{with_code(state.sentence)}</p>'
    return _report(check_view(state.report, state.odd, state.finished_t))


def _progress(state: CheckState) -> str:
    line = escape(progress_line(state))
    # Without a value the bar moves, which says that nothing can be counted yet.
    numbers = f' value="{state.done}" max="{state.total}"' if state.total else ""
    return (
        f'<div class="rs-progress" role="status"><span>{line}</span>'
        f'<progress{numbers} aria-label="{line}"></progress></div>'
    )


def _report(view: CheckView) -> str:
    sign, tone = ("✓", "good") if view.is_fine else ("▲", "warn")
    facts = "".join(f"<span>{escape(fact)}</span>" for fact in view.facts)
    return (
        f'<div class="rs-check" role="status"><p class="rs-verdict rs-text-{tone}">'
        f'<span aria-hidden="true">{sign}</span> {with_code(view.verdict)}</p>'
        f'<div class="rs-facts">{facts}</div>{soft(view.layout)}</div>'
        f"{_bad(view)}"
    )


def check_details(state: CheckState) -> str:
    """What a check saw besides files that cannot be used; empty before its end."""
    if state.report is None:
        return ""
    view = check_view(state.report, state.odd, state.finished_t)
    return (
        f"{_section('check.warnings', items(view.warnings))}{_classes(view)}"
        f"{_section('check.odd', ''.join(map(_odd, view.odd)))}"
        f"{_section('check.notes', items(view.notes, 'rs-list rs-soft'))}"
    )


def _section(key: str, content: str) -> str:
    return f'<h3 class="rs-h3">{escape(say(key))}</h3>{content}' if content else ""


def _bad(view: CheckView) -> str:
    lines = "".join(
        f"<li><code>{escape(file)}</code> {with_code(reason)}</li>" for file, reason in view.bad
    )
    more = f"<li>{with_code(view.more_bad)}</li>" if view.more_bad else ""
    return _section("check.bad_title", f'<ul class="rs-list">{lines}{more}</ul>' if lines else "")


def _classes(view: CheckView) -> str:
    if not view.bars:
        return ""
    legend = (
        f'<div class="rs-legend"><span><i class="rs-c-accent"></i>{escape(say("check.train"))}'
        f'</span><span><i class="rs-c-rest"></i>{escape(say("check.val"))}</span></div>'
    )
    folded = ""
    if view.folded_bars:
        n = len(view.folded_bars)
        folded = (
            f'<details class="rs-more"><summary>{escape(say("check.more", n=n))}</summary>'
            f"{_bars(view.folded_bars)}</details>"
        )
    more = soft(view.more_classes) if view.more_classes else ""
    return _section("check.classes", f"{legend}{_bars(view.bars)}{folded}{more}")


def _bars(bars: Iterable[ClassBar]) -> str:
    lines = "".join(
        f'<span title="{escape(bar.name)}">{escape(bar.name)}</span><div class="rs-track">'
        f'<i class="rs-c-accent" style="width:{bar.train_share:.2%}"></i>'
        f'<i class="rs-c-rest" style="width:{bar.val_share:.2%}"></i></div>'
        f"<b>{escape(bar.train)} + {escape(bar.val)}</b>"
        for bar in bars
    )
    return f'<div class="rs-bars rs-class-bars">{lines}</div>'


def _odd(kind: OddKind) -> str:
    pictures = "".join(
        f'<img src="{uri}" alt="{escape(file)}" title="{escape(file)}">'
        for file, uri in kind.pictures
    )
    return f'<div class="rs-odd">{soft(kind.line)}<div class="rs-pictures">{pictures}</div></div>'
