"""The commands of one run: start it, go on with it, look at it, stop it."""

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
    RunId,
    Separator,
    Set,
    SkipBad,
)

Follow = Annotated[bool, typer.Option("--follow", help="Stay and print what happens.")]
Queue = Annotated[
    bool, typer.Option("--queue", help="Wait until no other run uses the same devices.")
]
Beside = Annotated[
    bool, typer.Option("--beside", help="Start on GPUs that another run uses, or waits for.")
]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    for command in (run, resume, watch, show, stop):
        app.command()(command)


def run(  # noqa: PLR0913
    preset: PresetName,
    data: Annotated[
        str,
        typer.Option(
            help="emoji, products, products:ci, a folder, a table such as a .csv, or "
            "hf:owner/name of the Hub."
        ),
    ] = "emoji",
    model: Model = None,
    epochs: Epochs = None,
    batch: Batch = None,
    processes: Processes = None,
    image_size: ImageSize = None,
    separator: Separator = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of weights, order and augmentation.")
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(help="Begin with the weights of a .safetensors or .pth file, or of a run."),
    ] = None,
    profile: Annotated[
        int | None, typer.Option(help="Steps to record with torch.profiler after the last epoch.")
    ] = None,
    set_: Set = None,
    gpus: Annotated[
        str | None, typer.Option(help="GPUs by the number of nvidia-smi, as in 2,3 [the first].")
    ] = None,
    queue: Queue = False,
    beside: Beside = False,
    time_limit: Annotated[
        str | None, typer.Option(help="Stop it after so long, as in 90s, 30m, 2h30m.")
    ] = None,
    retry: Annotated[
        bool, typer.Option("--retry", help="Try once more when it is killed or loses a connection.")
    ] = False,
    keep_global_batch: KeepGlobalBatch = False,
    skip_bad: SkipBad = False,
    follow: Follow = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print plan, files and command; start nothing.")
    ] = False,
) -> None:
    """Start a run and return; it goes on when this terminal closes."""
    from app.commands import running
    from ringside.durations import parse_duration
    from ringside.overrides import parse_overrides
    from ringside.request import RunRequest

    request = RunRequest(
        preset=preset, data=data, model=model, epochs=epochs, batch=batch, processes=processes,
        image_size=image_size, separator=separator, seed=seed, weights=weights, profile=profile,
        overrides=parse_overrides(set_ or []), keep_global_batch=keep_global_batch,
        gpus=running.parse_gpus(gpus), queue=queue, beside=beside, retries=int(retry),
        time_limit_s=parse_duration(time_limit) if time_limit else None,
    )  # fmt: skip
    if dry_run:
        running.show_plan(request)
        return
    raise typer.Exit(running.start(request, follow=follow, skip_bad=skip_bad))


def resume(
    run_id: RunId = "last",
    epochs: Annotated[int | None, typer.Option(help="Epochs in all, if more than before.")] = None,
    processes: Annotated[int | None, typer.Option(help="Another number of processes.")] = None,
    gpus: Annotated[str | None, typer.Option(help="Other GPUs, as in 2,3 [the same].")] = None,
    queue: Queue = False,
    beside: Beside = False,
    follow: Follow = False,
) -> None:
    """Continue a run from its last checkpoint, as a new run."""
    from app.commands import running

    changes = running.Changes(
        epochs=epochs, processes=processes, gpus=running.parse_gpus(gpus), queue=queue,
        beside=beside,
    )  # fmt: skip
    raise typer.Exit(running.resume(run_id, changes, follow=follow))


def watch(run_id: RunId = "last") -> None:
    """Print a run's events until it ends."""
    from app.commands import running

    raise typer.Exit(running.watch(run_id))


def show(
    run_id: RunId = "last",
    classes: Annotated[
        bool, typer.Option("--classes", help="Also the scores of every class.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Everything known of one run."""
    from app.commands import reading

    reading.show(run_id, as_json=as_json, classes=classes)


def stop(
    run_id: RunId = "last",
    after_epoch: Annotated[
        bool, typer.Option("--after-epoch", help="Let the running epoch finish first.")
    ] = False,
) -> None:
    """Stop a run and wait until none of its processes is left."""
    from app.commands import running

    raise typer.Exit(running.stop(run_id, after_epoch=after_epoch))
