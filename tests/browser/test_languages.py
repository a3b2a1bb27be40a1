"""Two languages in a real browser: the choice, the form that outlives it, and nothing left over."""

from __future__ import annotations

import json
import re
import shutil
from urllib.parse import urlencode

import pytest

from ringside.words import say

pytestmark = pytest.mark.browser

RUN_ID = "20260101-000000-calm-fox"
CJK = re.compile(r"[\u4e00-\u9fff]")
# Keeps what the navigation has ever shown, from the first moment of each document on.
WATCH = """
new MutationObserver(() => {
  const shown = document.querySelector('.rs-header nav')?.innerText;
  if (shown) (window.seen ??= new Set()).add(shown);
}).observe(document, {childList: true, subtree: true, characterData: true});
"""


@pytest.fixture
def run_in_site(site, make_spec, write_run):
    """A finished run in the folder that the page shows."""
    written = write_run(make_spec("single"), RUN_ID)
    shutil.move(written.path, site.root / RUN_ID)
    yield RUN_ID
    shutil.rmtree(site.root / RUN_ID)


def test_the_form_outlives_a_change_of_language_and_english_never_shows(open_tab):
    # What no field can show is left out, and the page works.
    nonsense = {"epochs": "many", "gpus": "x", "preset": ["ddp"], "retry": 7, "precision": 1}
    tab = open_tab("/?" + urlencode({"form": json.dumps(nonsense)}))
    assert tab.locator("h1").first.inner_text() == say("page.train", "en")
    tab.locator("#plan p").first.wait_for()
    tab.locator("#field-epochs input").fill("7")
    tab.locator("#field-batch input").fill("48")
    tab.locator("input[name=strategy][value=fsdp]").check()
    tab.locator("#plan").get_by_text("48 =").wait_for()
    tab.context.add_init_script(WATCH)
    # By keyboard, as every control.
    tab.get_by_role("button", name="中文").focus()
    tab.keyboard.press("Enter")
    tab.wait_for_url("**form=**")
    tab.get_by_role("heading", name=say("page.train", "zh")).wait_for()
    tab.locator("#plan").get_by_text("48 =").wait_for()
    assert tab.locator("#field-epochs input").input_value() == "7"
    assert tab.locator("#field-batch input").input_value() == "48"
    assert tab.locator("#field-processes input").input_value() == ""
    assert tab.locator("input[name=strategy]:checked").get_attribute("value") == "fsdp"
    seen = tab.evaluate("[...window.seen]")
    assert seen
    assert all(say("page.runs", "zh") in shown for shown in seen)
    assert tab.evaluate("[document.documentElement.lang, navigator.language]") == ["zh-CN", "zh-CN"]
    pressed = tab.get_by_role("button", name="中文").get_attribute("aria-pressed")
    assert pressed == "true"


def test_pages_are_chinese_and_fit_a_phone(open_tab, site, run_in_site):
    tab = open_tab("/runs?lang=zh&run=" + run_in_site, width=390)
    assert "lang=" not in tab.url
    assert run_in_site in tab.url
    for path, key in (("runs", None), ("compare", "page.compare"), ("doctor", "page.doctor")):
        if key is not None:
            tab.goto(f"{site.url}/{path}")
            tab.get_by_role("heading", name=say(key, "zh"), exact=True).wait_for()
        else:
            tab.get_by_text(say("run.epochs", "zh"), exact=True).first.wait_for()
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert tab.evaluate(wide) <= 0, path
        labels = tab.locator("label > span, button, h1, h2, th").all_inner_texts()
        english = re.compile(r"(?<![\w./-])[a-z]{3,} [a-z]{3,}(?![\w./-])")
        assert [text for text in labels if english.search(text) and not CJK.search(text)] == []


def test_the_open_run_stays_and_two_visitors_read_two_languages(open_tab, run_in_site):
    chinese = open_tab(f"/runs?lang=zh&run={run_in_site}")
    english = open_tab(f"/runs?run={run_in_site}")
    chinese.get_by_text(say("run.epochs_done", "zh", n=3, total=3)).first.wait_for()
    english.get_by_text(say("run.epochs_done", "en", n=3, total=3)).first.wait_for()
    chinese.get_by_role("button", name="EN").click()
    chinese.get_by_text(say("run.epochs_done", "en", n=3, total=3)).first.wait_for()
    assert run_in_site in chinese.url
