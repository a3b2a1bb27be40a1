"""The commands that open the page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    for command in (ui, demo):
        app.command()(command)


def ui(
    host: Annotated[
        str, typer.Option(help="Address to listen on; beyond this machine there is a login.")
    ] = "127.0.0.1",
    port: Annotated[int | None, typer.Option(help="Port [7860 or the next free one].")] = None,
    viewers: Annotated[
        bool, typer.Option("--viewers", help="Also a user `viewer`, who may only look.")
    ] = False,
    view_password_file: Annotated[
        Path | None, typer.Option(help="The viewer's password; RINGSIDE_VIEW_PASSWORD does too.")
    ] = None,
    root_path: Annotated[
        str, typer.Option(help="Path below which a proxy has the page, as in /ringside.")
    ] = "",
    allow_host: Annotated[
        list[str] | None, typer.Option(help="Name under which a proxy has it; may be repeated.")
    ] = None,
    open_browser: Annotated[bool, typer.Option("--open", help="Open a browser.")] = False,
) -> None:
    """Open the page."""
    from app.commands import serving

    request = serving.Request(
        host=host, port=port, root_path=root_path, allow_hosts=allow_host or (), viewers=viewers,
        view_password_file=view_password_file, open_browser=open_browser,
    )  # fmt: skip
    serving.ui(request)


def demo(
    epochs: Annotated[int, typer.Option(help="Epochs of each run.")] = 10,
    port: Annotated[int | None, typer.Option(help="Port of the page.")] = None,
    once: Annotated[bool, typer.Option("--once", help="Leave when both runs have ended.")] = False,
) -> None:
    """The story in five minutes: one device, then DDP on all, live in the page and here."""
    from app.commands import demo as story

    raise typer.Exit(story.main(epochs=epochs, port=port, once=once))
