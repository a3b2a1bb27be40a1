"""Whether every picture can be read, by the last check of the data."""

from __future__ import annotations

from ringside.preflight.case import Case
from ringside.preflight.items import Remark, remark
from ringside.words import say_count

CODE, ORDER = "data", 30


def check(case: Case) -> Remark | None:
    data, report = case.data, case.report
    if data is None or (data.path is None and data.repository is None):
        return None  # shipped with Ringside, or drawn by it
    if report is None:
        return remark("unknown", "data_unchecked")
    if not report.num_usable:
        return remark("error", "data_unusable")
    left = report.skip - set(data.skip)
    if left:
        return remark("warning", "data_bad", bad=say_count("bad_file", len(left)), first=min(left))
    return remark("fine", "data_fine", n=say_count("picture", report.num_usable))
