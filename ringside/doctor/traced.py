"""The findings of the traces, as findings of the doctor: with figures, files and what to try."""

from __future__ import annotations

from collections.abc import Iterator

from ringside.doctor.applying import remedy_of
from ringside.doctor.bands import severity_of
from ringside.doctor.case import Case
from ringside.doctor.decoding import decoding_to_try
from ringside.doctor.figures import spec_of
from ringside.doctor.findings import Evidence, Finding, Severity
from ringside.doctor.gains import with_bound
from ringside.doctor.phrasing import Remedy, file_of, key_of, seen
from ringside.doctor.shares import Stretch, at_most_medium, both_steps, share_of, stretch_of
from ringside.doctor.variables import forced_ways, taking_away
from ringside.doctor.weighing import HANDICAPS
from ringside.trace import Facts, RankFacts
from ringside.trace import Finding as TraceFinding
from ringside.trace.findings import Cause
from ringside.trace.judging import all_checks, lacking
from ringside.words import catalogue, percent, say

# Parts of the breakdown that are shown for every finding, largest first, from this share on.
SHOWN = 0.03
MAX_BUCKETS = 1
# What is switched on needlessly. A wait for the GPU that costs the run's own step little is not.
_WHATEVER_THEY_COST = HANDICAPS - {"host_sync"}


def trace_findings(case: Case) -> Iterator[tuple[int, Finding]]:
    """Each finding of the trace checks with its place in the order."""
    if case.facts is None or lacking(case.facts) is not None:
        return
    for check in all_checks():
        found = check.check(case.facts)
        if found is not None:
            yield check.ORDER, as_finding(found, case)


def as_finding(found: TraceFinding, case: Case) -> Finding:
    """A trace's finding with evidence, next step and remedy."""
    assert case.facts is not None
    remedy, how = _remedy(found, case)
    share = _share(found, case)
    stretch = stretch_of(case)
    evidence = (*_own(found.code, case.facts), *_parts(case.facts.pace, stretch))
    is_launch = found.cause == "launch"
    return Finding(
        code=found.code,
        cause=found.cause,
        severity=_severity(found.cause, share),
        sentence=" ".join([found.sentence, *_of_own_step(share, case)]),
        evidence=(*both_steps(case), *evidence, *_messages(case.facts.pace)),
        share_ratio=share,
        gain_ratio=_gain(found, share, remedy),
        confidence=at_most_medium(case, found.confidence) if is_launch else found.confidence,
        refutation=found.refutation,
        next_step=_next_step(found, how, case),
        preset=remedy.preset,
        overrides=dict(remedy.overrides),
        unset=remedy.unset,
    )


def _own(code: str, facts: Facts) -> Iterator[Evidence]:
    """What is seen of this cause alone."""
    for rank in facts.ranks:
        for name, value in _signs(code, rank):
            label = f"{say(f'doctor.sign_{name}')}, {say('doctor.rank', rank=rank.rank)}"
            yield seen(label, value, file_of(rank))


def _signs(code: str, rank: RankFacts) -> tuple[tuple[str, str], ...]:
    host, num = rank.host, rank.num_counted_steps
    if code == "HOST-001":
        us = max(host.synchronised_us, host.item_us) / num
        return (("syncs", f"{host.num_synchronisations:.0f}"), ("syncing", f"{us / 1000:.1f} ms"))
    if code == "LINK-003":
        return (
            ("persistent", f"{rank.num_persistent:.0f}"),
            ("hidden", percent(rank.hidden_ratio, 1)),
        )
    if code == "DATA-001":
        return (("data", f"{host.data_wait_us / num / 1000:.1f} ms"),)
    if code == "BUCKET-001":
        return (("reduces", f"{rank.num_all_reduces:.0f}"),)
    if code == "UNUSED-001":
        return (("searches", f"{host.num_searches:.0f}"),)
    if code in ("LATE-001", "LATE-002"):
        waiting = percent(rank.breakdown.ratio("exposed_wait"), 1)
        return (("computing", f"{rank.breakdown.compute_us / num / 1000:.1f} ms"),
                ("waiting", waiting))  # fmt: skip
    return ()


def _parts(rank: RankFacts, stretch: Stretch | None) -> Iterator[Evidence]:
    """The parts of a rank's step, in milliseconds where they are shares of a longer one."""
    step_ms = rank.breakdown.wall_us / rank.num_counted_steps / 1000
    if stretch is None:
        yield seen(say("doctor.step", rank=rank.rank), f"{step_ms:.1f} ms", file_of(rank))
    parts = [(rank.breakdown.ratio(name), name) for name in PARTS]
    for share, name in sorted(parts, reverse=True):
        if share >= SHOWN:
            value = percent(share)
            if stretch is not None:
                value = say("seen.profiled", amount=f"{share * step_ms:.1f} ms")
            yield seen(say(f"doctor.part_{name}"), value, file_of(rank))
    if rank.host.num_logging_syncs and rank.host.logging_us >= SHOWN * rank.breakdown.wall_us:
        ms = rank.host.logging_us / rank.num_counted_steps / 1000
        yield seen(say("doctor.sign_logging"), f"{ms:.1f} ms", file_of(rank))


def _messages(rank: RankFacts) -> Iterator[Evidence]:
    """The largest message with its bandwidth."""
    for bucket in rank.buckets[:MAX_BUCKETS]:
        if not bucket.num_bytes:
            continue
        mb, ms = bucket.num_bytes / 1e6, bucket.transfer_us / 1000
        value = say("seen.message", mb=mb, ms=ms)
        if bucket.busbw_bytes_per_s:
            value = say("seen.message_at", mb=mb, ms=ms, rate=bucket.busbw_bytes_per_s / 1e9)
        label = say("doctor.message", operation=(bucket.operation or "").replace("_", "-"))
        yield seen(label, value, file_of(rank))


PARTS = (
    "compute", "exposed_transfer", "exposed_wait", "memory", "data_idle", "host_wait",
    "kernel_wait", "other_idle",
)  # fmt: skip


def _share(found: TraceFinding, case: Case) -> float | None:
    """Of the run's own step."""
    if found.share_ratio is None:
        return None
    part = {"launch": "host_wait", "host_sync": "host_wait", "compute": "work"}.get(found.cause, "")
    return share_of(case, found.share_ratio, part=part)


def _of_own_step(share: float | None, case: Case) -> Iterator[str]:
    """The trace's sentence speaks of the profiled step."""
    stretch = stretch_of(case)
    if stretch is not None and share is not None:
        yield say("doctor.of_own_step", ms=stretch.own_ms, share=share)


def _severity(cause: Cause, share: float | None) -> Severity:
    if cause == "compute":
        return "note"
    severity = severity_of(share)
    return "warning" if severity == "note" and cause in _WHATEVER_THEY_COST else severity


def _gain(found: TraceFinding, share: float | None, remedy: Remedy) -> float | None:
    """What a GPU computes is no loss, and the search for unused parameters is not all of theirs."""
    if found.cause in ("compute", "unused_parameters"):
        return None
    return share if remedy.gain_ratio is None else remedy.gain_ratio


def _remedy(found: TraceFinding, case: Case) -> tuple[Remedy, str | None]:
    """A way that is shut by hand is opened before bytes are saved on the slower one."""
    how = None
    remedy = remedy_of(found.code, spec_of(case))
    if found.code == "LINK-001":
        if forced := forced_ways(case):
            remedy, how = taking_away(forced, case)
        remedy = with_bound(remedy, case)
    return remedy, how


def _next_step(found: TraceFinding, how: str | None, case: Case) -> str:
    if how is not None:
        return say("doctor.link_001_next_forced", how=how)
    key = f"doctor.{key_of(found.code)}_next"
    if key not in catalogue():
        return found.refutation
    return say(key, decoding=decoding_to_try(case))
