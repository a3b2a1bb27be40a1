"""The Runs page's HTML: head, tiles, epochs, the step bar, the ending, and the list."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from app.page.draw import badge, heading, items, soft, table
from app.views.run import Ending, RunView, Tile
from app.views.step import Step
from ringside.words import say

EPOCH_COLUMNS = ("epoch", "time", "rate", "speedup", "loss", "auc", "f1")


def run_head(view: RunView, sign_of_life: str) -> str:
    """Name, state and the line under it."""
    facts = "".join(f"<span>{escape(fact)}</span>" for fact in (*view.facts, sign_of_life))
    if view.baseline_id:
        address = f"compare?runs={escape(view.baseline_id)},{escape(view.id)}"
        facts += f'<span><a href="{address}">{escape(say("runs.compare"))}</a></span>'
    # Gradio's page has a base address, so a fragment alone would lead to the Train page.
    address = f"runs?run={escape(view.id)}#shelf"
    facts += f'<span><a href="{address}">{escape(say("shelf.link"))}</a></span>'
    return (
        f'<div class="rs-head"><h1>{escape(view.name)}</h1>{badge(view.state)}'
        f'<div class="rs-line">{facts}</div></div>'
    )


def tiles(found: Iterable[Tile]) -> str:
    """Large numbers, each with the words that say what it is."""
    return '<div class="rs-tiles">' + "".join(
        f'<div class="rs-tile rs-tone-{tile.tone}"><b>{escape(tile.value)}</b>'
        f"<span>{escape(tile.label)}</span></div>"
        for tile in found
    ) + "</div>"  # fmt: skip


def epoch_table(view: RunView) -> str:
    """One row an epoch."""
    head = heading(say("run.epochs"))
    if not view.epochs:
        return head + soft(say("run.no_epoch"))
    columns = [say(f"column.{name}") for name in EPOCH_COLUMNS]
    rows = [[escape(cell) for cell in row] for row in view.epochs]
    return head + table(columns, rows) + facts(view.epoch_lines)


def facts(lines: Iterable[str]) -> str:
    """Quiet sentences below a table or a bar."""
    return items(lines, "rs-list rs-soft rs-under")


def step_card(step: Step | None, lines: Iterable[str] = ()) -> str:
    """The bar of one step; colours keep their meaning everywhere and have a word beside them."""
    if step is None:
        return heading(say("run.step")) + soft(say("run.no_step"))
    bar = "".join(
        f'<i class="rs-c-{part.key}" style="flex-grow:{part.share:.4f}" '
        f'title="{escape(part.label)} {escape(part.time)}">'
        f"{escape(part.label) if part.share > 0.17 else ''}</i>"
        for part in step.parts
    )
    legend = "".join(
        f'<span><i class="rs-c-{part.key}"></i>{escape(part.label)} '
        f"<b>{escape(part.time)}</b></span>"
        for part in step.parts
    )
    return (
        f"{heading(say('run.step'), step.total)}"
        f'<div class="rs-bar" role="img" aria-label="{escape(step.sentence)}">{bar}</div>'
        f'<div class="rs-legend">{legend}</div>{soft(step.sentence)}{facts(lines)}'
    )


def ending_card(ending: Ending | None) -> str:
    """Why it failed, stopped or was lost; the traceback is folded."""
    if ending is None:
        return ""
    folded = ""
    more = "".join(f"<p>{escape(line)}</p>" for line in ending.more)
    if ending.traceback:
        folded = (
            f"<details><summary>{escape(say('run.traceback'))}</summary>"
            f"<pre>{escape(ending.traceback)}</pre></details>"
        )
    return (
        f'<div class="rs-ending{" rs-ending-bad" if ending.bad else ""}">'
        f"<b>{escape(ending.title)}</b><p>{escape(ending.sentence)}</p>{more}{folded}</div>"
    )


def remarks(view: RunView) -> str:
    """Warnings and notes of the run; empty without any."""
    parts = (("run.warnings", view.warnings), ("run.notes", view.notes))
    return "".join(f"{heading(say(key))}{items(texts)}" for key, texts in parts if texts)


def setup_card(view: RunView) -> str:
    """What was asked for and what really ran, folded away."""
    rows = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in view.setup)
    return (
        f'<details class="rs-setup"><summary>{escape(say("run.setup"))}</summary>'
        f"<dl>{rows}</dl></details>"
    )
