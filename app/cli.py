"""The `ringside` command: thin words over the same functions that the page uses.

Exit codes: 0 fine, 1 a run or a data check failed, or scores fell, 2 a person's mistake (one
sentence), 3 a bug of ours, 4 a gate without enough data.
Nothing heavy is imported before a command needs it; `ringside list` must answer at once.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from app.entry import drop_output
from app.flags import doctoring, planning, queueing, results, running, serving, shelving, watching
from app.flags.data import data_app
from app.flags.playbooks import playbook_app
from app.flags.presets import presets_app
from ringside import __version__
from ringside.errors import RingsideError

# The class of every complaint about arguments; newer Typers carry a click of their own.
UsageError: type[Exception] = typer.BadParameter.__bases__[0]

app = typer.Typer(
    name="ringside",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(presets_app, name="presets")
app.add_typer(data_app, name="data")
app.add_typer(playbook_app, name="playbook")
# In the order of the help.
for topic in (running, results, doctoring, planning, shelving, queueing, watching, serving):
    topic.register(app)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"ringside {__version__}")
        raise typer.Exit


@app.callback()
def ringside(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and end."
        ),
    ] = False,
) -> None:
    """Train image classifiers on several GPUs and see what each strategy costs and gains."""


def main(argv: list[str] | None = None) -> None:
    """Run the command and exit with its code; a person's mistake is one sentence."""
    try:
        code = app(args=argv, standalone_mode=False)
        sys.stdout.flush()
        sys.exit(code if isinstance(code, int) else 0)
    except RingsideError as error:
        print(error, file=sys.stderr)
    except UsageError as error:
        print(_complaint(error), file=sys.stderr)
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


def _complaint(error: Any) -> str:
    """What Typer says about the arguments, and where to read which there are."""
    sentence = error.format_message().rstrip(".")
    # The words of pydantic, which newer Typers read values with, do not say what was typed.
    if (faults := getattr(error.__cause__ or error.__context__, "errors", None)) is not None:
        sentence = f"{sentence.partition(', unable to parse')[0]}, not {faults()[0]['input']}"
    command = error.ctx.command_path if error.ctx else "ringside"
    return f"{sentence}. See `{command} --help`."
