"""What a check found, on the page: bounded, escaped, and with the same consequence as elsewhere."""

from __future__ import annotations

import re

import pytest

from app.page.draw.check import check_details, check_panel
from app.views.check import MAX_BAD, MAX_BARS, MAX_FOLDED, check_view
from app.views.check_messages import OddPicture
from app.views.checks import CheckState
from ringside.data import DataReport
from ringside.data.check.report import BadFile, ClassCount, UnusualImages
from ringside.data.notes import Note


def report_of(**changes) -> DataReport:
    values = {
        "data": "/d", "root": "/d", "task": "multi_label", "layout": "A <table>.", "num_files": 9,
        "num_usable": 8, "num_train": 6, "num_val": 2, "bad": (), "unusual": (), "warnings": (),
        "notes": (), "classes": (ClassCount(name="cat", train=6, val=2),),
    }  # fmt: skip
    return DataReport(**values | changes)


def bad(number: int, **changes) -> tuple[BadFile, ...]:
    return tuple(
        BadFile(file=f"{i}.jpg", code="empty", reason="is empty: replace it.", **changes)
        for i in range(number)
    )


def view_of(**changes):
    return check_view(report_of(**changes), (), 1000.0)


def test_the_verdict():
    assert view_of().verdict == "Every file can be used."
    assert view_of(bad=bad(3)).verdict.startswith("3 bad files: a run stops at the first one")
    unused = view_of(bad=bad(1, is_used=False))
    assert unused.is_fine
    assert unused.bad == (("0.jpg", "is empty: replace it (no run uses it)"),)
    assert "nothing to use" in view_of(num_usable=0).verdict


def test_a_long_list_is_cut_and_the_rest_counted():
    view = view_of(bad=bad(MAX_BAD + 1500))
    assert len(view.bad) == MAX_BAD
    assert view.more_bad == "and 1,500 more"
    assert view_of(bad=bad(MAX_BAD)).more_bad == ""


def test_bars_are_shares_of_the_largest_class_and_the_rarest_comes_first():
    classes = [ClassCount(name=f"c{i:03}", train=i, val=1) for i in range(1, 301)]
    view = view_of(classes=tuple(reversed(classes)))
    assert (len(view.bars), len(view.folded_bars)) == (MAX_BARS, MAX_FOLDED)
    assert view.more_classes == f"and {300 - MAX_BARS - MAX_FOLDED} more"
    assert [bar.name for bar in view.bars[:2]] == ["c001", "c002"]
    assert view.bars[0].train_share == pytest.approx(1 / 301)
    (only,) = view_of().bars
    assert (only.train_share, only.val_share) == (0.75, 0.25)
    empty = view_of(classes=(ClassCount(name="none", train=0, val=0),))
    assert empty.bars[0].train_share == 0.0


def test_pictures_stand_with_their_kind():
    unusual = (
        UnusualImages(kind="CMYK", num_images=7, examples=("a.jpg",)),
        UnusualImages(kind="alpha", num_images=1, examples=("b.png",)),
    )
    odd = [OddPicture("alpha", "b.png", b"png")]
    cmyk, alpha = check_view(report_of(unusual=unusual), odd, None).odd
    assert cmyk.line == "CMYK, 7 images: turned into RGB"
    assert cmyk.pictures == ()
    assert alpha.pictures == (("b.png", "data:image/png;base64,cG5n"),)


def test_names_from_outside_are_escaped():
    state = CheckState(
        "done",
        report=report_of(
            bad=(BadFile(file="<img src=x>.jpg", code="empty", reason="is <b>empty</b>"),),
            classes=(ClassCount(name='"><script>', train=1, val=1),),
            unusual=(UnusualImages(kind="alpha", num_images=1, examples=('"><u>.png',)),),
            warnings=(Note("blanks", "<i>"),),
        ),
        odd=(OddPicture("alpha", '"><u>.png', b"png"),),
    )
    html = check_panel(state) + check_details(state)
    assert not re.search(r"<(img src=x|b>empty|script|u>|i>|table>)", html)
    assert "&lt;img src=x&gt;.jpg" in html
    assert "&quot;&gt;&lt;u&gt;.png" in html


def test_before_during_and_after():
    assert "decodes every picture" in check_panel(CheckState())
    assert "<progress aria" in check_panel(CheckState("running"))
    half = check_panel(CheckState("running", done=5, total=1000))
    assert 'value="5" max="1000"' in half
    assert "5 of 1,000 pictures decoded" in half
    assert "Stopping" in check_panel(CheckState("stopping", done=5, total=10))
    assert "No such" in check_panel(CheckState("failed", sentence="No such folder."))
    assert check_details(CheckState("running")) == ""
