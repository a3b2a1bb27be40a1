"""The command that looks at every image before a run does."""

from __future__ import annotations

import sys

import msgspec

from app.commands.printing import padded, print_some, to_the_right, width_of
from ringside.data import DataReport, check_data, parse_data
from ringside.data.check.report import RULES, BadFile, UnusualImages
from ringside.words import say, say_count


def check(text: str, *, as_json: bool, separator: str | None, workers: int | None) -> int:
    """Check with a progress line and print what was found; 1 when a run would meet a bad file."""
    from rich.console import Console
    from rich.progress import Progress

    spec = parse_data(text, separator=separator)
    with Progress(transient=True, console=Console(file=sys.stderr)) as progress:
        task = progress.add_task(say("check.decoding"), total=None)

        def advance(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        report = check_data(spec, workers=workers, progress=advance)
    if as_json:
        print(msgspec.json.encode(report).decode())
    else:
        _print(report)
    return 0 if report.is_fine else 1


def _print(report: DataReport) -> None:
    task = say(f"check.task_{report.task}")
    print(say("check.data", data=report.data, task=task, layout=report.layout))
    images, use = say_count("image", report.num_files), report.num_usable
    print(say("check.counts", images=images, n=use, train=report.num_train, val=report.num_val))
    print_some(f"\n{say('check.bad_head')}", [_line(bad) for bad in report.bad])
    _print_classes(report)
    print_some(f"\n{say('check.unusual_head')}", [_unusual(one) for one in report.unusual])
    print_some(f"\n{say('terminal.warnings')}", [note.message for note in report.warnings])
    print_some(f"\n{say('terminal.notes')}", [note.message for note in report.notes])
    print(f"\n{_summary(report)}")


def _line(bad: BadFile) -> str:
    file = bad.file
    if not bad.is_used:
        file = say("terminal.aside", text=file, aside=say("check.unused_one"))
    return f"{file}  {bad.reason.rstrip('.。')}"


def _unusual(images: UnusualImages) -> str:
    """`3 CMYK, converted to RGB: a.jpg`."""
    return say(
        "check.unusual", n=images.num_images,
        kind=say(f"picture.kind_{images.kind.lower().replace('-', '_')}"),
        rule=say(RULES[images.kind]), example=images.examples[0],
    )  # fmt: skip


def _summary(report: DataReport) -> str:
    """How many images a run would use, and how to go on."""
    num_bad = len(report.skip)
    if not report.num_usable:
        return say("check.nothing_above")
    images, batch = say_count("image", report.num_usable), _largest_batch(report)
    if not num_bad:
        return say("check.uses", images=images) + batch
    return say("check.skips", bad=say_count("bad_file", num_bad), images=images) + batch


def _largest_batch(report: DataReport) -> str:
    """Few images fill no step of the usual size, and such a run is refused."""
    from ringside.request import DEFAULT_MICRO_BATCH

    usual = min(DEFAULT_MICRO_BATCH.values())
    if report.num_train >= usual:
        return ""
    images = say_count("training_image", report.num_train)
    return say("check.few_images", images=images, usual=usual, n=report.num_train)


def _print_classes(report: DataReport) -> None:
    name, train, val = (say(f"check.{one}") for one in ("class_head", "train_head", "val_head"))
    width = max(width_of(text) for text in (*(c.name for c in report.classes), name))
    lines = [f"{padded(c.name, width)}  {c.train:>8,}  {c.val:>10,}" for c in report.classes]
    heads = f"{padded(name, width)}  {to_the_right(train, 8)}  {to_the_right(val, 10)}"
    print_some(f"\n  {heads}", lines)
