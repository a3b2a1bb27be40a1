"""The `ringside` command: thin words over the same functions that the page uses.

Exit codes: 0 fine, 1 a run or a data check failed, or scores fell, 2 a person's mistake (one
sentence), 3 a bug of ours, 4 a gate without enough data.
Nothing heavy is imported before a command needs it; `ringside list` must answer at once.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from app import doctoring, preflighting, queueing, shelving, watching
from app.entry import drop_output
from app.library import presets_app
from app.playbooks import playbook_app
from ringside.errors import RingsideError

# The class of every complaint about arguments; newer Typers carry a click of their own.
UsageError: type[Exception] = typer.BadParameter.__bases__[0]

app = typer.Typer(
    name="ringside",
    help="Train image classifiers on several GPUs and see what each strategy costs and gains.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
data_app = typer.Typer(help="Image data.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(presets_app, name="presets")
app.add_typer(data_app, name="data")
app.add_typer(playbook_app, name="playbook")

Json = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]
Separator = Annotated[
    str | None,
    typer.Option(
        help="Between the labels of a cell: ; | , newline, or none: one a cell [detected]."
    ),
]
DataOption = typer.Option(
    help="emoji, products, products:ci, a folder, a table such as a .csv, or "
    "hf:owner/name of the Hub."
)
RunId = Annotated[str, typer.Argument(help="A run's id, its two words, or `last`.")]
Gpus = Annotated[
    str | None, typer.Option(help="GPUs by the number of nvidia-smi, as in 2,3 [the first].")
]
Queue = Annotated[
    bool, typer.Option("--queue", help="Wait until no other run uses the same devices.")
]
Beside = Annotated[
    bool, typer.Option("--beside", help="Start on GPUs that another run uses, or waits for.")
]
ModelId = Annotated[str, typer.Argument(help="A run, or the path of an exported folder.")]
Checkpoint = Annotated[Literal["best", "last"], typer.Option(help="Which one of a run.")]


@app.command()
def run(  # noqa: PLR0913
    preset: Annotated[str, typer.Argument(help="Name of a preset, see `ringside presets list`.")],
    data: Annotated[str, DataOption] = "emoji",
    model: Annotated[str | None, typer.Option(help="Any timm model [resnet50].")] = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the data [3].")] = None,
    batch: Annotated[
        int | None,
        typer.Option(help="Images per step over all devices; accumulation multiplies it."),
    ] = None,
    processes: Annotated[
        int | None, typer.Option(help="Number of processes [one per GPU, or 2 on a CPU].")
    ] = None,
    image_size: Annotated[int | None, typer.Option(help="Side in pixels.")] = None,
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
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="KEY=VALUE changes a preset's setting.")
    ] = None,
    gpus: Gpus = None,
    queue: Queue = False,
    beside: Beside = False,
    time_limit: Annotated[
        str | None, typer.Option(help="Stop it after so long, as in 90s, 30m, 2h30m.")
    ] = None,
    retry: Annotated[
        bool, typer.Option("--retry", help="Try once more when it is killed or loses a connection.")
    ] = False,
    keep_global_batch: Annotated[
        bool, typer.Option("--keep-global-batch", help="Accumulation must not grow the batch.")
    ] = False,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Check every file first and leave bad ones out.")
    ] = False,
    follow: Annotated[bool, typer.Option("--follow", help="Stay and print what happens.")] = False,
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


@app.command()
def resume(
    run_id: RunId = "last",
    epochs: Annotated[int | None, typer.Option(help="Epochs in all, if more than before.")] = None,
    processes: Annotated[int | None, typer.Option(help="Another number of processes.")] = None,
    gpus: Annotated[str | None, typer.Option(help="Other GPUs, as in 2,3 [the same].")] = None,
    queue: Queue = False,
    beside: Beside = False,
    follow: Annotated[bool, typer.Option("--follow", help="Stay and print what happens.")] = False,
) -> None:
    """Continue a run from its last checkpoint, as a new run."""
    from app.commands import running

    changes = running.Changes(
        epochs=epochs, processes=processes, gpus=running.parse_gpus(gpus), queue=queue,
        beside=beside,
    )  # fmt: skip
    raise typer.Exit(running.resume(run_id, changes, follow=follow))


@app.command()
def watch(run_id: RunId = "last") -> None:
    """Print a run's events until it ends."""
    from app.commands import running

    raise typer.Exit(running.watch(run_id))


