"""Values as people write them: `no`, `"NO"`, 1, `true`, read as what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ringside.errors import PresetError
from ringside.importing.outcome import Ledger, shown
from ringside.words import say

_TRUE = ("true", "yes", "on", "1", "y")
_FALSE = ("false", "no", "off", "0", "n")
_PRECISIONS = {
    "no": ("no", "off", "false", "none", "null", "fp32", "float32", "32", "0", ""),
    "fp16": ("fp16", "float16", "16", "half", "1"),
    "bf16": ("bf16", "bfloat16", "2"),
    "fp8": ("fp8", "float8", "3"),
}
"""Small numbers are those of the menu of `accelerate config` (commands/config/config_utils.py)."""


def precision_of(value: Any, ledger: Ledger) -> str:
    """no, fp16 or bf16; PresetError for fp8 and for what is no precision."""
    key = "mixed_precision"
    text = "none" if value is None else str(value).strip().lower()
    found = next((name for name, words in _PRECISIONS.items() if text in words), None)
    if found == "fp8":
        raise PresetError(say("importing.refused_fp8"))
    if found is None:
        choices = "no, fp16, bf16"
        raise PresetError(
            say("importing.refused_value", name=key, value=shown(value), choices=choices)
        )
    bare_no = found == "no" and isinstance(value, str) and ledger.is_bare(key)
    if bare_no and text in ("no", "off"):
        ledger.note(key, "mapped", say("importing.bare_no", value=shown(value)))
    elif value == found:
        ledger.keep(key)
    else:
        note = say("importing.means", value=shown("null" if value is None else value), new=found)
        ledger.note(key, "mapped", note)
    return found


def flag_of(key: str, value: Any) -> bool:
    """True or false; PresetError for anything else."""
    text = str(value).strip().lower()
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise _bad(key, value, ("true", "false"))


def word_of(key: str, value: Any, words: Sequence[str], *, counted: bool = False) -> str:
    """One of `words`, whatever its case; with `counted` also by its number, from 1 as in torch."""
    text = str(value).strip().upper()
    if text in words:
        return text
    if counted and text.isdecimal() and len(text) < 4 and 1 <= int(text) <= len(words):
        return words[int(text) - 1]
    raise _bad(key, value, words)


def count_of(key: str, value: Any) -> int | None:
    """A whole number of at least 1; None for "as many as there are" (-1, auto, empty)."""
    if value is None or str(value).strip().lower() in ("-1", "auto", "all", ""):
        return None
    number = value
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 10:
        number = int(value)
    if isinstance(value, float) and value.is_integer():
        number = int(value)
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        sentence = say("importing.refused_count", name=key, value=shown(value))
        raise PresetError(sentence)
    return number


def _bad(key: str, value: Any, choices: Sequence[str]) -> PresetError:
    listed = ", ".join(choices)
    return PresetError(say("importing.refused_value", name=key, value=shown(value), choices=listed))
