"""`ringside compare --gate`: did the scores fall? Its exit code is for scripts."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from app.commands.tables import plain_console
from app.views.answers import answer_notes, answer_sentence
from ringside.compare.answer import Answer
from ringside.compare.quality import answers
from ringside.errors import SpecError
from ringside.run import RunRecord, fold_run, require_spec
from ringside.rundir import find_run, runs_root
from ringside.words import say

HELD, WORSE, NOT_ENOUGH_DATA = 0, 1, 4
"""Exit codes; 2 says that runs cannot be compared, 3 stays a fault of ours."""


def run(run_ids: Sequence[str], *, against: str | None, as_json: bool) -> int:
    """Print an answer for each side but the reference; the exit code of the worst one."""
    records = _records(run_ids)
    reference = _records(against.split(",")) if against is not None else []
    if len(records) + len(reference) < 2:
        if len(run_ids) < 2:
            raise SpecError(say("compare.needs_two"))
        raise SpecError(say("compare.same_run", name=records[0].name))
    found = answers(records, reference)
    if as_json:
        from app.commands.reading import print_json

        print_json([answer_json(one) for one in found])
    else:
        _print(found, {record.id: record for record in (*records, *reference)})
    return exit_code(found)


def exit_code(found: Sequence[Answer]) -> int:
    """Worse before undecided before held."""
    verdicts = {one.verdict for one in found}
    if "worse" in verdicts:
        return WORSE
    return NOT_ENOUGH_DATA if "not_enough_data" in verdicts else HELD


def answer_json(one: Answer) -> dict[str, object]:
    """The frozen shape of an answer."""
    content: dict[str, object] = msgspec.to_builtins(one)
    return {**content, "sentence": answer_sentence(one), "bound": one.bound}


def _records(words: Sequence[str]) -> list[RunRecord]:
    root = runs_root()
    found = [fold_run(find_run(root, word.strip())) for word in words]
    for record in found:
        require_spec(record)
    return list({record.id: record for record in found}.values())


def _print(found: Sequence[Answer], records: dict[str, RunRecord]) -> None:
    console = plain_console()
    for one in found:
        sides = {
            "candidate": _side(one.candidate, one.candidate_seeds, records),
            "reference": _side(one.reference, one.reference_seeds, records),
        }
        line = say("gate.line", answer=answer_sentence(one), **sides)
        for text in (line, *(f"  {note}" for note in answer_notes(one))):
            console.print(text, soft_wrap=True, markup=False, highlight=False)


def _side(ids: Sequence[str], seeds: Sequence[int], records: dict[str, RunRecord]) -> str:
    record = records[ids[0]]
    preset = require_spec(record).preset
    if len(ids) == 1:
        return say("gate.side_one", preset=preset, run=record.name)
    return say("gate.side", preset=preset, seeds=", ".join(map(str, seeds)))
