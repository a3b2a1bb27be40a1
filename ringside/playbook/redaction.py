"""What may leave the machine: fields by allow-list, and every text without names and addresses.

Two belts. What is taken along is picked field by field, variable by variable and file by file
(`ringside.playbook.recording`). Whatever text is in it is then cleared of what tells people and
machines apart: paths shrink to their last part, host and user names, addresses and tokens are
replaced. A text that is cleared twice is the same as one that is cleared once.
"""

from __future__ import annotations

import functools
import getpass
import os
import platform
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from ringside.environment_lint import table

T = TypeVar("T")

REMOVED = "[removed]"
MAX_ROUNDS = 20
ADDRESS, ADDRESS_6, MAC = "192.0.2.1", "2001:db8::1", "00:00:5e:00:53:00"
"""Of the blocks for documentation (RFC 5737, 3849, 7042): still addresses to a reader of logs."""

_EXACT = frozenset({
    "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_LAUNCH_BLOCKING",
    "WORLD_SIZE", "LOCAL_WORLD_SIZE",
})  # fmt: skip
_FAMILIES = re.compile(r"(NCCL|TORCH_NCCL|TORCH_FR|GLOO|ACCELERATE|FSDP)_[A-Z0-9_]+")
_NAMES_FILE = re.compile(r"PLUGIN|FILE|CONF|PIPE|PATH|DIR$|ADDR|_ID$")
_NAMES_SECRET = re.compile(r"TOKEN|SECRET|PASS|CREDENTIAL|AUTH|API_?KEY|_KEY(_|$)", re.IGNORECASE)
_VALUE = re.compile(r"[\w.,:;=^+\-]{0,128}")

_TOKENS = re.compile(
    r"\b(?:hf_|gh[pousr]_|github_pat_|glpat-|sk-|xox[abprs]-|AKIA|ASIA|AIza|eyJ)[\w\-.=]{8,}"
    r"|-----BEGIN [A-Z ]+-----[\s\S]*?(?:-----END [A-Z ]+-----|$)"
)
_ASSIGNED = re.compile(
    r"(?i)(\b[\w-]*(?:token|password|passwd|secret|api[_-]?key|authorization|credential)[\w-]*"
    r"[\"']?\s*[=:]\s*(?!(?:bearer\s+|basic\s+)?[\"']?\[removed\])(?:bearer\s+|basic\s+)?[\"']?)"
    r"[^\s\"',;]+"
)
_LOGIN = re.compile(r"(\w://)[^\s/@]+@")
_MAIL = re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b")
_PATH = re.compile(
    r"(?<![\w.:/\\-])(?:~?/(?:[^\s/\"'<>|:;,()\[\]]+/)+[^\s/\"'<>|:;,()\[\]]*|~/\S+)"
)
_HOME = re.compile(r"(?<![\w./])/(?:home|Users)/[^\s/\"':;,()]+/?(?![\w/])|(?<![\w./])/root\b/?")
_IPV4 = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.]*\d)")
_MAC = re.compile(r"\b(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b")
_IPV6 = re.compile(
    r"(?<![\w:])(?:(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}"
    r"|(?:[0-9a-fA-F]{1,4}:){1,7}:(?:[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{1,4}){0,6})?)(?:%\w+)?(?![\w:])"
)
_UUID = re.compile(
    r"\b(?:GPU-|MIG-)?[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"
)
_OF_HOME = re.compile(r"/(?:home|Users)/([^\s/\"':;,()]+)")
_ANYBODY = frozenset({
    "root", "user", "users", "ubuntu", "admin", "runner", "nobody", "docker", "app", "localhost",
    "local", "ringside", "vm", "host", "none", "test", "shared", "public",
})  # fmt: skip
"""Names that many machines and many users have: they tell nothing, and stand in many sentences."""

_NO_HOSTS = frozenset({"localhost", "none", *(f"host{number}" for number in range(1, 1000))})
"""What stands for a host already is left as it is."""

_HOSTLIKE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")


