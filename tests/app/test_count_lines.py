"""What `ringside show` says about counts: only what was counted, and only what is worth a line."""

from __future__ import annotations

import json

import pytest

from app.commands.tables import count_lines
from ringside.run import fold_run


@pytest.fixture
def record(make_spec, write_run):
    """A run of DDP whose events were given more facts by name."""

    def make(started: dict, trained: dict):
        run = write_run(make_spec("ddp", micro_batch=32), "20260101-000000-calm-otter")
        lines = [json.loads(line) for line in run.events.read_text().splitlines()]
        for line in lines:
            line |= {"run_started": started, "epoch_trained": trained}.get(line["kind"], {})
        run.events.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return fold_run(run)

    return make


def test_nothing_was_counted(record):
    assert count_lines(record({"num_left_out": 0}, {})) == []


def test_everything_was_counted(record):
    facts = {"collectives_per_step": 5.0, "skipped_steps": 2}
    left, collectives, skipped = count_lines(record({"num_left_out": 7}, facts))
    assert left.startswith("7 of 6400 training images are left out of each epoch")
    assert "a step of 64" in left
    assert collectives.startswith("5 collectives per optimizer step")
    assert skipped.startswith("6 optimizer steps were skipped")


def test_no_skipped_step_is_a_number_too(record):
    assert count_lines(record({}, {"skipped_steps": 0}))[0].startswith("0 optimizer steps")
