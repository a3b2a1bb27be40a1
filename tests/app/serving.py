"""Where a test's own server can listen."""

from __future__ import annotations

import socket


def free_port() -> int:
    """A port that nobody listens on; another one for each test that runs at the same time."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
