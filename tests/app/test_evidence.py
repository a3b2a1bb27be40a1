"""Traces and logs of a run by its name, and what is said when there are none."""

from __future__ import annotations

import gzip
import json

import msgspec
import pytest

from app.views.traces import trace_lines
from ringside import events as ev
from ringside.records import write_exit, write_owner
from ringside.run import fold_run
from ringside.rundir import create_run_dir


@pytest.fixture
def run(root, make_spec):
    """A run under way, on a CPU."""
    made = create_run_dir(root)
    made.write(made.spec, make_spec("ddp"))
    write_owner(made, "supervisor")
    return made


def write_trace(path, rank):
    path.parent.mkdir(exist_ok=True)
    events = [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1.0, "dur": 5.0, "args": {}},
        {"ph": "X", "cat": "user_annotation", "name": "gloo:all_reduce", "ts": 6.0, "dur": 2.0,
         "args": {}},
    ]  # fmt: skip
    content = {"traceEvents": events, "distributedInfo": {"rank": rank, "world_size": 2}}
    path.write_bytes(gzip.compress(json.dumps(content).encode()))


def test_a_run_is_as_good_as_its_files(ringside, run):
    for rank in (0, 1):
        write_trace(run.trace / f"rank{rank}.json.gz", rank)
    outputs = [ringside("trace", name, "--json") for name in ("last", run.name, str(run.path))]
    assert {code for code, _, _ in outputs} == {0}
    assert len({out for _, out, _ in outputs}) == 1
    assert [rank["rank"] for rank in json.loads(outputs[0][1])["ranks"]] == [0, 1]


def test_a_run_without_traces_says_how_to_get_some(ringside, run):
    code, _, err = ringside("trace", run.name)
    assert (code, f"ringside profile {run.name}" in err) == (2, True)
    write_exit(run, state="completed", return_code=0, reason="Completed.")
    code, _, err = ringside("trace", "last")
    assert (code, "--profile 5" in err) == (2, True)


@pytest.mark.parametrize("command", ["trace", "nccl"])
def test_a_word_that_is_neither_file_nor_run(ringside, run, command):
    code, _, err = ringside(command, "nothing-like-it")
    assert (code, "No run 'nothing-like-it'" in err) == (2, True)
    code, _, err = ringside(command, "missing.json")
    assert (code, "There is no file" in err, "missing.json" in err) == (2, True, True)


def test_the_logs_of_a_run_and_why_there_are_none(ringside, run, make_spec):
    code, _, err = ringside("nccl", run.name)
    assert (code, "ran on a CPU, through gloo" in err) == (2, True)
    spec = msgspec.structs.replace(make_spec("single"), device="cuda", gpu_ids=(0,))
    run.write(run.spec, spec)
    code, _, err = ringside("nccl", run.name)
    assert (code, "had one process" in err) == (2, True)
    run.nccl.mkdir()
    line = "vm:1:1 [0] NCCL INFO NCCL version 2.28.9+cuda13.0\n"
    (run.nccl / "vm.1.log").write_text(line)
    code, out, _ = ringside("nccl", run.name, "--json")
    assert (code, json.loads(out)["version"]) == (0, "2.28.9")


def test_asking_a_run_under_way_and_one_that_is_over(ringside, run):
    code, out, _ = ringside("profile", run.name, "--steps", "7")
    assert code == 0
    assert f"ringside trace {run.name}" in out
    assert json.loads((run.requests / "profile.json").read_text())["steps"] == 7
    assert ringside("profile", run.name, "--steps", "0")[0] == 2
    write_exit(run, state="completed", return_code=0, reason="Completed.")
    assert ringside("profile", run.name)[0] == 2


def test_show_says_where_the_newest_traces_are(ringside, run):
    assert trace_lines(fold_run(run)) == ()
    writer = ev.EventWriter(run.events)
    for step in (9, 30):
        files = tuple(f"trace/rank{rank}.json.gz" for rank in range(6))
        writer.write(ev.Profiled(step=step, num_steps=4, files=files))
    writer.close()
    first, second = trace_lines(fold_run(run))
    assert first.startswith("Traces of 4 steps up to step 30: trace/rank0.json.gz, ")
    assert f"and 2 more; `ringside trace {run.name}`" in first
    assert "https://ui.perfetto.dev" in second
    assert first in " ".join(ringside("show", run.name)[1].split())
