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
from ringside.data.notes import counted
from ringside.data.pixels import PictureError
from ringside.data.prepare.files import Recipe
from ringside.data.prepare.planning import Plan, file_stats, megabytes, plan_preparation
from ringside.data.prepare.writing import prepare
from ringside.errors import DataError
from ringside.spec import DataSpec

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
            print("nothing was made", file=sys.stderr)
            return 1
    began_s = time.perf_counter()
    with _progress("making pictures") as progress:
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
        print("stopped; the same command goes on from here", file=sys.stderr)
        raise


@contextmanager
def _said_at_once() -> Iterator[None]:
    """Ctrl+C is answered before the pictures under way are finished."""

    def stop(*_: object) -> None:
        print("stopping; what is made is kept", file=sys.stderr, flush=True)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _without_bad(spec: DataSpec, workers: int | None) -> DataSpec:
    with _progress("decoding images") as progress:
        report = check_data(spec, workers=workers, progress=progress)
    for bad in report.bad:
        print(f"left out: {bad.file}: {bad.reason}", file=sys.stderr)
    return msgspec.structs.replace(spec, skip=tuple(sorted(report.skip)))


def _announcement(plan: Plan) -> str:
    done = f", {megabytes(plan.written_bytes)} of it made before" if plan.written_bytes else ""
    return (
        f"{plan.marker.data}: {counted(plan.marker.num_images, 'image')} as "
        f"{plan.marker.recipe.label}, about {megabytes(plan.estimated_bytes)}{done}, in "
        f"{plan.folder} ({megabytes(plan.free_bytes)} free)"
    )


def _agrees() -> bool:
    import typer

    if not sys.stdin.isatty():
        raise DataError("Nobody is there to agree to this size: add --yes.")
    return typer.confirm("Make it?", default=True, err=True)


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
    how = "was prepared before" if plan.is_done else f"made in {taken_s:.1f} s"
    print(f"{counted(marker.num_images, 'image')}, {megabytes(size_bytes)}, {how}")
    print(f"train on them with --data {plan.folder}")


@contextmanager
def _progress(title: str) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(transient=True, console=Console(file=sys.stderr)) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
