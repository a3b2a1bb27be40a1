"""What a check says about a set of traces."""

from __future__ import annotations

from typing import Literal

import msgspec

Cause = Literal[
    "data", "launch", "late_rank", "link", "host_sync", "unbucketed", "unused_parameters",
    "sync_batchnorm", "data_parallel", "compute", "environment", "none", "unexplained",
]  # fmt: skip
Confidence = Literal["high", "medium", "low", "not enough data"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One cause that holds a run back; `code` is that of the check, with a page in docs/checks.

    `share_ratio`: of the step of the rank that sets the pace, an upper bound of the gain; None
    where it cannot be measured. `refutation`: what would show that the finding is wrong.
    `is_minor`: gives way to every finding that is not.
    """

    code: str
    cause: Cause
    share_ratio: float | None
    sentence: str
    confidence: Confidence
    refutation: str
    is_minor: bool = False


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The cause to look at first, and what else was found, in that order."""

    first: Finding
    others: tuple[Finding, ...] = ()
