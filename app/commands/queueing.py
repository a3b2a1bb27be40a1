"""What the commands of the queue do."""

from __future__ import annotations

import platform
import sys

from app.commands.reading import place_json, print_columns, print_json
from app.views.queue import place_sentence
from ringside.launch import queue
from ringside.launch.claims import Claims
from ringside.launch.queue import Place
from ringside.launch.queue_order import Direction
from ringside.rundir import find_run, runs_root
from ringside.words import say


def show(*, as_json: bool) -> None:
    """Print the waiting runs in their order, machine by machine."""
    root = runs_root()
    places = queue.places(Claims(root))
    if as_json:
        paused = queue.is_paused(root)
        print_json({"is_paused": paused, "runs": [place_json(place) for place in places]})
        return
    if queue.is_paused(root):
        print(say("queue.is_paused"), file=sys.stderr)
    if not places:
        print(say("queue.empty"), file=sys.stderr)
    print_columns(
        [[place.run_id, f"{place_sentence(place)}{_elsewhere(place)}"] for place in places]
    )


def _elsewhere(place: Place) -> str:
    return "" if place.host == platform.node() else say("queue.on_host", host=place.host)


def move(run_id: str, direction: Direction) -> None:
    """Give a run another place, and print the order that came of it."""
    queue.move(find_run(runs_root(), run_id), direction)
    show(as_json=False)


def pause() -> None:
    """Pause the queue of this machine."""
    queue.set_paused(runs_root(), is_paused=True)
    print(say("queue.is_paused"))


def resume() -> None:
    """Let the queue of this machine go on."""
    queue.set_paused(runs_root(), is_paused=False)
    print(say("queue.goes_on"))
