"""A person at the page: real runs on the CPU, from the first click to the comparison.

The tests of this file tell one story and build on each other, because every launch takes ten
seconds.
"""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from playwright.sync_api import Error

from ringside.identity import run_processes, wait_until
from ringside.run import fold_run

pytestmark = pytest.mark.browser

FIRST_EPOCH_MS = 60_000


def fill(tab, *, preset="ddp", epochs="2"):
    """A job that takes seconds: small pictures, a small model."""
    tab.wait_for_selector(".rs-pictures img")
    for name, text in (("source", "products:ci"), ("model", "test_resnet")):
        tab.locator(f"#field-{name} input").fill(text)
        tab.locator(f"#field-{name} input").press("Enter")
    tab.locator("#field-epochs input").fill(epochs)
    tab.locator("#field-epochs input").blur()
    tab.locator(f"label:has(input[value={preset}])").click()
    tab.wait_for_selector("#data-facts >> text=synthetic")


def run_of(tab):
    """The id in the address of a run page."""
    tab.wait_for_url("**/runs?run=*")
    return tab.url.partition("run=")[2]


def tile(tab, words):
    """The large number above these words."""
    found = tab.locator(".rs-tile", has_text=words).locator("b")
    found.wait_for()
    return found.inner_text()


@pytest.fixture
def story(site):
    """The runs so far, oldest first: the baseline, DDP, and the one that was stopped."""
    runs = list(reversed(site.runs()))
    if len(runs) < 3:
        pytest.skip("needs the runs of the tests before it: run the whole file")
    return runs


def test_a_refusal_is_said_before_start(open_tab):
    tab = open_tab()
    fill(tab)
    tab.locator("#field-batch input").fill("33")
    tab.locator(".rs-refused").wait_for()
    assert "choose 32 or 34" in tab.locator("#plan").inner_text()
    assert not tab.locator("#start").is_enabled()
    tab.locator("#field-batch input").fill("")
    tab.locator(".rs-refused").wait_for(state="detached")
    assert tab.locator("#start").is_enabled()


def test_cards_answer_to_the_keyboard(open_tab):
    tab = open_tab()
    tab.wait_for_selector(".rs-pictures img")
    tab.locator("input[value=ddp]").focus()
    tab.keyboard.press("ArrowDown")
    tab.wait_for_selector("#plan >> text=bf16")
    assert tab.locator("input[value=ddp_bf16]").is_checked()
    assert tab.locator("input[value=ddp_fp16]").is_disabled()


def test_preview_shows_files_and_command(open_tab):
    tab = open_tab()
    fill(tab)
    tab.locator("#preview").click()
    tab.wait_for_selector("#preview-command >> text=accelerate.commands.launch")
    assert "MULTI_GPU" in tab.locator("#preview-accelerate").inner_text()
    assert "The preset, unchanged" in tab.locator("#preview-card").inner_text()


def test_the_baseline_is_one_click_away(open_tab, site):
    tab = open_tab()
    fill(tab)
    tab.wait_for_selector("#baseline >> text=/No baseline yet/i")
    tab.locator("#measure-baseline").click()
    run_id = run_of(tab)
    tab.wait_for_selector("#epochs tbody tr", timeout=FIRST_EPOCH_MS)
    tab.wait_for_selector("#run-head [data-state=completed]", timeout=FIRST_EPOCH_MS)
    assert fold_run(site.runs()[0]).spec.preset == "single"
    assert site.runs()[0].id == run_id


def test_start_twice_is_one_run_and_it_goes_on_without_the_page(open_tab, site):
    tab = open_tab()
    fill(tab)
    tab.wait_for_selector("#baseline >> text=/measured against/i")
    tab.locator("#start").dblclick()
    run_of(tab)
    tab.context.close()
    run = site.runs()[0]
    assert len(site.runs()) == 2
    assert wait_until(lambda: fold_run(run).final, 60)
    tab = open_tab(f"/runs?run={run.name}")
    tab.wait_for_selector("#run-head [data-state=completed]")
    assert re.fullmatch(r"\d\.\d\d×", tile(tab, "weak scaling"))
    assert re.fullmatch(r"0\.\d{3}", tile(tab, "macro AUC"))
    assert tab.locator("#epochs tbody tr").count() == 2
    assert "[rank 0]" in tab.locator("#log").inner_text()