class Redactor:
    """Clears texts; `words` are names with what stands for them, `paths` folders and files.

    `secrets` are texts that are removed wherever they are, such as the values of tokens.
    """

    def __init__(
        self,
        *,
        hosts: Iterable[str] = (),
        users: Iterable[str] = (),
        paths: Iterable[str] = (),
        secrets: Iterable[str] = (),
    ) -> None:
        self._words = _words(hosts, users)
        self._names = _any_of(self._words)
        known = sorted({p for p in paths if p.startswith("/") and len(p) > 1}, key=len)
        self._paths = [
            (_whole_path(path), path_name(path).replace("\\", "\\\\")) for path in known[::-1]
        ]
        self._secrets = sorted({s for s in secrets if len(s) >= 6}, key=len, reverse=True)
        self.text = functools.lru_cache(maxsize=20_000)(self._clear)

    def host(self, name: str) -> str:
        """What stands for a host: `host1`."""
        return self._words.get(name.casefold(), self.text(name))

    def _clear(self, text: str) -> str:
        """Until nothing changes: what is left of one thing may look like another."""
        for _ in range(MAX_ROUNDS):
            cleared = self._cleared_once(text)
            if cleared == text:
                break
            text = cleared
        return text

    def _cleared_once(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, REMOVED)
        for path, name in self._paths:
            text = path.sub(name, text)
        text = _LOGIN.sub(r"\1", text)
        text = _ASSIGNED.sub(rf"\1{REMOVED}", _TOKENS.sub(REMOVED, text))
        text = _PATH.sub(lambda found: path_name(found[0]), _HOME.sub("~", text))
        text = _MAC.sub(MAC, _UUID.sub(REMOVED, _MAIL.sub(REMOVED, text)))
        text = _IPV6.sub(ADDRESS_6, _IPV4.sub(_address, text))
        if self._names is not None:
            text = self._names.sub(lambda found: self._words[found[0].casefold()], text)
        return text

    def struct(self, value: T) -> T:
        """A struct of the same kind with every free text in it cleared; words of a closed list
        (`Literal`) stay."""
        kept: T = self._cleared(value, type(value))
        return kept

    def _cleared(self, value: Any, hint: Any) -> Any:
        if isinstance(value, str):
            return value if _is_closed(hint) else self.text(value)
        if isinstance(value, msgspec.Struct):
            hints = _hints(type(value))
            return msgspec.structs.replace(value, **{
                name: self._cleared(getattr(value, name), hints[name])
                for name in value.__struct_fields__
            })  # fmt: skip
        if isinstance(value, dict):
            return {self._cleared(k, hint): self._cleared(v, hint) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self._cleared(one, hint) for one in value)
        return value

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """The variables that shape a distributed run; every other one stays behind."""
        return {
            name: self.text(value)
            for name, value in sorted(variables.items())
            if is_allowed(name) and _VALUE.fullmatch(value) and REMOVED not in self.text(value)
        }


def is_allowed(name: str) -> bool:
    """Whether a variable may be named: one of a distributed run, without a path or a secret."""
    if _NAMES_SECRET.search(name) or _NAMES_FILE.search(name):
        return False
    return name in _EXACT or name in table() or _FAMILIES.fullmatch(name) is not None


def path_name(path: str) -> str:
    """The last part of a path; the home folder is `~`."""
    return "~" if _HOME.fullmatch(path) else PurePosixPath(path.rstrip("/")).name or "/"


def _whole_path(path: str) -> re.Pattern[str]:
    """The path itself, not as a part of another name."""
    return re.compile(rf"(?<![\w.~]){re.escape(path)}(?![\w-])")


def here() -> dict[str, list[str]]:
    """What tells this machine and this user apart, as the arguments of `Redactor`."""
    users = [os.environ.get(name, "") for name in ("USER", "LOGNAME", "SUDO_USER")]
    with suppress(OSError, KeyError, ImportError):
        users.append(getpass.getuser())
    home = str(Path.home())
    return {
        "hosts": [platform.node(), os.environ.get("HOSTNAME", "")],
        "users": [*users, *names_in(home), PurePosixPath(home).name],
        "paths": [home],
        # Variables such as SSH_AUTH_SOCK hold paths; those are shortened, not removed.
        "secrets": [one for one in secrets_in(os.environ) if not one.startswith(("/", "~"))],
    }


def secrets_in(variables: Mapping[str, str]) -> list[str]:
    """Values of variables whose names speak of a secret."""
    return [value for name, value in variables.items() if _NAMES_SECRET.search(name)]


def names_in(text: str) -> list[str]:
    """Users whose home folders a text names."""
    return _OF_HOME.findall(text)


def _words(hosts: Iterable[str], users: Iterable[str]) -> dict[str, str]:
    """Each name, in small letters, with what stands for it; the first host is `host1`."""
    found: dict[str, str] = {}
    number = 0
    for host in dict.fromkeys(host.casefold() for host in hosts):
        if host in _NO_HOSTS or not _HOSTLIKE.fullmatch(host) or host in found:
            continue
        number += 1
        found[host] = f"host{number}"
        short = host.partition(".")[0]
        if len(short) > 2 and not short.isdigit():
            found.setdefault(short, f"host{number}")
    for user in users:
        if len(user) > 2 and user.casefold() not in _ANYBODY:
            found.setdefault(user.casefold(), "user")
    return found


def _any_of(words: Mapping[str, str]) -> re.Pattern[str] | None:
    """All names at once, where no letter or digit touches them."""
    if not words:
        return None
    names = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    return re.compile(rf"(?<![A-Za-z0-9])(?:{names})(?![A-Za-z0-9])", re.IGNORECASE)


def _address(found: re.Match[str]) -> str:
    """Four numbers up to 255 are an address, all else is a version."""
    is_address = all(int(part) < 256 for part in found[0].split("."))
    return ADDRESS if is_address else found[0]


@functools.cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return get_type_hints(kind)


@functools.cache
def _is_closed(hint: Any) -> bool:
    """Whether a type allows words of a closed list only."""
    if get_origin(hint) is Literal:
        return True
    inner = [one for one in get_args(hint) if one is not type(None) and one is not Ellipsis]
    return bool(inner) and all(map(_is_closed, inner))
