"""The commands of the preset library, as `ringside presets …`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from app.flags.options import Json, Way

presets_app = typer.Typer(help="The preset library.", no_args_is_help=True, rich_markup_mode=None)


@presets_app.command("list")
def list_(as_json: Json = False) -> None:
    """All presets with their origin, checksum and author."""
    from app.commands import library

    library.list_presets(as_json=as_json)


@presets_app.command()
def show(name: str, as_json: Json = False) -> None:
    """One preset: why, when, limits, settings."""
    from app.commands import library

    library.show(name, as_json=as_json)


@presets_app.command()
def render(
    name: Annotated[str | None, typer.Argument(help="Print one; without a name write all.")] = None,
    processes: Annotated[
        int | None, typer.Option(help="Process count in the printed file.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only say whether files are current.")
    ] = False,
) -> None:
    """The Accelerate file of a preset, as `accelerate launch --config_file` takes it."""
    from app.commands import library

    library.render(name, processes=processes, check=check)


@presets_app.command()
def check(files: list[Path]) -> None:
    """Check preset files; each fault is named with its line."""
    from app.commands import library

    library.check(files)


@presets_app.command("import")
def import_(
    file: Annotated[
        str, typer.Argument(help="A preset or an Accelerate YAML; - reads pasted text.")
    ],
    name: Annotated[str | None, typer.Option(help="Another name than the file's.")] = None,
    save: Annotated[bool, typer.Option("--save", help="Keep it in your library.")] = False,
    team: Annotated[
        bool, typer.Option("--team", help="Keep it in the first folder of RINGSIDE_LIBRARY.")
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="As a new version of the preset of this name.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say what becomes of every key of a colleague's file, and with --save keep the preset."""
    from app.commands import importing

    where: Literal["yours", "team"] | None = "team" if team else "yours" if save else None
    code = importing.import_(file, name=name, where=where, replaces=replace, as_json=as_json)
    raise typer.Exit(code)


@presets_app.command()
def export(
    name: str,
    target: Annotated[Path, typer.Argument(help="Folder or file [here].")] = Path(),
    accelerate: Annotated[
        bool, typer.Option("--accelerate", help="As Accelerate's own YAML; the rest stays behind.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="The same as TARGET; - prints it.")
    ] = None,
) -> None:
    """Copy a preset to a folder or file; nothing is overwritten."""
    from app.commands import importing

    importing.export(name, out or target, accelerate=accelerate)


@presets_app.command()
def clone(
    name: str, new: Annotated[str, typer.Argument(help="Name of the copy in your library.")]
) -> None:
    """Copy a preset into your own library, to change it there."""
    from app.commands import versions

    versions.clone(name, new)


@presets_app.command()
def rename(name: str, new: str) -> None:
    """Give a preset of yours another name; its history goes with it."""
    from app.commands import versions

    versions.rename(name, new)


@presets_app.command()
def delete(name: str) -> None:
    """Take a preset of yours out of the library; its versions stay in its history."""
    from app.commands import versions

    versions.delete(name)


@presets_app.command()
def history(
    name: str,
    diff: Annotated[bool, typer.Option("--diff", help="Also what each version changed.")] = False,
    as_json: Json = False,
) -> None:
    """Every version of a preset that was saved, the newest first."""
    from app.commands import versions

    versions.history(name, with_diff=diff, as_json=as_json)


@presets_app.command()
def diff(
    first: Annotated[str, typer.Argument(help="A preset, or a run.")],
    second: Annotated[str, typer.Argument(help="Another one.")],
    everything: Annotated[bool, typer.Option("--all", help="Also what is the same.")] = False,
    as_json: Json = False,
) -> None:
    """In what two presets, or a preset and a run, differ."""
    from app.commands import versions

    versions.diff(first, second, everything=everything, as_json=as_json)


@presets_app.command()
def adapt(
    name: str,
    devices: Annotated[
        int | None, typer.Option(help="How many there are [this machine's].")
    ] = None,
    made_for: Annotated[
        int | None, typer.Option(help="For how many it was tuned [the preset's].")
    ] = None,
    micro_batch: Annotated[
        int | None, typer.Option(help="Images per device it was tuned with [as in `run`].")
    ] = None,
    choose: Annotated[
        Way | None,
        typer.Option(help="Keep this way as a preset; needs --save-as."),
    ] = None,
    save_as: Annotated[str | None, typer.Option(help="Name of the adapted preset.")] = None,
    as_json: Json = False,
) -> None:
    """Ways to run a preset on another number of devices, and what each changes."""
    from app.commands import adapting

    adapting.adapt(
        name, devices=devices, made_for=made_for, micro_batch=micro_batch, choose=choose,
        save_as=save_as, as_json=as_json,
    )  # fmt: skip


@presets_app.command()
def fetch() -> None:
    """Fetch the presets of the Hub that RINGSIDE_LIBRARY names, and stay at that commit."""
    from app.commands import library

    library.fetch()
