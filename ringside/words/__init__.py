"""The word catalogue: every sentence a person reads is a template here, filled by language."""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path
from typing import Any

DEFAULT = "en"


@functools.cache
def catalogue(language: str = DEFAULT) -> dict[str, str]:
    """All templates of a language as `section.key`."""
    text = (Path(__file__).parent / f"{language}.toml").read_text(encoding="utf-8")
    return {
        f"{section}.{key}": template
        for section, entries in tomllib.loads(text).items()
        for key, template in entries.items()
    }


def say(key: str, language: str = DEFAULT, **values: Any) -> str:
    """The template `key` with its values filled in; an unknown key is a programmer's error."""
    return catalogue(language)[key].format(**values)
