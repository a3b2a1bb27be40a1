"""What `ringside show` says about counts: only what was counted, and only what is worth a line."""

from __future__ import annotations

import json

import msgspec
import pytest

from app.commands.running import epoch_line
from app.page.draw.runs import epoch_table
from app.views.counts import count_lines, over_classes, step_lines
from app.views.run import run_view
from ringside.events import Warned
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


def test_a_mean_says_over_how_many_classes_it_is(record):
    found = record({}, {})
    assert over_classes(found.epochs[-1]) == ""
    for row in found.epochs:
        row.num_auc_classes = 7
        row.undefined_classes = ("always", "rare", "never")
        row.untrained_classes = ("rare",)
    (line,) = count_lines(found)
    assert line == (
        "epoch 3: AUC 0.800 over 7 of 10 classes; never trained, so in no mean over classes: rare; "
        "without a positive or without a negative in validation: always, never"
    )
    assert run_view(found, None).epoch_lines == (line,)
    assert "  AUC 0.800 over 7 of 10 classes  F1 0.400" in epoch_line(found.epochs[-1], found)


def test_nothing_was_counted(record):
    assert count_lines(record({"num_left_out": 0}, {})) == []


def test_everything_was_counted(record):
    facts = {"collectives_per_step": 5.0, "skipped_steps": 2}
    left, collectives, skipped = count_lines(record({"num_left_out": 7}, facts))
    assert left.startswith("7 of 6400 training images are left out of each epoch")
    assert "a step of 64" in left
    assert collectives.startswith("5 collectives per optimizer step")
    assert skipped.startswith("6 optimizer steps were skipped")


def test_each_fact_stands_where_it_belongs_on_the_page(record):
    started = {
        "num_left_out": 7, "num_workers": 4, "decoder": "gpu", "decode_rate_cpu": 800.0,
        "decode_rate_gpu": 26000.0,
    }  # fmt: skip
    found = record(started, {"collectives_per_step": 5.0, "skipped_steps": 2})
    found.observed = msgspec.structs.replace(found.observed, ema_decay=0.99)
    found.warnings.append(Warned(code="early-stop", message="Training ends after epoch 3."))
    view = run_view(found, None)
    left, skipped, averaged, stopped = view.epoch_lines
    assert left.startswith("7 of 6400")
    assert skipped.startswith("6 optimizer steps")
    assert "decay 0.99" in averaged
    assert stopped == "Training ends after epoch 3."
    decoding, collectives = view.step_lines
    assert decoding == (
        "pictures are decoded on the GPU, 4 loader workers for each rank; "
        "measured 800 images/s on the CPU, 26,000 on the GPU"
    )
    assert collectives.startswith("5 collectives")
    assert view.warnings == ()
    assert all(line in epoch_table(view) for line in view.epoch_lines)


@pytest.mark.parametrize(
    ("started", "line"),
    [
        ({"decoder": "cpu", "num_workers": 0}, "on the CPU, by the rank itself"),
        ({"decoder": "cpu", "num_workers": 1}, "on the CPU, 1 loader worker for each rank"),
    ],
)
def test_who_decodes(record, started, line):
    assert step_lines(record(started, {})) == (f"pictures are decoded {line}",)


def test_an_older_run_says_nothing_of_decoding(record):
    assert step_lines(record({}, {})) == ()


def test_no_skipped_step_is_a_number_too(record):
    assert count_lines(record({}, {"skipped_steps": 0}))[0].startswith("0 optimizer steps")
