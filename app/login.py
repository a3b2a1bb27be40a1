"""Who may come in, and as what: an operator acts, a viewer only looks.

    ringside   the operator; RINGSIDE_PASSWORD, or a password that is made up
    viewer     sees everything and changes nothing; RINGSIDE_VIEW_PASSWORD, a file, or made up

Served to this machine alone the page needs no login. Passwords are kept in memory only.
"""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from app.guard import is_loopback
from ringside.errors import RingsideError
from ringside.words import say

OPERATOR = "ringside"
VIEWER = "viewer"
PASSWORD_VARIABLE = "RINGSIDE_PASSWORD"
VIEW_PASSWORD_VARIABLE = "RINGSIDE_VIEW_PASSWORD"

MIN_PASSWORD = 12
"""Characters. The brake slows guessing down; only length makes it hopeless."""

MADE_UP_BYTES = 15
MAX_FILE_BYTES = 4096


@dataclass(frozen=True)
class Login:
    """The passwords by user, none of them for a page without a login."""

    passwords: Mapping[str, str] = field(default_factory=dict, repr=False)
    made_up: frozenset[str] = frozenset()
    """Users whose password nobody knows yet: it has to be told once."""

    @property
    def is_needed(self) -> bool:
        """Whether anybody has to log in."""
        return bool(self.passwords)

    def knows(self, user: str, password: str) -> bool:
        """Whether the password is the user's; takes the same time for every wrong pair."""
        # Someone unknown is compared too: how long it takes must not tell who there is.
        expected = self.passwords.get(user) or secrets.token_urlsafe(MADE_UP_BYTES)
        is_right = hmac.compare_digest(_as_bytes(password), _as_bytes(expected))
        return is_right and user in self.passwords

    def lines(self) -> list[str]:
        """What the terminal says once about the passwords that were made up."""
        return [
            say("serve.made_up", user=user, password=password)
            for user, password in self.passwords.items()
            if user in self.made_up
        ]


def login_for(host: str, *, viewers: bool = False, view_password_file: Path | None = None) -> Login:
    """The login of a page on `host`, with the passwords of the environment and of the file.

    Beyond this machine an operator's password that nobody gave is made up; so is that of
    `viewers`. RingsideError for one that is too short, or a file that cannot be read.
    """
    operator = os.environ.get(PASSWORD_VARIABLE) or None
    viewer = _view_password(view_password_file)
    has_viewers = viewers or viewer is not None
    if operator is None and not has_viewers and is_loopback(host):
        return Login()
    given = {OPERATOR: operator} | ({VIEWER: viewer} if has_viewers else {})
    for user, password in given.items():
        if password is not None:
            _require_long(user, password)
    if operator is not None and operator == viewer:
        raise RingsideError(say("serve.same_password"))
    made_up = frozenset(user for user, password in given.items() if password is None)
    return Login({user: password or _make_up() for user, password in given.items()}, made_up)


def require_login(host: str, login: Login) -> None:
    """Raise a RingsideError for a page beyond this machine that anybody could use."""
    if not login.is_needed and not is_loopback(host):
        raise RingsideError(say("serve.open", host=host, variable=PASSWORD_VARIABLE))


def is_viewer(user: str | None) -> bool:
    """Whether this user of the login may only look."""
    return user == VIEWER


def _view_password(path: Path | None) -> str | None:
    """The first line of the file, else the variable; None when neither is given."""
    if path is None:
        return os.environ.get(VIEW_PASSWORD_VARIABLE) or None
    try:
        with path.expanduser().open("rb") as stream:
            text = stream.read(MAX_FILE_BYTES).decode()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or say("serve.no_text")
        raise RingsideError(say("serve.password_file", path=path, why=why)) from None
    return next(iter(text.splitlines()), "")


def _require_long(user: str, password: str) -> None:
    if len(password) < MIN_PASSWORD:
        variable = PASSWORD_VARIABLE if user == OPERATOR else VIEW_PASSWORD_VARIABLE
        raise RingsideError(
            say("serve.short_password", user=user, variable=variable, length=MIN_PASSWORD)
        )


def _as_bytes(password: str) -> bytes:
    # An environment variable may hold bytes that are no UTF-8.
    return password.encode("utf-8", "surrogatepass")


def _make_up() -> str:
    return secrets.token_urlsafe(MADE_UP_BYTES)
