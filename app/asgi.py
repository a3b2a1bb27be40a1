"""What the middlewares of the server have in common: the types of ASGI, and a plain answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

Header = tuple[bytes, bytes]


async def answer(send: Send, status: int, sentence: str, *headers: Header) -> None:
    """One sentence as plain text."""
    body = f"{sentence}\n".encode()
    await send({
        "type": "http.response.start",
        "status": status,
        "headers": [
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", str(len(body)).encode()),
            (b"x-content-type-options", b"nosniff"),
            *headers,
        ],
    })  # fmt: skip
    await send({"type": "http.response.body", "body": body})


def client_of(scope: Scope) -> str:
    """The address that asks; empty where the server does not know it."""
    client = scope.get("client")
    return str(client[0]) if client else ""
