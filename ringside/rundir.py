"""One run directory: its files, who writes each, and how to read and write them safely.

The contract is described in `docs/run-directory.md`. Each file has one writer. A line is written
with one `os.write`; a whole file goes to a temporary name, is synced, and is renamed into place.
"""

from __future__ import annotations

import os
import random
import re
import secrets
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ringside.errors import RingsideError, RunDirError, closest
from ringside.spec import FORMAT
from ringside.words import say

T = TypeVar("T")

DRAWS = 1000
RESERVE_BYTES = 64 * 1024
ID_PATTERN = re.compile(r"\d{8}-\d{6}-[a-z]+-[a-z]+(-\d+)?")

_ADJECTIVES = (  # noqa: SIM905
    "amber brisk calm clear coral crisp dusky eager early fair gentle golden keen light lively "
    "lucid mellow merry mild noble pearl plum proud quick quiet rapid royal ruby silver spry "
    "steady still sunny swift tidy vivid warm wise"
).split()
_ANIMALS = (  # noqa: SIM905
    "badger beaver bison crane curlew deer dove eagle egret falcon finch fox gannet gecko hare "
    "hawk heron ibex ibis jay kestrel kite lark lynx marten merlin moose newt orca osprey otter "
    "owl panda plover puffin quail raven robin seal stork swan tern thrush trout vole wren"
).split()


def runs_root() -> Path:
    """`$RINGSIDE_RUNS`, else one folder per user. Not created here."""
    given = os.environ.get("RINGSIDE_RUNS")
    if given:
        return Path(given).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_data_dir("ringside")) / "runs"


class AnyFormat(msgspec.Struct, frozen=True):
    """The one field that a file of any Ringside has; newer ones may hold what cannot be read."""

    format: int = FORMAT


