"""`index.html` of a playbook, opened from the disk as a colleague does."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from app.views.playbook_export import export_playbook

pytestmark = pytest.mark.browser
RUN = "20260131-150000-swift-heron"


@pytest.fixture
def file(root: Path, write_run: Any, make_spec: Any, tmp_path: Path) -> Path:
    """The page of a playbook of one run."""
    write_run(make_spec("ddp"), RUN)
    made = export_playbook(root, [RUN], target=tmp_path / "one.zip", title="One run")
    with ZipFile(made) as opened:
        opened.extractall(tmp_path)
    return tmp_path / "one-run" / "index.html"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_one_request_no_complaint_and_nothing_wider_than_the_window(chromium, file, scheme):
    requests: list[str] = []
    complaints: list[str] = []
    for width in (1280, 390):
        context = chromium.new_context(
            color_scheme=scheme, viewport={"width": width, "height": 800}, offline=True
        )
        page = context.new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.goto(file.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") == width
        shown = [
            name for name in (".large", ".small") if page.locator(f"{name} svg").first.is_visible()
        ]
        assert shown == [".large" if width > 720 else ".small"]
        ink, paper = page.evaluate(
            "(style => [style.color, style.backgroundColor])(getComputedStyle(document.body))"
        )
        assert (brightness(ink) > brightness(paper)) == (scheme == "dark")
        context.close()
    assert requests == [file.as_uri()] * 2
    assert complaints == []


def brightness(colour: str) -> int:
    """The sum of the parts of `rgb(1, 2, 3)`."""
    return sum(map(int, colour.removeprefix("rgb(").removesuffix(")").split(",")))
