"""The commands for what runs came to: compare them, and use the models elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from app.flags.options import Json

ModelId = Annotated[str, typer.Argument(help="A run, or the path of an exported folder.")]
Checkpoint = Annotated[Literal["best", "last"], typer.Option(help="Which one of a run.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    for command in (compare, export, label):
        app.command()(command)


def compare(
    run_ids: Annotated[
        list[str], typer.Argument(help="Two or more runs; the first is compared with.")
    ],
    baseline: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Measure the others against this one [each its own]."),
    ] = None,
    classes: Annotated[
        bool, typer.Option("--classes", help="Also what every class gained or lost.")
    ] = False,
    gate: Annotated[
        bool,
        typer.Option("--gate", help="Only whether scores fell: exit code 0, 1 worse, 4 not known."),
    ] = False,
    against: Annotated[
        str | None,
        typer.Option(metavar="RUN,RUN", help="With --gate: the reference's runs [as the first]."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Speed-up, efficiency and scores of runs side by side; or with --gate whether scores fell.

    For the gate, runs that differ in the seed alone stand for one set-up.
    """
    from app.commands import comparing

    if gate or against is not None:
        raise typer.Exit(
            comparing.gate(
                run_ids, against=against, baseline=baseline, is_asked=gate, as_json=as_json
            )
        )
    comparing.run(run_ids, baseline=baseline, classes=classes, as_json=as_json)


def export(
    run_id: ModelId = "last",
    kind: Annotated[
        Literal["torch", "onnx"], typer.Option("--format", help="Of the program in the folder.")
    ] = "torch",
    checkpoint: Checkpoint = "best",
    out: Annotated[
        Path | None, typer.Option(help="Folder to make [the run's words and the format].")
    ] = None,
) -> None:
    """Write a folder with weights, a program, classes and thresholds, for use elsewhere."""
    from app.commands import models

    raise typer.Exit(models.export(run_id, kind=kind, checkpoint=checkpoint, out=out))


def label(
    run_id: ModelId,
    images: Annotated[list[str], typer.Argument(help="Picture files.")],
    checkpoint: Checkpoint = "best",
    top: Annotated[int | None, typer.Option(help="At most so many labels a picture.")] = None,
    threshold: Annotated[
        str | None,
        typer.Option(help="Least probability of a label [0.5], or `tuned` for each class's own."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Label pictures with a trained model; exit code 1 when one of them cannot be used."""
    from app.commands import models

    code = models.label(
        run_id, images, checkpoint=checkpoint, top=top, threshold=threshold, as_json=as_json
    )
    raise typer.Exit(code)
