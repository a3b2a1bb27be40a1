"""Arguments and flags that several commands have."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

# --- of a request -----------------------------------------------------------------------------

PresetName = Annotated[str, typer.Argument(help="Name of a preset, see `ringside presets list`.")]
Model = Annotated[str | None, typer.Option(help="Any timm model [resnet50].")]
Epochs = Annotated[int | None, typer.Option(help="Passes over the data [3].")]
Batch = Annotated[
    int | None, typer.Option(help="Images per step over all devices; accumulation multiplies it.")
]
Processes = Annotated[
    int | None, typer.Option(help="Number of processes [one per GPU, or 2 on a CPU].")
]
ImageSize = Annotated[int | None, typer.Option(help="Side in pixels.")]
Separator = Annotated[
    str | None,
    typer.Option(
        help="Between the labels of a cell: ; | , newline, or none: one a cell [detected]."
    ),
]
Set = Annotated[
    list[str] | None, typer.Option("--set", help="KEY=VALUE changes a preset's setting.")
]
KeepGlobalBatch = Annotated[
    bool, typer.Option("--keep-global-batch", help="Accumulation must not grow the batch.")
]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Check every file first and leave bad ones out.")
]

# --- of runs and presets ----------------------------------------------------------------------

RunId = Annotated[str, typer.Argument(help="A run's id, its two words, or `last`.")]
Way = Literal["accumulate", "resize", "rescale", "stages"]
"""How a preset can be fitted to another number of devices."""

# --- of every command -------------------------------------------------------------------------

Json = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Processes that decode [one per core].")]
Yes = Annotated[bool, typer.Option("--yes", help="Say the size and do not ask.")]
