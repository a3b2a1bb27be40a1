"""The command that looks at every image before a run does."""

from __future__ import annotations

import sys

import msgspec

from app.commands.printing import print_some
from ringside.data import DataReport, check_data, parse_data
from ringside.data.check.report import RULES, BadFile
from ringside.data.notes import counted
from ringside.words import say


def check(text: str, *, as_json: bool, separator: str | None, workers: int | None) -> int:
    """Check with a progress line and print what was found; 1 when a run would meet a bad file."""
    from rich.console import Console
    from rich.progress import Progress

    spec = parse_data(text, separator=separator)
    with Progress(transient=True, console=Console(file=sys.stderr)) as progress:
        task = progress.add_task("decoding images", total=None)

        def advance(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        report = check_data(spec, workers=workers, progress=advance)
    if as_json:
        print(msgspec.json.encode(report).decode())
    else:
        _print(report)
    return 0 if report.is_fine else 1


def _print(report: DataReport) -> None:
    print(f"{report.data}: {report.task.replace('_', ' ')}. {report.layout}")
    print(
        f"{counted(report.num_files, 'image')}, {report.num_usable:,} usable: "
        f"{report.num_train:,} for training, {report.num_val:,} for validation"
    )
    print_some("\nbad files and rows", [_line(bad) for bad in report.bad])
    _print_classes(report)
    kinds = [
        f"{u.num_images:,} {u.kind}, {say(RULES[u.kind])}: {u.examples[0]}" for u in report.unusual
    ]
    print_some("\nunusual images", kinds)
    print_some("\nwarnings", [note.message for note in report.warnings])
    print_some("\nnotes", [note.message for note in report.notes])
    print(f"\n{_summary(report)}")


def _line(bad: BadFile) -> str:
    unused = "" if bad.is_used else " (no run uses it)"
    return f"{bad.file}{unused}  {bad.reason.rstrip('.')}"


def _summary(report: DataReport) -> str:
    """How many images a run would use, and how to go on."""
    num_bad = len(report.skip)
    if not report.num_usable:
        return "A run has nothing to use: mend what is named above, then check again."
    use = f"a run would use {counted(report.num_usable, 'image')}.{_largest_batch(report)}"
    if not num_bad:
        return f"A{use[1:]}"
    return (
        f"A run stops at the first of {counted(num_bad, 'bad file')}. Mend or replace them, or go "
        f"on without: with --skip-bad {use}"
    )


def _largest_batch(report: DataReport) -> str:
    """Few images fill no step of the usual size, and such a run is refused."""
    from ringside.request import DEFAULT_MICRO_BATCH

    usual = min(DEFAULT_MICRO_BATCH.values())
    if report.num_train >= usual:
        return ""
    images = counted(report.num_train, "training image")
    return (
        f" It has {images}, fewer than the usual batch of {usual}: add images, or give a run "
        f"--batch {report.num_train} or less."
    )


def _print_classes(report: DataReport) -> None:
    width = max([len(c.name) for c in report.classes] + [5])
    lines = [f"{c.name:{width}}  {c.train:>8,}  {c.val:>10,}" for c in report.classes]
    print_some(f"\n  {'class':{width}}  training  validation", lines)
