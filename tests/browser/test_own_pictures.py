"""A person's own pictures: checked, trained on without the bad ones, and tried on the checkpoint.

The last test tries the run of the one before.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from PIL import Image

from ringside.identity import wait_until
from ringside.run import fold_run

pytestmark = pytest.mark.browser

SECONDS_60 = 60_000
COLOURS = {"red": (200, 30, 30), "blue": (30, 30, 200), "green": (30, 160, 30)}


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Sixty plain pictures with a table; one is a web page, one has transparency."""
    root = tmp_path_factory.mktemp("Léa's pictures")
    rows = ["file_name,labels"]
    for i in range(60):
        name, colour = list(COLOURS.items())[i % 3]
        picture = Image.new("RGB", (40, 32), tuple(min(255, c + i % 20) for c in colour))
        if i == 5:
            picture.putalpha(120)
        picture.save(root / f"{i:02}.png")
        rows.append(f"{i:02}.png,{name} | {'even' if i % 2 else 'odd'}")
    (root / "09.png").write_text("<!doctype html><html><b>Log in</b></html>")
    (root / "metadata.csv").write_text("\n".join(rows) + "\n")
    return root


def choose(tab, folder: Path):
    """Name one's own folder."""
    tab.wait_for_selector(".rs-pictures img")
    tab.locator("#field-source input").fill("Your own")
    tab.locator("#field-source input").press("Enter")
    field = tab.locator("#field-folder").locator("input, textarea")
    field.fill(str(folder))
    field.press("Enter")


def fits(tab, width: int) -> bool:
    return tab.evaluate("document.documentElement.scrollWidth") <= width


def test_a_check_can_be_stopped(open_tab):
    tab = open_tab()
    tab.wait_for_selector(".rs-pictures img")
    tab.locator("#field-source input").fill("products")  # too many for a moment
    tab.locator("#field-source input").press("Enter")
    tab.wait_for_selector("#data-facts >> text=synthetic")
    tab.locator("#check").click()
    tab.wait_for_selector("#check-report >> text=/[1-9].* pictures decoded/")
    tab.locator("#check-stop").click()
    tab.wait_for_selector("#check-report >> text=The check was stopped")
    assert not tab.locator("#check-stop").is_visible()


def test_a_check_outlives_its_tab_and_its_bad_files_are_left_out(open_tab, site, photos, artefacts):
    tab = open_tab()
    choose(tab, photos)
    tab.wait_for_selector("#data-facts >> text=60 images")
    tab.locator("#check").focus()
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#check-stop")
    tab.context.close()

    tab = open_tab()
    choose(tab, photos)
    tab.wait_for_selector("#check-report >> text=1 bad file: a run stops at the first one")
    report = tab.locator("#check-report").inner_text()
    assert "59 usable of 60 images" in report
    assert "09.png is not an image but an HTML page" in report
    details = tab.locator("#check-details")
    assert details.locator(".rs-class-bars > span").all_inner_texts()[-2:] == ["even", "odd"]
    assert "alpha, 1 image: laid on white" in details.inner_text()
    assert details.locator("img").get_attribute("src").startswith("data:image/png")

    ask_for_little(tab)
    tab.wait_for_selector("text=/1 bad file found by the check, the first is 09.png/")
    tab.get_by_label("Leave them out").check()
    tab.wait_for_selector("#plan >> text=1 bad file left out of this run")
    tab.wait_for_selector("#data-facts >> text=59 images")
    tab.screenshot(path=artefacts / "check-light-1280.png", full_page=True)
    tab.locator("#start").click()
    tab.wait_for_url("**/runs?run=*")
    run = site.runs()[0]
    assert wait_until(lambda: fold_run(run).final, 90)
    record = fold_run(run)
    assert record.state == "completed"
    assert record.spec.data.skip == ("09.png",)
    assert record.started.num_train + record.started.num_val == 59


def ask_for_little(tab):
    """One epoch of a small model on small pictures, in one process."""
    tab.locator("#field-model input").fill("test_resnet")
    tab.locator("#field-model input").press("Enter")
    for name, value in (("epochs", "1"), ("batch", "8")):
        tab.locator(f"#field-{name} input").fill(value)
    tab.locator("#run-card >> text=Advanced").click()
    tab.locator("#field-image-size input").fill("32")
    tab.locator("#field-image-size input").blur()
    single = tab.locator("label:has(input[value=single])")
    if not single.is_visible():
        tab.locator(".rs-more summary", has_text="more").last.click()
    single.click()


def test_the_best_checkpoint_is_tried(open_tab, site, photos, artefacts):
    runs = site.runs()
    if not runs:
        pytest.skip("needs the run of the test before it: run the whole file")
    tab = open_tab(f"/runs?run={runs[0].id}", width=390, dark=True)
    tab.wait_for_selector("#try >> text=/try the best checkpoint on a picture/i")
    assert f"ringside export {runs[0].name}" in tab.locator("#try-elsewhere").inner_text()
    tab.locator("#take-samples").click()
    samples = tab.locator("#samples button")
    samples.first.wait_for(timeout=SECONDS_60)
    assert samples.count() == 8
    samples.nth(2).focus()
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#trial >> text=Loading the model")
    tab.wait_for_selector("#trial figure", timeout=SECONDS_60)
    assert "labelled: " in tab.locator("#trial").inner_text()
    bars = tab.locator("#trial .rs-guesses")
    assert set(bars.locator("> span").all_inner_texts()) == {*COLOURS, "even", "odd"}
    shown = [float(text) for text in bars.locator("> b").all_inner_texts()]
    assert shown == sorted(shown, reverse=True)
    assert 0 <= shown[-1] <= shown[0] <= 1

    upload = tab.locator("#field-upload input[type=file]")
    upload.set_input_files([photos / "00.png", photos / "09.png"])
    tab.wait_for_selector("#trial >> text=09.png is not an image but an HTML page",
                          timeout=SECONDS_60)  # fmt: skip
    assert tab.locator("#trial figure").count() == 2
    tab.wait_for_timeout(300)
    tab.screenshot(path=artefacts / "try-dark-390.png", full_page=True)
    assert fits(tab, 390)
    upload.set_input_files([photos / f"{i:02}.png" for i in range(10, 19)])
    tab.wait_for_selector("text=9 pictures were given and 8 are the most")
    assert left_behind(photos) == []


def left_behind(photos: Path) -> list[Path]:
    """Copies of the pictures that the page or Gradio keeps."""
    ours = {path.name for path in photos.glob("*.png")}
    uploads = Path(os.environ.get("GRADIO_TEMP_DIR", Path(tempfile.gettempdir()) / "gradio"))
    kept = [path for path in uploads.rglob("*.png") if path.name in ours]
    return [*kept, *Path(tempfile.gettempdir()).glob("ringside-try-*")]
