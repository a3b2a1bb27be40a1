"""README.md of a playbook: complete by itself, for a colleague who has nothing but the zip."""

from __future__ import annotations

import time
from collections.abc import Iterator

from ringside.playbook import tables
from ringside.playbook.content import KeptRun, Playbook
from ringside.playbook.tables import Table


def readme(playbook: Playbook) -> str:
    """The whole text in Markdown."""
    return "\n".join(_lines(playbook)).rstrip() + "\n"


def _lines(playbook: Playbook) -> Iterator[str]:
    run = playbook.run
    made = time.strftime("%Y-%m-%d", time.gmtime(playbook.made))
    yield f"# {_plain(playbook.title)}\n"
    yield f"A playbook of Ringside {playbook.ringside}, made {made}.\n"
    yield f"{_plain(tables.summary(playbook))}\n"
    yield "Put its preset into your library, and look at its runs without a GPU:\n"
    yield "```\nringside playbook import THIS.zip"
    yield f"ringside playbook replay {playbook.name}\n```\n"
    yield "## What was found\n"
    for one in playbook.runs:
        yield from _verdict(one)
    yield "## Results\n"
    yield from _table(tables.results(playbook))
    yield "".join(f"- {_plain(note)}\n" for note in tables.result_notes(playbook))
    yield from _pictures(playbook)
    yield "## The run that is kept\n"
    yield f"```\n{run.command}\n```\n"
    if run.launch:
        yield f"It was executed as (without paths):\n\n```\n{run.launch}\n```\n"
    yield f"Preset: `preset/{playbook.preset}.yaml`, and for `accelerate launch --config_file`: "
    yield "`accelerate/accelerate.yaml`.\n"
    yield from _table(tables.settings_table(playbook))
    yield "## Hardware and versions\n"
    yield from _table(tables.hardware_table(playbook))
    yield "## Environment\n"
    yield from _table(tables.environment_table(run))
    yield "## Images\n"
    yield from _table(tables.data_table(playbook))
    yield "## The six points\n"
    yield from _points(run)
    yield "## What was left out\n"
    yield "Host and user names, paths, addresses and tokens are replaced everywhere.\n"
    yield from (f"- {_code(one.path)}: {_plain(one.why)}" for one in playbook.left_out)


def _verdict(run: KeptRun) -> Iterator[str]:
    found = run.diagnosis.verdict
    yield f"**{_plain(run.name)}** ({_plain(run.result.preset)}): {_plain(found.sentence)}\n"
    yield f"{tables.weight(found)}\n"
    yield from (
        f"- {_plain(one.label)}: {_plain(one.value)} ({_plain(one.source)})"
        for one in found.evidence
    )
    yield f"- Wrong if: {_plain(found.refutation)}"
    yield f"- Next: {_plain(found.next_step)}\n"
    for other in run.diagnosis.others:
        yield f"- Also ({other.code}): {_plain(other.sentence)}"
    yield ""


def _pictures(playbook: Playbook) -> Iterator[str]:
    if playbook.charts:
        yield "## Pictures\n"
    for chart in playbook.charts:
        whose = next((f"{run.name}: " for run in playbook.runs if run.id == chart.run), "")
        yield f"**{_plain(whose + chart.title)}.** {_plain(chart.headline)}\n"
        yield f"![{_plain(chart.headline)}]({chart.path}.png)\n"


def _points(run: KeptRun) -> Iterator[str]:
    for point in run.points:
        yield f"{point.number}. **{_plain(point.title)}** ({tables.STATES[point.state]})"
        yield f"   - It is said: {_plain(point.claim)}"
        yield f"   - In truth: {_plain(point.truth)}"
        for one in point.figures:
            yield f"   - {_plain(one.label)}: {_plain(tables.measured(one))}"
    yield ""


def _table(table: Table) -> Iterator[str]:
    """A Markdown table; a sentence where there is nothing to put into one."""
    if not table.rows:
        yield f"{table.nothing}\n"
        return
    yield f"| {' | '.join(map(_cell, table.columns))} |"
    yield f"| {' | '.join('---' for _ in table.columns)} |"
    yield from (f"| {' | '.join(map(_cell, row))} |" for row in table.rows)
    yield ""


def _plain(text: str) -> str:
    """Text that Markdown takes as it is; what stands between backquotes stays code."""
    parts = " ".join(text.split()).split("`")
    for at in range(0, len(parts), 2):
        for sign in "\\*_[]<>|#":
            parts[at] = parts[at].replace(sign, f"\\{sign}")
    return "`".join(parts)


def _cell(text: str) -> str:
    return _plain(text) or " "


def _code(text: str) -> str:
    return f"`{text.replace('`', '')}`"
