"""What the Compare page shows: verdicts, classes, differences, curves, files, and its choices."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
import time
from types import SimpleNamespace

import numpy as np
import pytest
from msgspec.structs import replace

from app.page.compare.choice import MAX_RUNS, Choice, read_choice
from app.page.compare.handlers import Handlers, Parts
from app.page.compare.plots import plot_of
from app.page.draw.compare import class_tables, comparison, contrast_table
from app.page.draw.picker import picker
from app.views.charts import palette
from app.views.charts.curves import curves_figure
from app.views.charts.drawing import picture
from app.views.class_deltas import class_deltas
from app.views.compare_csv import comparison_csv
from app.views.comparisons import Comparisons
from app.views.contrast import contrast_lines
from app.views.curves import CurveOptions, curve_sets, read_options
from app.views.desk import Desk
from app.views.gates import gate_line
from app.views.noise import RETRY_S, Noise
from app.views.noise import _ask as ask
from app.views.noise_worker import Pair, Worked
from app.views.scaling_view import scaling_figure
from app.views.table import view_of
from ringside.class_scores import ClassTables, EpochClasses, write_class_scores
from ringside.compare import Difference
from ringside.errors import RingsideError
from ringside.predictions import Predictions, write_predictions
from ringside.scores import score
from ringside.words import say, speaking

NAMES = ["hat", "<b>shoe", "=bag"]


def keep_predictions(run, noise, epoch=3):
    """As the trainer leaves them, for the same images whatever the noise."""
    targets = (np.random.default_rng(7).random((300, 3)) < 0.4).astype(np.uint8)
    wobble = np.random.default_rng(1).normal(0, noise, targets.shape)
    found = (0.5 + (targets - 0.5) * 0.5 + wobble).clip(0, 1).astype(np.float32)
    write_predictions(run, Predictions(epoch, "multi_label", found, targets))
    scores = score(found, targets, NAMES, "multi_label")
    last = EpochClasses(epoch=epoch, task="multi_label", num_evaluated=300, threshold=0.5,
                        classes=tuple(scores.per_class))  # fmt: skip
    write_class_scores(run, ClassTables(last=last))


@pytest.fixture
def two(runs):
    """A baseline, and DDP that is twice as fast and a little worse."""
    base = runs.add("base-bison", preset="single", epochs=3, epoch_time_s=4.0, ended="completed")
    fast = runs.add("fast-finch", epochs=3, epoch_time_s=2.0, auc=0.75, ended="completed")
    return [base, fast]


@pytest.fixture
def look(runs_root):
    """`look(runs)`: the comparison once no noise is waited for."""
    known = Comparisons(Desk(runs_root))

    def wait(runs, baseline=None):
        deadline = time.monotonic() + 30
        while True:
            found = known.look([run.id for run in runs], baseline)
            if not found.waiting or time.monotonic() > deadline:
                return found
            time.sleep(0.1)

    return wait


def test_the_noise_is_worked_out_beside_the_page(two, runs_root):
    keep_predictions(two[0], 0.3)
    keep_predictions(two[1], 0.6)
    known = Comparisons(Desk(runs_root))
    ids = [run.id for run in two]
    first = known.look(ids)
    assert first.waiting == {two[1].id}
    line = gate_line(first.comparison.runs[1], ids[0], is_waiting=True)
    assert line.word == "working it out"
    deadline = time.monotonic() + 30
    while known.look(ids).waiting and time.monotonic() < deadline:
        time.sleep(0.1)
    found = known.look(ids)
    assert found.comparison.runs[1].auc_interval.high < 0
    assert found.version != first.version
    assert known.look(ids) is found
    keep_predictions(two[1], 0.3)
    assert known.look(ids).waiting == {two[1].id}, "other predictions, other noise"


def test_a_calculation_that_failed_is_no_answer_and_is_tried_again(two, runs_root):
    for run in two:
        keep_predictions(run, 0.3)
    now, answers = [0.0], [None, Worked(None)]
    known = Comparisons(Desk(runs_root))
    known._noise = Noise(ask=lambda _: answers.pop(0), clock=lambda: now[0])
    ids = [run.id for run in two]

    def settled():
        deadline = time.monotonic() + 10
        while (found := known.look(ids)).waiting and time.monotonic() < deadline:
            time.sleep(0.01)
        return found

    failed = settled()
    assert failed.failed == {two[1].id}
    line = gate_line(failed.comparison.runs[1], ids[0], has_failed=True)
    assert "could not be worked out" in line.sentence
    now[0] = RETRY_S - 1
    assert settled().failed
    assert len(answers) == 1
    now[0] = RETRY_S
    again = settled()
    assert (again.failed, answers) == (frozenset(), [])
    line = gate_line(again.comparison.runs[1], ids[0])
    assert "did not both keep predictions of the same images" in line.sentence
    now[0] += 10 * RETRY_S
    assert settled() is again, "an answer is not asked for again"


def test_a_child_that_breaks_off_has_failed(tmp_path):
    assert ask(Pair(str(tmp_path / "missing"), "\0")) is None


def test_only_the_intervals_shown_are_expected_outside(two, look):
    keep_predictions(two[0], 0.3)
    keep_predictions(two[1], 0.6)
    base, fast = look(two).comparison.runs
    by_chance, *_ = class_deltas(fast, base).notes
    assert "about 0.2 of the 3 of Δ AUC, 0.2 of the 3 of Δ F1, 0.2 of the 3 of Δ AP" in by_chance
    few = replace(fast.classes[1], support=10)
    rare = replace(few, support=9, auc_interval=None, average_precision_interval=None)
    many = replace(fast, classes=(few,) * 8 + (rare,) * 12)
    by_chance, too_rare, _ = class_deltas(
        many, replace(base, classes=(base.classes[1],) * 20)
    ).notes
    assert "about 0.8 of the 8 of Δ AUC, 1.0 of the 20 of Δ F1, 0.8 of the 8 of Δ AP" in by_chance
    assert "fewer than 10 positives or negatives" in too_rare


def test_an_undecided_verdict_for_want_of_evidence_says_which(two, look):
    for run in two:
        keep_predictions(run, 0.3)
    found = look(two).comparison
    line = gate_line(found.runs[1], found.reference)
    assert line.word == "not decided"
    assert "which decides nothing: no choice among these 300 images" in line.sentence


def test_a_verdict_is_a_sign_a_word_and_numbers(two, look):
    keep_predictions(two[0], 0.3)
    keep_predictions(two[1], 0.6)
    found = look(two).comparison
    first, second = (gate_line(run, found.reference) for run in found.runs)
    assert (first.sign, first.word, first.tone) == ("●", "reference", "plain")
    assert (second.sign, second.word, second.tone) == ("✕", "faster but worse", "bad")
    assert second.sentence.startswith("2.00× the images/s of base-bison, but macro AUC −0.050 (")
    assert second.sentence.endswith("outside the noise, and beyond the tolerance of 0.005.")


def test_without_predictions_the_verdict_says_so(two, look):
    found = look(two).comparison
    line = gate_line(found.runs[1], found.reference)
    assert line.word == "no verdict"
    assert "did not both keep predictions" in line.sentence


def test_classes_come_with_the_largest_loss_first(two, look):
    keep_predictions(two[0], 0.3)
    keep_predictions(two[1], 0.6)
    base, fast = look(two).comparison.runs
    table = class_deltas(fast, base)
    changes = [row[3].cell.value for row in table.rows]
    assert changes == sorted(changes)
    assert {row[0].cell.text for row in table.rows} == set(NAMES)
    assert "…" in table.rows[0][2].under
    html = class_tables([table])
    assert "<b>shoe" not in html
    assert 'type="search"' in html


def test_classes_that_cannot_be_compared_say_why(runs, look):
    a = runs.add("one-owl", epochs=2, ended="completed")
    b = runs.add("two-toad", epochs=2, ended="completed", model="resnet18")
    base, other = look([a, b]).comparison.runs
    table = class_deltas(other, base)
    assert table.rows == ()
    assert "model: resnet10t and resnet18" in table.notes[0]


def test_only_differences_are_shown(two, look):
    found = look(two).comparison
    lines = contrast_lines(found.configuration)
    shown = {line.name: line.values for line in lines}
    assert shown["preset"] == ("single", "ddp")
    assert shown["num processes"] == ("1", "2")
    assert shown["backend, as it ran"] == ("–", "gloo")
    assert "seed" not in shown
    assert "base-bison" in contrast_table(lines, ["base-bison", "fast-finch"])


def test_two_visitors_see_the_drawn_charts_in_their_languages(two, runs_root):
    desk = Desk(runs_root)
    settings = SimpleNamespace(desk=desk, comparisons=Comparisons(desk))
    parts = Parts(**{field.name: field.name for field in dataclasses.fields(Parts)})
    page = Handlers(parts, settings)
    asked = {"x": "step", "log": False, "smoothing": 0, "seen": "{}",
             "chosen": Choice(tuple(run.id for run in two)).as_text()}  # fmt: skip
    assert "In numbers" in page.show(asked)["scaling"]
    with speaking("zh"):
        drawn = page.show(asked)["scaling"]
    assert "In numbers" not in drawn
    assert say("charts.scaling", "zh") in drawn


def test_bytes_are_told_with_their_unit_one_by_one():
    """Of a list too, and where more follows in the name."""
    buckets = Difference(group="training", name="bucket_bytes", observed=((), (1_500_000, 2_000)))
    reduced = Difference(
        group="training", name="reduced_bytes_per_step", observed=(None, 1_500_000)
    )
    told = [line.values for line in contrast_lines([buckets, reduced])]
    assert told == [("–", "1.5 MB, 2.0 kB"), ("–", "1.5 MB")]


def test_the_csv_has_plain_numbers(two, look):
    rows = list(csv.DictReader(io.StringIO(comparison_csv(look(two).comparison).decode())))
    assert [row["id"] for row in rows] == [run.id for run in two]
    assert float(rows[1]["speedup_value"]) == pytest.approx(2.0)
    assert float(rows[1]["auc_delta"]) == pytest.approx(-0.05)
    assert rows[0]["auc_delta"] == rows[1]["auc_interval_low"] == ""


def test_curves_are_smoothed_with_the_raw_values_behind(two, look):
    records = look(two).records
    plain, *_ = curve_sets(records, CurveOptions())
    assert (plain.metric, plain.is_smoothed, plain.is_log) == ("train_loss", False, False)
    smooth, _, auc, _ = curve_sets(records, CurveOptions("time", True, 0.5))
    assert (smooth.is_log, smooth.is_smoothed, smooth.x_unit) == (True, True, "s")
    assert smooth.lines[0].raw[-1][1] < smooth.lines[0].line[-1][1]
    assert (auc.is_log, auc.is_smoothed) == (False, False)
    plot = plot_of(smooth)
    assert len(plot.color_map) == 4
    assert plot.y_title == "log10, smoothed"


def test_a_loss_of_zero_has_no_log_scale(runs, look):
    run = runs.add("one-owl", epochs=2, ended="completed")
    text = run.events.read_text().replace('"train_loss":0.5', '"train_loss":0.0')
    run.events.write_text(text)
    records = look([run, runs.add("two-toad", epochs=1, ended="completed")]).records
    assert curve_sets(records, CurveOptions(log=True))[0].is_log is False


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (("time", True, 0.5), CurveOptions("time", True, 0.5)),
        (("nonsense", "yes", "much"), CurveOptions()),
        ((None, None, None), CurveOptions()),
        (("epoch", False, 7), CurveOptions(smoothing=0.95)),
        (("epoch", False, float("nan")), CurveOptions()),
        (([], {}, -1), CurveOptions()),
    ],
)
def test_fields_of_no_sense_are_defaults(given, read):
    assert read_options(*given) == read


def test_charts_name_the_runs_and_follow_the_theme(two, look):
    found = look(two)
    drawn = picture(curves_figure(curve_sets(found.records, CurveOptions(smoothing=0.5))[0]))
    assert drawn.headline.startswith("All end at 0.")
    assert "var(--rs-run-1)" in drawn.wide
    assert palette.RUNS[0] in drawn.svg
    scaling = scaling_figure(found.comparison)
    assert scaling.headline == "fast-finch scales best: 2 devices give 2.00×, 100 % of perfect."
    assert scaling.rows == (("fast-finch", "ddp fp32, weak scaling", "2", "2.00×", "100 %"),)
    assert "perfect" in picture(scaling).svg


def drawn_curve(runs, look, metric, **aucs):
    records = look([runs.add(name, epochs=2, auc=auc) for name, auc in aucs.items()]).records
    (curves,) = (one for one in curve_sets(records, CurveOptions()) if one.metric == metric)
    return picture(curves_figure(curves))


@pytest.mark.parametrize(
    ("aucs", "headline"),
    [
        (
            {"old-ash": 0.80004, "red-bay": 0.8, "shy-cow": 0.79},
            "old-ash, red-bay end highest, at 0.800.",
        ),
        ({"old-ash": 0.8, "red-bay": 0.8}, "All end at 0.800."),
        ({"old-ash": 0.8, "red-bay": 0.81}, "red-bay ends highest, at 0.810."),
    ],
)
def test_runs_that_end_alike_share_the_headline(runs, look, aucs, headline):
    assert drawn_curve(runs, look, "auc_macro", **aucs).headline == headline


@pytest.mark.parametrize(
    ("auc", "low", "high"), [(0.4, 0.36, 0.44), (0.5, 0.45, 0.55), (0.0, -1, 1)]
)
def test_the_axis_of_one_value_is_labelled_with_figures_around_it(runs, look, auc, low, high):
    svg = drawn_curve(runs, look, "auc_macro", **{"old-ash": auc, "red-bay": auc}).svg
    axis = svg[svg.index("epoch</text>") : svg.index("macro AUC</text>")]
    labels = [float(text.replace("\u2212", "-")) for text in re.findall(r">([^<>]+)</text>", axis)]
    assert len(labels) >= 3
    assert all(low - 1e-9 <= label <= high + 1e-9 for label in labels)


@pytest.mark.parametrize(
    ("hours", "shown"), [(0.01, "0.6 min"), (0.17, "10.2 min"), (1.0, "1.00 h"), (30.5, "30.50 h")]
)
def test_device_time_is_in_minutes_below_an_hour(two, look, hours, shown):
    found = look(two).comparison
    changed = replace(found, runs=tuple(replace(run, device_hours=hours) for run in found.runs))
    assert {row.cells["device_hours"] for row in view_of(changed).rows} == {shown}


def test_the_page_escapes_names_and_has_the_csv(two, look):
    found = look(two).comparison
    gates = [gate_line(run, found.reference) for run in found.runs]
    html = comparison(view_of(found), gates, b"a,b\n", ["<i>note"])
    assert "<i>note" not in html
    assert 'download="ringside-compare.csv"' in html


def test_every_checkbox_has_a_name(two, runs_root):
    html = picker(Desk(runs_root).rows(), is_open=True)
    assert html.count('name="pick"') == 2
    assert html.count("aria-label") == 5


@pytest.mark.parametrize(
    "text",
    ["", "null", "[]", "{", "7", None, 3, '{"runs": 5}', '{"runs": [1, null, {}]}',
     '{"runs": ["../../etc/passwd"], "baseline": ["x"]}'],
)  # fmt: skip
def test_a_choice_of_no_sense_is_none(text):
    assert read_choice(text) == Choice()


def test_a_choice_has_eight_runs_at_most_and_its_baseline_among_them():
    ids = [f"20260101-0000{n:02d}-calm-fox" for n in range(20)]
    chosen = read_choice(json.dumps({"runs": ids, "baseline": ids[9]}))
    assert (len(chosen.runs), chosen.baseline) == (MAX_RUNS, "")
    assert read_choice(json.dumps({"runs": ids[:2], "baseline": ids[1]})).baseline == ids[1]


def test_one_run_is_no_comparison(two, look):
    with pytest.raises(RingsideError, match="2 to 8"):
        look(two[:1])
