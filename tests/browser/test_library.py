"""A person keeps their runs in order: tags, a note, search, archive, leftovers, delete."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from ringside.rundir import list_run_dirs
from ringside.shelf.notes import read_notes

pytestmark = pytest.mark.browser

BASE, RUN, OTHER = (
    "20260101-000000-calm-fox", "20260102-000000-swift-hare", "20260103-000000-mild-wren",
)  # fmt: skip


@pytest.fixture
def root(site):
    """The runs are made in the folder of the server."""
    return site.root


@pytest.fixture
def runs(site, make_spec, write_run):
    """A baseline, a run 2.5 times as fast, and a slow one that scores better."""
    yield (
        write_run(make_spec("single"), BASE, auc_macro=0.7),
        write_run(make_spec("ddp"), RUN, step_s=0.08, auc_macro=0.6),
        write_run(make_spec("ddp"), OTHER, step_s=0.2, auc_macro=0.9),
    )
    for run in list_run_dirs(site.root):
        shutil.rmtree(run.path)


@pytest.fixture
def leftover():
    """A process of a run that has ended long ago."""
    child = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE,
        env=os.environ | {"RINGSIDE_RUN": OTHER},
    )  # fmt: skip
    yield child
    child.kill()
    child.wait()


def names(tab, *expected):
    """Wait until the list holds exactly these runs, in this order."""
    tab.wait_for_function(
        "names => JSON.stringify([...document.querySelectorAll('#run-list tbody a')]"
        ".map(a => a.textContent)) === JSON.stringify(names)",
        arg=list(expected),
    )


def choose(tab, field, text):
    """Choose from a list with the keyboard."""
    box = tab.locator(f"#{field} input")
    box.click()
    tab.locator(f"[role=option]:has-text('{text}')").first.click()


def test_tags_note_search_order_and_archive(open_tab, runs):
    tab = open_tab(f"/runs?run={RUN}")
    names(tab, "mild-wren", "swift-hare", "calm-fox")
    tab.locator("#run-head a", has_text="tag or note").click()
    tab.locator("#shelf button").first.click()

    tab.locator("#field-tags input").fill("best, sockets")
    tab.locator("#field-note textarea").fill("For the report.\nAsk Lea before it goes.")
    tab.locator("#save-notes").click()
    tab.wait_for_selector("#said .rs-tag >> text=sockets")
    tab.wait_for_selector("#run-list .rs-tag >> text=best")
    assert read_notes(runs[1]).note == "For the report.\nAsk Lea before it goes."
    tab.reload()
    tab.wait_for_selector("#said >> text=Ask Lea")

    choose(tab, "field-sort", "speed-up")
    names(tab, "swift-hare", "mild-wren", "calm-fox")
    choose(tab, "field-sort", "AUC")
    names(tab, "mild-wren", "calm-fox", "swift-hare")
    tab.locator("#field-search input").press_sequentially("report hare")
    names(tab, "swift-hare")
    tab.locator("#field-search input").fill("")
    choose(tab, "field-tag", "sockets")
    names(tab, "swift-hare")
    choose(tab, "field-tag", "all tags")
    names(tab, "mild-wren", "calm-fox", "swift-hare")

    tab.locator("#shelf button").first.click()
    tab.locator("#archive").click()
    names(tab, "mild-wren", "calm-fox")
    tab.locator("#field-archived input").check()
    names(tab, "swift-hare")


def test_what_is_over_is_cleaned_up_and_deleted(open_tab, artefacts, runs, leftover, root):
    for width, dark in ((1280, False), (390, True)):
        shot = open_tab(f"/runs?run={RUN}", width=width, dark=dark)
        shot.wait_for_selector("#leftover-list td")
        shot.locator("#shelf button").first.click()
        shot.locator("#delete").click()
        shot.wait_for_selector("#delete-question >> text=for good")
        shot.wait_for_timeout(500)
        theme = "dark" if dark else "light"
        shot.screenshot(path=artefacts / f"library-{theme}-{width}.png", full_page=True)
        assert shot.evaluate("document.documentElement.scrollWidth") <= width
        shot.context.close()
    tab = open_tab(f"/runs?run={RUN}")
    tab.wait_for_selector("#leftover-list >> text=mild-wren")
    tab.locator("#clean-up").click()
    assert leftover.wait(30) == -15
    tab.wait_for_selector("#leftovers", state="hidden")

    tab.locator("#shelf button").first.click()
    tab.locator("#delete").click()
    tab.wait_for_selector("#delete-question >> text=/Delete swift-hare, for good.*kB in/")
    tab.locator("#delete-no").click()
    tab.wait_for_selector("#delete-confirm", state="hidden")
    assert runs[1].spec.exists()
    tab.locator("#delete").click()
    tab.locator("#delete-yes", has_text="Delete swift-hare").click()
    tab.wait_for_url("**/runs")
    names(tab, "mild-wren", "calm-fox")
    assert [run.id for run in list_run_dirs(root)] == [OTHER, BASE]
