"""A person moves waiting runs on the Runs page, pauses the queue, and stops one that waits."""

from __future__ import annotations

import sys

import msgspec
import pytest

from ringside.hardware import Hardware
from ringside.identity import wait_until
from ringside.launch import local, queue
from ringside.launch.claims import Claims
from ringside.launch.plan import LaunchPlan
from ringside.records import read_exit
from ringside.run import fold_run

pytestmark = pytest.mark.browser

TRAINER = """
import pathlib, sys, time
run = pathlib.Path(sys.argv[1])
print("ready")
while not any((run / name).exists() for name in ("go", "requests/stop.json")):
    time.sleep(0.02)
"""


@pytest.fixture
def runs(site, make_spec, monkeypatch):
    """One run holds GPU 0 and 1, and three wait for them."""

    def plan(_spec, run):
        argv = [sys.executable, "-I", "-S", "-u", "-c", TRAINER, str(run.path)]
        return LaunchPlan(argv=argv, environment={"RINGSIDE_RUN": run.id}, cwd=str(run.path))

    monkeypatch.setattr(local, "make_plan", plan)
    wish = msgspec.structs.replace(make_spec("ddp"), device="cuda", gpu_ids=(0, 1), queue=True)
    return [local.start_run(wish, Hardware(), site.root) for _ in range(4)]


def line(site):
    return [place.name for place in queue.places(Claims(site.root))]


def shown(tab, run, text):
    tab.wait_for_selector(f"#run-list tr:has(a:text-is('{run.name}')) small >> text={text}")


def press(tab, run, direction):
    row = f"#run-list tr:has(a:text-is('{run.name}'))"
    tab.locator(f"{row} button[data-move={direction}]").click()


def test_waiting_runs_are_moved_paused_and_stopped(open_tab, artefacts, site, runs):
    holder, first, second, third = runs
    for width, dark in ((1280, False), (390, True)):
        shot = open_tab("/runs", width=width, dark=dark)
        shown(shot, third, "3rd in the queue")
        theme = "dark" if dark else "light"
        shot.screenshot(path=artefacts / f"queue-{theme}-{width}.png", full_page=True)
        assert shot.evaluate("document.documentElement.scrollWidth") <= width
        shot.context.close()

    tab = open_tab(f"/runs?run={third.id}")
    shown(tab, first, f"1st in the queue, waits for {holder.name} (GPU 0, 1)")
    press(tab, third, "first")
    shown(tab, third, "1st in the queue")
    shown(tab, second, "3rd in the queue")
    press(tab, first, "down")
    shown(tab, first, "3rd in the queue")
    assert line(site) == [third.name, second.name, first.name]
    press(tab, first, "up")  # by one place, though the page could say so twice
    shown(tab, second, "3rd in the queue")
    tab.wait_for_timeout(500)
    assert line(site) == [third.name, first.name, second.name]
    press(tab, first, "down")
    shown(tab, first, "3rd in the queue")

    tab.locator("#pause-queue").click()
    tab.wait_for_selector("#queue-paused >> text=is paused")
    shown(tab, third, "1st in the queue, which is paused")
    (holder.path / "go").touch()
    assert wait_until(holder.exit.exists, 10)
    assert not wait_until(third.console.exists, 1.5)
    tab.locator("#resume-queue").click()
    tab.wait_for_selector("#queue-paused", state="hidden")
    assert wait_until(third.console.exists, 10)

    tab.goto(f"{site.url}/runs?run={second.id}")
    tab.locator("#stop").click()
    assert wait_until(second.exit.exists, 10)
    assert read_exit(second).reason == "Stopped on request before it started."
    assert fold_run(third).state != "queued"
    assert line(site) == [first.name]
