"""Makes a playbook of runs, with its charts, README and page.

export_playbook(root, ["20261129-184404-merry-otter"])   # a command
export_in_child(root, [...])                             # the page: traces and charts are heavy
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from app.views.child import Child
from app.views.playbook_charts import draw
from app.views.playbook_html import page
from ringside.errors import PlaybookError, RingsideError
from ringside.playbook import store
from ringside.playbook.content import Playbook
from ringside.playbook.gathering import gather
from ringside.playbook.readme import readme
from ringside.rundir import RunDir
from ringside.words import DEFAULT, remembering, say, speaking, spoken

TIMEOUT_S = 600.0


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What the child is to make; the runs are ids below `root`."""

    root: str
    run_ids: tuple[str, ...]
    title: str | None = None
    chosen: str | None = None
    language: str = DEFAULT


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """Where the playbook is, or the sentence why there is none."""

    path: str | None = None
    refusal: str | None = None


def export_playbook(
    root: Path, run_ids: Sequence[str], *, target: Path | None = None, title: str | None = None,
    chosen: str | None = None,
) -> Path:  # fmt: skip
    """Make the playbook of these runs and write it, by default into your own folder.

    A RingsideError says why it cannot be made; then nothing is written. The playbook is English.
    """
    if target is not None and target.exists():
        # Before the work, not after a minute of it.
        raise PlaybookError(say("playbook.exists", path=target))
    with remembering() as retold:
        try:
            playbook, files = _made(root, run_ids, title, chosen)
        except RingsideError as error:  # said in English, as all of the playbook
            raise PlaybookError(retold(str(error), spoken())) from None
    return store.keep(playbook, files, target)


@speaking(DEFAULT)
def _made(
    root: Path, run_ids: Sequence[str], title: str | None, chosen: str | None
) -> tuple[Playbook, dict[str, bytes]]:
    runs = [RunDir(root / run_id) for run_id in run_ids]
    draft = gather(root, runs, title=title, chosen=chosen)
    drawn = draw(draft, root)
    charts = tuple(one.chart for one in drawn)
    playbook = msgspec.structs.replace(draft.playbook, charts=charts)
    files = draft.files
    for one in drawn:
        files[f"{one.chart.path}.svg"] = one.picture.svg.encode()
        files[f"{one.chart.path}.png"] = one.picture.png
    names = sorted([*files, "README.md", "index.html", "playbook.json"])
    files["README.md"] = readme(playbook).encode()
    files["index.html"] = page(playbook, drawn, names).encode()
    return playbook, files


def export_in_child(
    root: Path, run_ids: Sequence[str], *, title: str | None = None, chosen: str | None = None
) -> Path:
    """The same in a process of its own; it ends when this one does."""
    order = Order(
        root=str(root), run_ids=tuple(run_ids), title=title, chosen=chosen, language=spoken()
    )
    child = Child(
        [sys.executable, "-m", "app.views.playbook_worker"],
        request=msgspec.json.encode(order), timeout_s=TIMEOUT_S,
    )  # fmt: skip
    lines = list(child.lines())
    code, errors = child.finish()
    if not lines:
        why = errors.splitlines()[-1] if errors else str(code)
        raise PlaybookError(say("playbook.not_made", why=why))
    made = msgspec.json.decode(lines[-1], type=Made)
    if made.path is None:
        raise PlaybookError(made.refusal or "")
    return Path(made.path)
