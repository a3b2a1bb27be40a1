"""The Doctor's HTML: the verdict and its evidence, charts, six questions, the machine."""

from __future__ import annotations

import time
from collections.abc import Iterable
from html import escape

from app.page.draw import heading, items, soft, table, with_code
from app.page.draw.pictures import picture_card
from app.views import figures
from app.views.consultations import ConsultState
from app.views.doctor import GPU_COLUMNS, Card, DoctorView, MachineView, PointView
from app.views.measuring import MeasuringState
from ringside.words import say

SIGNS = {"ok": "✓", "attention": "▲", "unknown": "○"}
OPEN_EVIDENCE = 6
SEVERITIES = {"critical": "▲", "warning": "▲", "note": "·"}
PERFETTO = (
    '<a href="https://ui.perfetto.dev" target="_blank" rel="noopener noreferrer">'
    "ui.perfetto.dev</a>"
)


def progress_note(state: ConsultState, *, is_live: bool) -> str:
    """What the doctor does, or why there is no verdict; empty when all is said below."""
    if state.kind == "running":
        key = "consult.looking_again" if state.view else "consult.looking"
        return _moving(say(key))
    if state.kind == "failed":
        return f'<p class="rs-bad" role="alert">{with_code(state.sentence)}</p>'
    return soft(say("consult.still_running")) if is_live else ""


def _moving(line: str) -> str:
    line = escape(line)
    return (
        f'<div class="rs-progress" role="status"><span>{line}</span>'
        f'<progress aria-label="{line}"></progress></div>'
    )


def empty_doctor() -> str:
    """What to do before there is a run."""
    return (
        f'<div class="rs-empty"><h2 class="rs-h2">{escape(say("consult.empty_title"))}</h2>'
        f"{soft(say('consult.empty'))}"
        f'<a class="rs-link-button" href="./">{escape(say("runs.to_train"))}</a></div>'
    )


def verdict_card(card: Card) -> str:
    """The verdict: sentence first, then how large, how sure, and what to do."""
    return f'<section class="rs-finding rs-sev-{card.severity}">{_finding(card, "h1")}</section>'


def other_findings(cards: Iterable[Card]) -> str:
    """Everything else that was found, folded."""
    found = "".join(
        f'<section class="rs-finding rs-sev-{card.severity}">{_finding(card, "h3")}</section>'
        for card in cards
    )
    if not found:
        return ""
    number = found.count("<section")
    return (
        f'<details class="rs-setup rs-others"><summary>{escape(say("consult.others", n=number))}'
        f"</summary>{found}</details>"
    )


def doctor_line(state: ConsultState, run_id: str) -> str:
    """The verdict's one sentence on the page of a run; empty before there is one."""
    if state.view is None:
        return ""
    card = state.view.verdict
    link = f'<a href="doctor?run={escape(run_id)}">{escape(say("consult.open_doctor"))}</a>'
    return (
        f'<div class="rs-finding rs-doctor-line rs-sev-{card.severity}"><p><b>'
        f"{escape(say('consult.doctor_says'))}</b> {with_code(card.sentence)} {link}</p></div>"
    )


def _finding(card: Card, tag: str) -> str:
    sign = SEVERITIES.get(card.severity, "·")
    facts = (card.severity_word, card.share, card.confidence)
    line = "".join(f"<span>{escape(fact)}</span>" for fact in facts)
    apply = ""
    if card.apply:
        apply = (
            f'<a class="rs-link-button" href="{escape(card.apply)}">{escape(card.apply_label)}</a>'
        )
    return (
        f'<div class="rs-finding-head"><span class="rs-badge">'
        f'<span aria-hidden="true">{sign}</span> {escape(card.code)}</span>'
        f'<div class="rs-line">{line}</div></div>'
        f"<{tag}>{with_code(card.sentence)}</{tag}>{_share(card)}{soft(card.gain)}"
        f'<dl class="rs-about"><dt>{escape(say("consult.next"))}</dt>'
        f"<dd>{with_code(card.next_step)}</dd><dt>{escape(say('consult.refutation'))}</dt>"
        f"<dd>{with_code(card.refutation)}</dd></dl>{apply}{_command(card)}{_evidence(card)}"
    )


def _command(card: Card) -> str:
    """The command in full view where nothing else helps, folded beside a button that does."""
    if card.command is None:
        return ""
    words = " ".join(f"<span>{escape(word)}</span>" for word in card.command.split(" "))
    line = f'<code class="rs-command">{words}</code>'
    return line if card.apply is None else _folded(say("consult.as_command"), line)


def _folded(summary: str, content: str) -> str:
    return f'<details class="rs-setup"><summary>{escape(summary)}</summary>{content}</details>'


def _share(card: Card) -> str:
    if card.share_ratio is None:
        return ""
    return (
        f'<div class="rs-track rs-share" role="img" aria-label="{escape(card.share)}">'
        f'<i style="width:{card.share_ratio:.2%}"></i></div>'
    )


