"""Each promise of docs/promises.md names tests that exist and that check something."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (?!promise|---)(.+?) \| (.+?) \|$", TEXT, re.MULTILINE)


def test_there_are_promises():
    assert len(ROWS) > 30
    assert len({promise for promise, _ in ROWS}) == len(ROWS)


@pytest.mark.parametrize(("promise", "names"), ROWS)
def test_a_promise_names_tests_that_exist(promise, names):
    found = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", names)
    assert len(found) == names.count("::")
    assert found
    for path, name in found:
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        defined = {part.name: part for part in tree.body if isinstance(part, ast.FunctionDef)}
        assert name in defined, f"{path} has no {name}"
        assert any(isinstance(part, ast.Assert) for part in ast.walk(defined[name])), name