class RunDir:
    """Paths and file access of one run; holds no state besides its path."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def id(self) -> str:
        """The folder's name: date, time and two words."""
        return self.path.name

    @property
    def name(self) -> str:
        """The two words a person remembers."""
        return "-".join(self.id.split("-")[2:]) or self.id

    spec = property(lambda self: self.path / "spec.json")
    accelerate = property(lambda self: self.path / "accelerate.yaml")
    plan = property(lambda self: self.path / "plan.json")
    hardware = property(lambda self: self.path / "hardware.json")
    estimate = property(lambda self: self.path / "estimate.json")
    preflight = property(lambda self: self.path / "preflight.json")
    events = property(lambda self: self.path / "events.jsonl")
    owner = property(lambda self: self.path / "owner.json")
    exit = property(lambda self: self.path / "exit.json")
    supervisor_log = property(lambda self: self.path / "supervisor.log")
    classes = property(lambda self: self.path / "classes.json")
    predictions = property(lambda self: self.path / "predictions.npz")
    class_scores = property(lambda self: self.path / "scores" / "classes.json")
    trackers = property(lambda self: self.path / "trackers")
    console = property(lambda self: self.path / "console.log")
    logs = property(lambda self: self.path / "logs")
    ranks = property(lambda self: self.path / "ranks")
    nccl = property(lambda self: self.path / "nccl")
    trace = property(lambda self: self.path / "trace")
    requests = property(lambda self: self.path / "requests")
    hang = property(lambda self: self.path / "hang.json")
    gpus = property(lambda self: self.path / "gpus.jsonl")
    notes = property(lambda self: self.path / "notes.json")
    imported = property(lambda self: self.path / "imported.json")
    checkpoints = property(lambda self: self.path / "checkpoints")
    reserve = property(lambda self: self.path / ".reserve")

    def read(self, path: Path, kind: type[T]) -> T | None:
        """Decode a JSON file of this run; None when it does not exist or does not hold a `kind`."""
        try:
            return msgspec.json.decode(path.read_bytes(), type=kind)
        except (OSError, msgspec.DecodeError, RecursionError, RingsideError):
            return None

    def write(self, path: Path, value: Any) -> None:
        """Write a whole JSON file atomically."""
        write_atomic(path, msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")

    def set_aside(self) -> None:
        """Keep some space for the last words of the run, which a full disk must not swallow."""
        # Not zeros: file systems that compress would set nothing aside.
        with suppress(OSError):
            self.reserve.write_bytes(os.urandom(RESERVE_BYTES))

    def write_last_words(self, path: Path, value: Any) -> None:
        """As `write`; where that fails, once more with the space that was set aside."""
        try:
            self.write(path, value)
        except RunDirError:
            with suppress(OSError):
                self.reserve.unlink()
            self.write(path, value)

    def request(self, kind: str, **details: Any) -> None:
        """Ask the run for something (stop, stop-after-epoch, checkpoint, profile); anyone may."""
        try:
            self.requests.mkdir(exist_ok=True)
        except OSError as error:
            raise RunDirError(
                say("runs_folder.unwritable", path=self.requests, why=error.strerror)
            ) from None
        self.write(self.requests / f"{kind}.json", {"t": time.time(), **details})

    def requested(self, kind: str) -> bool:
        """Whether somebody asked for `kind`; a folder that does not answer now is asked again."""
        return os.path.exists(self.requests / f"{kind}.json")


def write_atomic(path: Path, data: bytes) -> None:
    """Temp file beside the target, fsync, rename: a reader sees the old file or the new one."""
    # Two threads of the page may write the same request at once, so a pid alone is not enough.
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise RunDirError(say("runs_folder.unwritable", path=path, why=error.strerror)) from None


def create_run_dir(root: Path) -> RunDir:
    """Make a new, empty run directory; while any are free, its two words are no other run's."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        taken = {run.name for run in list_run_dirs(root)}
        for _ in range(100):
            path = root / _new_id(taken)
            try:
                path.mkdir()
            except FileExistsError:
                continue
            run = RunDir(path)
            for folder in (run.ranks, run.requests, run.logs, run.checkpoints):
                folder.mkdir()
            return run
    except OSError as error:
        raise RunDirError(say("runs_folder.no_run", root=root, why=error.strerror)) from None
    raise RunDirError(say("runs_folder.no_name", root=root))


def _new_id(taken: Collection[str]) -> str:
    """Date, time and two words; only when nearly all pairs are taken, one that is."""
    words = random.SystemRandom()
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for _ in range(DRAWS):
        pair = f"{words.choice(_ADJECTIVES)}-{words.choice(_ANIMALS)}"
        if pair not in taken:
            break
    return f"{stamp}-{pair}"


def list_run_dirs(root: Path) -> list[RunDir]:
    """All runs below `root`, newest first; other folders are left alone."""
    try:
        with os.scandir(root) as entries:
            names = [entry.name for entry in entries if ID_PATTERN.fullmatch(entry.name)]
    except OSError:
        return []
    return [RunDir(root / name) for name in sorted(names, reverse=True)]


def find_run(root: Path, text: str) -> RunDir:
    """The run with this id, or the only one of which a word, or several, begin with `text`.

    `last` is the newest. Raises RunDirError with the near names when none or several fit.
    """
    runs = list_run_dirs(root)
    if text in ("last", "latest") and (whole := [run for run in runs if run.spec.exists()]):
        return whole[0]
    exact = [run for run in runs if text in (run.id, run.name)]
    matches = exact or [run for run in runs if text and f"-{text}" in f"-{run.id}"]
    if len(matches) == 1:
        return matches[0]
    if matches:
        names = ", ".join(run.id for run in matches[:5])
        raise RunDirError(say("runs_folder.several", text=text, n=len(matches), names=names))
    raise RunDirError(say("runs_folder.unknown", text=text, root=root, hint=_hint(text, runs)))


def _hint(text: str, runs: Sequence[RunDir]) -> str:
    """What to do about a name that no run has: the one that was probably meant, else the list."""
    if not runs:
        return say("runs_folder.hint_none")
    if meant := closest(text, [run.name for run in runs]):
        return say("hint.nearest", name=meant)
    return say("runs_folder.hint_list")


def check_format(value: int, what: str) -> None:
    """Refuse a file of a newer Ringside; older formats are migrated where they are read."""
    if value > FORMAT:
        raise RunDirError(say("runs_folder.newer", what=what, value=value, known=FORMAT))


def read_new_lines(path: Path, offset: int) -> tuple[bytes, int]:
    """Whole new lines after `offset`, and the next offset; a torn last line waits for later."""
    try:
        with path.open("rb") as stream:
            stream.seek(offset)
            data = stream.read()
    except OSError:
        return b"", offset
    end = data.rfind(b"\n") + 1
    return data[:end], offset + end


def iter_files(folder: Path, pattern: str) -> Iterator[Path]:
    """Files that match, in name order; an absent folder has none."""
    yield from sorted(folder.glob(pattern)) if folder.is_dir() else ()
