"""Whatever is sent, one sentence comes back: no request is too large, none breaks the server.

Handlers of the page never let an error out. So what fails on its way in fails in Gradio, before a
handler sees it, because the values do not fit the fields: that is the sender's mistake.
"""

from __future__ import annotations

import logging

from app.asgi import Application, Message, Receive, Scope, Send, answer
from app.routes import is_upload
from ringside.words import say

log = logging.getLogger("ringside.page")

MAX_BODY_BYTES = 1_000_000
"""Of what fields hold; the largest that the page itself sends has a few thousand."""


class Calm:
    """ASGI middleware: 413 for what is too large, and a sentence in the place of every 5xx."""

    def __init__(self, app: Application, *, max_upload_bytes: int) -> None:
        self.app = app
        self.max_upload_bytes = max_upload_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and look at how much comes in and what goes out."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        limit = self.max_upload_bytes if is_upload(scope["path"]) else MAX_BODY_BYTES
        if _announced(scope) > limit:
            await answer(send, 413, say("guard.too_large", mb=limit // 1_000_000))
            return
        exchange = _Exchange(scope, receive, send, limit)
        try:
            await self.app(scope, exchange.receive, exchange.send)
        except Exception as error:
            # As Python writes it: a line of the log has to stay one.
            log.error("%s %r failed: %r", scope["method"], scope["path"][:200], error)
            await exchange.apologise()


class _Exchange:
    """One request and its answer."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, limit: int) -> None:
        self._scope, self._receive, self._send, self._limit = scope, receive, send, limit
        self._num_bytes = 0
        self._has_begun = self._is_replaced = False

    async def receive(self) -> Message:
        """What comes in, cut off where it is too much."""
        message = await self._receive()
        self._num_bytes += len(message.get("body", b""))
        return {"type": "http.disconnect"} if self._is_too_large else message

    async def send(self, message: Message) -> None:
        """What goes out; of an answer that is replaced, nothing."""
        if message["type"] == "http.response.start":
            if self._is_too_large or message["status"] >= 500:
                await self.apologise()
                return
            self._has_begun = True
        if not self._is_replaced:
            await self._send(message)

    async def apologise(self) -> None:
        """The sentence, unless an answer is under way already."""
        if self._has_begun or self._is_replaced:
            return
        self._is_replaced = True
        if self._is_too_large:
            sentence = say("guard.too_large", mb=self._limit // 1_000_000)
            await answer(self._send, 413, sentence)
        elif self._scope["method"] == "POST":
            await answer(self._send, 400, say("guard.unusable"))
        else:
            await answer(self._send, 500, say("guard.broken"))

    @property
    def _is_too_large(self) -> bool:
        return self._num_bytes > self._limit


def _announced(scope: Scope) -> int:
    """The Content-Length; 0 where it is missing or no number."""
    text = dict(scope["headers"]).get(b"content-length", b"0")
    return int(text) if text.isdigit() and len(text) < 20 else 0
