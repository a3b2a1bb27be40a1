"""`ringside playbook`: make, keep, find, read and replay playbooks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from app.commands.printing import printable
from app.commands.reading import print_columns, print_json, record_json
from ringside.errors import PlaybookError, RunDirError, nearest
from ringside.hardware import read_hardware
from ringside.playbook import archive, differences, store, tables
from ringside.playbook import replay as replaying
from ringside.playbook.content import Playbook
from ringside.playbook.store import Entry
from ringside.playbook.tables import Table
from ringside.run import fold_run
from ringside.rundir import RunDir, find_run, runs_root
from ringside.words import say
from ringside.words.retelling import retold


def export(names: Sequence[str], *, out: Path | None, title: str | None, keep: str | None) -> None:
    """Make a playbook of runs; of one playbook's name, write that one again."""
    if (kept := _only_playbook(names)) is not None:
        if out is None:
            raise PlaybookError(say("playbook.exists", path=kept.path))
        print(say("terminal.wrote", path=store.export_kept(kept, out)))
        return
    from app.views.playbook_export import export_playbook

    root = runs_root()
    runs = [find_run(root, name) for name in names]
    chosen = None if keep is None else find_run(root, keep).id
    path = export_playbook(root, [run.id for run in runs], target=out, title=title, chosen=chosen)
    playbook = archive.read_content(archive.open_source(path))
    print(say("playbook.wrote", path=path, mib=path.stat().st_size / 2**20))
    print(f"  {printable(tables.summary(playbook))}")
    for one in playbook.left_out:
        print("  " + say("playbook.left_out", path=one.path, why=retold(one.why)), file=sys.stderr)


def import_(path: Path, *, as_json: bool) -> None:
    """Keep it and say what came of it."""
    receipt = store.import_playbook(path)
    folder = store.own_folder() / receipt.name
    if as_json:
        print_json({
            "name": receipt.name, "folder": str(folder), "preset": receipt.preset,
            "preset_is_new": receipt.is_new, "runs": receipt.runs,
        })  # fmt: skip
        return
    print(say("playbook.kept_as", name=receipt.name, folder=folder))
    print(say("playbook.new" if receipt.is_new else "playbook.not_new", preset=receipt.preset))
    print(say("playbook.look", name=receipt.name, run=_words(receipt.runs[0])))
    print(say("playbook.run_here", name=receipt.name))


def list_playbooks(
    *, search: str, model: str | None, hardware: str | None, cause: str | None, as_json: bool
) -> None:
    """One line each."""
    query = store.Query(search=search, model=model, hardware=hardware, cause=cause)
    found = store.list_playbooks(query)
    if as_json:
        print_json([entry_json(entry) for entry in found])
        return
    print(say("playbook.in_folder", folder=store.own_folder()), file=sys.stderr)
    if not found:
        print(say("playbook.none_fits"), file=sys.stderr)
        return
    rows = [[printable(cell) for cell in _cells(entry)] for entry in found if entry.playbook]
    if rows:
        print_columns(rows)
    for entry in found:
        if entry.fault:
            print(say("terminal.figure", label=entry.name, value=entry.fault), file=sys.stderr)


def entry_json(entry: Entry) -> dict[str, Any]:
    """The frozen shape of a line of `playbook list --json`."""
    playbook = entry.playbook
    found: dict[str, Any] = {
        "name": entry.name, "place": entry.place, "path": str(entry.path), "fault": entry.fault,
        "imported": entry.receipt.imported if entry.receipt else None,
        **dict.fromkeys((
            "title", "made", "preset", "model", "hardware", "causes", "samples_per_s", "speedup",
            "auc_macro", "runs",
        )),
    }  # fmt: skip
    if playbook is not None:
        result = playbook.run.result
        found |= {
            "title": playbook.title, "made": playbook.made, "preset": playbook.preset,
            "model": playbook.run.model, "hardware": playbook.hardware.label,
            "causes": playbook.causes, "samples_per_s": result.samples_per_s,
            "speedup": result.speedup.value, "auc_macro": result.auc_macro,
            "runs": [run.id for run in playbook.runs],
        }  # fmt: skip
    return found


def show(name: str, *, run: str | None, as_json: bool) -> None:
    """A playbook in text, or one of its recorded runs."""
    entry = store.find_playbook(name)
    if run is not None:
        _show_run(entry, run, as_json=as_json)
        return
    playbook = store.require(entry)
    if as_json:
        print_json(playbook)
        return
    _print(entry, playbook)


