"""The command that makes a smaller copy of a data set."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ringside.data import check_data, parse_data
from ringside.data.pixels import PictureError
from ringside.data.prepare.files import Recipe
from ringside.data.prepare.planning import Plan, file_stats, megabytes, plan_preparation
from ringside.data.prepare.writing import prepare
from ringside.errors import DataError
from ringside.spec import DataSpec
from ringside.words import say, say_count

Progress = Callable[[int, int], None]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What a person asked for."""

    data: str
    out: Path | None
    recipe: Recipe
    separator: str | None
    skip_bad: bool
    yes: bool
    workers: int | None
    as_json: bool


def recipe_of(format_: str, short_side: int, quality: int) -> Recipe:
    """The recipe, or a sentence about the value that no recipe has."""
    try:
        asked = {"format": format_, "short_side": short_side, "quality": quality}
        return msgspec.convert(asked, Recipe)
    except msgspec.ValidationError:
        raise DataError(
            f"--format {format_} --short-side {short_side} --quality {quality} cannot be made: "
            "the format is jpeg or raw, the short side 16 to 4096 pixels, the quality 1 to 95."
        ) from None


def run(request: Request) -> int:
    """Say what it takes, ask, and make it; 0, or 1 when the person says no."""
    spec = parse_data(request.data, separator=request.separator)
    if request.skip_bad:
        spec = _without_bad(spec, request.workers)
    plan = plan_preparation(spec, request.recipe, request.out)
    if not plan.is_done:
        print(_announcement(plan), file=sys.stderr)
        if not request.yes and not _agrees():
            print(say("preparing.nothing_made"), file=sys.stderr)
            return 1
    began_s = time.perf_counter()
    with _progress(say("preparing.making")) as progress:
        _make(plan, request.workers, progress)
    _report(plan, time.perf_counter() - began_s, request.as_json)
    return 0


def _make(plan: Plan, workers: int | None, progress: Progress) -> None:
    try:
        with _said_at_once():
            prepare(plan, workers=workers, progress=progress)
    except PictureError as error:
        raise DataError(
            f"{error} Or leave bad files out with --skip-bad; what is made already is kept."
        ) from error
    except KeyboardInterrupt:
        print(say("preparing.stopped"), file=sys.stderr)
        raise


@contextmanager
def _said_at_once() -> Iterator[None]:
    """Ctrl+C is answered before the pictures under way are finished."""

    def stop(*_: object) -> None:
        print(say("preparing.stopping"), file=sys.stderr, flush=True)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _without_bad(spec: DataSpec, workers: int | None) -> DataSpec:
    with _progress(say("check.decoding")) as progress:
        report = check_data(spec, workers=workers, progress=progress)
    for bad in report.bad:
        print(say("terminal.left_out", what=bad.file, why=bad.reason), file=sys.stderr)
    return msgspec.structs.replace(spec, skip=tuple(sorted(report.skip)))


def _announcement(plan: Plan) -> str:
    before = megabytes(plan.written_bytes)
    return say(
        "preparing.plan",
        data=plan.marker.data,
        images=say_count("image", plan.marker.num_images),
        recipe=plan.marker.recipe.label,
        size=megabytes(plan.estimated_bytes),
        done=say("preparing.made_before", size=before) if plan.written_bytes else "",
        folder=plan.folder,
        free=megabytes(plan.free_bytes),
    )


def _agrees() -> bool:
    import typer

    if not sys.stdin.isatty():
        raise DataError("Nobody is there to agree to this size: add --yes.")
    return typer.confirm(say("preparing.ask"), default=True, err=True)


def _report(plan: Plan, taken_s: float, as_json: bool) -> None:
    size_bytes = sum(stat.st_size for stat in file_stats(plan.folder))
    marker = plan.marker
    if as_json:
        found = {
            "data": marker.data, "folder": str(plan.folder), "was_done": plan.is_done,
            **msgspec.to_builtins(marker.recipe), "num_train": marker.num_train,
            "num_val": marker.num_val, "skipped": marker.skipped, "size_bytes": size_bytes,
            "estimated_bytes": plan.estimated_bytes,
            "taken_s": None if plan.is_done else round(taken_s, 3),
        }  # fmt: skip
        print(msgspec.json.encode(found).decode())
        return
    how = say("preparing.was_done") if plan.is_done else say("preparing.made", seconds=taken_s)
    images = say_count("image", marker.num_images)
    print(say("preparing.report", images=images, size=megabytes(size_bytes), how=how))
    print(say("preparing.train", folder=plan.folder))


@contextmanager
def _progress(title: str) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(transient=True, console=Console(file=sys.stderr)) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
