"""The command that says what holds a run back."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

from app.commands.printing import printable
from app.commands.reading import print_json
from ringside.doctor import Case, Diagnosis, Finding, case_of_run, diagnose
from ringside.doctor.applying import command_for
from ringside.doctor.walkthrough import Point, walk
from ringside.errors import LaunchError
from ringside.rundir import RunDir, find_run, runs_root
from ringside.spec import RunSpec

TICKS = {"ok": "[ok]", "attention": "[look]", "unknown": "[?]"}
SECONDS_PER_ARM = 10.0


def verdict(run_id: str, *, as_json: bool, measure: bool) -> int:
    """Print the verdict on a run; with `measure`, repeat its step with one thing taken away first.

    0 whatever the verdict: a verdict is no error.
    """
    root = runs_root()
    run = find_run(root, run_id)
    if measure:
        _measure(run, root)
    case = case_of_run(run, root)
    diagnosis, points = diagnose(case), walk(case)
    if as_json:
        print_json(verdict_json(case, diagnosis, points))
    else:
        _print(case, diagnosis, points)
    return 0


def verdict_json(case: Case, diagnosis: Diagnosis, points: tuple[Point, ...]) -> dict[str, Any]:
    """The frozen shape of `doctor RUN --json`; missing is null."""
    spec = _spec(case)
    return {
        "id": case.record.id if case.record is not None else None,
        "verdict": finding_json(diagnosis.verdict, spec),
        "others": [finding_json(finding, spec) for finding in diagnosis.others],
        "missing": diagnosis.missing,
        "points": points,
    }


def finding_json(finding: Finding, spec: RunSpec | None) -> dict[str, Any]:
    """A finding and the command that tries its remedy."""
    return msgspec.structs.asdict(finding) | {"command": command_for(finding, spec)}


def _measure(run: RunDir, root: Path) -> None:
    """The controlled experiment of the run's request on this machine, kept in the store."""
    from ringside.hardware import read_hardware
    from ringside.launch.probing import measure_experiment
    from ringside.measurements.store import Store
    from ringside.run import fold_run, require_spec

    record = fold_run(run)
    if not record.final:
        raise LaunchError(
            f"{run.name} still uses its devices ({record.state}): measure when it has ended."
        )
    spec = require_spec(record)
    found = measure_experiment(
        spec, read_hardware(), seconds_per_arm=SECONDS_PER_ARM,
        say=lambda text: print(text, file=sys.stderr),
    )  # fmt: skip
    print(f"stored {Store(root).save(found)}", file=sys.stderr)


def _print(case: Case, diagnosis: Diagnosis, points: tuple[Point, ...]) -> None:
    spec = _spec(case)
    _print_card(diagnosis.verdict, spec)
    for finding in diagnosis.others:
        _print_short(finding, spec)
    if diagnosis.missing:
        print("\nNot measured:")
    for sentence in diagnosis.missing:
        print(f"  {printable(sentence)}")
    print("\nThe six points:")
    for point in points:
        _print_point(point)


def _print_card(finding: Finding, spec: RunSpec | None) -> None:
    print(f"Verdict: {_headline(finding)}")
    print(f"  {printable(finding.sentence)}")
    if finding.evidence:
        width = max(len(one.label) for one in finding.evidence)
        for one in finding.evidence:
            print(f"    {one.label:<{width}}  {printable(one.value)}  ({printable(one.source)})")
    if finding.gain_ratio:
        faster = 1 / max(1 - finding.gain_ratio, 0.01)
        print(
            f"  To gain: at most {finding.gain_ratio:.0%} of the step, {faster:.2f} times as fast"
        )
    print(f"  Wrong if: {printable(finding.refutation)}")
    print(f"  Next: {printable(finding.next_step)}")
    if (command := command_for(finding, spec)) is not None:
        print(f"    {printable(command)}")


def _print_short(finding: Finding, spec: RunSpec | None) -> None:
    print(f"\nAlso: {_headline(finding)}")
    print(f"  {printable(finding.sentence)}")
    print(f"  Next: {printable(finding.next_step)}")
    if (command := command_for(finding, spec)) is not None:
        print(f"    {printable(command)}")


def _headline(finding: Finding) -> str:
    """`link, 41 % of the step, critical, confidence high (LINK-001)`."""
    sure = finding.confidence
    parts = [
        finding.cause.replace("_", " "),
        None if finding.share_ratio is None else f"{finding.share_ratio:.0%} of the step",
        finding.severity,
        sure if sure == "not enough data" else f"confidence {sure}",
    ]
    return ", ".join(part for part in parts if part) + f" ({finding.code})"


def _print_point(point: Point) -> None:
    print(f"  {point.number}. {TICKS[point.state]:<6} {point.title}")
    print(f"     It is said: {point.claim}")
    print(f"     In truth: {point.truth}")
    for one in point.figures:
        shown = f"- ({one.how})" if one.value is None else f"{one.value} ({one.source})"
        print(f"     {one.label}: {printable(shown)}")


def _spec(case: Case) -> RunSpec | None:
    return case.record.spec if case.record is not None else None
