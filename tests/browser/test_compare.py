"""Three recorded runs on the Compare page: choosing, verdicts, curves, classes, files."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from ringside.class_scores import ClassTables, EpochClasses, write_class_scores
from ringside.events import EventWriter, WindowTimed
from ringside.predictions import Predictions, write_predictions
from ringside.rundir import RunDir
from ringside.scores import score

pytestmark = pytest.mark.browser

RUNS = {
    "20260101-000000-calm-fox": ("single", 1, 0.10, 0.3, "completed"),
    "20260102-000000-swift-hare": ("ddp", 2, 0.11, 0.3, "completed"),
    "20260103-000000-warm-seal": ("ddp", 4, 0.13, 0.6, "completed"),
}
NAMES = ("red shoe", "blue shoe", "hat")


def keep_predictions(run: RunDir, noise: float) -> None:
    """Probabilities and class scores of the third epoch."""
    targets = (np.random.default_rng(7).random((300, 3)) < 0.4).astype(np.uint8)
    wobble = np.random.default_rng(1).normal(0, noise, targets.shape)
    found = (0.5 + (targets - 0.5) * 0.5 + wobble).clip(0, 1).astype(np.float32)
    write_predictions(run, Predictions(3, "multi_label", found, targets))
    scores = score(found, targets, NAMES, "multi_label")
    last = EpochClasses(epoch=3, task="multi_label", num_evaluated=300, threshold=0.5,
                        classes=tuple(scores.per_class))  # fmt: skip
    write_class_scores(run, ClassTables(last=last))


def add_windows(run: RunDir) -> None:
    """A training loss every ten steps."""
    writer = EventWriter(run.events)
    for step in range(10, 301, 10):
        writer.write(WindowTimed(
            epoch=(step - 1) // 100 + 1, step=step, num_steps=10, samples_per_s=640.0,
            train_loss=1 / step + 0.01 * (step % 20), learning_rate=0.1, step_ms=100.0,
            data_ms=1.0, forward_ms=30.0, backward_ms=60.0, optimizer_ms=5.0, step_ms_min=100.0,
            data_ms_min=1.0,
        ))  # fmt: skip
    writer.close()


@pytest.fixture
def recorded(site, make_spec, write_run):
    """The runs, in the folder that the page shows."""
    for run_id, (preset, devices, step_s, noise, state) in RUNS.items():
        auc = 0.8 if noise < 0.5 else 0.72
        spec = make_spec(preset, num_processes=devices)
        written = write_run(spec, run_id, step_s=step_s, state=state, auc_macro=auc)
        shutil.move(written.path, site.root / run_id)
        run = RunDir(site.root / run_id)
        add_windows(run)
        keep_predictions(run, noise)
    yield
    for run_id in RUNS:
        shutil.rmtree(site.root / run_id, ignore_errors=True)


def test_three_runs_side_by_side(open_tab, recorded, artefacts):
    tab = open_tab("/compare?runs=calm-fox,swift-hare")
    tab.wait_for_selector("#comparison tbody tr:nth-child(2)")
    assert tab.locator("#comparison tbody tr").count() == 2

    # A third one by checkbox, with the keyboard, and another baseline.
    tab.locator("#field-runs summary").focus()
    tab.keyboard.press("Enter")
    tab.locator("#field-runs input[name=pick][value$=warm-seal]").focus()
    tab.keyboard.press("Space")
    tab.wait_for_selector("#comparison tbody tr:nth-child(3)")
    assert "/compare?runs=20260101-000000-calm-fox," in tab.url
    tab.locator("#field-runs input[name=pick-baseline][value$=calm-fox]").check()
    tab.wait_for_url("**&baseline=20260101-000000-calm-fox")
    tab.locator("#field-runs input[type=search]").fill("seal")
    assert tab.locator("#field-runs tbody tr:visible").count() == 1

    # The verdict comes with the noise, which is worked out beside the page.
    worse = tab.locator(".rs-gates li", has_text="warm-seal")
    worse.locator("text=faster but worse").wait_for()
    assert "outside the noise, and beyond the tolerance of 0.005" in worse.inner_text()
    assert "weak scaling, of calm-fox" in tab.locator("#comparison").inner_text()

    # The address alone brings it all back.
    again = open_tab(tab.url.partition(tab.url.split("/")[2])[2])
    again.wait_for_selector("#comparison tbody tr:nth-child(3)")
    checked = again.locator("#field-runs input[name=pick-baseline]:checked")
    assert checked.get_attribute("value") == "20260101-000000-calm-fox"


def test_charts_classes_and_files(open_tab, recorded, artefacts):
    tab = open_tab("/compare?runs=calm-fox,swift-hare,warm-seal&baseline=calm-fox")
    # Curves are pictures here, since no run goes on; each way of showing them is another.
    tab.wait_for_selector("#chart-curve-train-loss svg")
    assert tab.locator("#curve-pictures figure").count() == 4
    assert not tab.locator("#live-curves").is_visible()
    tab.locator("label:has(input[value=samples])").click()
    tab.wait_for_selector("#chart-curve-train-loss svg >> text=images")
    tab.locator("#field-curve-log input").check()
    tab.wait_for_selector("#chart-curve-train-loss svg >> text=log scale")
    tab.wait_for_selector("#chart-scaling svg")
    for kind in ("svg", "png"):
        with tab.expect_download() as saved:
            tab.locator(f"#chart-scaling a[download$={kind}]").click()
        assert saved.value.suggested_filename == f"ringside-scaling-compare.{kind}"
    with tab.expect_download() as saved:
        tab.locator("a[download$=csv]").click()
    assert len(saved.value.path().read_text().splitlines()) == 4

    # Classes can be searched; only differences of the set-up are told.
    tab.locator("#class-deltas input[type=search]").fill("shoe")
    fold = tab.locator("#class-deltas details[open] tbody tr")
    assert fold.evaluate_all("rows => rows.filter(row => !row.hidden).length") == 2
    assert "num processes" in tab.locator("#contrast").inner_text()
    assert "seed" not in tab.locator("#contrast").inner_text()

    for width, dark in ((1280, False), (390, True)):
        again = open_tab("/compare?runs=calm-fox,swift-hare,warm-seal", width=width, dark=dark)
        again.wait_for_selector("#chart-curve-train-loss figcaption")
        again.screenshot(path=artefacts / f"compare-three-{width}.png", full_page=True)
        assert again.evaluate("document.documentElement.scrollWidth") <= width


def test_one_run_says_what_is_missing(open_tab, recorded):
    tab = open_tab("/compare?runs=calm-fox")
    tab.wait_for_selector("#notice >> text=Choose 2 to 8 runs")
    assert tab.locator("#field-runs details").get_attribute("open") is not None
    assert tab.locator("#comparison tbody tr").count() == 0
