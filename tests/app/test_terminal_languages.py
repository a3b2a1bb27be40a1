"""The terminal in another language: sentences, columns, and files that stay English."""

from __future__ import annotations

import ast
import json
import os
import re
from pathlib import Path

from rich.cells import cell_len

import ringside
from app.commands.reading import print_columns, show
from app.commands.verdict import verdict
from ringside.hardware import Hardware
from ringside.launch.local import create_run
from ringside.launch.reconcile import reconcile
from ringside.words import say

CLONE = Path(ringside.__file__).parents[1]
CJK = re.compile(r"[\u4e00-\u9fff]")
RUN_ID = "20261130-000000-amber-fox"


def test_columns_line_up_though_chinese_signs_are_wide(capsys):
    print_columns([["运行中", "a|"], ["ok", "bcd|"], ["failed", "失败|"]])
    lines = capsys.readouterr().out.splitlines()
    starts = {cell_len(re.split("  +", line)[0] + re.findall("  +", line)[0]) for line in lines}
    assert starts == {8}


def test_show_and_the_doctor_speak_it(in_chinese, write_run, make_spec, capsys):
    write_run(make_spec("single"), RUN_ID)
    show(RUN_ID, as_json=False, classes=False)
    told = capsys.readouterr().out
    assert say("state.completed", "zh") in told
    assert "全局批量 64" in told
    verdict(RUN_ID, as_json=False, measure=False)
    told = capsys.readouterr().out
    assert told.startswith("结论：")
    assert say("terminal.six_points", "zh") in told
    assert say("terminal.not_measured", "en") not in told


def test_the_english_of_the_terminal_is_the_same_as_ever(write_run, make_spec, capsys):
    write_run(make_spec("single"), RUN_ID)
    verdict(RUN_ID, as_json=False, measure=False)
    told = capsys.readouterr().out
    assert re.match(r"Verdict: [a-z ]+, .*\([A-Z]+-\d{3}\)\n", told)
    assert "\n  Wrong if: " in told
    assert "\n     In truth: " in told
    assert not CJK.search(told)


def test_files_of_a_run_are_english_whoever_writes_them(in_chinese, make_spec, root):
    run = create_run(make_spec("single"), Hardware(), root)
    for path in run.path.rglob("*"):
        if path.is_file():
            assert not CJK.search(path.read_text()), path.name
    # A run that nobody ever took is closed by whoever looks, in the language of nobody.
    old = run.spec.stat().st_mtime - 3600
    for path in run.path.iterdir():
        os.utime(path, (old, old))
    assert reconcile(run)
    reason = json.loads(run.exit.read_bytes())["reason"]
    assert reason.startswith("It was never started")


def test_no_writer_asks_for_a_language():
    """The supervisor and the trainer inherit RINGSIDE_LANGUAGE and must not care."""
    asked = []
    for package in ("ringside", "training"):
        for path in (CLONE / package).rglob("*.py"):
            if path.parent.name == "words":
                continue
            for node in ast.walk(ast.parse(path.read_bytes())):
                name = getattr(getattr(node, "func", None), "id", "")
                if name in ("speak", "language_of"):
                    asked.append(f"{path}:{node.lineno}")  # type: ignore[attr-defined]
    assert asked == []
