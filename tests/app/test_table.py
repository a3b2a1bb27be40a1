"""Runs side by side."""

from __future__ import annotations

import pytest

from app.views.comparisons import Comparisons
from app.views.desk import Desk
from app.views.table import COLUMNS, view_of
from ringside.errors import RingsideError


def compare_view(desk, ids):
    """As the page compares them."""
    return view_of(Comparisons(desk).look(ids).comparison)


def test_two_runs(runs, runs_root):
    base = runs.add(
        "base-bison", preset="single", epochs=3, epoch_time_s=4.0, auc=0.8, ended="completed"
    )
    fast = runs.add("fast-finch", epochs=3, epoch_time_s=2.0, auc=0.79, ended="completed")
    view = compare_view(Desk(runs_root), [base.id, fast.id])
    first, second = view.rows
    assert set(first.cells) == set(COLUMNS)
    assert second.cells["speedup"] == "2.00×"
    assert second.cells["efficiency"] == "100 %"
    assert second.under["speedup"] == "weak scaling, of base-bison"
    assert second.under["auc"] == "−0.010"
    assert first.under == {"run": "reference", "total": "until it ended"}
    assert first.remarks == ("no speed-up: this is a baseline",)
    assert [bar.share for bar in view.charts[0].bars] == [1.0, 0.5]
    assert [bar.text for bar in view.charts[1].bars] == ["0.800", "0.790"]


def test_what_cannot_be_compared_says_why(runs, runs_root):
    a = runs.add("one-owl", epochs=2, ended="completed")
    b = runs.add("two-toad", epochs=2, ended="completed", model="resnet18")
    _, second = compare_view(Desk(runs_root), [a.id, b.id]).rows
    assert "not comparable: model: resnet10t and resnet18" in second.remarks
    assert "auc" not in second.under


def test_a_run_without_an_epoch_has_dashes(runs, runs_root):
    a, b = runs.add("one-owl"), runs.add("two-toad")
    view = compare_view(Desk(runs_root), [a.id, b.id])
    assert view.rows[0].cells["auc"] == view.rows[0].cells["epoch_time"] == "–"
    assert view.charts[1].bars[0].share is None


@pytest.mark.parametrize("number", [0, 1, 9])
def test_two_to_eight(runs, runs_root, number):
    ids = [runs.add(f"run-{'abcdefghi'[i]}").id for i in range(number)]
    with pytest.raises(RingsideError, match="2 to 8"):
        compare_view(Desk(runs_root), ids)


def test_the_same_run_twice_is_one(runs, runs_root):
    run = runs.add("one-owl")
    with pytest.raises(RingsideError, match="2 to 8"):
        compare_view(Desk(runs_root), [run.id, run.id])
