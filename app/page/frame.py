"""What every page has: the header, the action token, and handlers that never let an error out."""

from __future__ import annotations

import functools
import json
import logging
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gradio as gr
from gradio.components import Component
from gradio.context import LocalContext

from app.audit import audited, refused
from app.login import is_viewer
from app.page.draw import header, with_code
from app.page.languages import RELOAD, SWITCH, language_switch, visitors_language
from app.page.settings import PageSettings
from app.views.machine import machine_lines
from ringside.errors import RingsideError
from ringside.words import say

log = logging.getLogger("ringside.page")

Handler = Callable[..., Any]

PRIVATE: dict[str, Any] = {"api_visibility": "private"}
"""Named, but not offered to clients; the token is what protects, not this."""

QUEUED = PRIVATE | {"concurrency_limit": None, "show_progress": "hidden"}
"""For handlers that may take a moment; no viewer waits for another."""

QUICK = QUEUED | {"queue": False}
"""For handlers that answer in milliseconds: one request, and no viewer waits for another."""

OFTEN = QUICK | {"preprocess": False, "postprocess": False}
"""For what every viewer asks each second, too. Gradio takes a thread for every single value that
goes in or out; without, handlers get what was sent, of whatever kind, and send finished values."""


def draw_frame(settings: PageSettings, active: str) -> gr.Textbox:
    """The header with the entry `active` marked; returns the hidden field with the action token."""
    draw_header(settings, active)
    return draw_token(settings, active)


def draw_header(settings: PageSettings, active: str, js: str | None = RELOAD) -> gr.HTML:
    """The header; its switch of the language runs `js`, unless the page connects it by itself."""
    gr.Navbar(visible=False)
    html = header(active, machine_lines(settings.hardware), language_switch())
    shown = gr.HTML(
        "", html_template="${html}", html=html, elem_id="header", apply_default_css=False,
        js_on_load=SWITCH,
    )  # fmt: skip
    if js is not None:
        switches(shown, active, js)
    return shown


def switches(shown: gr.HTML, active: str, js: str, inputs: Sequence[Component] = ()) -> None:
    """Once a language was chosen in the header, `js` runs with the values of `inputs`."""
    shown.change(
        None, list(inputs), None, js=js, queue=False,
        api_name=f"language_of_{active}", api_visibility="private",
    )  # fmt: skip


def draw_token(settings: PageSettings, active: str) -> gr.Textbox:
    """The hidden field with the action token; empty for a viewer."""
    # A page of another site cannot read it, so it cannot send it. See `app.guard`.
    if not settings.login.is_needed:
        return hidden("token", settings.token)
    token, note = hidden("token"), block("viewer-note")

    @quiet
    def hand_out(request: gr.Request) -> tuple[str, str]:
        """The token for an operator; for a viewer the sentence why there is none."""
        if is_viewer(request.username):
            return "", f'<p class="rs-soft" role="status">{say("page.viewer_note")}</p>'
        return settings.token, ""

    gr.on(None, hand_out, None, [token, note], api_name=f"token_of_{active}", **QUICK)
    return token


def hidden(elem_id: str, value: str | None = None) -> gr.Textbox:
    """A field that travels with the page and is not shown."""
    return gr.Textbox(value=value, visible="hidden", elem_id=elem_id, show_label=False)


def block(elem_id: str, value: str = "", **details: Any) -> gr.HTML:
    """A place for finished HTML, without Gradio's own text style."""
    return gr.HTML(value, elem_id=elem_id, apply_default_css=False, js_on_load=None, **details)


def careful(handler: Handler) -> Handler:
    """Turn a RingsideError into its sentence and anything else into a calm one; nothing changes."""

    @functools.wraps(handler)
    def wrapped(*args: Any) -> Any:
        # Queued handlers run outside their request (gradio 6.31), so each asks for the language.
        with visitors_language(LocalContext.request.get(None)):
            try:
                return handler(*args) or gr.skip()
            except RingsideError as error:
                warn(error)
            except Exception as error:
                log.exception("The handler %s failed", handler.__name__)
                _warn(say("page.unexpected", kind=type(error).__name__))
        return gr.skip()

    return wrapped


def acts(what: str) -> Callable[[Handler], Handler]:
    """`careful` for what changes something: each call is also one line of the audit."""

    def decorate(handler: Handler) -> Handler:
        @functools.wraps(handler)
        def recorded(*args: Any) -> Any:
            who, where = _visitor()
            with audited(what, who, where):
                if is_viewer(who):
                    raise RingsideError(say("page.viewer"))
                return handler(*args)

        # What a viewer may not do is known by this; see `app.page.roles`.
        recorded.__dict__["acts"] = what
        return careful(recorded)

    return decorate


def _visitor() -> tuple[str | None, str | None]:
    """The user of the login and the address; None where there is no login, or nobody asks."""
    request = LocalContext.request.get(None)
    client = getattr(request, "client", None)
    return getattr(request, "username", None), getattr(client, "host", None)


def warn(error: RingsideError) -> None:
    """Show the sentence for a while; in the audit it is what came of the attempt."""
    refused(str(error))
    _warn(str(error))


def _warn(text: str) -> None:
    gr.Warning(with_code(text), title=say("page.title"))


def inform(text: str, seconds: float = 4) -> None:
    """Show a sentence for a while: what was asked for is done."""
    # Gradio takes both kinds of text for HTML (6.31); a name in it may look like some.
    gr.Info(with_code(text), title=say("page.title"), duration=seconds)


def quiet(handler: Handler) -> Handler:
    """For pollers: whatever fails is logged, and the next tick tries again."""

    @functools.wraps(handler)
    def wrapped(*args: Any) -> Any:
        with visitors_language(LocalContext.request.get(None)):
            try:
                return handler(*args) or gr.skip()
            except RingsideError as error:
                log.info("%s: %s", handler.__name__, error)
            except Exception:
                log.exception("The handler %s failed", handler.__name__)
        return gr.skip()

    return wrapped


def changed(values: Mapping[str, Any], seen: Mapping[str, str]) -> dict[str, tuple[Any, str]]:
    """The values whose digest the page does not hold yet, each with its digest."""
    found = {}
    for name, value in values.items():
        digest = f"{zlib.crc32(repr(value).encode()):08x}"
        if seen.get(name) != digest:
            found[name] = (value, digest)
    return found


def read_seen(text: str | None) -> dict[str, Any]:
    """What the browser has; anything unreadable means: nothing, send all."""
    try:
        seen = json.loads(text or "{}")
    except ValueError:
        return {}
    return seen if isinstance(seen, dict) else {}
