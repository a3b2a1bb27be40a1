"""`ringside preflight`: what stands in the way of a run, before anything starts."""

from __future__ import annotations

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command()(preflight)


def preflight(  # noqa: PLR0913
    preset: Annotated[str, typer.Argument(help="Name of a preset, see `ringside presets list`.")],
    data: Annotated[str, typer.Option(help="As for `ringside run`.")] = "emoji",
    model: Annotated[str | None, typer.Option(help="Any timm model [resnet50].")] = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the data [3].")] = None,
    batch: Annotated[int | None, typer.Option(help="Images per step over all devices.")] = None,
    processes: Annotated[
        int | None, typer.Option(help="Number of processes [one per GPU, or 2 on a CPU].")
    ] = None,
    gpus: Annotated[
        str | None, typer.Option(metavar="IDS", help="GPUs by number, such as 2,3.")
    ] = None,
    image_size: Annotated[int | None, typer.Option(help="Side in pixels.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="KEY=VALUE changes a preset's setting.")
    ] = None,
    queue: Annotated[
        bool, typer.Option("--queue", help="As for a run that waits until its devices are free.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Also decode every picture of the data.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say all that stands in the way of a run; exit code 1 when something blocks it."""
    from app.commands import preflight as command
    from app.commands.running import parse_gpus
    from ringside.overrides import parse_overrides
    from ringside.request import RunRequest

    request = RunRequest(
        preset=preset, data=data, model=model, epochs=epochs, batch=batch, processes=processes,
        gpus=parse_gpus(gpus), image_size=image_size, overrides=parse_overrides(set_ or []),
        queue=queue,
    )  # fmt: skip
    raise typer.Exit(command.show(request, check=check, as_json=as_json))