def test_a_number_that_reads_0_leaves_the_plan_alone_and_start_refuses_it(open_tab, site):
    """So an empty field reads while a page loads; a person may type it too."""
    before = [run.id for run in site.runs()]
    tab = open_tab()
    tab.wait_for_selector("#plan >> text=/2 processes on CPU/")
    tab.locator("#field-processes input").fill("0")
    tab.locator("#field-processes input").blur()
    tab.locator("#start").click()
    tab.get_by_text("processes must be at least 1, not 0.").first.wait_for()
    # The plan of this form was made long before Start was refused.
    assert "2 processes on CPU" in tab.locator("#plan").inner_text()
    assert [run.id for run in site.runs()] == before


# The colours of the words as they are seen: CSS may darken them. WCAG 2.2 asks 4.5 of small text.
LEAST_CONTRAST = """() => {
  const luminance = rgb => rgb.map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const rgb = text => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const contrasts = [...document.querySelectorAll('#preview-card .cm-line span')].map(word => {
    let behind = word;
    const seen = one => !/, 0\\)$/.test(getComputedStyle(one).backgroundColor);
    while (!seen(behind)) behind = behind.parentElement;
    const style = getComputedStyle(word), by = /brightness\\(([\\d.]+)\\)/.exec(style.filter);
    const [a, b] = [rgb(style.color).map(v => v * (by ? Number(by[1]) : 1)),
                    rgb(getComputedStyle(behind).backgroundColor)].map(luminance);
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  });
  return [contrasts.length, Math.min(...contrasts)];
}"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_commands_and_files_can_be_read(open_tab, dark):
    tab = open_tab(dark=dark)
    tab.wait_for_selector("#plan >> text=2 processes on CPU")
    tab.locator("#preview").click()
    tab.wait_for_selector("#preview-command >> text=accelerate.commands.launch")
    words, least = tab.evaluate(LEAST_CONTRAST)
    assert words > 20
    assert least >= 4.5


def test_stop_is_believed_only_when_it_is_true(open_tab, site):
    tab = open_tab()
    fill(tab, epochs="900")
    tab.locator("#start").click()
    run_id = run_of(tab)
    tab.wait_for_selector("#epochs tbody tr", timeout=FIRST_EPOCH_MS)
    site.kill()  # a run does not need the server, and the page finds back to a new one
    site.start()
    with suppress(Error):  # A page that has found the server again may be loading itself anew.
        tab.reload()
    tab.wait_for_selector("#run-head [data-state=running]")
    tab.locator("#profile").click()
    tab.wait_for_selector("#step >> text=/Traces of . steps/", timeout=60_000)
    tab.locator("#stop").click()
    tab.wait_for_selector("#run-head [data-state=stopped]", timeout=60_000)
    assert run_processes(run_id) == set()
    tab.reload()
    tab.wait_for_selector("#run-head [data-state=stopped]")
    assert not tab.locator("#stop").is_visible()
    assert tab.locator("#epochs tbody tr").count() >= 1


def test_compare_the_two(open_tab, story):
    names = [run.name for run in story[:2]]
    tab = open_tab(f"/compare?runs={','.join(names)}")
    tab.wait_for_selector("#comparison tbody tr:nth-child(2)")
    assert "weak scaling" in tab.locator("#comparison").inner_text()
    assert tab.locator(".rs-charts figure").count() == 3


def test_an_address_of_no_run_says_so_and_shows_the_list(open_tab, site):
    tab = open_tab("/runs?run=no-such-run")
    tab.wait_for_selector("#notice >> text=No run 'no-such-run'")
    assert tab.locator("#run-list tbody tr").count() == len(site.runs())


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_page_fits(open_tab, fits, story, dark):
    run = story[1].id
    paths = {"train": "/", "run": f"/runs?run={run}", "compare": "/compare"}
    ready = {"train": ".rs-pictures img", "run": "figure[data-plot=loss] svg",
             "compare": "#comparison td"}  # fmt: skip
    for name, path in paths.items():
        tab = open_tab(path, dark=dark)
        tab.wait_for_selector(ready[name])
        fits(tab, f"{name}-{'dark' if dark else 'light'}")
        tab.context.close()
