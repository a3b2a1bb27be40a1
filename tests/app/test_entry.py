"""The quick answer of `ringside list` is the same as the whole command's, only without Typer."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from app import cli, entry
from ringside.shelf.notes import edit_notes


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["list"], (False, 50)),
        (["list", "--json"], (True, 50)),
        (["list", "--limit", "3", "--json"], (True, 3)),
        (["list", "--limit", "0"], None),
        (["list", "--limit", "x"], None),
        (["list", "--help"], None),
        (["list", "--archived"], None),
        (["list", "--search", "--json"], None),
        (["list", "--limit"], None),
        (["show"], None),
        ([], None),
    ],
)
def test_only_plain_forms_are_quick(words, expected):
    assert entry.quick_list(words) == expected


@pytest.mark.parametrize("words", [["list", "--json"], ["list", "--limit", "1"], ["list"]])
def test_both_ways_print_the_same(words, write_run, make_spec, capsys, monkeypatch):
    runs = [write_run(make_spec("ddp"), f"20260101-00000{n}-calm-fox") for n in (1, 2, 3)]
    edit_notes(runs[2], archived=True)
    edit_notes(runs[1], add=["best"], note="why")
    monkeypatch.setattr(sys, "argv", ["ringside", *words])
    entry.main()
    quick = capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == 0
    assert capsys.readouterr().out == quick
    assert "000002-calm-fox" in quick
    assert "000003-calm-fox" not in quick
    assert "best" in quick


def test_it_does_not_load_typer():
    code = (
        "import sys, json; sys.argv = ['ringside', 'list', '--json'];"
        "from app.entry import main; main();"
        "print(json.dumps([m for m in ('typer', 'pydantic', 'rich', 'torch') if m in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == []
