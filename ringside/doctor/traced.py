"""The findings of the traces, as findings of the doctor: with figures, files and what to try."""

from __future__ import annotations

from collections.abc import Iterator

from ringside.doctor.applying import remedy_of
from ringside.doctor.bands import severity_of
from ringside.doctor.case import Case
from ringside.doctor.figures import spec_of
from ringside.doctor.findings import Evidence, Finding, Severity
from ringside.doctor.phrasing import Remedy, file_of, key_of, seen
from ringside.doctor.variables import forced_ways
from ringside.doctor.weighing import HANDICAPS
from ringside.trace import Facts, RankFacts
from ringside.trace import Finding as TraceFinding
from ringside.trace.judging import all_checks, lacking
from ringside.words import catalogue, say

# Parts of the breakdown that are shown for every finding, largest first, from this share on.
SHOWN = 0.03
MAX_BUCKETS = 3


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
    remedy = _remedy(found, case)
    return Finding(
        code=found.code,
        cause=found.cause,
        severity=_severity(found),
        sentence=found.sentence,
        evidence=(*_own(found.code, case.facts), *evidence_of(case.facts.pace)),
        share_ratio=found.share_ratio,
        gain_ratio=_gain(found),
        confidence=found.confidence,
        refutation=found.refutation,
        next_step=_next_step(found, remedy),
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
    if code == "DATA-001":
        return (("data", f"{host.data_wait_us / num / 1000:.1f} ms"),)
    if code == "BUCKET-001":
        return (("reduces", f"{rank.num_all_reduces:.0f}"),)
    if code == "UNUSED-001":
        return (("searches", f"{host.num_searches:.0f}"),)
    if code in ("LATE-001", "LATE-002", "LINK-001"):
        waiting = f"{rank.breakdown.ratio('exposed_wait'):.1%}"
        return (("computing", f"{rank.breakdown.compute_us / num / 1000:.1f} ms"),
                ("waiting", waiting))  # fmt: skip
    return ()


def evidence_of(rank: RankFacts) -> tuple[Evidence, ...]:
    """The parts of a step of a rank, and its largest messages with their bandwidth."""
    return (*_parts(rank), *_messages(rank))


def _parts(rank: RankFacts) -> Iterator[Evidence]:
    step_ms = rank.breakdown.wall_us / rank.num_counted_steps / 1000
    yield seen(say("doctor.step", rank=rank.rank), f"{step_ms:.1f} ms", file_of(rank))
    parts = [(rank.breakdown.ratio(name), name) for name in PARTS]
    for share, name in sorted(parts, reverse=True):
        if share >= SHOWN:
            yield seen(say(f"doctor.part_{name}"), f"{share:.0%}", file_of(rank))


def _messages(rank: RankFacts) -> Iterator[Evidence]:
    for bucket in rank.buckets[:MAX_BUCKETS]:
        if not bucket.num_bytes:
            continue
        value = f"{bucket.num_bytes / 1e6:.2f} MB in {bucket.transfer_us / 1000:.2f} ms"
        if bucket.busbw_bytes_per_s:
            value += f", {bucket.busbw_bytes_per_s / 1e9:.2f} GB/s"
        label = say("doctor.message", operation=(bucket.operation or "").replace("_", "-"))
        yield seen(label, value, file_of(rank))


PARTS = (
    "compute", "exposed_transfer", "exposed_wait", "memory", "data_idle", "host_wait",
    "kernel_wait", "other_idle",
)  # fmt: skip


def _severity(found: TraceFinding) -> Severity:
    if found.cause == "compute":
        return "note"
    severity = severity_of(found.share_ratio)
    return "warning" if severity == "note" and found.cause in HANDICAPS else severity


def _gain(found: TraceFinding) -> float | None:
    """What a GPU computes is no loss, and the search for unused parameters is not all of theirs."""
    return None if found.cause in ("compute", "unused_parameters") else found.share_ratio


def _remedy(found: TraceFinding, case: Case) -> Remedy:
    """A way that is shut by hand is opened before bytes are saved on the slower one."""
    if found.code == "LINK-001":
        forced = forced_ways(case)
        if forced:
            return Remedy(unset=forced)
    return remedy_of(found.code, spec_of(case))


def _next_step(found: TraceFinding, remedy: Remedy) -> str:
    if remedy.unset:
        return say("doctor.link_001_next_forced", names=", ".join(remedy.unset))
    key = f"doctor.{key_of(found.code)}_next"
    return say(key) if key in catalogue() else found.refutation
