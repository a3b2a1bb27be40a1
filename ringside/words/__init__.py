"""The word catalogue: every sentence a person reads is a template here, filled by language.

One file a language; a sentence that a language lacks is said in English. Files of runs are always
English: nothing that writes them (supervisor, trainer) asks for another language.
"""

from __future__ import annotations

import functools
import string
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypeVar

DEFAULT = "en"
VARIABLE = "RINGSIDE_LANGUAGE"
LOCALE = ("LC_ALL", "LC_MESSAGES", "LANG")
"""The first of them that is set decides, as in POSIX."""

P = ParamSpec("P")
R = TypeVar("R")


class Retold(Protocol):
    """Finds the English of a sentence that was said, or what it is in another language."""

    def __call__(self, text: str, language: str = DEFAULT) -> str: ...


Tell = Callable[[str, Retold], str]
"""Says a sentence again in the given language, and with what is retold the values in it."""

_FOLDER = Path(__file__).parent
_spoken: ContextVar[str | None] = ContextVar("spoken", default=None)
_heard: ContextVar[dict[str, Tell] | None] = ContextVar("heard", default=None)


@dataclass
class _Process:
    """The language where no context names one: threads, and a command in a terminal."""

    language: str = DEFAULT


_process = _Process()


@functools.cache
def languages() -> tuple[str, ...]:
    """The languages that there are, English first."""
    found = sorted(path.stem for path in _FOLDER.glob("*.toml"))
    return (DEFAULT, *(name for name in found if name != DEFAULT))


@functools.cache
def templates(language: str) -> dict[str, str]:
    """What the language's own file holds, as `section.key`."""
    text = (_FOLDER / f"{language}.toml").read_text(encoding="utf-8")
    return {
        f"{section}.{key}": template
        for section, entries in tomllib.loads(text).items()
        for key, template in entries.items()
    }


@functools.cache
def _complete(language: str) -> dict[str, str]:
    return templates(DEFAULT) | templates(language)


def catalogue(language: str | None = None) -> dict[str, str]:
    """All templates of a language, by default of the one spoken now."""
    return _complete(language or spoken())


def say(key: str, language: str | None = None, **values: Any) -> str:
    """The template `key` with its values filled in; an unknown key is a programmer's error."""
    text = _filled(catalogue(language)[key], values)
    if (heard := _heard.get()) is not None:
        heard.setdefault(text, functools.partial(_say_again, key, values, text))
    return text


def _say_again(
    key: str, values: Mapping[str, Any], text: str, language: str, retold: Retold
) -> str:
    known = {
        name: retold(value, language) if isinstance(value, str) and value != text else value
        for name, value in values.items()
    }
    return _filled(catalogue(language)[key], known)


class _Filling(string.Formatter):
    """As `str.format`, but a share is `65 %` as in tables and not `65%`."""

    def format_field(self, value: Any, format_spec: str) -> str:
        text: str = super().format_field(value, format_spec)
        return f"{text[:-1]} %" if format_spec.endswith("%") else text


_FILLING = _Filling()


def _filled(template: str, values: Mapping[str, Any]) -> str:
    # `str.format` is several times as fast, and few templates have a share.
    return _FILLING.vformat(template, (), values) if "%}" in template else template.format(**values)


def percent(ratio: float, digits: int = 0) -> str:
    """A ratio as `65 %`."""
    return f"{ratio:.{digits}%}".replace("%", " %")


def say_count(noun: str, count: int) -> str:
    """`3 images`: a count with its noun, of `[count]`."""
    return say(f"count.{noun}_one" if count == 1 else f"count.{noun}", n=count)


def say_few(names: Sequence[str], limit: int = 5) -> str:
    """The first names, and how many more there are."""
    shown = ", ".join(names[:limit])
    left = len(names) - limit
    return say("count.more", names=shown, n=left) if left > 0 else shown


def translated(key: str, text: str) -> str:
    """An English text that stands elsewhere, such as in a preset, where the language has it."""
    return catalogue().get(key, text)


def remember(text: str, tell: Callable[[str], str]) -> None:
    """Where it is remembered what is said: this was, of another table; `tell` has all languages."""
    if (heard := _heard.get()) is not None:
        heard.setdefault(text, lambda language, _: tell(language))


def spoken() -> str:
    """The language of this context: a visitor's of the page, else the process's."""
    return _spoken.get() or _process.language


def speak(language: str) -> None:
    """From now on the process speaks it, where no context names another."""
    _process.language = _known(language)


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """Inside, this context (a request, a task) speaks the language."""
    token = _spoken.set(_known(language))
    try:
        yield
    finally:
        _spoken.reset(token)


@contextmanager
def remembering() -> Iterator[Retold]:
    """Inside, what is said is remembered; yields what tells such a sentence in another language.

    A person reads a refusal in their language, and logs and files keep it in English.
    """
    heard: dict[str, Tell] = {}

    def retold(text: str, language: str = DEFAULT) -> str:
        if text not in heard:
            return put_together(text, language)
        return heard[text](language, retold)

    def put_together(text: str, language: str) -> str:
        """Of sentences that follow each other, or of names with commas between them."""
        sentences = [one for one in heard if one.endswith((".", "。")) and one in text]
        if not sentences:
            names = text.split(", ")
            return ", ".join(retold(one, language) for one in names) if len(names) > 1 else text
        for one in sorted(sentences, key=len, reverse=True):
            text = text.replace(one, retold(one, language))
        return text

    token = _heard.set(heard)
    try:
        yield retold
    finally:
        _heard.reset(token)


def in_this_language(function: Callable[P, R]) -> Callable[P, R]:
    """The function for another thread, which would speak the process's language otherwise."""
    language = spoken()

    @functools.wraps(function)
    def speaks(*args: P.args, **kwargs: P.kwargs) -> R:
        with speaking(language):
            return function(*args, **kwargs)

    return speaks


def language_of(environment: Mapping[str, str]) -> tuple[str, str | None]:
    """What RINGSIDE_LANGUAGE asks for, else the locale, else English; and a complaint or None."""
    asked = environment.get(VARIABLE, "").strip()
    if asked:
        found = nearest_language(asked)
        if found is not None:
            return found, None
        known = ", ".join(languages())
        return DEFAULT, say("language.unknown", DEFAULT, name=VARIABLE, asked=asked, known=known)
    locale = next((environment[name] for name in LOCALE if environment.get(name)), "")
    return nearest_language(locale) or DEFAULT, None


def nearest_language(tag: str) -> str | None:
    """The language of `zh`, `zh-CN` or `zh_CN.UTF-8`; None for one that there is not."""
    name = tag.replace("_", "-").partition(".")[0].partition("-")[0].strip().lower()
    return name if name in languages() else None


def _known(language: str) -> str:
    if language not in languages():
        raise ValueError(f"There is no language {language!r}.")
    return language
