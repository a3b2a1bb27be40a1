"""The commands that look at a run under way or ask it for something."""

from __future__ import annotations

from typing import Annotated

import typer

from app.flags.options import Json, RunId


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(stacks)
    app.command()(checkpoint)


def stacks(
    run_id: RunId = "last",
    threads: Annotated[
        bool, typer.Option("--threads", help="All threads and all their calls.")
    ] = False,
    native: Annotated[
        bool, typer.Option("--native", help="Also calls of C and C++, where py-spy is installed.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say where every rank of a run under way stands now; exit code 1 when one does not answer."""
    from app.commands import watching

    code = watching.stacks(run_id, threads=threads, native=native, as_json=as_json)
    raise typer.Exit(code)


def checkpoint(run_id: RunId = "last") -> None:
    """Have a run under way save a checkpoint now and go on."""
    from app.commands import watching

    raise typer.Exit(watching.checkpoint(run_id))
