"""The commands that say what holds this machine or a run back, before and after it ran.

Registered on the `ringside` command by `register`, in the order of its help.
"""

from __future__ import annotations

from typing import Annotated

import typer

from ringside.errors import SpecError

Json = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(doctor)
    app.command()(profile)
    app.command()(estimate)


def profile(
    run_id: Annotated[str, typer.Argument(help="A run's id, its two words, or `last`.")] = "last",
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


def estimate(  # noqa: PLR0913
    presets: Annotated[
        list[str] | None, typer.Argument(metavar="PRESET...", help="Presets [all that run here].")
    ] = None,
    data: Annotated[
        str, typer.Option(help="As for `run`; it gives the classes and the length of an epoch.")
    ] = "emoji",
    model: Annotated[str | None, typer.Option(help="Any timm model [resnet50].")] = None,
    batch: Annotated[
        int | None,
        typer.Option(help="Images per step over all devices; accumulation multiplies it."),
    ] = None,
    processes: Annotated[
        int | None, typer.Option(help="Number of processes [one per GPU, or 2 on a CPU].")
    ] = None,
    image_size: Annotated[int | None, typer.Option(help="Side in pixels.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="KEY=VALUE changes a preset's setting.")
    ] = None,
    keep_global_batch: Annotated[
        bool, typer.Option("--keep-global-batch", help="Accumulation must not grow the batch.")
    ] = False,
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
