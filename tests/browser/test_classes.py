"""The table of classes is sorted by a click, and stays sorted when a new epoch comes."""

from __future__ import annotations

import shutil

import msgspec
import pytest

from ringside.class_scores import ClassTables, EpochClasses, write_class_scores
from ringside.events import EpochTrained, Evaluated, EventWriter
from ringside.rundir import RunDir
from ringside.scores import ClassScores

pytestmark = pytest.mark.browser

RUN_ID = "20260101-000000-calm-fox"
AUC = {"10": 0.7, "9": 0.9, "never": None, "ball": 0.8}


def classes_of(epoch: int, aucs: dict[str, float | None]) -> EpochClasses:
    rows = (
        ClassScores(
            name=name, support=3, auc=auc, average_precision=auc, f1=auc, true_positives=2,
            false_positives=1, false_negatives=1, true_negatives=6,
        )
        for name, auc in aucs.items()
    )  # fmt: skip
    return EpochClasses(
        epoch=epoch, task="multi_label", num_evaluated=10, threshold=0.5, classes=tuple(rows)
    )


@pytest.fixture
def running(site, make_spec, write_run):
    """A run that has two epochs behind it and lives on, in the folder that the page shows."""
    written = write_run(make_spec("single"), RUN_ID, epochs=2, state=None)
    shutil.move(written.path, site.root / RUN_ID)
    run = RunDir(site.root / RUN_ID)
    write_class_scores(run, ClassTables(last=classes_of(2, AUC), best=classes_of(1, AUC)))
    return run


def add_epoch(run: RunDir, aucs: dict[str, float | None]) -> None:
    """What the trainer leaves after a third epoch."""
    write_class_scores(run, ClassTables(last=classes_of(3, aucs), best=classes_of(3, aucs)))
    writer = EventWriter(run.events)
    lines = run.events.read_bytes().splitlines()
    trained = next(line for line in lines if b"epoch_trained" in line)
    scored = next(line for line in lines if b'"evaluated"' in line)
    for line, kind in ((trained, EpochTrained), (scored, Evaluated)):
        event = msgspec.json.decode(line, type=kind)
        writer.write(msgspec.structs.replace(event, epoch=3))
    writer.close()


def names(tab) -> list[str]:
    return tab.locator("#classes table").first.locator("tbody tr td:first-child").all_inner_texts()


def test_a_click_sorts_and_a_new_epoch_keeps_the_order(open_tab, running):
    tab = open_tab(f"/runs?run={RUN_ID}")
    tab.wait_for_selector("#classes table")
    assert tab.locator("#classes table").count() == 2
    assert names(tab) == list(AUC)
    auc = tab.locator("#classes button", has_text="AUC").first
    auc.click()
    assert names(tab) == ["9", "ball", "10", "never"]
    auc.click()
    assert names(tab) == ["10", "ball", "9", "never"]
    sorted_head = tab.locator("#classes th[aria-sort]")
    assert sorted_head.get_attribute("aria-sort") == "ascending"
    add_epoch(running, {**AUC, "10": 0.95})
    tab.wait_for_selector("#classes >> text=last epoch 3")
    tab.wait_for_selector("#classes table[data-sorted]")
    assert names(tab) == ["ball", "9", "10", "never"]
    tab.locator("#classes button", has_text="class").first.click()
    assert names(tab) == ["9", "10", "ball", "never"]
    assert "left out of AUC and of tuning: never" in tab.locator("#classes").inner_text()
