"""Runs whose cause is known, through the doctor: the same table as `benchmarks/known_causes.py`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

CLONE = Path(__file__).parents[2]
SHARED = CLONE.parent / "shared"
LAB, TRACES = SHARED / "lab" / "h200x2", SHARED / "traces"


@pytest.fixture(scope="module")
def script():
    path = CLONE / "benchmarks" / "known_causes.py"
    found = importlib.util.spec_from_file_location("known_causes", path)
    module = importlib.util.module_from_spec(found)
    sys.modules["known_causes"] = module  # dataclasses look their module up
    found.loader.exec_module(module)
    return module


@pytest.mark.skipif(not LAB.is_dir(), reason=f"the lab's runs are not at {LAB}")
def test_every_verdict_on_the_lab_is_right(script):
    rows = list(script.lab_rows(LAB))
    assert len(rows) >= 16
    assert {f"{row.place}/{row.name}": row.wrong for row in rows if row.wrong} == {}


@pytest.mark.skipif(not TRACES.is_dir(), reason=f"there are no public traces at {TRACES}")
def test_every_verdict_on_public_traces_is_right(script):
    rows = list(script.public_rows(TRACES))
    assert rows
    assert {row.name: row.wrong for row in rows if row.wrong} == {}


def test_a_run_that_is_not_there_counts_as_wrong(script, tmp_path):
    rows = [*script.lab_rows(tmp_path), *script.public_rows(tmp_path)]
    assert len(rows) == len(script.LAB) + len(script.PUBLIC)
    assert {row.wrong for row in rows} == {script.ABSENT}


@pytest.mark.skipif(not LAB.is_dir(), reason=f"the lab's runs are not at {LAB}")
def test_a_wrong_verdict_is_called_wrong(script):
    """The script can fail: the same runs against what they are not."""
    row = next(row for row in script.lab_rows(LAB) if (row.place, row.name) == ("socket", "ddp"))
    known = script.LAB["nvlink/hook_bf16"]
    wrong = script.judged(row.case, row.diagnosis, known)
    assert wrong == "link instead of launch; link is blamed; 100% of the gradient bytes"
