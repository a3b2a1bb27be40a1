"""A process that works for the page, so that the page answers meanwhile, and that ends with it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from ringside.launch.plan import import_environment, without_secrets

NICE = 10
GRACE_S = 5.0
POLL_S = 0.05
MAX_ERROR_BYTES = 4000


class Child:
    """One child process with its own group; whoever made it reads `lines`, then calls `finish`.

    Its standard input stays open behind `request`. The end of it means: stop. So a child that
    watches its input also ends when the server is killed. One that does not is killed.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        request: bytes = b"",
        environment: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> None:
        self.timed_out = False
        self.stopped = False
        self._lock = threading.Lock()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `finish`
        self._process = subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=without_secrets(os.environ | import_environment() | dict(environment or {})),
            start_new_session=True,
        )
        self._timers: list[threading.Timer] = []
        if timeout_s is not None:
            self._after(timeout_s, self._give_up)
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # one that is gone already says so in `finish`
            self._process.stdin.write(request + b"\n")
            self._process.stdin.flush()

    def lines(self) -> Iterator[bytes]:
        """What it prints, until it and all that it started have ended."""
        assert self._process.stdout is not None
        yield from self._process.stdout

    def finish(self) -> tuple[int, str]:
        """Wait for its end: exit code, and the last of what it said on standard error."""
        while not self._is_reaped():
            time.sleep(POLL_S)
        for timer in self._timers:
            timer.cancel()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with contextlib.suppress(OSError):
                stream.close()
        with self._errors:
            size = self._errors.seek(0, os.SEEK_END)
            self._errors.seek(max(0, size - MAX_ERROR_BYTES))
            errors = self._errors.read().decode(errors="replace")
        return self._process.returncode, errors.strip()

    def stop(self) -> None:
        """Ask it to end; kill it and what it started when that takes longer than GRACE_S."""
        self.stopped = True
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        self._after(GRACE_S, self._kill)

    def _is_reaped(self) -> bool:
        with self._lock:
            return self._process.poll() is not None

    def _give_up(self) -> None:
        self.timed_out = True
        self._kill()

    def _kill(self) -> None:
        with self._lock:
            # Until it is reaped, nobody else can have its number.
            if self._process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)

    def _after(self, delay_s: float, action: Callable[[], None]) -> None:
        timer = threading.Timer(delay_s, action)
        timer.daemon = True
        self._timers.append(timer)
        timer.start()


def give_way() -> None:
    """For a child: whatever trains on this machine comes first."""
    os.nice(NICE)


def tell_the_page(message: object) -> None:
    """For a child: one message, as a line of JSON on standard output."""
    sys.stdout.buffer.write(msgspec.json.encode(message) + b"\n")
    sys.stdout.buffer.flush()


def end_with_the_page() -> None:
    """For a child: raise KeyboardInterrupt in the main thread when standard input ends."""
    # A server that a script put into the background ignores SIGINT, and so would its children.
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def watch() -> None:
        while os.read(0, 1):
            pass
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=watch, daemon=True).start()
