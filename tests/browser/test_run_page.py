"""The page of a run while it goes on: its log, its curves, a standstill, what is asked of it."""

from __future__ import annotations

import re
import shutil
import time
from contextlib import suppress
from threading import Thread

import msgspec
import pytest

from ringside.events import EventWriter, PhaseStarted, WindowTimed
from ringside.hang import Hang, Standstill
from ringside.marks import Mark
from ringside.records import Failure, RankError, write_exit, write_owner
from ringside.rundir import RunDir, list_run_dirs
from ringside.samples import RankSample, Sample

pytestmark = pytest.mark.browser

LIVE, SAD = "20260101-000000-calm-fox", "20260102-000000-sad-swan"
FRESH = "20260103-000000-new-newt"


class Live:
    """A run that this test owns: it lives, and does what the test says."""

    def __init__(self, run: RunDir) -> None:
        self.run, self.step = run, 0
        for folder in (run.ranks, run.requests, run.logs, run.checkpoints):
            folder.mkdir(exist_ok=True)
        write_owner(run, "supervisor")

    def train(self, num_windows: int, loss: float = 0.5) -> None:
        writer = EventWriter(self.run.events)
        writer.write(PhaseStarted(phase="train", epoch=3))
        for _ in range(num_windows):
            self.step += 10
            writer.write(
                WindowTimed(
                    epoch=3, step=200 + self.step, num_steps=10, samples_per_s=300.0,
                    train_loss=loss * 50 / (50 + self.step), learning_rate=0.001, step_ms=100.0,
                    data_ms=5.0, forward_ms=25.0, backward_ms=50.0, optimizer_ms=15.0,
                    step_ms_min=99.0, data_ms_min=4.0,
                )
            )  # fmt: skip
        writer.close()

    def log(self, text: str) -> None:
        with self.run.console.open("a") as stream:
            stream.write(text)


@pytest.fixture(scope="module")
def _cleared(site):
    yield
    for run in list_run_dirs(site.root):
        shutil.rmtree(run.path, ignore_errors=True)


@pytest.fixture
def live(site, make_spec, write_run, _cleared):
    shutil.rmtree(site.root / LIVE, ignore_errors=True)
    written = write_run(make_spec("ddp"), LIVE, epochs=2, state=None)
    shutil.move(written.path, site.root / LIVE)
    return Live(RunDir(site.root / LIVE))


@pytest.fixture
def failed(site, make_spec, write_run, _cleared):
    written = write_run(make_spec("ddp"), SAD, epochs=1, state=None)
    shutil.move(written.path, site.root / SAD)
    run = RunDir(site.root / SAD)
    run.ranks.mkdir()
    error = RankError(
        rank=1, t=time.time(), sentence="The GPU ran out of memory.", cause="gpu_memory",
        traceback="Traceback (most recent call last):\n  torch.OutOfMemoryError",
    )  # fmt: skip
    run.write(run.ranks / "rank1.error.json", error)
    failure = Failure(rank=1, cause="gpu_memory", kind="out_of_memory")
    write_exit(run, state="failed", reason=error.sentence, return_code=1, failure=failure)
    return run


