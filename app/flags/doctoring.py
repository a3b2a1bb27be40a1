"""The commands that say what holds this machine or a run back, and that get evidence of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.flags.options import Json, RunId
from ringside.errors import SpecError


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    for command in (trace, nccl, doctor, profile):
        app.command()(command)


def trace(
    files: Annotated[
        list[Path],
        typer.Argument(help="Traces of one run, one per rank, their folder, or a run."),
    ],
    logs: Annotated[
        list[Path] | None,
        typer.Option("--nccl", metavar="LOG", help="What NCCL logged of it; may be repeated."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what holds a run back, from traces of torch.profiler; exit code 1 for a bad file."""
    from app.commands import evidence, tracing

    traces, nccl_logs = evidence.trace_paths(files), evidence.nccl_paths(logs or ())
    raise typer.Exit(tracing.trace(traces, logs=nccl_logs, as_json=as_json))


def nccl(
    files: Annotated[
        list[Path],
        typer.Argument(help="Logs of one job, plain or .gz, one per rank or of all, or a run."),
    ],
    as_json: Json = False,
) -> None:
    """Say how the GPUs talk, from what NCCL logged with NCCL_DEBUG=INFO."""
    from app.commands import evidence
    from app.commands import nccl as command

    raise typer.Exit(command.nccl(evidence.nccl_paths(files), as_json=as_json))


def profile(
    run_id: RunId = "last",
    steps: Annotated[int, typer.Option(help="How many; a trace file for each rank.")] = 5,
) -> None:
    """Have a run under way record its next steps with torch.profiler, for `ringside trace`."""
    from app.commands import evidence

    raise typer.Exit(evidence.profile(run_id, num_steps=steps))


def doctor(
    run_id: Annotated[
        str | None, typer.Argument(metavar="RUN", help="A run; without one, this machine.")
    ] = None,
    as_json: Json = False,
    sweep: Annotated[
        bool,
        typer.Option("--sweep/--no-sweep", help="Measure the collectives between the devices."),
    ] = True,
    measure: Annotated[
        bool, typer.Option("--measure", help="Of a run: repeat its step with one thing taken away.")
    ] = False,
) -> None:
    """Say what holds a run back, or check this machine in under two minutes."""
    if run_id is not None:
        from app.commands import verdict

        raise typer.Exit(verdict.verdict(run_id, as_json=as_json, measure=measure))
    if measure:
        raise SpecError(
            "--measure repeats the step of a run: name one, as in `doctor last --measure`."
        )
    from app.commands import machine

    raise typer.Exit(machine.check(as_json=as_json, sweep=sweep))
