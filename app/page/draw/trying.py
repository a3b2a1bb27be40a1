"""Trying a checkpoint, as HTML: pictures to choose from, and what the model says of a picture."""

from __future__ import annotations

import time
from html import escape

from app.page.draw import heading, soft, with_code
from app.views import figures
from app.views.guesses import Guess
from app.views.run import Checkpoint
from app.views.samples import SampleState
from app.views.trials import TrialState, Tried
from ringside.words import say


def try_heading(checkpoint: Checkpoint | None) -> str:
    """Which checkpoint it is."""
    if checkpoint is None:
        return ""
    step = say("try.step", step=checkpoint.step) if checkpoint.step else ""
    return heading(say(f"try.{checkpoint.name}"), step)


def use_elsewhere(run_name: str, checkpoint: Checkpoint | None) -> str:
    """The commands that do the same in a terminal, and that take the model away."""
    if checkpoint is None:
        return ""
    option = "" if checkpoint.name == "best" else f" --checkpoint {checkpoint.name}"
    lines = "".join(
        f"<dt>{escape(say(f'try.{name}'))}</dt><dd><code>{escape(command)}</code></dd>"
        for name, command in (
            ("export", f"ringside export {run_name}{option}"),
            ("label", f"ringside label {run_name}{option} photo.jpg"),
        )
    )
    return f'<dl class="rs-about">{lines}</dl>'


def sample_cards(state: SampleState) -> str:
    """A button for each picture; a sentence while they come or when there are none."""
    if state.kind == "none":
        return ""
    if state.kind == "running":
        return (
            f'<div class="rs-progress" role="status"><span>{escape(say("try.taking"))}</span></div>'
        )
    if state.kind == "failed":
        return f'<p class="rs-bad" role="alert">{with_code(state.sentence)}</p>'
    buttons = "".join(
        f'<button type="button" data-sample="{i}" title="{escape(picture.name)}">'
        f'<img src="{preview}" alt="{escape(say("try.sample", name=picture.name))}"></button>'
        for i, (picture, preview) in enumerate(state.pictures)
    )
    return f'{soft(say("try.choose"))}<div class="rs-pictures rs-samples">{buttons}</div>'


def trial_panel(state: TrialState) -> str:
    """Each picture with its guesses as bars; how long it has taken while it works."""
    if state.kind == "none":
        return ""
    if state.kind == "running":
        gone = figures.since(state.started, time.time())
        line = escape(say("try.working", n=state.num_pictures, gone=gone))
        return (
            f'<div class="rs-progress" role="status"><span>{line}</span>'
            f'<progress aria-label="{line}"></progress></div>'
        )
    if state.kind == "failed":
        return f'<p class="rs-bad" role="alert">{with_code(state.sentence)}</p>'
    has_ticks = any(guess.threshold is not None for one in state.tried for guess in one.guesses)
    return (
        f'<div class="rs-trial" role="status">{"".join(map(_tried, state.tried))}'
        f"{soft(say('try.tick')) if has_ticks else ''}</div>"
    )


def _tried(tried: Tried) -> str:
    picture = (
        f'<img src="{tried.preview}" alt="">' if tried.preview else '<i aria-hidden="true">✕</i>'
    )
    if tried.fault:
        said = f'<p class="rs-bad">{with_code(tried.fault)}</p>'
    else:
        said = f"{_truth(tried)}{_bars(tried)}"
    return (
        f'<figure class="rs-tried">{picture}<figcaption><b>{escape(tried.name)}</b>{said}'
        f"</figcaption></figure>"
    )


def _truth(tried: Tried) -> str:
    if tried.truth is None:
        return ""
    return soft(say("try.truth", labels=", ".join(tried.truth) or say("try.no_label")))


def _bars(tried: Tried) -> str:
    lines = "".join(_bar(guess) for guess in tried.guesses)
    nothing = "" if any(guess.passes for guess in tried.guesses) else soft(say("try.none_passes"))
    more = soft(say("try.more_pass", n=tried.num_more)) if tried.num_more else ""
    return f'{nothing}<div class="rs-bars rs-guesses">{lines}</div>{more}'


def _bar(guess: Guess) -> str:
    """Name, bar with a tick at the threshold, probability, and a sign with words for `passes`."""
    tick, words = "", say("try.chosen") if guess.passes else ""
    if guess.threshold is not None:
        tick = f'<s style="left:{guess.threshold:.2%}"></s>'
        key = "try.passes" if guess.passes else "try.below"
        words = say(key, threshold=f"{guess.threshold:.2f}")
    colour, sign = ("rs-c-accent", "✓") if guess.passes else ("rs-c-rest", "")
    name = f'<span class="{"rs-passes" if guess.passes else ""}">{escape(guess.name)}</span>'
    return (
        f'{name}<div class="rs-track" title="{escape(words)}"><i class="{colour}" '
        f'style="width:{guess.probability:.2%}"></i>{tick}</div>'
        f"<b>{guess.probability:.2f}</b>"
        f'<em title="{escape(words)}"><span aria-hidden="true">{sign}</span>'
        f'<span class="rs-unseen">{escape(words)}</span></em>'
    )
