"""The commands of the queue: who waits, in which order, and a pause."""

from __future__ import annotations

from typing import Annotated

import typer

from app.flags.options import Json

RunId = Annotated[str, typer.Argument(metavar="RUN", help="A run's id or its two words.")]


def register(app: typer.Typer) -> None:
    """Add the group `queue`."""
    queue = typer.Typer(
        help="Runs that wait for their devices.", invoke_without_command=True, rich_markup_mode=None
    )
    queue.callback()(show)
    for command in (up, down, first, pause, resume):
        queue.command()(command)
    app.add_typer(queue, name="queue")


def show(context: typer.Context, as_json: Json = False) -> None:
    """Runs that wait for their devices; without a command, their order and whom they wait for."""
    if context.invoked_subcommand is None:
        from app.commands import queueing

        queueing.show(as_json=as_json)


def up(run_id: RunId) -> None:
    """Let a run go one place earlier."""
    from app.commands import queueing

    queueing.move(run_id, "up")


def down(run_id: RunId) -> None:
    """Let a run go one place later."""
    from app.commands import queueing

    queueing.move(run_id, "down")


def first(run_id: RunId) -> None:
    """Let a run go before all others that wait."""
    from app.commands import queueing

    queueing.move(run_id, "first")


def pause() -> None:
    """Let no run of this machine out of the queue; runs under way go on."""
    from app.commands import queueing

    queueing.pause()


def resume() -> None:
    """Let runs out of the queue again."""
    from app.commands import queueing

    queueing.resume()
