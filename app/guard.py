"""Who may talk to the page's server: host names, origins, routes, and the action token.

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
from collections.abc import Collection
from urllib.parse import urlsplit

from app.asgi import Application, Message, Receive, Scope, Send, answer
from app.routes import changes_something, is_open
from ringside.errors import RingsideError
from ringside.words import say

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
ANY_ADDRESS = frozenset({"0.0.0.0", "::"})

# Gradio builds its addresses from these. The first is as good as Host and has to be known like it;
# the second is between the two servers of a way to draw pages that is not used here.
FORWARDED_HOST = b"x-forwarded-host"
OTHER_SERVER = b"x-gradio-server"

# Nothing is loaded from another host. Gradio compiles templates in the page (unsafe-eval) and
# writes styles inline.
CONTENT_POLICY = (
    b"default-src 'self' data: blob:; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; "
    b"style-src 'self' 'unsafe-inline'; connect-src 'self' data: blob:; "
    b"frame-ancestors 'self'; form-action 'self'; base-uri 'self'"
)
_HEADERS = (
    (b"content-security-policy", CONTENT_POLICY),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"same-origin"),
    (b"x-content-type-options", b"nosniff"),
)


def new_token() -> str:
    """A random action token; one for each server."""
    return secrets.token_urlsafe(24)


def require_token(given: object, expected: str) -> None:
    """Raise a RingsideError unless `given` is the token; the comparison takes constant time."""
    # Lone surrogates come through JSON and are no UTF-8.
    if not hmac.compare_digest(str(given).encode("utf-8", "replace"), expected.encode()):
        raise RingsideError(say("page.stale"))


def is_loopback(host: str) -> bool:
    """Whether a server bound to `host` can be reached from this machine only."""
    return host in LOOPBACK


def allowed_hosts(host: str, others: Collection[str] = ()) -> frozenset[str]:
    """The names under which a server bound to `host` may be asked for; `others` were allowed."""
    names = {*LOOPBACK, *(other.lower() for other in others)}
    if host in ANY_ADDRESS:
        names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
    elif host:
        names.add(host.lower())
    return frozenset(names)


class Guard:
    """ASGI middleware: a known Host, a route that is open, and no request from another site.

    The port in `Host` is free, so that a tunnel from another port works; `Origin` has to name the
    same host and port as `Host`, so a page that another local server sends is refused. `hosts` are
    further names, of a proxy in front.
    """

    def __init__(
        self,
        app: Application,
        *,
        host: str = "127.0.0.1",
        hosts: Collection[str] = (),
        pages: Collection[str] = ("",),
    ) -> None:
        self.app = app
        self.hosts = allowed_hosts(host, hosts)
        self.pages = frozenset(pages)
        # An address cannot be pointed elsewhere by DNS, so any literal one is good when all are
        # bound.
        self.any_literal = host in ANY_ADDRESS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 403 or 404 with one sentence, or pass on with the security headers added."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        elif scope["type"] != "http":
            await self.app(scope, receive, send)
        elif refusal := self._refusal(scope):
            await answer(send, 403, refusal)
        elif not is_open(scope["method"], scope["path"], self.pages):
            await answer(send, 404, say("guard.route"))
        else:
            headers = [pair for pair in scope["headers"] if pair[0] != OTHER_SERVER]
            await self.app({**scope, "headers": headers}, receive, _with_headers(send))

    def _refusal(self, scope: Scope) -> str | None:
        # Of two headers of one name, Starlette believes the first.
        pairs = reversed(scope["headers"])
        headers = {name: value.decode("latin-1") for name, value in pairs}
        host = headers.get(b"host", "").lower()
        # Of several proxies each may have added its own; Gradio believes the first.
        forwarded = headers.get(FORWARDED_HOST, host).partition(",")[0].strip().lower()
        for name in (host, forwarded):
            if not self._knows(_name_of(name)):
                return say("guard.host", host=name[:100] or "(none)")
        origin = headers.get(b"origin")
        # Programs (curl, the client library) send no Origin; browsers do unless it is a plain GET.
        if origin is not None and _place_of(origin) not in (host, forwarded):
            return say("guard.origin")
        same_site = headers.get(b"sec-fetch-site") in (None, "same-origin", "none")
        if not same_site and changes_something(scope["method"], scope["path"]):
            return say("guard.origin")
        return None

    def _knows(self, name: str) -> bool:
        return name in self.hosts or (self.any_literal and _is_address(name))


def _name_of(host: str) -> str:
    """`[::1]:7860` and `localhost:7860` without port and brackets; empty for nonsense."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _place_of(origin: str) -> str:
    """Host and port of an origin; a word that is no host for nonsense and for `null`."""
    try:
        return urlsplit(origin).netloc.lower() or "(none)"
    except ValueError:
        return "(none)"


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
