"""`ranks/rankN.stacks.txt`: Python's stacks of a rank, when somebody asked for them.

A rank appends them itself (`training.asked_stacks`), in the words of CPython's
Python/traceback.c: `Thread 0x… (most recent call first):`, then a line for each frame.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath

import msgspec

from ringside.rundir import RunDir, iter_files

SIGNAL = signal.SIGUSR1
"""Asks a rank for its stacks; a process that is not prepared for it would be ended by it."""

INSISTENT_SIGNAL = signal.SIGUSR2
"""The same where nobody answered, because a call in C holds Python's lock. It is answered without
that lock, which is safe only while nobody runs Python; so it is never the first."""

OWN_FOLDERS = ("training", "ringside")
_THREAD = re.compile(r"^(Current thread|Thread) (0x[0-9a-f]+)(?: \[(.*?)\])? ")
_FRAME = re.compile(r'^  File "(.*)", line (\d+|\?\?\?) in (.*)$')
_MAIN = "MainThread"
_MODULES = ("_run_module_as_main", "<module>")

# What the innermost frames mean, the first that fits; a name of a function, or of a file.
_WAITS = (
    ("all_reduce", "waits in all_reduce"),
    ("all_gather_into_tensor", "waits in all_gather"),
    ("all_gather_object", "waits in all_gather"),
    ("all_gather", "waits in all_gather"),
    ("reduce_scatter_tensor", "waits in reduce_scatter"),
    ("broadcast_object_list", "waits in broadcast"),
    ("broadcast", "waits in broadcast"),
    ("gather_object", "waits in gather"),
    ("barrier", "waits in barrier"),
    ("torch/cuda/__init__.py:synchronize", "waits for the GPU"),
    ("torch/cuda/streams.py:synchronize", "waits for the GPU"),
    ("torch/autograd/graph.py", "is in backward"),
    ("torch/utils/data/dataloader.py", "waits for data"),
    ("torch/utils/data/_utils", "loads data"),
    ("torch/_inductor", "compiles"),
    ("torch/_dynamo", "compiles"),
)  # fmt: skip
DOING = tuple(dict.fromkeys(words for _, words in _WAITS))
"""All that `doing` may say; in another language under `doing.` in its catalogue."""
NUM_INNERMOST = 12
MAX_TAIL_BYTES = 1 << 18


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """One call; `line` is None where the interpreter did not know it."""

    file: str
    line: int | None
    function: str

    @property
    def is_own(self) -> bool:
        """Whether it is code of this project, by the folder of its file."""
        return any(part in OWN_FOLDERS for part in PurePath(self.file).parent.parts[-4:])

    @property
    def text(self) -> str:
        """`training/loop.py:165 optimizer_step`, with as much of the path as tells it."""
        parts = PurePath(self.file).parts
        short = "/".join(parts[-3:] if "site-packages" in parts else parts[-2:])
        return f"{short}:{self.line or '?'} {self.function}"


class ThreadStack(msgspec.Struct, frozen=True, kw_only=True):
    """A thread's calls, the innermost first; `name` where the interpreter tells it."""

    ident: str
    frames: tuple[Frame, ...]
    name: str | None = None
    is_main: bool = False


class RankStacks(msgspec.Struct, frozen=True, kw_only=True):
    """One dump of one rank; `problem` says why there is none."""

    rank: int
    threads: tuple[ThreadStack, ...] = ()
    problem: str | None = None

    @property
    def main(self) -> ThreadStack | None:
        """The thread that trains."""
        return next((thread for thread in self.threads if thread.is_main), None)

    @property
    def doing(self) -> str | None:
        """What its main thread does, as its innermost frames tell: `waits in all_reduce`."""
        return doing(self.main.frames) if self.main else None


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Ranks that stand at the same line of this project's code and do the same there."""

    ranks: tuple[int, ...]
    doing: str | None
    own: tuple[Frame, ...]
    innermost: Frame | None


def parse_stacks(text: str) -> tuple[ThreadStack, ...]:
    """The threads of the newest dump in `text`, in its order; lines of other kinds count nothing.

    A dump of one thread each may follow another: the newest begins after the last main thread but
    one, for the main thread is the oldest and comes last.
    """
    threads: list[tuple[str, str | None, bool, list[Frame]]] = []
    for line in text.splitlines():
        if begins := _THREAD.match(line):
            current, ident, name = begins.groups()
            threads.append((ident, name, current == "Current thread", []))
        elif (frame := _FRAME.match(line)) and threads:
            file, number, function = frame.groups()
            number = int(number) if number.isdecimal() else None
            threads[-1][3].append(Frame(file=file, line=number, function=function))
    mains = [place for place, (_, name, _, f) in enumerate(threads) if _is_main(name, f)]
    begin = mains[-2] + 1 if len(mains) > 1 else 0
    main = mains[-1] if mains else None
    return tuple(
        ThreadStack(ident=ident, name=name, frames=tuple(frames), is_main=place == main)
        for place, (ident, name, _, frames) in enumerate(threads)
        if place >= begin
    )


def stacks_path(run: RunDir, rank: int) -> Path:
    """Where a rank leaves its stacks when it is asked."""
    return Path(run.ranks) / f"rank{rank}.stacks.txt"


def read_stacks(run: RunDir) -> tuple[RankStacks, ...]:
    """The newest stacks that each rank has left, by rank; none of a rank that left none.

    Where nobody asked a rank, those that its watchdog wrote (`rankN.stack.txt`) count.
    """
    found: dict[int, RankStacks] = {}
    for pattern in ("rank*.stack.txt", "rank*.stacks.txt"):
        for path in iter_files(run.ranks, pattern):
            number = path.name.partition(".")[0].removeprefix("rank")
            threads = parse_stacks(_tail(path))
            if number.isdecimal() and threads:
                found[int(number)] = RankStacks(rank=int(number), threads=threads)
    return tuple(found[rank] for rank in sorted(found))


def doing(frames: Sequence[Frame]) -> str | None:
    """What the innermost frames mean; None where they tell nothing in particular."""
    for frame in frames[:NUM_INNERMOST]:
        for sign, words in _WAITS:
            if "/" in sign:
                file, _, function = sign.partition(":")
                if file in frame.file and function in ("", frame.function):
                    return words
            elif frame.function == sign and "torch/distributed" in frame.file:
                return words
    return None


def groups(stacks: Iterable[RankStacks]) -> tuple[Group, ...]:
    """Ranks by where their main threads stand, the smallest group first: it is the odd one."""
    found: dict[tuple[object, ...], Group] = {}
    for one in stacks:
        frames = one.main.frames if one.main else ()
        own = tuple(frame for frame in frames if frame.is_own)
        key = (one.doing, own[0] if own else one.rank, one.problem)
        before = found[key].ranks if key in found else ()
        found[key] = Group(
            ranks=(*before, one.rank), doing=one.doing, own=own,
            innermost=frames[0] if frames else None,
        )  # fmt: skip
    return tuple(sorted(found.values(), key=lambda group: (len(group.ranks), group.ranks)))


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, stream.seek(0, 2) - MAX_TAIL_BYTES))
            return stream.read().decode(errors="replace")
    except OSError:
        return ""


def _is_main(name: str | None, frames: Sequence[Frame]) -> bool:
    """By Python's name for it; faulthandler has none, and there the outermost call tells."""
    return name == _MAIN or (bool(frames) and frames[-1].function in _MODULES)
