"""What `ringside show` says about counts: only what was counted, and only what is worth a line."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from app.commands.running import epoch_line
from app.commands.tables import print_record
from app.page.draw.runs import epoch_table
from app.views.counts import count_lines, label_scores, over_classes, step_lines
from app.views.run import run_view
from ringside.class_scores import ClassTables, EpochClasses, write_class_scores
from ringside.events import Warned
from ringside.run import fold_run
from ringside.rundir import RunDir
from ringside.scores import ClassScores


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


@pytest.fixture
def half_scored(record):
    """Five classes: one was never trained, one is not in validation, one in all of it."""

    def scored(name: str, auc: float | None, precision: float | None, f1: float | None, num: int):
        return ClassScores(
            name=name, support=1, auc=auc, average_precision=precision, f1=f1, true_positives=1,
            false_positives=0, false_negatives=0, true_negatives=1, threshold_tuned=auc,
            f1_tuned=auc, num_trained=num,
        )  # fmt: skip

    found = record({}, {})
    classes = (
        scored("a", 0.9, 0.8, 0.7, 5), scored("b", 0.7, 0.6, 0.5, 5),
        scored("always", None, 1.0, 1.0, 5), scored("absent", None, None, None, 5),
        scored("new", None, None, None, 0),
    )  # fmt: skip
    last = EpochClasses(epoch=3, task="multi_label", num_evaluated=50, threshold=0.5,
                        classes=classes)  # fmt: skip
    write_class_scores(RunDir(Path(found.path)), ClassTables(last=last))
    row = found.epochs[-1]
    row.num_auc_classes, row.undefined_classes = 2, ("always", "absent", "new")
    row.untrained_classes = ("new",)
    row.hamming_loss, row.f1_macro_tuned = 0.1, 0.8
    return found


def test_every_mean_says_over_how_many_classes_it_is(half_scored):
    never = "never trained, so in no mean over classes: new"
    means = (
        "epoch 3: macro F1 0.400 over 3 of 5 classes; "
        f"{never}; neither in validation nor predicted: absent",
        "epoch 3: mAP 0.300 over 3 of 5 classes; "
        f"{never}; without a positive in validation: absent",
    )
    assert tuple(count_lines(half_scored)[1:]) == means
    view = run_view(half_scored, None)
    assert view.epoch_lines[1:3] == means
    assert "macro F1 at 0.5 · 3 of 5 classes" in [tile.label for tile in view.tiles]
    tuned = label_scores(half_scored.epochs)
    assert "macro F1 0.800 over 2 of 5 classes if each class had its best threshold" in tuned


def test_an_epoch_without_its_class_scores_claims_nothing_of_them(half_scored):
    half_scored.epochs[-1].epoch = 2
    assert len(count_lines(half_scored)) == 1
    assert "macro F1 at 0.5" in [tile.label for tile in run_view(half_scored, None).tiles]


def test_an_epoch_that_was_gone_on_with_midway_is_marked(record, capsys):
    found = record({}, {})
    assert [cells[0] for cells in run_view(found, None).epochs] == ["1", "2", "3"]
    found.epochs[1].num_optimizer_steps = 88
    view = run_view(found, None)
    assert [cells[0] for cells in view.epochs] == ["1", "2 (88 of 100 steps)", "3"]
    assert "2 (88 of 100 steps)" in epoch_table(view)
    print_record(Path(found.path).parent, found)
    shown = capsys.readouterr().out
    assert "2 (88 of 100 steps)" in shown
    assert shown.count("of 100 steps") == 1


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
