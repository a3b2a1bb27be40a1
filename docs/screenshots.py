"""Pictures of the page, from a folder of runs.

    python docs/screenshots.py RUNS --doctor sunny-vole --compare pale-fox calm-otter
    python docs/screenshots.py RUNS --out docs/images --only doctor-light-1280 doctor-dark-390

Each of train, runs, compare, doctor and library in light and dark, 1280 and 390 pixels wide, as
PAGE-THEME-WIDTH.png with 256 colours. The library is that of XDG_DATA_HOME. Needs a Chromium on
this machine.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Collection, Iterator
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from PIL import Image

from app.page import open_server
from ringside.errors import RingsideError
from ringside.rundir import find_run

THEMES, WIDTHS = ("light", "dark"), (1280, 390)
HEIGHT, MAX_HEIGHT = 900, 1500
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# Where each page has what it is about.
READY = {
    "train": "#plan [role=status]",
    "runs": ".rs-tile",
    "compare": ".rs-charts figure",
    "doctor": "#charts figure",
    "library": ".rs-shelf li",
}
COLOURS = 256
TIMEOUT_MS = 90_000
SETTLE_MS = 700


def main() -> int:
    """Serve the runs, and write the pictures; 2 without a browser or a run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", type=Path)
    parser.add_argument("--out", type=Path, default=Path("artefacts"))
    parser.add_argument("--doctor", default="last", metavar="RUN")
    parser.add_argument("--compare", nargs="+", default=[], metavar="RUN")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="doctor-dark-390 ...")
    given = parser.parse_args()
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        print(f"There is no browser: one of {', '.join(BROWSERS)} is needed.", file=sys.stderr)
        return 2
    from playwright.sync_api import sync_playwright

    pages = addresses(given.runs, given.doctor, given.compare)
    server = open_server(runs_root=given.runs)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for file in take(browser, server.url, pages, given.out, given.only):
            print(f"{file}, {file.stat().st_size / 1000:.0f} kB")
        browser.close()
    server.close()
    return 0


def addresses(root: Path, doctor: str, compared: Collection[str]) -> dict[str, str]:
    """The address of each page; RunDirError for a run that is not below `root`."""
    run = find_run(root, doctor).id
    pages = {"train": "/", "runs": f"/runs?run={run}", "doctor": f"/doctor?run={run}"}
    pages["library"] = "/library?preset=ddp_bf16_compress"
    if compared:
        runs = ",".join(find_run(root, one).id for one in compared)
        pages["compare"] = f"/compare?{urlencode({'runs': runs})}"
    return pages


def take(
    browser: Any, url: str, pages: dict[str, str], out: Path, only: Collection[str] = ()
) -> Iterator[Path]:
    """Write a picture of each page, theme and width, or only those named; one after the other."""
    out.mkdir(parents=True, exist_ok=True)
    for name, theme, width in product(pages, THEMES, WIDTHS):
        file = out / f"{name}-{theme}-{width}.png"
        if only and file.stem not in only:
            continue
        tab = browser.new_page(
            viewport={"width": width, "height": HEIGHT}, color_scheme=theme, locale="en"
        )
        tab.goto(url + pages[name])
        tab.locator(READY[name]).first.wait_for(timeout=TIMEOUT_MS)
        tab.wait_for_timeout(SETTLE_MS)
        height = min(tab.evaluate("document.documentElement.scrollHeight"), MAX_HEIGHT)
        area = {"x": 0, "y": 0, "width": width, "height": height}
        tab.screenshot(path=file, full_page=True, clip=area)
        tab.close()
        with Image.open(file) as picture:
            picture.convert("RGB").quantize(COLOURS).save(file, optimize=True)
        yield file


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RingsideError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
