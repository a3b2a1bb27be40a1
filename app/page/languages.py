"""Which language a visitor reads, and pages that begin in it.

`?lang=zh` once, then a cookie, else what the browser prefers, else what the server speaks. The
switch in the header sets the cookie and loads the page again. See docs/decisions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any, Protocol
from urllib.parse import urlencode

from starlette.requests import HTTPConnection

from app.asgi import Application, Message, Receive, Scope, Send
from ringside.words import languages, nearest_language, say, speaking, spoken

COOKIE = "ringside-language"
QUERY = "lang"
MAX_AGE_S = 365 * 24 * 3600
MAX_PREFERENCES = 20

# Gradio's own words (drop zones, loading) and `<html lang>` follow the browser's language
# (gradio 6.31), which may be another than the one that was chosen here.
_BEGIN = """<script>
for (const [name, value] of [["language", {tag}], ["languages", [{tag}]]])
  Object.defineProperty(navigator, name, {{get: () => value, configurable: true}});
</script>"""


class Asking(Protocol):
    """What a request tells of its visitor; Starlette's and Gradio's both do."""

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def cookies(self) -> Mapping[str, str]: ...


def language_for(request: Asking) -> str:
    """The visitor's language: the cookie, else Accept-Language, else the server's."""
    chosen = nearest_language(request.cookies.get(COOKIE, ""))
    return chosen or _preferred(request.headers.get("accept-language", "")) or spoken()


@contextmanager
def visitors_language(request: Any) -> Iterator[None]:
    """Speak it inside; without a request (a test, a call from here) nothing changes."""
    if request is None or not hasattr(request, "headers"):
        yield
        return
    with speaking(language_for(request)):
        yield


def _preferred(header: str) -> str | None:
    """The first known language of an Accept-Language header by its weights; None without one."""
    weighted = []
    for entry in header.split(",")[:MAX_PREFERENCES]:
        tag, _, weight = entry.partition(";q=")
        try:
            weighted.append((-float(weight or 1), tag.strip()))
        except ValueError:
            continue
    found = (nearest_language(tag) for weight, tag in sorted(weighted, key=lambda one: one[0])
             if weight < 0)  # fmt: skip
    return next((language for language in found if language), None)


def language_switch() -> str:
    """HTML: the languages there are, the spoken one marked; `SWITCH` makes it work."""
    now = spoken()
    buttons = "".join(
        f'<button type="button" data-language="{name}" lang="{escape(say("language.tag", name))}"'
        f' title="{escape(say("language.name", name))}"'
        f' aria-pressed="{"true" if name == now else "false"}">'
        f"{escape(say('language.short', name))}</button>"
        for name in languages()
    )
    label = escape(say("language.choose"))
    return f'<div class="rs-language" role="group" aria-label="{label}">{buttons}</div>'


SWITCH = f"""
element.addEventListener('click', (event) => {{
  const button = event.target.closest('[data-language]');
  if (!button || button.getAttribute('aria-pressed') === 'true') return;
  document.cookie = '{COOKIE}=' + button.dataset.language
    + '; path=/; max-age={MAX_AGE_S}; samesite=lax';
  props.value = button.dataset.language;
  trigger('change');
}});
"""
"""The header's value becomes the language, so that a page may save what was filled in before."""

RELOAD = "() => window.location.reload()"


def reload_with(key: str, names: Sequence[str]) -> str:
    """JavaScript: load the page again, with the values of the fields `names` in its address."""
    return f"""(...values) => {{
  const filled = Object.fromEntries({json.dumps(list(names))}.map((name, i) => [name, values[i]]));
  window.location.search = new URLSearchParams([[{json.dumps(key)}, JSON.stringify(filled)]]);
}}"""


class Languages:
    """ASGI middleware: every answer in its visitor's language; `?lang=` is remembered and gone."""

    def __init__(self, app: Application) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Redirect where a page is asked for with `?lang=`, else pass on in the language."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        asked = request.query_params.get(QUERY)
        if asked is not None and scope["method"] == "GET" and _is_page(scope["path"]):
            await _redirect(send, request, nearest_language(asked[:20]))
            return
        language = language_for(request)
        with speaking(language):
            # Other HTML, such as a playbook's own page, is sent as it is.
            begun = _Begun(send, language) if _is_page(scope["path"]) else send
            await self.app(scope, receive, begun)


def _is_page(path: str) -> bool:
    """Pages have one word at most; the API of Gradio has more."""
    return path.count("/") <= 1


async def _redirect(send: Send, request: HTTPConnection, language: str | None) -> None:
    """The same page without `?lang=`; relative, because a proxy may have moved it."""
    kept = [pair for pair in request.query_params.multi_items() if pair[0] != QUERY]
    place = request.url.path.rpartition("/")[2] or "./"
    headers = [(b"location", (place + ("?" + urlencode(kept) if kept else "")).encode())]
    if language is not None:
        cookie = f"{COOKIE}={language}; Path=/; Max-Age={MAX_AGE_S}; SameSite=Lax"
        headers.append((b"set-cookie", cookie.encode()))
    await send({"type": "http.response.start", "status": 303, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


class _Begun:
    """Sends on; a page of HTML gets its language before any script of it runs."""

    def __init__(self, send: Send, language: str) -> None:
        self._send, self._tag = send, say("language.tag", language)
        self._start: Message | None = None
        self._body = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            kind = dict(message.get("headers", ())).get(b"content-type", b"")
            if kind.startswith(b"text/html"):
                self._start = message  # its length is known at the end
                return
        elif self._start is not None:
            self._body += message.get("body", b"")
            if message.get("more_body", False):
                return
            message = {**message, "body": self._marked()}
            await self._send(self._headed(len(message["body"])))
            self._start = None
        await self._send(message)

    def _marked(self) -> bytes:
        tag = json.dumps(self._tag)
        begin = _BEGIN.format(tag=tag).encode()
        body = self._body.replace(b'lang="en"', f"lang={tag}".encode(), 1)
        return body.replace(b"<head>", b"<head>" + begin, 1)

    def _headed(self, length: int) -> Message:
        assert self._start is not None
        own = (b"content-length", b"vary")
        headers = [pair for pair in self._start.get("headers", ()) if pair[0] not in own]
        headers += [
            (b"content-length", str(length).encode()), (b"content-language", self._tag.encode()),
            (b"vary", b"Cookie, Accept-Language"),
        ]  # fmt: skip
        return {**self._start, "headers": headers}
