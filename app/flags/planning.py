"""The commands before a run: how fast it would be, and what stands in its way."""

from __future__ import annotations

from typing import Annotated

import typer

from app.flags.options import (
    Batch,
    Epochs,
    ImageSize,
    Json,
    KeepGlobalBatch,
    Model,
    PresetName,
    Processes,
    Separator,
    Set,
)


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    for command in (estimate, bench, preflight):
        app.command()(command)


def estimate(  # noqa: PLR0913
    presets: Annotated[
        list[str] | None, typer.Argument(metavar="PRESET...", help="Presets [all that run here].")
    ] = None,
    data: Annotated[
        str, typer.Option(help="As for `run`; it gives the classes and the length of an epoch.")
    ] = "emoji",
    model: Model = None,
    batch: Batch = None,
    processes: Processes = None,
    image_size: ImageSize = None,
    set_: Set = None,
    keep_global_batch: KeepGlobalBatch = False,
    like: Annotated[
        str | None, typer.Option(metavar="RUN", help="Correct by the measured step of this run.")
    ] = None,
    data_rate: Annotated[
        float | None, typer.Option(min=1.0, help="Images a second that all loaders give.")
    ] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="First measure what is missing (a minute or two).")
    ] = False,
    as_json: Json = False,
) -> None:
    """Predict step, epoch, speed-up and memory of presets before they run."""
    from app.commands import estimating
    from ringside.overrides import parse_overrides
    from ringside.request import RunRequest

    request = RunRequest(
        preset="", data=data, model=model, batch=batch, processes=processes,
        image_size=image_size, overrides=parse_overrides(set_ or []),
        keep_global_batch=keep_global_batch,
    )  # fmt: skip
    question = estimating.Question(
        presets=tuple(presets or ()), request=request, measure=measure, like=like,
        data_rate_per_s=data_rate,
    )  # fmt: skip
    raise typer.Exit(estimating.run(question, as_json=as_json))


def bench(  # noqa: PLR0913
    presets: Annotated[list[str], typer.Argument(metavar="PRESET...", help="Presets to time.")],
    data: Annotated[
        str, typer.Option(help="As for `run`; `synthetic` makes images up on the device.")
    ] = "emoji",
    model: Model = None,
    batch: Batch = None,
    processes: Processes = None,
    image_size: ImageSize = None,
    separator: Separator = None,
    set_: Set = None,
    keep_global_batch: KeepGlobalBatch = False,
    gpus: Annotated[
        str | None, typer.Option(metavar="IDS", help="GPUs by number, such as 2,3.")
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=1.0, max=600.0, help="Of steps that count, for each preset.")
    ] = 8.0,
    as_json: Json = False,
) -> None:
    """Time the step of presets one after another, and of one device beside them; trains nothing."""
    from app.commands import benching
    from app.commands.running import parse_gpus
    from ringside.overrides import parse_overrides
    from ringside.request import RunRequest

    request = RunRequest(
        preset="", data=data, model=model, batch=batch, processes=processes,
        image_size=image_size, separator=separator, gpus=parse_gpus(gpus),
        overrides=parse_overrides(set_ or []), keep_global_batch=keep_global_batch,
    )  # fmt: skip
    raise typer.Exit(benching.run(request, presets, seconds=seconds, as_json=as_json))


def preflight(  # noqa: PLR0913
    preset: PresetName,
    data: Annotated[str, typer.Option(help="As for `ringside run`.")] = "emoji",
    model: Model = None,
    epochs: Epochs = None,
    batch: Annotated[int | None, typer.Option(help="Images per step over all devices.")] = None,
    processes: Processes = None,
    gpus: Annotated[
        str | None, typer.Option(metavar="IDS", help="GPUs by number, such as 2,3.")
    ] = None,
    image_size: ImageSize = None,
    set_: Set = None,
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
