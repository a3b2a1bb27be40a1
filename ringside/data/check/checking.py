"""`check_data`: decode everything, then say what a run would and would not use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from ringside.cores import num_cores
from ringside.data.check.content import Content, content_of
from ringside.data.check.decoding import (
    CHUNK_IMAGES,
    DIGEST_BYTES,
    Decoded,
    chunks_of,
    decode_chunk,
)
from ringside.data.check.equal import equal_groups, notes_on_equal
from ringside.data.check.report import BadFile, ClassCount, DataReport, UnusualImages
from ringside.data.discovery import parse_data
from ringside.data.folder.dealing import (
    notes_on_classes,
    notes_on_lost,
    refuse_unusable,
    with_splits,
)
from ringside.data.folder.records import Record
from ringside.data.notes import Note
from ringside.data.pool import spread
from ringside.errors import DataError
from ringside.words import say

if TYPE_CHECKING:
    from ringside.spec import DataSpec

MAX_EXAMPLES = 3
MIN_PER_WORKER = 4 * CHUNK_IMAGES  # for fewer a process is not worth its start


def check_data(
    spec_or_text: DataSpec | str,
    *,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> DataReport:
    """Decode every picture of a data set and report what a run would meet.

    `spec_or_text` is what `--data` takes, or a parsed one. `workers` is the number of processes,
    by default one for every CPU this process may use, fewer for small sets.
    `progress(done, total)` counts pictures. Nothing is written.

    Raises `DataError` where nothing can be checked: no such folder, a table that cannot be read.
    """
    spec = parse_data(spec_or_text) if isinstance(spec_or_text, str) else spec_or_text
    content = content_of(spec)
    decoded = _decode(content, workers, progress)
    bad = _bad_files(content, decoded)
    unusable = {file.file for file in bad}
    usable = [record for record in content.records if record.path not in unusable]
    records, notes = _dealt(usable, spec.label, content, decoded)
    notes = [*content.notes, *notes]
    return DataReport(
        data=spec.label,
        root=content.root,
        task=content.task,
        layout=content.layout,
        num_files=len(content.names),
        num_usable=len(records),
        num_train=sum(record.split == "train" for record in records),
        num_val=sum(record.split == "val" for record in records),
        bad=tuple(bad),
        classes=_class_counts(content, records),
        unusual=_unusual(content, decoded),
        warnings=tuple(note for note in notes if note.is_warning),
        notes=tuple(note for note in notes if not note.is_warning),
    )


def _decode(
    content: Content, workers: int | None, progress: Callable[[int, int], None] | None
) -> Decoded:
    """All results in one, in the order of the pictures, however they arrived."""
    total = len(content.names)
    workers = workers or max(1, min(num_cores(), total // MIN_PER_WORKER))
    digests, bad = bytearray(DIGEST_BYTES * total), []
    kinds: dict[str, list[int]] = {}
    done = 0
    for part in spread(decode_chunk, chunks_of(content.splits), workers):
        start = DIGEST_BYTES * part.start
        digests[start : start + len(part.digests)] = part.digests
        bad += part.bad
        for kind, positions in part.kinds.items():
            kinds.setdefault(kind, []).extend(positions)
        done += len(part.digests) // DIGEST_BYTES
        if progress:
            progress(done, total)
    in_order = {kind: sorted(positions) for kind, positions in sorted(kinds.items())}
    return Decoded(0, bytes(digests), sorted(bad), in_order)


def _bad_files(content: Content, decoded: Decoded) -> list[BadFile]:
    used = {record.path for record in content.records}
    files = [
        BadFile(
            file=content.names[position],
            code=code,
            reason=reason,
            is_used=content.names[position] in used,
        )
        for position, code, reason in decoded.bad
    ]
    rows = [BadFile(file=p.file, code=p.code, reason=p.reason) for p in content.problems]
    return files + rows


def _dealt(
    usable: list[Record], name: str, content: Content, decoded: Decoded
) -> tuple[list[Record], list[Note]]:
    """The records as a run without the bad files would split them; none where it could not."""
    position_of = {name: i for i, name in enumerate(content.names)}

    def twins(records: list[Record]) -> list[list[int]]:
        return equal_groups(decoded.digests, [position_of[record.path] for record in records])

    try:
        refuse_unusable(usable, content.task, name)
        records, notes = with_splits(usable, name, twins)
    except DataError as error:
        return [], [Note("no-run", say("data_note.no_run", why=str(error)))]
    kept = {record.path for record in records}
    left_out = [record.labels for record in content.records if record.path not in kept]
    lost = notes_on_lost([*left_out, *(p.labels for p in content.problems)], records)
    equal = notes_on_equal(records, twins(records))
    return records, [*notes, *notes_on_classes(records), *lost, *equal]


def _class_counts(content: Content, records: list[Record]) -> tuple[ClassCount, ...]:
    """Every class that any row names, with what is left of it."""
    named = [record.labels for record in content.records]
    named += [problem.labels for problem in content.problems]
    names = sorted({label for labels in named for label in labels})
    counts = Counter((record.split, label) for record in records for label in record.labels)
    return tuple(
        ClassCount(name=name, train=counts["train", name], val=counts["val", name])
        for name in names
    )


def _unusual(content: Content, decoded: Decoded) -> tuple[UnusualImages, ...]:
    return tuple(
        UnusualImages(
            kind=kind,
            num_images=len(positions),
            examples=tuple(content.names[i] for i in positions[:MAX_EXAMPLES]),
        )
        for kind, positions in decoded.kinds.items()
    )
