"""The page in a playbook: one file, no request, no script, light and dark."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path

from app.views.playbook_charts import Drawn
from ringside.playbook import tables
from ringside.playbook.content import KeptRun, Playbook
from ringside.playbook.tables import Table

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_HERE = Path(__file__).parent
_COLOURS = _HERE.parent / "page" / "style.css"
_CODE = re.compile(r"`([^`]+)`")
_BLOCK = re.compile(r"^((?::root|\.dark)(?:, \.dark)?) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)


def page(playbook: Playbook, drawn: Sequence[Drawn], files: Sequence[str]) -> str:
    """The whole file; `files` are the names of the others in the playbook."""
    made = time.strftime("%Y-%m-%d", time.gmtime(playbook.made))
    body = "\n".join(_body(playbook, drawn, files, made))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(playbook.title)}</title>\n<style>\n{_style()}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _style() -> str:
    """The colours of the page of Ringside, by the reader's own choice of light or dark."""
    light, dark, mixed = "", "", ""
    for name, content in _BLOCK.findall(_COLOURS.read_text(encoding="utf-8")):
        light += content if name == ":root" else ""
        dark += content if name == ".dark" else ""
        mixed += content if "," in name else ""
    own = (_HERE / "playbook.css").read_text(encoding="utf-8")
    dark = f"@media (prefers-color-scheme: dark) {{ :root {{\n{dark}{mixed}}} }}"
    return f":root {{\n{light}{mixed}}}\n{dark}\n{own}"


def _body(
    playbook: Playbook, drawn: Sequence[Drawn], files: Sequence[str], made: str
) -> Iterator[str]:
    run = playbook.run
    yield f"<header><h1>{escape(playbook.title)}</h1>"
    yield f'<p class="soft">A playbook of Ringside {escape(playbook.ringside)}, made {made}.</p>'
    yield f"<p>{escape(tables.summary(playbook))}</p>{_tiles(run)}</header>"
    yield "<h2>What was found</h2>"
    yield from (_verdict(one) for one in playbook.runs)
    yield f"<h2>Results</h2>{_card(_results(playbook))}"
    yield from _pictures(playbook, drawn)
    yield f"<h2>The run that is kept</h2>{_card(''.join(_kept(playbook)))}"
    yield f"<h2>Hardware and versions</h2>{_card(_pairs(tables.hardware_table(playbook)))}"
    yield f"<h2>Environment</h2>{_card(_pairs(tables.environment_table(run)))}"
    yield f"<h2>Images</h2>{_card(_pairs(tables.data_table(playbook)))}"
    yield f"<h2>The six points</h2>{_points(run)}"
    yield f"<h2>In this playbook</h2>{_card(''.join(_files(playbook, files)))}"


def _tiles(run: KeptRun) -> str:
    result = run.result
    values = {
        "images/s": None if result.samples_per_s is None else f"{result.samples_per_s:,.0f}",
        "of one device": None if result.speedup.value is None else f"{result.speedup.value:.2f}x",
        "a steady epoch": None if result.epoch_time_s is None else f"{result.epoch_time_s:.1f} s",
        "macro AUC": None if result.auc_macro is None else f"{result.auc_macro:.4f}",
        "macro F1": None if result.f1_macro is None else f"{result.f1_macro:.4f}",
        "verdict": run.diagnosis.verdict.cause.replace("_", " "),
    }
    shown = "".join(
        f'<div class="tile"><b>{escape(value)}</b><span>{escape(name)}</span></div>'
        for name, value in values.items()
        if value is not None
    )
    return f'<div class="tiles">{shown}</div>'


def _verdict(run: KeptRun) -> str:
    found = run.diagnosis.verdict
    evidence = _list(f"{one.label}: {one.value} ({one.source})" for one in found.evidence)
    others = _list(f"{one.code}: {one.sentence}" for one in run.diagnosis.others)
    more = f"<details><summary>Also found</summary>{others}</details>" if others else ""
    return _card(
        f"<h3>{escape(run.name)} · {escape(run.result.preset)}</h3>"
        f'<p><span class="tag {found.severity}">{found.severity}</span>'
        f"{_prose(found.sentence)}</p>"
        f'<p class="soft">{escape(tables.weight(found))}</p>{evidence}'
        f"<p>Next: {_prose(found.next_step)}</p>"
        f'<p class="soft">Wrong if: {_prose(found.refutation)}</p>{more}'
    )


