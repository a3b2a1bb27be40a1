"""Our sums beside HolisticTraceAnalysis itself, where a Python that has it is at hand.

RINGSIDE_HTA=/tmp/hta/bin/python python -m pytest tests/trace/test_hta.py
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ringside.trace import read_trace
from ringside.trace.totals import totals

PUBLIC = Path(__file__).parents[3] / "shared" / "traces"
PYTHON = os.environ.get("RINGSIDE_HTA") or (
    sys.executable if importlib.util.find_spec("hta") else None
)
# Those with communication: without any, HTA divides by zero.
NAMES = (
    "ddp_resnet50_2xa100", "unbucketed_2xv100", "recommender_8xa100_rank3",
    "sampled_128ranks_rank0",
)  # fmt: skip
ASK = """
import json, logging, sys
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
read = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="/")
overlap = read.get_comm_comp_overlap(visualize=False).iloc[0]
parts = read.get_temporal_breakdown(visualize=False).iloc[0]
print(json.dumps({
    "overlap": float(overlap["comp_comm_overlap_pctg"]),
    **{name: float(parts[name + "_time(us)"]) for name in ("idle", "compute", "kernel")},
}))
"""


@pytest.mark.skipif(PYTHON is None, reason="HolisticTraceAnalysis is not installed (RINGSIDE_HTA)")
@pytest.mark.parametrize("name", NAMES)
def test_sums_equal_those_of_holistic_trace_analysis(name):
    path = PUBLIC / f"{name}.json.gz"
    if not path.exists():
        pytest.skip(f"no traces in {PUBLIC}")
    done = subprocess.run(
        [PYTHON, "-c", ASK, str(path)], capture_output=True, text=True, check=True
    )
    theirs = json.loads(done.stdout.splitlines()[-1])
    ours = totals(read_trace(path), keep_fractions=False)
    assert ours.overlap_ratio is not None
    assert round(100 * ours.overlap_ratio, 2) == theirs["overlap"]
    assert (ours.idle_us, ours.compute_us) == (theirs["idle"], theirs["compute"])
    assert ours.span_us == theirs["kernel"]
