"""The commands of the shelf: what they print, what they ask, and how they say no."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from app import cli
from ringside.records import write_owner
from ringside.shelf.notes import read_notes

DOCUMENT = Path(cli.__file__).parents[1] / "docs" / "cli-json.md"
BASE, RUN, SLOW = (
    "20260101-000000-calm-fox", "20260102-000000-swift-hare", "20260103-000000-mild-wren",
)  # fmt: skip
FIGURES = {"epoch_time_s", "speedup", "auc_macro", "f1_macro"}
LEFTOVER_KEYS = {"run", "state", "pid", "command", "started", "memory_bytes"}


@pytest.fixture
def runs(make_spec, write_run):
    """A baseline, a fast run and a slow one."""
    return (
        write_run(make_spec("single"), BASE, auc_macro=0.7),
        write_run(make_spec("ddp"), RUN, step_s=0.08, auc_macro=0.6),
        write_run(make_spec("ddp"), SLOW, step_s=0.2, auc_macro=0.9),
    )


def words(out):
    return [line.split()[0].rpartition("-")[2] for line in out.splitlines()]


def test_tags_are_given_taken_and_printed(ringside, runs):
    assert ringside("tag", "swift", "+best", "-x", "fp16", "-sockets")[:2] == (0, "best\nfp16\n")
    assert ringside("tag", RUN, "-best") == (0, "fp16\n", "")
    assert ringside("tag", RUN)[1] == "fp16\n"
    code, out, err = ringside("tag", "last")
    assert (code, out) == (0, "")
    assert "ringside tag mild-wren +best" in err
    code, _, err = ringside("tag", RUN, "+a,b")
    assert code == 2
    assert "cannot be a tag" in err
    assert read_notes(runs[1]).tags == ("fp16",)


def test_a_note_is_written_printed_and_removed(ringside, runs):
    assert ringside("note", "swift", "Why not.\n\x1b[2Jtwo")[:2] == (0, "Why not.\n[2Jtwo\n")
    assert ringside("note", "swift")[1] == "Why not.\n[2Jtwo\n"
    assert ringside("note", "swift", "")[1] == ""
    assert read_notes(runs[1]).note == ""


def test_what_is_put_away_leaves_the_list_and_comes_back(ringside, runs):
    code, out, _ = ringside("archive", "swift")
    assert code == 0
    assert "ringside archive swift-hare --undo" in out
    assert words(ringside("list")[1]) == ["wren", "fox"]
    assert words(ringside("list", "--archived")[1]) == ["hare"]
    assert ringside("archive", "swift", "--undo")[0] == 0
    assert words(ringside("list")[1]) == ["wren", "hare", "fox"]
    assert ringside("list", "--archived")[2].endswith("not put away.\n")


def test_search_filters_and_order(ringside, runs):
    ringside("tag", "swift", "+best")
    ringside("note", "calm", "For the report")
    assert words(ringside("list", "--search", "report resnet")[1]) == ["fox"]
    assert words(ringside("list", "--tag", "best")[1]) == ["hare"]
    assert words(ringside("list", "--preset", "ddp", "--state", "completed")[1]) == ["wren", "hare"]
    code, out, _ = ringside("list", "--sort", "speedup")
    assert code == 0
    assert words(out) == ["hare", "wren", "fox"]
    assert "8.00 s 2.50x AUC 0.600 F1 0.400 best" in " ".join(out.splitlines()[0].split())
    assert words(ringside("list", "--sort", "epoch-time", "--limit", "1")[1]) == ["hare"]
    for wrong in (("--state", "complete"), ("--sort", "speed")):
        assert ringside("list", *wrong)[0] == 2


def test_list_as_json_has_the_figures_where_they_were_read(ringside, runs):
    plain = json.loads(ringside("list", "--json")[1])
    ordered = json.loads(ringside("list", "--json", "--sort", "f1")[1])
    assert set(ordered[0]) - set(plain[0]) == FIGURES
    assert {run["id"]: run["speedup"] for run in ordered}[RUN] == pytest.approx(2.5)
    section = DOCUMENT.read_text().partition("## `ringside list --json`")[2].partition("\n## ")[0]
    after = section.rpartition("|")[2]
    assert set(re.findall(r"`(\w+)`", after)) >= FIGURES


def test_delete_says_how_much_and_asks(ringside, runs, monkeypatch):
    code, out, err = ringside("delete", "swift-hare")
    assert code == 2
    assert re.fullmatch(rf"{RUN}, \d\.\d kB in 3 files\n", out)
    assert "add --yes" in err

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    code, out, _ = ringside("delete", "swift-hare")
    assert (code, runs[1].spec.exists()) == (0, True)
    assert "nothing was deleted" in out
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    code, out, _ = ringside("delete", "swift-hare", SLOW)
    assert code == 0
    assert "Delete 2 runs, " in out
    assert [run.path.exists() for run in runs] == [True, False, False]


def test_delete_takes_whole_names_only(ringside, runs):
    for text in ("last", "swift", RUN[:-1]):
        code, _, err = ringside("delete", text, "--yes")
        assert code == 2
        assert "takes the whole name" in err
    assert ringside("delete", "swift-hare", RUN, "--yes")[1].count("deleted") == 1
    assert ringside("delete", "swift-hare", "--yes")[0] == 2


def test_one_that_must_stay_keeps_all(ringside, runs):
    runs[2].exit.unlink()
    write_owner(runs[2], "supervisor")
    code, out, err = ringside("delete", RUN, SLOW, "--yes")
    assert (code, out) == (2, "")
    assert "mild-wren is not over" in err
    assert runs[1].spec.exists()


def test_all_leave_the_list_before_the_trash_is_emptied_once(ringside, runs, monkeypatch):
    from ringside.shelf import deleting

    emptied = []

    def fail(root):
        emptied.append([run.path.exists() for run in runs])
        raise deleting.RunDirError("Gone from every list, but not all of it could be removed.")

    monkeypatch.setattr(deleting, "empty_trash", fail)
    code, out, err = ringside("delete", RUN, SLOW, "--yes")
    assert code == 1
    assert out.count("deleted") == 2
    assert "not all of it could be removed" in err
    assert emptied == [[True, False, False]]


def test_leftovers_are_listed_and_ended(ringside, runs):
    assert ringside("leftovers")[:2] == (0, "")
    child = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE,
        env=os.environ | {"RINGSIDE_RUN": RUN},
    )  # fmt: skip
    try:
        code, out, _ = ringside("leftovers", "--json")
        (found,) = json.loads(out)
        assert code == 0
        assert set(found) == LEFTOVER_KEYS
        section = DOCUMENT.read_text().partition("## `ringside leftovers --json`")[2]
        table = section.partition("\n## ")[0]
        assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == LEFTOVER_KEYS
        assert (found["run"], found["pid"]) == (RUN, child.pid)
        _, out, err = ringside("leftovers")
        assert out.split()[:3] == [RUN, "completed", str(child.pid)]
        assert "--clean" in err
        code, out, _ = ringside("leftovers", "--clean")
        assert code == 0
        assert "processes ended: 1" in out
        assert child.wait(5) == -15
        assert json.loads(ringside("leftovers", "--json")[1]) == []
    finally:
        child.kill()
        child.wait()
