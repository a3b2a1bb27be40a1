"""The command that says what holds a run back."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import msgspec

from app.commands.printing import padded, printable, source_told, width_of
from app.commands.reading import print_json
from app.views.watching import remedy_lines
from ringside.doctor import Case, Diagnosis, Finding, case_of_run, diagnose
from ringside.doctor.applying import command_for
from ringside.doctor.measuring import measure_run
from ringside.doctor.walkthrough import Point, walk
from ringside.rundir import find_run, runs_root
from ringside.spec import RunSpec
from ringside.words import say
from ringside.words.retelling import retold


def verdict(run_id: str, *, as_json: bool, measure: bool) -> int:
    """Print the verdict on a run; with `measure`, repeat its step with one thing taken away first.

    0 whatever the verdict: a verdict is no error.
    """
    root = runs_root()
    run = find_run(root, run_id)
    if measure:
        kept = measure_run(run, root, lambda line: print(line, file=sys.stderr))
        print(say("terminal.stored", path=kept), file=sys.stderr)
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
        **diagnosis_json(diagnosis, spec),
        "points": points,
    }


def diagnosis_json(diagnosis: Diagnosis, spec: RunSpec | None) -> dict[str, Any]:
    """The part of that which any files can give."""
    return {
        "verdict": finding_json(diagnosis.verdict, spec),
        "others": [finding_json(finding, spec) for finding in diagnosis.others],
        "missing": diagnosis.missing,
    }


def finding_json(finding: Finding, spec: RunSpec | None) -> dict[str, Any]:
    """A finding and the command that tries its remedy."""
    return msgspec.structs.asdict(finding) | {"command": command_for(finding, spec)}


def _print(case: Case, diagnosis: Diagnosis, points: tuple[Point, ...]) -> None:
    for line in _failure(case):
        print(printable(line))
    print_diagnosis(diagnosis, _spec(case))
    print(f"\n{say('terminal.six_points')}")
    for point in points:
        _print_point(point)


def _failure(case: Case) -> Iterator[str]:
    """Of a run that failed, why and what to try: its speed is not what it needs help with."""
    record = case.record
    if record is None or record.exit is None or record.state != "failed":
        return
    yield say("terminal.run_failed", run=record.name, reason=retold(record.exit.reason))
    for line in remedy_lines(record):
        yield f"  {line}"
    yield ""


def print_diagnosis(diagnosis: Diagnosis, spec: RunSpec | None = None) -> None:
    """The verdict's card, the other findings in short, and what was not measured."""
    _print_card(diagnosis.verdict, spec)
    for finding in diagnosis.others:
        _print_short(finding, spec)
    if diagnosis.missing:
        print(f"\n{say('terminal.not_measured')}")
    for sentence in diagnosis.missing:
        print(f"  {printable(sentence)}")


def _print_card(finding: Finding, spec: RunSpec | None) -> None:
    print(say("terminal.verdict", headline=_headline(finding)))
    print(f"  {printable(finding.sentence)}")
    if finding.evidence:
        labels = [printable(one.label) for one in finding.evidence]
        width = max(map(width_of, labels))
        for label, one in zip(labels, finding.evidence, strict=True):
            label = padded(label, width)
            told = {"value": printable(one.value), "source": printable(source_told(one.source))}
            print(f"    {label}  {say('terminal.evidence', **told)}")
    if finding.gain_ratio:
        faster = 1 / max(1 - finding.gain_ratio, 0.01)
        print("  " + say("terminal.gain", gain=finding.gain_ratio, faster=faster))
    print("  " + say("terminal.wrong_if", sentence=printable(finding.refutation)))
    print("  " + say("terminal.next", sentence=printable(finding.next_step)))
    if (command := command_for(finding, spec)) is not None:
        print(f"    {printable(command)}")


def _print_short(finding: Finding, spec: RunSpec | None) -> None:
    print("\n" + say("terminal.also", headline=_headline(finding)))
    print(f"  {printable(finding.sentence)}")
    print("  " + say("terminal.next", sentence=printable(finding.next_step)))
    if (command := command_for(finding, spec)) is not None:
        print(f"    {printable(command)}")


def _headline(finding: Finding) -> str:
    """`link, 41 % of the step, critical, confidence high (LINK-001)`."""
    share = finding.share_ratio
    parts = [
        say(f"cause.{finding.cause}"),
        None if share is None else say("terminal.share", share=share),
        say(f"terminal.severity_{finding.severity}"),
        say(f"terminal.sure_{finding.confidence.replace(' ', '_')}"),
    ]
    told = say("terminal.comma").join(part for part in parts if part)
    return say("terminal.aside", text=told, aside=finding.code)


def _print_point(point: Point) -> None:
    tick = padded(f"[{say(f'terminal.tick_{point.state}')}]", 6)
    print(f"  {point.number}. {tick} {point.title}")
    print("     " + say("terminal.said", sentence=point.claim))
    print("     " + say("terminal.truth", sentence=point.truth))
    for one in point.figures:
        source = None if one.source is None else source_told(one.source)
        value, aside = ("-", one.how) if one.value is None else (one.value, source)
        shown = say("terminal.aside", text=value, aside=aside)
        told = say("terminal.figure", label=printable(one.label), value=printable(shown))
        print("     " + told)


def _spec(case: Case) -> RunSpec | None:
    return case.record.spec if case.record is not None else None
