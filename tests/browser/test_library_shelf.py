"""Library in the browser: find, open, edit, import, make a playbook and replay it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ringside.presets import load_preset

pytestmark = pytest.mark.browser

RUN, BASE = "20260102-030402-swift-hare", "20260102-030401-calm-fox"
OURS = """\
format: 1
about: {title: Our strategy, why: It is faster, when: Always, author: Lea}
accelerate: {distributed_type: MULTI_GPU, num_processes: 8}
"""
ACCELERATE = "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nfp16: true\n"


@pytest.fixture
def presets(site):
    """The folder of this server's user, with one preset in it."""
    folder = site.root.parent / "home" / "ringside" / "presets"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ours.yaml").write_text(OURS)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def runs(site, root, write_run, make_spec):
    for run_id, preset in ((BASE, "single"), (RUN, "ddp")):
        if not (site.root / run_id).exists():
            write_run(make_spec(preset, data="products", model="resnet10t"), run_id)
            shutil.copytree(root / run_id, site.root / run_id)


def text_in(tab, field):
    return tab.locator(f"#{field} :is(input, textarea)")


def test_a_preset_is_found_opened_and_edited_and_comes_back(open_tab, presets):
    tab = open_tab("/library")
    tab.locator("#preset-list input").fill("lea our")
    assert tab.locator("#preset-list li:visible").count() == 1
    tab.keyboard.press("Tab")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#preset-head h2 >> text=Our strategy")
    assert tab.url.endswith("/library?preset=ours")
    assert tab.locator("#preset-list [aria-current]").count() == 1
    assert tab.locator("#preset-list input").input_value() == "lea our"
    assert "2 devices instead of 8" in tab.locator("#preset-head").inner_text()

    tab.locator("#edit-preset").click()
    text_in(tab, "field-preset-title").fill("Our own")
    tab.locator("#field-edit-as label", has_text="YAML").click()
    code = tab.locator("#editor-yaml .cm-content")
    code.wait_for()
    tab.wait_for_selector("#editor-problems >> text=Nothing wrong")
    code.click()
    tab.keyboard.press("Control+End")
    tab.keyboard.type("\nx: 1")
    tab.wait_for_selector("#editor-problems >> text=/Line \\d+:.*unknown key/")
    for _ in "x: 1":
        tab.keyboard.press("Backspace")
    tab.wait_for_selector("#editor-problems >> text=Nothing wrong")
    tab.locator("#save-preset").click()
    tab.wait_for_selector("#preset-head h2 >> text=Our own")
    assert load_preset(presets / "ours.yaml").about.title == "Our own"

    tab.locator("#preset-history summary").click()
    tab.locator("#preset-history button").click()
    tab.wait_for_selector("#preset-head h2 >> text=Our strategy")
    assert (presets / "ours.yaml").read_text() == OURS
    assert len(list((presets / ".history" / "ours").iterdir())) == 3


def test_what_was_sent_is_reported_and_saved(open_tab, presets, tmp_path):
    file = tmp_path / "from lea.yaml"
    file.write_text(ACCELERATE)
    tab = open_tab("/library?tab=import")
    tab.locator("#field-preset-file input[type=file]").set_input_files(file)
    tab.wait_for_selector("#import-report >> text=an Accelerate configuration")
    text_in(tab, "field-import-name").fill("lea")
    tab.locator("#save-import").click()
    tab.wait_for_selector("#preset-head .rs-code >> text=lea")
    assert load_preset(presets / "lea.yaml").file.accelerate.mixed_precision == "fp16"


def test_one_press_makes_a_playbook_that_is_replayed(open_tab, presets, runs):
    tab = open_tab(f"/compare?runs={BASE},{RUN}")
    tab.wait_for_selector("#comparison section")
    tab.locator("#playbook").click()
    tab.wait_for_url("**/library?tab=playbooks")
    tab.wait_for_selector("#playbook-head h2", timeout=90_000)
    assert "resnet10t" in tab.locator("#playbook-head").inner_text()
    tab.locator("#playbook-list input").fill("no such words")
    tab.wait_for_selector("#playbook-list >> text=Nothing fits")
    tab.locator("#playbook-frame summary").click()
    inside = tab.frame_locator("#playbook-frame iframe")
    inside.locator("h1").wait_for()
    with tab.expect_download() as download:
        tab.locator("#playbook-head a[download]").click()
    assert Path(download.value.path()).read_bytes().startswith(b"PK")
    tab.set_viewport_size({"width": 390, "height": 800})
    card, opened = (
        tab.locator(one).first.bounding_box() for one in ("#playbook-head", "#playbook-head h2")
    )
    assert opened["x"] + opened["width"] <= card["x"] + card["width"], "a table scrolls by itself"
    tab.set_viewport_size({"width": 1280, "height": 900})
    tab.locator("#playbook-replay button").click()
    tab.wait_for_url("**/?playbook=*")
    tab.wait_for_selector("#plan [role=status]")
    assert text_in(tab, "field-model").first.input_value() == "resnet10t"


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_page_fits(open_tab, artefacts, presets, width, dark):
    tab = open_tab("/library?preset=ours", width=width, dark=dark)
    tab.locator("#edit-preset").click()
    tab.wait_for_selector("#field-preset-settings")
    tab.wait_for_timeout(300)
    theme = "dark" if dark else "light"
    tab.screenshot(path=artefacts / f"shelf-{theme}-{width}.png", full_page=True)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    for name in ("Import", "Playbooks"):
        tab.get_by_role("tab", name=name).click()
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
