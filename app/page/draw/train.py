"""The Train page's HTML: strategy cards, data facts, the plan, the baseline, the preview."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from app.page.draw import heading, items, soft, table, with_code
from app.views.data import DataFacts
from app.views.desk import BaselineState
from app.views.form import Card, Plan, Preview, Strategies
from ringside.words import say


def strategy_cards(choices: Strategies, chosen: str) -> str:
    """Radio buttons that look like cards, so keyboard and screen reader work as they should."""
    more = ""
    if choices.more:
        # Open from the start when the chosen card would be out of sight.
        is_open = " open" if any(card.name == chosen for card in choices.more) else ""
        more = (
            f'<details class="rs-more"{is_open}><summary>'
            f"{escape(say('train.more', n=len(choices.more)))}</summary>"
            f"{_grid(choices.more, chosen)}</details>"
        )
    return (
        f'<div role="radiogroup" aria-label="{escape(say("field.preset"))}">'
        f"{_grid(choices.main, chosen)}{more}</div>{items(choices.faults, 'rs-list rs-bad')}"
    )


def _grid(cards: Iterable[Card], chosen: str) -> str:
    return f'<div class="rs-cards">{"".join(_card(card, chosen) for card in cards)}</div>'


def _card(card: Card, chosen: str) -> str:
    state = " disabled" if card.reason else " checked" if card.name == chosen else ""
    tags = "".join(f"<span>{escape(tag)}</span>" for tag in (card.devices, card.origin))
    reason = f'<span class="rs-reason">{with_code(card.reason)}</span>' if card.reason else ""
    name = escape(card.name)
    return (
        f'<label class="rs-card-choice{" off" if card.reason else ""}">'
        f'<input type="radio" name="strategy" value="{name}"{state}>'
        f"<b>{escape(card.title)}</b><code>{name}</code><p>{escape(card.why)}</p>"
        f"{soft(card.measured) if card.measured else ''}"
        f'<span class="rs-estimate"></span><div class="rs-tags">{tags}{reason}</div></label>'
    )


def strategy_about(card: Card | None) -> str:
    """When the chosen strategy is right, and where its limits are."""
    if card is None:
        return ""
    words = ((say("train.when"), card.when), (say("train.limits"), card.limits))
    lines = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in words if v)
    return f'<dl class="rs-about">{lines}</dl>'


def data_panel(facts: DataFacts | None, error: str = "") -> str:
    """Facts, notes and pictures; or the one sentence that says what is wrong."""
    if facts is None:
        return f'<p class="rs-bad" role="alert">{with_code(error)}</p>' if error else ""
    chips = "".join(f"<span>{escape(fact)}</span>" for fact in facts.facts)
    if facts.synthetic:
        chips += f'<span class="rs-chip-warn">{escape(say("train.synthetic"))}</span>'
    pictures = "".join(
        f'<img src="{uri}" alt="{escape(name)}" title="{escape(name)}" loading="lazy">'
        for name, uri in facts.pictures
    )
    return (
        f'<div class="rs-facts">{chips}</div><div class="rs-pictures">{pictures}</div>'
        f"{items(facts.notes, 'rs-list rs-soft')}"
    )


def plan_panel(plan: Plan) -> str:
    """The sentence that tells what Start will do, or why it cannot."""
    if plan.spec is None:
        return (
            f'<div class="rs-plan rs-refused" role="alert"><b>{escape(say("train.refused"))}</b>'
            f"<p>{with_code(plan.sentence)}</p></div>"
        )
    return (
        f'<div class="rs-plan" role="status"><b>{with_code(plan.sentence)}</b>'
        f"{''.join(soft(note) for note in plan.notes)}</div>"
    )


def baseline_panel(state: BaselineState) -> str:
    """What the speed-up will be measured against."""
    if state.kind == "none":
        return heading(say("train.baseline_title")) + soft(say("train.baseline_text"))
    words = escape(say(f"train.baseline_{state.kind}", name="{name}"))
    link = f'<a href="runs?run={escape(state.run_id or "")}">{escape(state.name or "")}</a>'
    return (
        heading(say(f"train.baseline_{state.kind}_title"))
        + f'<p class="rs-soft">{words.replace("{name}", link)}</p>'
    )


def settings_list(preview: Preview) -> str:
    """What the run does not leave at the default, and who said so."""
    rows = [[escape(cell) for cell in row] for row in preview.settings]
    names = [say(f"train.{name}") for name in ("setting", "value", "origin")]
    return heading(say("train.preview_settings")) + table(names, rows, left=3)


def environment_list(preview: Preview) -> str:
    """What a run has in its environment beyond the page's own."""
    rows = [[f"<code>{escape(name)}</code>", escape(value), escape(origin)]
            for name, value, origin in preview.environment]  # fmt: skip
    names = [say("train.variable"), say("train.value"), say("train.origin")]
    return heading(say("train.preview_environment")) + table(names, rows, left=3)
