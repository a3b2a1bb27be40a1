"""The commands of playbooks, as `ringside playbook …`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.flags.options import Json, Way

playbook_app = typer.Typer(
    help="What a team keeps of its runs.", no_args_is_help=True, rich_markup_mode=None
)

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="A playbook by name, its zip or its folder.")
]


@playbook_app.command("export")
def export(
    names: Annotated[
        list[str],
        typer.Argument(metavar="RUN...", help="Runs, the baseline first; or one playbook by name."),
    ],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Zip to make [in your folder of playbooks].")
    ] = None,
    title: Annotated[str | None, typer.Option(help="In a line [model, preset, devices].")] = None,
    keep: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="The run whose preset is kept [the fastest that held]."),
    ] = None,
) -> None:
    """Make one zip of runs: preset, environment, evidence, verdicts and scores, without names."""
    from app.commands import playbook

    playbook.export(names, out=out, title=title, keep=keep)


@playbook_app.command("import")
def import_(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A playbook's zip or folder.")],
    as_json: Json = False,
) -> None:
    """Keep a playbook: its preset joins your library, its runs can be looked at."""
    from app.commands import playbook

    playbook.import_(path, as_json=as_json)


@playbook_app.command("list")
def list_(
    search: Annotated[str, typer.Option(help="Words that are all in it somewhere.")] = "",
    model: Annotated[str | None, typer.Option(help="Part of a model's name.")] = None,
    hardware: Annotated[
        str | None, typer.Option(help="Part of a GPU's or transport's name.")
    ] = None,
    cause: Annotated[str | None, typer.Option(help="What the doctor found, such as link.")] = None,
    as_json: Json = False,
) -> None:
    """Playbooks of yours and of the team, newest first."""
    from app.commands import playbook

    playbook.list_playbooks(
        search=search, model=model, hardware=hardware, cause=cause, as_json=as_json
    )


@playbook_app.command()
def show(
    name: Name,
    run: Annotated[
        str | None, typer.Option(help="One of its recorded runs, as `ringside show` shows one.")
    ] = None,
    as_json: Json = False,
) -> None:
    """What a playbook says: verdicts, results, the command, hardware."""
    from app.commands import playbook

    playbook.show(name, run=run, as_json=as_json)


@playbook_app.command()
def diff(
    first: Name,
    second: Annotated[str, typer.Argument(metavar="OTHER", help="Another one.")],
    as_json: Json = False,
) -> None:
    """In what two playbooks differ: preset, environment, hardware, results."""
    from app.commands import playbook

    playbook.diff(first, second, as_json=as_json)


@playbook_app.command()
def replay(
    name: Name,
    data: Annotated[str | None, typer.Option(help="Other images, as for `run`.")] = None,
    devices: Annotated[int | None, typer.Option(help="How many [this machine's].")] = None,
    choose: Annotated[
        Way | None,
        typer.Option(help="Another way to fit the devices [the first]."),
    ] = None,
    start: Annotated[bool, typer.Option("--start", help="Start it, do not only say how.")] = False,
    as_json: Json = False,
) -> None:
    """The run of a playbook on this machine: what is adapted, and the command."""
    from app.commands import playbook

    playbook.replay(name, data=data, devices=devices, choose=choose, start=start, as_json=as_json)


@playbook_app.command()
def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whole name, of your own folder.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete a playbook of yours for good; the preset that came with it stays."""
    from app.commands import playbook

    raise typer.Exit(playbook.remove(name, yes=yes))
