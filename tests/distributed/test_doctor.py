"""`ringside doctor` as a person types it, on the machine that runs the tests."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

import ringside

CLONE = Path(ringside.__file__).parents[1]
pytestmark = pytest.mark.distributed


def test_this_machine_is_checked_in_two_minutes(root):
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "app", "doctor", "--json"],
        cwd=CLONE, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began < 120
    report = json.loads(done.stdout)
    if report["machine"]["num_cores"] < 2 or len(report["machine"]["gpus"]) == 1:
        pytest.skip("this machine has one device")
    operations = {one["operation"] for one in report["sweep"]["series"]}
    assert operations == {"all_reduce", "reduce_scatter", "all_gather"}
    for series in report["sweep"]["series"]:
        sizes = [point["num_bytes"] for point in series["points"]]
        assert sizes == sorted(sizes)
        assert all(point["busbw_bytes_per_s"] > 0 for point in series["points"])
        assert series["backend"] == ("nccl" if report["machine"]["gpus"] else "gloo")
    kept = {path.name.partition("-")[0] for path in (root / "measurements").iterdir()}
    assert kept == {"machine.json", "sweep"}