@app.command()
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


@app.command()
def stop(
    run_id: RunId = "last",
    after_epoch: Annotated[
        bool, typer.Option("--after-epoch", help="Let the running epoch finish first.")
    ] = False,
) -> None:
    """Stop a run and wait until none of its processes is left."""
    from app.commands import running

    raise typer.Exit(running.stop(run_id, after_epoch=after_epoch))


@app.command()
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


@app.command()
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


@app.command()
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


@app.command()
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


@app.command()
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


doctoring.register(app)
preflighting.register(app)
shelving.register(app)
queueing.register(app)
watching.register(app)


@app.command()
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


@app.command()
def demo(
    epochs: Annotated[int, typer.Option(help="Epochs of each run.")] = 10,
    port: Annotated[int | None, typer.Option(help="Port of the page.")] = None,
    once: Annotated[bool, typer.Option("--once", help="Leave when both runs have ended.")] = False,
) -> None:
    """The story in five minutes: one device, then DDP on all, live in the page and here."""
    from app.commands import demo as story

    raise typer.Exit(story.main(epochs=epochs, port=port, once=once))


@data_app.command("make")
def data_make(
    out: Annotated[Path, typer.Argument(help="Folder to make.")],
    profile: Annotated[str, typer.Option(help="ci, demo or bench.")] = "demo",
    num_images: Annotated[
        int | None, typer.Option(help="How many; the profile has a default.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Another seed, other pictures.")] = 0,
    workers: Annotated[int | None, typer.Option(help="Processes that draw [one per core].")] = None,
) -> None:
    """Make synthetic product pictures on disk, in the layout that `--data FOLDER` reads."""
    from app.commands import making

    making.make(out, profile=profile, num_images=num_images, seed=seed, workers=workers)


@data_app.command("check")
def data_check(
    path: Annotated[str, typer.Argument(help="What --data takes: a folder, a table, a source.")],
    as_json: Json = False,
    separator: Separator = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes that decode [one per core].")
    ] = None,
) -> None:
    """Decode every image and report bad files, rows and classes; exit code 1 for bad files."""
    from app.commands import checking

    raise typer.Exit(checking.check(path, as_json=as_json, separator=separator, workers=workers))


@data_app.command("prepare")
def data_prepare(  # noqa: PLR0913
    path: Annotated[str, typer.Argument(help="What --data takes: a folder, a table, a source.")],
    out: Annotated[Path | None, typer.Option(help="Folder to make [in your cache].")] = None,
    format_: Annotated[
        str, typer.Option("--format", help="jpeg, or raw: squares that need no decoding.")
    ] = "jpeg",
    short_side: Annotated[int, typer.Option(help="Pixels; smaller pictures stay.")] = 256,
    quality: Annotated[int, typer.Option(help="Of JPEG, 1 to 95.")] = 90,
    separator: Separator = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Check every file first and leave bad ones out.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Say the size and do not ask.")] = False,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes that decode [one per core].")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a copy in smaller pictures that trains faster, as a folder for --data."""
    from app.commands import preparing

    request = preparing.Request(
        data=path, out=out, recipe=preparing.recipe_of(format_, short_side, quality),
        separator=separator, skip_bad=skip_bad, yes=yes, workers=workers, as_json=as_json,
    )  # fmt: skip
    raise typer.Exit(preparing.run(request))


def main(argv: list[str] | None = None) -> None:
    """Run the command and exit with its code; a person's mistake is one sentence."""
    try:
        code = app(args=argv, standalone_mode=False)
        sys.stdout.flush()
        sys.exit(code if isinstance(code, int) else 0)
    except RingsideError as error:
        print(error, file=sys.stderr)
    except UsageError as error:
        print(error.format_message(), file=sys.stderr)  # type: ignore[attr-defined]
    except (typer.Abort, KeyboardInterrupt):
        sys.exit(130)
    except BrokenPipeError:
        drop_output()
        sys.exit(0)
    except Exception:
        import traceback

        traceback.print_exc()
        print("This is a bug in Ringside; please report it with the lines above.", file=sys.stderr)
        sys.exit(3)
    sys.exit(2)