def take_at_once(request):
    """What a trainer does that looks in the very moment."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with suppress(FileNotFoundError):
            request.unlink()
            return
        time.sleep(0.001)


def follow_polls(tab):
    """The sizes of the requests and answers of ticks from now on, and the names of other polls."""
    ticks, others = [], []

    def note(response):
        if "run/predict" not in response.url:
            return
        sent, got = response.request.post_data or "", response.body()
        is_tick = b'"__type__"' in got and len(got) < 700 and "event_data" not in sent
        (ticks if is_tick else others).append((len(sent), len(got)))

    tab.on("response", note)
    return ticks, others


def test_a_log_is_followed_searched_and_saved(open_tab, live, tmp_path):
    live.log("".join(f"[default0]:[rank 0] line {i} of many words\n" for i in range(20_000)))
    tab = open_tab(f"/runs?run={LIVE}")
    log = tab.locator("#log pre")
    tab.wait_for_selector("#log pre >> text=line 19999")
    assert "line 1 of" not in log.inner_text()
    live.log("10%\r50%\r100% done\n")
    tab.wait_for_selector("#log pre >> text=100% done")
    assert "50%" not in log.inner_text()
    assert log.evaluate("p => p.scrollHeight - p.scrollTop - p.clientHeight < 40")

    search = tab.get_by_label("Search this log")
    search.fill("LINE 1999")
    tab.wait_for_selector("#log .rs-log-count >> text=10 of 10")
    search.press("Enter")
    tab.wait_for_selector("#log .rs-log-count >> text=1 of 10")
    # Whoever looks at something found is not scrolled away by what is new.
    assert tab.locator("#log [data-do=follow]").inner_text() == "Follow"
    before = tab.evaluate("document.querySelector('#log pre').scrollTop")
    live.log("something new\n")
    tab.wait_for_selector("#log pre >> text=something new")
    assert tab.evaluate("document.querySelector('#log pre').scrollTop") == before

    search.fill("line 42 of")
    tab.locator("#log [data-do=whole]").click()
    tab.locator("#log .rs-hits button", has_text="line 42 of").click()
    tab.wait_for_selector("#log pre >> text=line 1 of")
    tab.locator("#log [data-do=end]").click()
    tab.wait_for_selector("#log pre >> text=something new")
    assert "line 42 of" not in log.inner_text()
    tab.locator("#log [data-do=earlier]").click()
    tab.wait_for_function("document.querySelector('#log pre').childElementCount == 2")

    with tab.expect_download() as saved:
        tab.locator("#log [data-do=download]").click()
    assert saved.value.suggested_filename == f"{LIVE}.console.log"
    saved.value.save_as(tmp_path / "saved.log")
    assert (tmp_path / "saved.log").read_bytes() == live.run.console.read_bytes()

    tab.route("**/find?*", lambda route: route.abort())
    tab.locator("#log [data-do=whole]").click()
    tab.wait_for_selector("#log .rs-log-count >> text=The server did not answer")


def test_curves_grow_without_flicker_and_keep_their_choice(open_tab, live):
    live.train(30)
    tab = open_tab(f"/runs?run={LIVE}")
    line = tab.locator("figure[data-plot=loss] polyline.rs-drawn.rs-l-train_loss")
    line.wait_for()
    num_points = "document.querySelector('.rs-drawn.rs-l-train_loss').points.length"
    assert tab.evaluate(num_points) == 30
    tab.evaluate("document.querySelector('figure[data-plot=loss]').mine = true")
    live.train(5)
    tab.wait_for_function(f"{num_points} == 35")
    assert tab.evaluate("document.querySelector('figure[data-plot=loss]').mine")

    tab.locator("#curves [data-set=smoothing]").focus()
    for _ in range(10):
        tab.keyboard.press("ArrowRight")
    tab.locator("#curves [data-set=log]").check()
    tab.locator("#curves [data-set=x]").select_option("epoch")
    tab.locator("#curves [data-plot=step_time]").first.check()
    assert tab.locator("figure[data-plot=loss] .rs-raw").count() == 1
    # Steps of one length are a flat line, which has no height to be seen by.
    tab.wait_for_selector("figure[data-plot=step_time] polyline", state="attached")
    tab.reload()
    tab.wait_for_selector("figure[data-plot=loss] .rs-raw")
    assert tab.locator("#curves [data-set=log]").is_checked()
    assert tab.locator("#curves [data-set=x]").input_value() == "epoch"
    assert tab.locator("figure[data-plot=step_time]").is_visible()
    plot = tab.locator("figure[data-plot=loss] .rs-plot")
    assert "training loss" in plot.get_attribute("aria-label")
    plot.focus()
    tab.keyboard.press("ArrowLeft")
    assert "epoch" in tab.locator("figure[data-plot=loss] .rs-legend").inner_text()


def test_curves_come_to_a_page_that_was_open_before_the_first_step(open_tab, site, live):
    fresh = Live(RunDir(live.run.path.rename(site.root / FRESH)))
    started, *_ = fresh.run.events.read_text().splitlines(keepends=True)
    fresh.run.events.write_text(started)
    tab = open_tab(f"/runs?run={FRESH}")
    tab.wait_for_selector("#curves .rs-no-curve >> text=/no curve/i")
    assert not tab.locator("#curves .rs-curve-fields").is_visible()
    fresh.train(3)
    tab.wait_for_selector("figure[data-plot=loss] svg")
    assert not tab.locator("#curves .rs-no-curve").is_visible()


def test_a_page_with_nothing_new_asks_in_512_bytes(open_tab, live):
    live.train(1)
    tab = open_tab(f"/runs?run={LIVE}")
    tab.wait_for_selector("figure[data-plot=loss] svg")
    tab.wait_for_timeout(1200)
    ticks, others = follow_polls(tab)
    age = tab.locator("#run-head time").inner_text()
    for _ in range(200):
        if len(ticks) > 1:
            break
        tab.wait_for_timeout(100)
    assert len(ticks) > 1
    assert others == []
    assert max(max(sizes) for sizes in ticks) <= 512
    # Ages go on without the server.
    assert re.fullmatch(r"\d+ s", age)
    tab.wait_for_function(
        "age => document.querySelector('#run-head time').innerText !== age", arg=age
    )


def test_a_standstill_and_devices(open_tab, live):
    live.train(3)
    line = Sample(t=time.time(), ranks=(RankSample(rank=0, cpu_cores=1.5, memory_bytes=10**9),))
    live.run.gpus.write_bytes(msgspec.json.encode(line) + b"\n")
    tab = open_tab(f"/runs?run={LIVE}")
    tab.wait_for_selector("#strip >> text=1.5 cores")
    assert not tab.locator("#dump").is_visible()
    mark = Mark(
        rank=1, pid=1, phase="train", activity="data", epoch=3, step=31, batch=1, t=time.time()
    )
    now = Standstill(since=time.time() - 30, limit_s=20.0, step=31, epoch=3, marks=(mark,))
    live.run.write(live.run.hang, Hang().begun(now))
    tab.wait_for_selector("#hang >> text=rank 1 stands at step 31 while loading data")
    assert tab.locator("#dump").get_attribute("title") or tab.wait_for_function("dump.title")
    tab.locator("#dump").click()
    tab.get_by_text("no rank", exact=False).first.wait_for()  # the test is no trainer
    live.run.write(live.run.hang, Hang().begun(now).ended(time.time()))
    tab.wait_for_selector("#hang .rs-ending", state="detached")


def test_requests_are_made_and_shown(open_tab, live):
    live.train(3)
    tab = open_tab(f"/runs?run={LIVE}")
    for button, kind in (("checkpoint", "checkpoint"), ("after-epoch", "stop-after-epoch")):
        tab.locator(f"#{button}").click()
        tab.wait_for_selector(f"#{button}:disabled")
        assert live.run.requested(kind)
    tab.wait_for_selector("#run-head .rs-asked >> text=stops after epoch 3")
    (live.run.requests / "checkpoint.json").unlink()
    tab.wait_for_selector("#checkpoint:enabled")
    taken = Thread(target=take_at_once, args=(live.run.requests / "checkpoint.json",))
    taken.start()
    tab.locator("#checkpoint").click()
    taken.join()
    # Nobody saw the request: it was met before the page asked again.
    tab.wait_for_timeout(1500)
    assert tab.locator("#checkpoint").is_enabled()
    tab.locator("#clone a").click()
    tab.wait_for_url(f"**/?run={LIVE}")
    tab.wait_for_selector("#field-epochs input")


def test_a_failure_tells_the_cause_and_what_to_try(open_tab, failed):
    tab = open_tab(f"/runs?run={failed.name}")
    card = tab.locator("#ending")
    tab.wait_for_selector("#ending >> text=What to try")
    title = card.locator("b").first.inner_text()
    assert title.startswith("Failed on rank 1: ")
    assert "memory" in title
    command = card.locator("li code").first.inner_text()
    assert command.startswith("ringside run ")
    assert not card.locator("pre").is_visible()
    card.locator("summary").click()
    assert "OutOfMemoryError" in card.locator("pre").inner_text()
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    card.locator(".rs-copy").first.click()
    tab.wait_for_selector("#ending .rs-copy >> text=Copied")
    assert tab.evaluate("navigator.clipboard.readText()") == command
    for button in ("stop", "after-epoch", "checkpoint", "profile", "resume"):
        assert not tab.locator(f"#{button}").is_visible()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_fits(open_tab, fits, live, dark):
    live.train(20)
    live.log("a line\n" * 30)
    line = Sample(t=time.time(), ranks=(RankSample(rank=0, cpu_cores=1.5, memory_bytes=10**9),))
    live.run.gpus.write_bytes(msgspec.json.encode(line) + b"\n")
    tab = open_tab(f"/runs?run={LIVE}", dark=dark)
    tab.wait_for_selector("figure[data-plot=loss] polyline")
    tab.wait_for_selector("#strip >> text=1.5 cores")
    fits(tab, f"live-{'dark' if dark else 'light'}")