def _results(playbook: Playbook) -> str:
    found = tables.results(playbook)
    rows = "".join(
        f'<tr class="{"kept" if run.id == playbook.chosen else ""}">{_cells(row)}</tr>'
        for run, row in zip(playbook.runs, found.rows, strict=True)
    )
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in found.columns)
    notes = "".join(f'<p class="soft">{_prose(n)}</p>' for n in tables.result_notes(playbook))
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="Results"><table class="wide">'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{notes}"
    )


def _pictures(playbook: Playbook, drawn: Sequence[Drawn]) -> Iterator[str]:
    for run_id in (None, *(run.id for run in playbook.runs)):
        own = [one for one in drawn if one.chart.run == run_id]
        if own:
            name = next((run.name for run in playbook.runs if run.id == run_id), "all runs")
            figures = f'<div class="charts">{"".join(map(_figure, own))}</div>'
            yield f"<h2>Pictures of {escape(name)}</h2>{_card(figures)}"


def _figure(one: Drawn) -> str:
    # `picture` escapes what it draws; the drawings were made here, not taken from a file.
    return (
        f"<figure><figcaption>{escape(one.chart.title)}<span>{_prose(one.chart.headline)}</span>"
        f'</figcaption><div class="large">{one.picture.wide}</div>'
        f'<div class="small">{one.picture.narrow}</div></figure>'
    )


def _kept(playbook: Playbook) -> Iterator[str]:
    run, about = playbook.run, playbook.preset_file.about
    yield f"<p>{escape(about.title)}. {_prose(about.why)}</p><pre>{escape(run.command)}</pre>"
    if run.launch:
        yield '<p class="soft">It was executed as, without paths:</p>'
        yield f"<pre>{escape(run.launch)}</pre>"
    yield _pairs(tables.settings_table(playbook))


def _points(run: KeptRun) -> str:
    return "".join(
        _card(
            f"<h3>{point.number}. {escape(point.title)}</h3>"
            f'<p class="soft">{escape(tables.STATES[point.state])}</p>'
            f"<p>It is said: {_prose(point.claim)}</p><p>In truth: {_prose(point.truth)}</p>"
            + _list(f"{one.label}: {tables.measured(one)}" for one in point.figures)
        )
        for point in run.points
    )


def _files(playbook: Playbook, files: Sequence[str]) -> Iterator[str]:
    yield "<p>Host and user names, paths, addresses and tokens are replaced everywhere.</p>"
    yield f"<pre>ringside playbook import THIS.zip\nringside playbook replay {playbook.name}</pre>"
    yield f"<details><summary>{len(files)} files</summary>{_list(files)}</details>"
    left = _list(f"{one.path}: {one.why}" for one in playbook.left_out)
    if left:
        yield f"<details><summary>What was left out</summary>{left}</details>"


def _card(content: str) -> str:
    return f'<section class="card">{content}</section>'


def _pairs(table: Table) -> str:
    if not table.rows:
        return f'<p class="soft">{escape(table.nothing)}</p>'
    rows = "".join(f"<tr>{_cells(row)}</tr>" for row in table.rows)
    return f'<table class="pairs"><tbody>{rows}</tbody></table>'


def _cells(row: Sequence[str]) -> str:
    return "".join(f"<td>{escape(cell)}</td>" for cell in row)


def _prose(text: str) -> str:
    """A sentence; what stands between backquotes is code."""
    return _CODE.sub(r"<code>\1</code>", escape(text))


def _list(lines: Iterable[str]) -> str:
    found = "".join(f"<li>{_prose(line)}</li>" for line in lines)
    return f"<ul>{found}</ul>" if found else ""
