"""The page in the system's Chromium, served by a process of its own that can be ended."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ringside.launch.stop import stop_run
from ringside.rundir import RunDir, list_run_dirs

FOLDER = Path(__file__).parents[2]
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
]  # fmt: skip
OURS = re.compile("Error (executing js_on_load|evaluating template)")
SERVE = (
    "import sys, pathlib; from app.page import serve; "
    "serve(runs_root=pathlib.Path(sys.argv[1]), port=int(sys.argv[2]))"
)


class Site:
    """A server that can be killed and started again on the same port; `script` serves."""

    script = SERVE

    def __init__(self, root: Path) -> None:
        self.root = root
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start and wait until it answers."""
        log = (self.root.parent / "server.log").open("ab")
        # No preset of the person who runs the tests may appear among the cards.
        environment = os.environ | {"XDG_DATA_HOME": str(self.root.parent / "home")}
        argv = [sys.executable, "-c", self.script, str(self.root), str(self.port)]
        self.process = subprocess.Popen(argv, cwd=FOLDER, env=environment, stdout=log, stderr=log)
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                httpx.get(self.url)
                return
            except httpx.TransportError:
                time.sleep(0.2)
        self.kill()
        pytest.fail(f"The server did not start: {log.name}")

    def kill(self) -> None:
        """End it as a crash would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def runs(self) -> list[RunDir]:
        """Its runs, newest first."""
        return list_run_dirs(self.root)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    served = Site(tmp_path_factory.mktemp("page") / "runs")
    served.root.mkdir()
    served.start()
    yield served
    for run in served.runs():
        stop_run(run, timeout_s=20)
    served.kill()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    path = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if path is None:
        pytest.skip("no Chromium on this machine")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_tab(chromium: Any, site: Site) -> Iterator[Callable[..., Any]]:
    """Open a page of the site; a request to elsewhere or an error in the page fails the test."""
    contexts, foreign, errors = [], [], []

    def open_page(path: str = "/", *, width: int = 1280, dark: bool = False) -> Any:
        scheme = "dark" if dark else "light"
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme
        )
        contexts.append(context)
        tab = context.new_page()
        tab.set_default_timeout(45_000)
        own = (site.url, "data:", "blob:")
        tab.on("request", lambda r: r.url.startswith(own) or foreign.append(r.url))
        tab.on("pageerror", lambda error: errors.append(str(error)))
        # What fails in a script or a template of ours, Gradio writes to the console.
        tab.on("console", lambda m: errors.append(m.text) if OURS.match(m.text) else None)
        tab.goto(site.url + path)
        tab.wait_for_selector(".rs-header")
        return tab

    yield open_page
    for context in contexts:
        context.close()
    assert foreign == []
    assert [error for error in errors if "abort" not in error.lower()] == []


CUT_BUTTONS = """[...document.querySelectorAll("button")].filter((button) => {
  if (!button.offsetParent || button.getBoundingClientRect().right <= innerWidth) return false;
  for (let box = button.parentElement; box; box = box.parentElement)
    if (["auto", "scroll"].includes(getComputedStyle(box).overflowX)) return false;
  return true;
}).map((button) => button.innerText)"""
"""What the edge of the window cuts off; a table that scrolls may be wider."""


@pytest.fixture
def fits(artefacts: Path) -> Callable[..., None]:
    """Nothing is wider than the window, wide or narrow; `fits(tab, "train-light")` keeps both."""

    def look(tab: Any, name: str) -> None:
        for width in (1280, 390):
            tab.set_viewport_size({"width": width, "height": 900})
            # Charts are drawn anew for their new width.
            tab.wait_for_function("document.documentElement.scrollWidth <= innerWidth")
            assert tab.evaluate(CUT_BUTTONS) == []
            tab.screenshot(path=artefacts / f"{name}-{width}.png", full_page=True)

    return look


@pytest.fixture(scope="session")
def artefacts() -> Path:
    """Where pictures are kept."""
    folder = FOLDER / "artefacts"
    folder.mkdir(exist_ok=True)
    return folder
