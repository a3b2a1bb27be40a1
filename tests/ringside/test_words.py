"""The word catalogue: no sentence is missing when it is needed, none stays unfilled."""

from __future__ import annotations

import ast
import functools
import string
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

import ringside
from ringside.run import State
from ringside.spec import Precision, Strategy, TrainingSettings
from ringside.words import catalogue, percent, say

CLONE = Path(ringside.__file__).parents[1]


def fields(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}


@functools.cache
def sources() -> dict[Path, ast.Module]:
    paths = [*(CLONE / "ringside").rglob("*.py"), *(CLONE / "app").rglob("*.py")]
    return {path: ast.parse(path.read_bytes()) for path in paths}


def calls() -> list[tuple[str, str, set[str] | None]]:
    """(place, key, names of the values) of every `say` with a literal key; None: names unknown."""
    found = []
    for path, tree in sources().items():
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "say"):
                continue
            key = node.args[0]
            for choice in (key.body, key.orelse) if isinstance(key, ast.IfExp) else (key,):
                if isinstance(choice, ast.Constant):
                    names = {keyword.arg for keyword in node.keywords}
                    place = f"{path.relative_to(CLONE)}:{node.lineno}"
                    found.append((place, choice.value, None if None in names else names))
    return found


def test_every_sentence_that_is_said_exists_and_gets_its_values():
    """A missing key or value would be a traceback in place of a sentence."""
    said = calls()
    assert len(said) > 5
    words = catalogue()
    assert [(place, key) for place, key, _ in said if key not in words] == []
    unfilled = [
        (place, key, fields(words[key]) - names)
        for place, key, names in said
        if names is not None and fields(words[key]) - names
    ]
    assert unfilled == []


@pytest.mark.parametrize(
    ("section", "names"),
    [
        ("state", get_args(State)),
        ("strategy", get_args(Strategy)),
        ("precision", get_args(Precision)),
        ("rule", get_args(get_type_hints(TrainingSettings)["learning_rate_rule"])),
        ("origin", ("built-in", "yours", "team", "file")),
    ],
)
def test_every_value_that_is_shown_has_a_word(section, names):
    assert names
    assert [name for name in names if not say(f"{section}.{name}")] == []


def test_an_unknown_key_is_a_bug():
    with pytest.raises(KeyError):
        say("plan.no_such_sentence")


def test_numbers_are_filled_in_with_their_form():
    sentence = say("plan.learning_rate", rate=0.0012345, rule="r", base_rate=0.001, base_batch=64)
    assert "0.00123" in sentence


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_share_of_a_sentence_is_written_as_in_tables(language):
    assert (percent(0.654), percent(0.654, 1), percent(-0.04, 1)) == ("65 %", "65.4 %", "-4.0 %")
    assert "65 %" in say("trace.link", language, rank=0, share=0.654)
    outcome = say("estimate.memory_outcome", language, predicted=1.0, measured=2.0, error=0.04)
    assert "+4.0 %" in outcome


def test_no_share_is_written_in_another_way():
    """Only style sheets write `65%`."""
    specs = [
        f"{path.relative_to(CLONE)}:{node.lineno}"
        for path, tree in sources().items()
        if path.parent != CLONE / "app" / "page" / "draw"
        for node in ast.walk(tree)
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None
        and ast.unparse(node.format_spec).endswith("%'")
    ]  # fmt: skip
    assert [place for place in specs if "words/__init__" not in place] == []
