"""The commands of image data, as `ringside data …`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.flags.options import Json, Separator, SkipBad, Workers, Yes

data_app = typer.Typer(help="Image data.", no_args_is_help=True, rich_markup_mode=None)

Source = Annotated[str, typer.Argument(help="What --data takes: a folder, a table, a source.")]


@data_app.command()
def make(
    out: Annotated[Path, typer.Argument(help="Folder to make.")],
    profile: Annotated[str, typer.Option(help="ci, demo or bench.")] = "demo",
    num_images: Annotated[
        int | None, typer.Option(help="How many; the profile has a default.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Another seed, other pictures.")] = 0,
    workers: Annotated[int | None, typer.Option(help="Processes that draw [one per core].")] = None,
) -> None:
    """Make synthetic product pictures on disk, in the layout that `--data FOLDER` reads."""
    from app.commands import making

    making.make(out, profile=profile, num_images=num_images, seed=seed, workers=workers)


@data_app.command()
def check(
    path: Source,
    as_json: Json = False,
    separator: Separator = None,
    workers: Workers = None,
) -> None:
    """Decode every image and report bad files, rows and classes; exit code 1 for bad files."""
    from app.commands import checking

    raise typer.Exit(checking.check(path, as_json=as_json, separator=separator, workers=workers))


@data_app.command()
def prepare(  # noqa: PLR0913
    path: Source,
    out: Annotated[Path | None, typer.Option(help="Folder to make [in your cache].")] = None,
    format_: Annotated[
        str, typer.Option("--format", help="jpeg, or raw: squares that need no decoding.")
    ] = "jpeg",
    short_side: Annotated[int, typer.Option(help="Pixels; smaller pictures stay.")] = 256,
    quality: Annotated[int, typer.Option(help="Of JPEG, 1 to 95.")] = 90,
    separator: Separator = None,
    skip_bad: SkipBad = False,
    yes: Yes = False,
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Make a copy in smaller pictures that trains faster, as a folder for --data."""
    from app.commands import preparing

    request = preparing.Request(
        data=path, out=out, recipe=preparing.recipe_of(format_, short_side, quality),
        separator=separator, skip_bad=skip_bad, yes=yes, workers=workers, as_json=as_json,
    )  # fmt: skip
    raise typer.Exit(preparing.run(request))
