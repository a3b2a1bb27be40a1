"""The commands of the shelf: find runs, say something about them, put them away, delete them."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from app.entry import DEFAULT_LIMIT
from app.flags.options import Json, Yes

RunId = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, its two words, or `last`.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("list")(list_)
    # `-b` takes the tag b away; it must not be taken for an option.
    app.command(context_settings={"ignore_unknown_options": True})(tag)
    app.command()(note)
    app.command()(archive)
    app.command()(delete)
    app.command()(leftovers)


def list_(
    as_json: Json = False,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = DEFAULT_LIMIT,
    search: Annotated[
        str, typer.Option(help="Words that are all in id, preset, model, data, tags or note.")
    ] = "",
    tag: Annotated[str | None, typer.Option(help="Only runs with this tag.")] = None,
    preset: Annotated[str | None, typer.Option(help="Only runs of this preset.")] = None,
    state: Annotated[str | None, typer.Option(help="Only runs in this state.")] = None,
    sort: Annotated[
        Literal["newest", "speedup", "auc", "f1", "epoch-time"],
        typer.Option(help="The best first; it reads all events of all runs."),
    ] = "newest",
    archived: Annotated[
        bool, typer.Option("--archived", help="The runs that were put away instead.")
    ] = False,
) -> None:
    """The runs, newest first."""
    from app.commands import reading
    from ringside.shelf.finding import Query

    query = Query(search=search, tag=tag, preset=preset, state=state, sort=sort, archived=archived)
    reading.list_runs(as_json=as_json, limit=limit, query=query)


def tag(
    run_id: RunId,
    changes: Annotated[
        list[str] | None,
        typer.Argument(metavar="TAG", help="+a or a gives a tag, -a takes it away."),
    ] = None,
) -> None:
    """Give a run tags, take some away, or print them."""
    from app.commands import shelf

    shelf.tag(run_id, changes or [])


def note(
    run_id: RunId,
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help='The whole note; "" removes it.')
    ] = None,
) -> None:
    """Write what is to be remembered of a run, or print it."""
    from app.commands import shelf

    shelf.note(run_id, text)


def archive(
    run_id: RunId,
    undo: Annotated[bool, typer.Option("--undo", help="Bring it back.")] = False,
) -> None:
    """Take a run out of the list; nothing of it is deleted."""
    from app.commands import shelf

    shelf.archive(run_id, undo=undo)


def delete(
    run_ids: Annotated[
        list[str], typer.Argument(metavar="RUN", help="Whole ids, or the two words.")
    ],
    yes: Yes = False,
) -> None:
    """Delete runs for good, after saying how much that is."""
    from app.commands import shelf

    raise typer.Exit(shelf.delete(run_ids, yes=yes))


def leftovers(
    as_json: Json = False,
    clean: Annotated[bool, typer.Option("--clean", help="End them.")] = False,
) -> None:
    """Processes that still run though their run has ended."""
    from app.commands import shelf

    raise typer.Exit(shelf.leftovers(as_json=as_json, clean=clean))
