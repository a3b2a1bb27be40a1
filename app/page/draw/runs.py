"""The Runs page's HTML: head, tiles, epochs, the step bar, the standstill, and the ending.

What changes by the second is counted in the browser (`live.js`), so that a poll has nothing to
send: `data-since` counts up and `data-until` down, on the server's clock, which `stamp` adds.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from html import escape

from app.page.draw import badge, heading, items, soft, table, with_code
from app.views import figures
from app.views.hanging import HangView
from app.views.life import Life
from app.views.listing import ListRow
from app.views.queue import place_sentence, try_sentence
from app.views.run import Ending, RunView, Tile
from app.views.step import Step
from ringside.words import say

NEWEST_EPOCHS = 10
"""In the open table; the others are folded, and those before `MAX_EPOCHS` only in the terminal."""

MAX_EPOCHS = 500
EPOCH_COLUMNS = ("epoch", "time", "rate", "speedup", "loss", "auc", "f1")


NOW = 'data-now=""'
_AGE = re.compile(rf'<time data-since="([\d.]+)" {NOW}>')
_COMMAND = re.compile(r"`([^`]+)`")


def stamp(html: str, now: float | None = None) -> str:
    """The HTML with the server's clock in it, for browsers whose own is wrong, and all ages."""
    clock = time.time() if now is None else now

    def counted(match: re.Match[str]) -> str:
        return f"{match[0]}{figures.since(float(match[1]), clock)}"

    html = _AGE.sub(counted, html)
    return html.replace(NOW, f'data-now="{clock:.1f}"')


def since(t: float | None, text: str) -> str:
    """`text` with `{ago}` in it, which `stamp` fills in and the browser counts on from `t`."""
    before, _, after = text.partition("{ago}")
    ago = figures.DASH if t is None else f'<time data-since="{t:.1f}" {NOW}></time>'
    return f"{escape(before)}{ago}{escape(after)}"


def run_head(view: RunView, life: Life, standing: Iterable[str] = ()) -> str:
    """Name, state, the line under it, and what the run was asked for and has not done yet.

    `standing` is finished HTML: its place in the queue, and the other tries of the same run.
    """
    facts = "".join(f"<span>{escape(fact)}</span>" for fact in view.facts)
    alive = life.ended and escape(life.ended)
    if not alive:
        alive = since(life.heard_t, say("run.alive", ago="{ago}"))
    facts += f"<span>{alive}</span>"
    for half in life.silent:
        facts += f'<span class="rs-chip-warn">{escape(say(f"hang.silent_{half}"))}</span>'
    if view.baseline_id:
        address = f"compare?runs={escape(view.baseline_id)},{escape(view.id)}"
        facts += f'<span><a href="{address}">{escape(say("runs.compare"))}</a></span>'
    # Gradio's page has a base address, so a fragment alone would lead to the Train page.
    address = f"runs?run={escape(view.id)}#shelf"
    facts += f'<span><a href="{address}">{escape(say("shelf.link"))}</a></span>'
    asked = "".join(f"<span>{line}</span>" for line in (*standing, *map(escape, view.asked)))
    asked = asked and f'<div class="rs-line rs-asked" role="status">{asked}</div>'
    return (
        f'<div class="rs-head"><h1>{escape(view.name)}</h1>{badge(view.state)}'
        f'<div class="rs-line">{facts}</div>{asked}</div>'
    )


def standing(row: ListRow) -> Iterator[str]:
    """Its place in the queue, and links to the other tries of the same run."""
    if row.place is not None:
        yield with_code(place_sentence(row.place))
    for kind, run_id in row.tries:
        address = f"runs?run={escape(run_id)}"
        yield f'<a href="{address}">{escape(try_sentence(kind, run_id))}</a>'


def tiles(found: Iterable[Tile]) -> str:
    """Large numbers, each with the words that say what it is."""
    return '<div class="rs-tiles">' + "".join(map(_tile, found)) + "</div>"


def _tile(tile: Tile) -> str:
    until = "" if tile.until_t is None else f' data-until="{tile.until_t:.1f}" {NOW}'
    return (
        f'<div class="rs-tile rs-tone-{tile.tone}"><b{until}>{escape(tile.value)}</b>'
        f"<span>{with_code(tile.label)}</span></div>"
    )


def hang_banner(hang: HangView | None) -> str:
    """That a run probably hangs, since when, and where each rank stands; else empty."""
    if hang is None:
        return ""
    how_long = since(hang.since, say("hang.since", ago="{ago}"))
    return (
        f'<div class="rs-ending rs-ending-warn" role="alert"><b>{escape(say("hang.title"))}</b>'
        f"<p>{how_long} {with_code(hang.sentence)}</p>{items(hang.places)}</div>"
    )


def epoch_table(view: RunView) -> str:
    """One row an epoch."""
    head = heading(say("run.epochs"))
    if not view.epochs:
        return head + soft(say("run.no_epoch"))
    columns = [say(f"column.{name}") for name in EPOCH_COLUMNS]
    rows = [[escape(cell) for cell in row] for row in view.epochs]
    earlier, newest = rows[-MAX_EPOCHS:-NEWEST_EPOCHS], rows[-NEWEST_EPOCHS:]
    folded = ""
    if earlier:
        words = say("run.earlier_epochs", n=len(rows) - len(newest))
        folded = (
            f'<details class="rs-more rs-earlier"><summary>{escape(words)}</summary>'
            f"{table(columns, earlier)}</details>"
        )
    return head + folded + table(columns, newest) + facts(view.epoch_lines)


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
    """Why it failed, stopped or was lost, and what to try; the traceback is folded."""
    if ending is None:
        return ""
    folded = ""
    more = "".join(f"<p>{commands(line)}</p>" for line in ending.more)
    if ending.traceback:
        folded = (
            f"<details><summary>{escape(say('run.traceback'))}</summary>"
            f'<pre tabindex="0">{escape(ending.traceback)}</pre></details>'
        )
    tries = "".join(f"<li>{commands(line)}</li>" for line in ending.remedies)
    if tries:
        tries = f'<p class="rs-try">{escape(say("ending.try"))}</p><ul class="rs-list">{tries}</ul>'
    return (
        f'<div class="rs-ending{" rs-ending-bad" if ending.bad else ""}">'
        f"<b>{escape(ending.title)}</b><p>{with_code(ending.sentence)}</p>{more}{tries}{folded}</div>"
    )


def commands(sentence: str) -> str:
    """A sentence whose parts between backquotes are commands, each with a button to copy it."""

    def command(match: re.Match[str]) -> str:
        text = match[1]
        return (
            f'<code class="rs-code">{text}</code><button type="button" class="rs-copy" '
            f'data-copy="{text}" data-done="{escape(say("copy.copied"))}">'
            f"{escape(say('copy.copy'))}</button>"
        )

    return _COMMAND.sub(command, escape(sentence))


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
