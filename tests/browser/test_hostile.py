"""What stands in a run is text on every page; viewers look on; nothing comes from elsewhere."""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import pytest

from ringside.class_scores import ClassTables, EpochClasses, write_class_scores
from ringside.events import EventWriter, Warned
from ringside.records import RankError
from ringside.rundir import RunDir
from ringside.scores import score
from ringside.shelf.notes import edit_notes
from tests.browser.conftest import Site

pytestmark = pytest.mark.browser

EVIL = "<img src=x onerror=window.hacked=1><script>window.hacked=2</script>${hacked}{{7*7}}"
BAIT = "<img src=x onerror=window.hacked=1>"
RUNS = ("20260102-030401-calm-otter", "20260102-030402-amber-fox")
PASSWORDS = {
    "RINGSIDE_PASSWORD": "correct horse battery",
    "RINGSIDE_VIEW_PASSWORD": "only a lens here",
}


def poison(run: RunDir, spec) -> None:
    """Put it wherever a name, a path or a sentence stands."""
    text = run.events.read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    lines[0] |= {"data_title": EVIL, "decoder": EVIL}
    lines[0]["observed"] |= {"device_name": EVIL, "versions": {EVIL: EVIL}, "backend": EVIL}
    run.events.write_text("".join(json.dumps(line) + "\n" for line in lines))
    writer = EventWriter(run.events)
    writer.write(Warned(code=EVIL, message=EVIL))
    writer.close()
    run.console.write_text(f"{EVIL}\n\x1b[31m{EVIL}\r\n")
    run.ranks.mkdir(exist_ok=True)
    run.write(run.ranks / "rank0.error.json",
              RankError(rank=0, t=1.0, sentence=EVIL, traceback=EVIL, cause=EVIL))  # fmt: skip
    run.exit.write_text(json.dumps({"state": "failed", "reason": EVIL, "started": 1.0,
                                    "finished": 2.0}))  # fmt: skip
    targets = (np.random.default_rng(7).random((60, 2)) < 0.4).astype(np.uint8)
    found = np.full((60, 2), 0.5, np.float32)
    scores = score(found, targets, (EVIL, "hat"), "multi_label")
    last = EpochClasses(epoch=3, task="multi_label", num_evaluated=60, threshold=0.5,
                        classes=tuple(scores.per_class))  # fmt: skip
    write_class_scores(run, ClassTables(last=last))
    edit_notes(run, add=["<b>tag</b>"], note=EVIL)


@pytest.fixture
def poisoned(site, root, write_run, make_spec):
    """Two runs full of it, and a preset of the person who has the page open."""
    for run_id, preset in zip(RUNS, ("single", "ddp"), strict=True):
        spec = make_spec(preset, model=f"resnet10t{BAIT}")
        run = write_run(spec, run_id)
        poison(run, spec)
        shutil.copytree(run.path, site.root / run_id)
    yield RUNS[1]
    for run_id in RUNS:
        shutil.rmtree(site.root / run_id)


def test_what_stands_in_a_run_is_text_on_every_page(open_tab, poisoned):
    for path, place in (
        (f"/runs?run={poisoned}", "#said"),
        (f"/compare?runs={','.join(RUNS)}", "#contrast"),
        (f"/doctor?run={poisoned}", "#verdict"),
        (f"/?run={poisoned}", "#plan"),
        (f"/?preset={BAIT}", "#plan"),
        (f"/runs?run={BAIT}", "#notice"),
    ):
        tab = open_tab(path)
        tab.locator(place).locator(":scope >> text=/\\w/").first.wait_for(state="attached")
        tab.wait_for_timeout(1500)
        assert tab.evaluate("window.hacked") is None, path
        assert tab.locator("img[src='x']").count() == 0, path
        if place in ("#verdict", "#notice"):
            tab.locator("body").locator("text=onerror=window.hacked").first.wait_for()
        if place == "#said":
            for part in ("#said", "#log", "#ending", "#run-list"):
                tab.locator(part).locator("text=onerror=window.hacked").first.wait_for()
            assert "{{7*7}}" in tab.locator("#said").inner_text()


# --- viewers ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A server with a login."""
    site = Site(tmp_path_factory.mktemp("guarded") / "runs")
    site.root.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in PASSWORDS.items():
            patch.setitem(os.environ, name, value)
        site.start()
    yield site
    site.kill()


def test_a_viewer_sees_runs_and_no_button(chromium, guarded, write_run, make_spec):
    run = write_run(make_spec("ddp"), RUNS[1])
    shutil.copytree(run.path, guarded.root / run.id)
    seen = {}
    for user, variable in zip(("ringside", "viewer"), PASSWORDS, strict=True):
        context = chromium.new_context()
        tab = context.new_page()
        tab.set_default_timeout(20_000)
        tab.goto(f"{guarded.url}/runs?run={run.id}")
        tab.locator("text=After a few wrong passwords").wait_for()
        tab.locator("input").first.fill(user)
        tab.locator("input[type=password]").fill(PASSWORDS[variable])
        tab.get_by_role("button", name="Login").click()
        tab.wait_for_selector(".rs-header")
        tab.locator("#run-head >> text=amber-fox").wait_for()
        if user == "viewer":
            tab.locator("#viewer-note >> text=You look on").wait_for()
        else:
            tab.wait_for_function("document.querySelector('#token :is(input, textarea)').value")
        token = tab.locator("#token textarea, #token input").first.input_value()
        seen[user] = [bool(token)]
        tab.goto(guarded.url)
        tab.wait_for_selector("#start", state="attached")
        tab.wait_for_timeout(1000)
        seen[user].append(tab.locator("#start").is_visible())
        context.close()
    assert seen == {"ringside": [True, True], "viewer": [False, False]}