def diff(first: str, second: str, *, as_json: bool) -> None:
    """Only what differs."""
    pair = [store.require(store.find_playbook(name)) for name in (first, second)]
    found = differences.differences(*pair)
    if as_json:
        print_json(found)
        return
    if not found:
        print(say("playbook.equal"))
        return
    rows = [["", "", *(printable(one.name) for one in pair)]]
    rows += [
        [one.group, one.name, *(_short(tables.text(v)) for v in (one.first, one.second))]
        for one in found
    ]
    print_columns(rows)


def replay(
    name: str, *, data: str | None, devices: int | None, choose: str | None, start: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Print how to run it here, or start it."""
    entry, hardware = store.find_playbook(name), read_hardware()
    found = replaying.replay(entry, hardware, data=data, devices=devices, choose=choose)
    if not start:
        if as_json:
            print_json(found)
            return
        for note in found.notes:
            print(printable(note))
        print(f"    {printable(found.command)}")
        return
    if found.needs_data:
        data = store.require(entry).data.name
        raise PlaybookError(say("playbook.replay_data", data=data))
    from app.commands import running

    preset = replaying.keep_preset(entry)
    running.start(msgspec.structs.replace(found.request, preset=preset), follow=False)


def remove(name: str, *, yes: bool) -> int:
    """Delete it after a question; 1 when the answer was no."""
    if not yes:
        print(say("playbook.ask", name=name), end=" ", flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            print(say("playbook.not_deleted"))
            return 1
    store.remove_playbook(name)
    print(say("playbook.deleted", name=name))
    return 0


def _only_playbook(names: Sequence[str]) -> Entry | None:
    """The playbook that a single word names, unless it is a run."""
    if len(names) != 1:
        return None
    try:
        find_run(runs_root(), names[0])
    except RunDirError:
        kept = [entry for entry in store.list_playbooks() if entry.name == names[0]]
        return kept[0] if kept else None
    return None


def _show_run(entry: Entry, text: str, *, as_json: bool) -> None:
    runs = store.recorded_runs(entry)
    fits = [run for run in runs if text in (run.id, run.name) or f"-{text}" in f"-{run.id}"]
    if len(fits) != 1:
        hint = nearest(text, [run.name for run in runs])
        raise PlaybookError(say("playbook.no_run", name=entry.name, text=text, hint=hint))
    record = fold_run(fits[0])
    if as_json:
        print_json(record_json(record, root=fits[0].path.parent))
        return
    from app.commands.tables import print_classes, print_record

    print_record(fits[0].path.parent, record)
    print_classes(record, in_full=False)


def _print(entry: Entry, playbook: Playbook) -> None:
    print(f"{entry.name}: {printable(playbook.title)}")
    print(f"  {printable(tables.summary(playbook))}")
    for run in playbook.runs:
        found = run.diagnosis.verdict
        name = say("terminal.aside", text=run.name, aside=run.result.preset)
        sentence = printable(retold(found.sentence))
        print("\n" + say("terminal.figure", label=name, value=sentence))
        print(f"  {tables.weight(found)}")
        print("  " + say("terminal.next", sentence=printable(retold(found.next_step))))
    print()
    results = tables.results(playbook)
    print_columns([results.columns, *([printable(cell) for cell in row] for row in results.rows)])
    for note in tables.result_notes(playbook):
        print(f"  {printable(note)}")
    print(f"\n    {printable(playbook.run.command)}\n")
    for title, table in _tables(playbook):
        print(say("playbook.head", title=title))
        rows = table.rows or ((table.nothing,),)
        print_columns([["  " + row[0], *(_short(printable(cell)) for cell in row[1:])]
                       for row in rows])  # fmt: skip
    print("\n" + say("playbook.files", n=len(playbook.files), path=entry.path))


def _tables(playbook: Playbook) -> tuple[tuple[str, Table], ...]:
    return (
        (say("playbook.settings"), tables.settings_table(playbook)),
        (say("playbook.hardware"), tables.hardware_table(playbook)),
        (say("playbook.environment"), tables.environment_table(playbook.run)),
        (say("playbook.images"), tables.data_table(playbook)),
    )


def _cells(entry: Entry) -> list[str]:
    playbook = store.require(entry)
    result = playbook.run.result
    rate = result.samples_per_s
    told = "" if rate is None else say("playbook.rate", rate=rate)
    gain = "" if result.speedup.value is None else f"{result.speedup.value:.2f}x"
    place = say(f"origin.{entry.place}")
    return [entry.name, place, playbook.run.model, playbook.preset,
            playbook.hardware.label, ", ".join(playbook.causes), told, gain]  # fmt: skip


def _short(text: str, limit: int = 100) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _words(run_id: str) -> str:
    return RunDir(Path(run_id)).name
