"""The brake on guessing passwords: whoever is wrong too often has to wait, longer each time.

Every attempt counts before its password is looked at, so many at once gain nothing. Attempts of
all addresses together have a limit too; an address that once came in is not held up by it.
"""

from __future__ import annotations

import ipaddress
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from app.asgi import Application, Message, Receive, Scope, Send, answer, client_of
from app.audit import audited, refused
from ringside.words import say

FREE_ATTEMPTS = 5
MAX_WAIT_S = 300.0
FORGET_S = 3600.0
MAX_ADDRESSES = 2000

TOGETHER = 60
"""Attempts of all addresses in one go; after that one every `TOGETHER_PAUSE_S`."""

TOGETHER_PAUSE_S = 2.0


@dataclass
class _Guesser:
    """What one address did: wrong attempts, and from when on it may try again, in seconds."""

    num_wrong: int = 0
    free_at: float = 0.0
    last: float = 0.0
    has_come_in: bool = False


class Brake:
    """Counts attempts by address; safe to use from many threads, and bounded in memory."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._guessers: OrderedDict[str, _Guesser] = OrderedDict()
        self._left = float(TOGETHER)
        self._filled = clock()

    def admit(self, address: str) -> float:
        """Count an attempt and return 0, or return how many seconds to wait; that counts not."""
        with self._lock:
            now = self._clock()
            guesser = self._guesser(_network(address), now)
            wait_s = max(guesser.free_at - now, self._wait_together_s(guesser, now))
            if wait_s > 0:
                return wait_s
            if not guesser.has_come_in:
                self._left -= 1
            guesser.num_wrong += 1
            guesser.last = now
            if guesser.num_wrong >= FREE_ATTEMPTS:
                exponent = min(guesser.num_wrong - FREE_ATTEMPTS, 30)
                guesser.free_at = now + min(MAX_WAIT_S, 2.0**exponent)
            return 0.0

    def came_in(self, address: str) -> None:
        """The last attempt was right, and is taken back.

        Earlier ones still count: a viewer who comes in must not gain guesses at the operator.
        """
        with self._lock:
            guesser = self._guesser(_network(address), self._clock())
            guesser.num_wrong = max(0, guesser.num_wrong - 1)
            guesser.free_at = 0.0
            guesser.has_come_in = True

    def _guesser(self, name: str, now: float) -> _Guesser:
        found = self._guessers.pop(name, None)
        if found is None or now - found.last > FORGET_S:
            found = _Guesser(last=now)
        self._guessers[name] = found
        while len(self._guessers) > MAX_ADDRESSES:
            self._guessers.popitem(last=False)
        return found

    def _wait_together_s(self, guesser: _Guesser, now: float) -> float:
        self._left = min(TOGETHER, self._left + (now - self._filled) / TOGETHER_PAUSE_S)
        self._filled = now
        if guesser.has_come_in or self._left >= 1:
            return 0.0
        return (1 - self._left) * TOGETHER_PAUSE_S


class BrakedLogin:
    """ASGI middleware: 429 with Retry-After for who has to wait; each attempt is in the audit."""

    def __init__(self, app: Application, *, brake: Brake) -> None:
        self.app = app
        self.brake = brake

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on whatever is no attempt to log in."""
        is_attempt = scope["type"] == "http" and scope["method"] == "POST"
        if not is_attempt or scope["path"].rstrip("/") != "/login":
            await self.app(scope, receive, send)
            return
        address = client_of(scope)
        # Who it claims to be is not noted: people type their password into that field.
        with audited("log in", "unknown", address):
            wait_s = math.ceil(self.brake.admit(address))
            if wait_s > 0:
                sentence = say("login.wait", n=wait_s)
                refused(sentence)
                await answer(send, 429, sentence, (b"retry-after", str(wait_s).encode()))
                return
            await self.app(scope, receive, self._noticing(address, send))

    def _noticing(self, address: str, send: Send) -> Send:
        async def notice(message: Message) -> None:
            if message["type"] == "http.response.start":
                if message["status"] == 200:
                    self.brake.came_in(address)
                else:
                    refused(say("login.wrong"))
            await send(message)

        return notice


def _network(address: str) -> str:
    """One machine has all of a /64 of IPv6 addresses, so they count as one."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if found.version == 4:
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, 64), strict=False))
