"""Search, filters, order, and the figures behind the order."""

from __future__ import annotations

import pytest

from ringside.errors import SpecError
from ringside.run import fold_run
from ringside.rundir import list_run_dirs
from ringside.shelf.figures import all_figures, baselines_among
from ringside.shelf.finding import SORTS, Query, check_query, find_entries
from ringside.shelf.notes import edit_notes
from ringside.speedup import find_baseline, speedup_of


@pytest.fixture
def shelf(make_spec, write_run, root):
    """Five runs by their second word; `hare` is the fastest, `wren` has no score."""
    made = [
        write_run(make_spec("single"), "20260101-000000-calm-fox", auc_macro=0.7),
        write_run(make_spec("ddp"), "20260102-000000-swift-hare", step_s=0.08, auc_macro=0.6),
        write_run(make_spec("ddp"), "20260103-000000-keen-lynx", step_s=0.12, auc_macro=0.9),
        write_run(make_spec("fsdp", model="vit_tiny"), "20260104-000000-mild-wren", auc_macro=None),
        write_run(make_spec("ddp"), "20260105-000000-tidy-vole", state="failed", epochs=0),
    ]
    runs = {run.id.split("-")[-1]: run for run in made}
    edit_notes(runs["hare"], add=["Best", "sockets"], note="For the Report\nof May")
    edit_notes(runs["lynx"], add=["best"])
    return runs


def names(root, **query):
    return [entry.id.split("-")[-1] for entry in find_entries(root, Query(**query))]


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ("", ["vole", "wren", "lynx", "hare", "fox"]),
        ("hare", ["hare"]),
        ("20260103", ["lynx"]),
        ("VIT_tiny", ["wren"]),
        ("report may", ["hare"]),
        ("best ddp", ["lynx", "hare"]),
        ("sock emoji", ["hare"]),
        ("best fsdp", []),
        (".*", []),
    ],
)
def test_every_word_has_to_be_there(shelf, root, search, expected):
    assert names(root, search=search) == expected


def test_filters_fit_together(shelf, root):
    assert names(root, tag="BEST") == ["lynx", "hare"]
    assert names(root, tag="bes") == []
    assert names(root, preset="ddp") == ["vole", "lynx", "hare"]
    assert names(root, preset="ddp", state="completed", tag="sockets") == ["hare"]
    assert names(root, state="failed") == ["vole"]


def test_what_is_put_away_is_shown_alone(shelf, root):
    edit_notes(shelf["lynx"], archived=True)
    assert names(root) == ["vole", "wren", "hare", "fox"]
    assert names(root, archived=True) == ["lynx"]
    assert names(root, archived=True, search="hare") == []


def test_the_best_first_and_last_what_was_not_measured(shelf, root):
    assert names(root, sort="auc") == ["lynx", "fox", "hare", "vole", "wren"]
    assert names(root, sort="epoch-time") == ["hare", "wren", "fox", "lynx", "vole"]
    # Of one that is put away the others are still measured against.
    edit_notes(shelf["fox"], archived=True)
    assert names(root, sort="speedup") == ["hare", "lynx", "vole", "wren"]


def test_a_limit_counts_what_fits(shelf, root):
    assert [entry.id[-4:] for entry in find_entries(root, Query(tag="best"), 1)] == ["lynx"]
    assert [entry.id[-4:] for entry in find_entries(root, Query(sort="auc"), 2)] == ["lynx", "-fox"]


def test_beyond_the_limit_nothing_is_read(shelf, root, monkeypatch):
    from ringside.shelf import finding

    read = []
    monkeypatch.setattr(finding, "read_notes", lambda run: read.append(run.id) or finding.NOTHING)
    assert len(find_entries(root, Query(), 2)) == 2
    assert len(read) == 2


def test_figures_are_those_of_one_run_looked_at_alone(shelf, root):
    records = [fold_run(run) for run in list_run_dirs(root)]
    figures = all_figures(records)
    for record in records:
        alone, baseline = speedup_of(root, record), find_baseline(root, record)
        found = figures[record.id]
        assert (found.speedup, found.baseline_id) == (alone.value, alone.baseline_id)
        chosen = baselines_among(records)[record.id]
        assert (chosen and chosen.id) == (baseline and baseline.id)
    # 100 steps of 0.08 s, with twice the images of the baseline's steps of 0.1 s.
    hare = figures[shelf["hare"].id]
    assert hare.epoch_time_s == pytest.approx(8.0)
    assert hare.speedup == pytest.approx(2.5)
    assert (hare.auc_macro, hare.f1_macro) == (0.6, 0.4)
    assert figures[shelf["vole"].id].epoch_time_s is None


@pytest.mark.parametrize("query", [{"state": "complete"}, {"sort": "speed"}])
def test_what_there_is_not_is_a_sentence(query):
    with pytest.raises(SpecError, match="Did you mean"):
        check_query(Query(**query))


def test_every_order_has_a_word():
    from ringside.words import say

    assert [name for name in SORTS if not say(f"shelf.sort_{name}")] == []
