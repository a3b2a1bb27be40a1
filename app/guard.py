"""Who may talk to the page's server: host names, origins, and the action token.

A page of another site can send requests to this server through the browser of the person who has
Ringside open, and a DNS name of another site can be pointed at this machine. `Guard` refuses both
before the application sees them; the action token, which only a page of this server carries, is
asked for again by everything that starts, stops or imports.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from ringside.errors import RingsideError
from ringside.words import say

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
ANY_ADDRESS = frozenset({"0.0.0.0", "::"})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

# Nothing is loaded from another host. Gradio compiles templates in the page (unsafe-eval) and
# writes styles inline.
CONTENT_POLICY = (
    b"default-src 'self' data: blob:; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; "
    b"style-src 'self' 'unsafe-inline'; connect-src 'self' data: blob:; "
    b"frame-ancestors 'self'; form-action 'self'; base-uri 'self'"
)
_HEADERS = (
    (b"content-security-policy", CONTENT_POLICY),
    (b"referrer-policy", b"same-origin"),
    (b"x-content-type-options", b"nosniff"),
)


def new_token() -> str:
    """A random action token; one for each server."""
    return secrets.token_urlsafe(24)


def require_token(given: object, expected: str) -> None:
    """Raise a RingsideError unless `given` is the token; the comparison takes constant time."""
    if not hmac.compare_digest(str(given).encode(), expected.encode()):
        raise RingsideError(say("page.stale"))


def is_loopback(host: str) -> bool:
    """Whether a server bound to `host` can be reached from this machine only."""
    return host in LOOPBACK


def allowed_hosts(host: str) -> frozenset[str]:
    """The names under which a server bound to `host` may be asked for."""
    names = set(LOOPBACK)
    if host in ANY_ADDRESS:
        names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
    elif host:
        names.add(host.lower())
    return frozenset(names)


class Guard:
    """ASGI middleware: a known Host, the page's own Origin for whatever may change something.

    The port in `Host` is free, so that a tunnel from another port works; `Origin` has to name the
    same host and port as `Host`, so a page that another local server sends is refused.
    """

    def __init__(self, app: Application, *, host: str = "127.0.0.1") -> None:
        self.app = app
        self.hosts = allowed_hosts(host)
        # An address cannot be pointed elsewhere by DNS, so any literal one is good when all are
        # bound.
        self.any_literal = host in ANY_ADDRESS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 403 with one sentence, or pass on with the security headers added."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is None:
            await self.app(scope, receive, _with_headers(send))
        elif scope["type"] == "http":
            await _refuse(send, refusal)
        else:
            await send({"type": "websocket.close", "code": 1008})

    def _refusal(self, scope: Scope) -> str | None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get(b"host", "").lower()
        if not self._knows(_name_of(host)):
            return say("guard.host", host=host[:100] or "(none)")
        if scope["type"] == "http" and scope["method"] in SAFE_METHODS:
            return None
        origin = headers.get(b"origin")
        same_site = headers.get(b"sec-fetch-site") in (None, "same-origin", "none")
        # Programs (curl, the client library) send no Origin; browsers always do.
        if (origin is None and same_site) or (origin and urlsplit(origin).netloc.lower() == host):
            return None
        return say("guard.origin")

    def _knows(self, name: str) -> bool:
        return name in self.hosts or (self.any_literal and _is_address(name))


def _name_of(host: str) -> str:
    """`[::1]:7860` and `localhost:7860` without port and brackets; empty for nonsense."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *_HEADERS]
        await send(message)

    return send_with_headers


async def _refuse(send: Send, sentence: str) -> None:
    body = f"{sentence}\n".encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": body})