def _evidence(card: Card) -> str:
    if not card.evidence:
        return ""
    columns = [say(f"consult.{name}") for name in ("label", "value", "source")]
    rows = [[escape(cell) for cell in row] for row in card.evidence]
    shown = table(columns, rows[:OPEN_EVIDENCE], left=3)
    if more := rows[OPEN_EVIDENCE:]:
        shown += _folded(say("consult.more_evidence", n=len(more)), table(columns, more, left=3))
    return f'<div class="rs-evidence">{shown}</div>'


def missing_list(view: DoctorView) -> str:
    """What nobody measured, each with the command that would."""
    if not view.missing:
        return ""
    return heading(say("consult.missing")) + items(view.missing, "rs-list rs-soft")


def chart_grid(view: DoctorView, run_name: str) -> str:
    """All charts that there are numbers for, in two columns, and how to get the others."""
    found = [picture_card(picture, run_name) for picture in view.pictures]
    half = (len(found) + 1) // 2
    gaps = f'<div class="rs-card">{items(view.gaps, "rs-list rs-soft")}</div>' if view.gaps else ""
    columns = ("".join(found[:half]), "".join(found[half:]) + gaps)
    stacks = "".join(f'<div class="rs-figure-stack">{one}</div>' for one in columns if one)
    return f'<div class="rs-figures">{stacks}</div>'


def six_points(points: Iterable[PointView]) -> str:
    """The six questions with what this run measured; what is said and what is true are folded."""
    found = "".join(map(_point, points))
    return f'{heading(say("consult.points"))}<ol class="rs-points">{found}</ol>' if found else ""


def _point(point: PointView) -> str:
    state = escape(point.state)
    measured = "".join(_measured(*one) for one in point.measured)
    said = escape(say("consult.said_and_true"))
    return (
        f'<li><span class="rs-number" aria-hidden="true">{point.number}</span><div>'
        f'<b>{escape(point.title)}</b><div class="rs-facts">{measured}</div>'
        f'<details class="rs-setup"><summary>{said}</summary>'
        f'<dl class="rs-about"><dt>{escape(say("consult.claim"))}</dt>'
        f"<dd>{with_code(point.claim)}</dd><dt>{escape(say('consult.truth'))}</dt>"
        f"<dd>{with_code(point.truth)}</dd></dl></details></div>"
        f'<span class="rs-badge rs-tick-{state}"><span aria-hidden="true">'
        f"{SIGNS.get(point.state, '·')}</span> {escape(point.state_word)}</span></li>"
    )


def _measured(label: str, value: str | None, aside: str) -> str:
    """A figure with its source; of one that is missing, how to get it."""
    shown = f"<b>{escape(value)}</b>" if value is not None else escape(figures.DASH)
    return f"<span>{escape(label)} {shown} <small>{with_code(aside)}</small></span>"


def machine_card(view: MachineView | None) -> str:
    """GPUs, host, variables; or that nobody has looked yet."""
    if view is None or not view.looked:
        return heading(say("consult.machine")) + soft(say("consult.not_looked"))
    columns = [say(f"consult.{name}") for name in GPU_COLUMNS]
    rows = [[escape(cell) for cell in row] for row in view.gpus]
    gpus = table(columns, rows, left=len(columns)) if rows else soft(say("consult.no_gpu"))
    host = "".join(
        f"<span>{escape(name)} <b>{escape(value)}</b></span>" for name, value in view.host
    )
    return (
        f"{heading(say('consult.machine'), view.looked)}{gpus}"
        f'<div class="rs-facts rs-under">{host}</div>{_variables(view)}'
        f"{items(view.problems, 'rs-list rs-soft')}"
    )


def _variables(view: MachineView) -> str:
    lines = "".join(
        f"<dt><code>{escape(name)}={escape(value)}</code></dt><dd>{with_code(about)}</dd>"
        for name, value, about in view.variables
    )
    if not lines:
        return ""
    title = escape(say("consult.variables"))
    return f'<h3 class="rs-h3">{title}</h3><dl class="rs-about rs-variables">{lines}</dl>'


def measuring_panel(state: MeasuringState) -> str:
    """What is being measured and for how long, or how that ended; empty before there was any."""
    if state.kind == "none":
        return ""
    if state.under_way:
        gone = figures.since(state.started_t, time.time())
        return _moving(say("consult.measuring_so_far", line=state.line, gone=gone))
    if state.kind == "failed":
        return f'<p class="rs-bad" role="alert">{with_code(state.line)}</p>'
    return f'<p class="rs-soft" role="status">{with_code(state.line)}</p>'


def traces_card(view: DoctorView, run_name: str) -> str:
    """The files that can be taken, and how to look into them."""
    title = heading(say("consult.traces"))
    if not view.traces:
        return title + soft(say("consult.no_traces", run=run_name))
    files = "".join(f"<span>{escape(name)} <b>{escape(size)}</b></span>" for name, size in
                    view.traces)  # fmt: skip
    words = escape(say("consult.perfetto", link="{link}")).replace("{link}", PERFETTO)
    return f'{title}<div class="rs-facts">{files}</div><p class="rs-soft">{words}</p>'
