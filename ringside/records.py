"""The small files that say who owns a run and how it ended: owner.json, exit.json, rank errors."""

from __future__ import annotations

import itertools
import os
import platform
import time
from contextlib import suppress
from typing import Literal

import msgspec

from ringside import identity
from ringside.causes import FailureKind
from ringside.errors import RunDirError
from ringside.identity import ProcessIdentity
from ringside.rundir import RunDir, check_format, iter_files
from ringside.spec import FORMAT, RunSpec

OwnerKind = Literal["supervisor", "terminal"]
FinalState = Literal["completed", "stopped", "failed", "lost"]

WRITE_PAUSES_S = (1.0, 2.0, 4.0)

CONSEQUENCES = frozenset({"timeout", "lost_connection"})
"""What happens to a rank because of another one; never the first cause."""


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """Who answers for a run: its supervisor, or rank 0 of a run started in a terminal.

    `started` is in seconds since 1970. `host` keeps a machine that shares the runs folder from
    taking a run of another one for dead. `waiting` until it is its turn in the queue; written anew
    then, `started` is the end of waiting.
    """

    format: int = FORMAT
    kind: OwnerKind
    process: ProcessIdentity
    launcher: ProcessIdentity | None = None
    started: float
    host: str = ""
    waiting: bool = False


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint to go on from: its folder, and the `step` steps that are done by then.

    `path` is relative to the run directory, or absolute when it is the one the run began with.
    """

    path: str
    epoch: int
    step: int


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a run failed, with the evidence; None stands for what nobody could tell.

    `rank` failed first and `cause` says in one word how; `where` says in a sentence where it
    stood. `last_collective` is the last one that a rank came to. `evidence` names files of the run
    directory: tracebacks, stacks, torch's record of collectives. `advice` is what to do next.
    `kind` is the cause in a word of a closed list, by which `ringside.remedies` says what to try.
    """

    rank: int | None = None
    cause: str = "error"
    kind: FailureKind = "unknown"
    where: str | None = None
    last_collective: str | None = None
    checkpoint: Standing | None = None
    advice: str | None = None
    evidence: tuple[str, ...] = ()


class ExitRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The final state of a run; `reason` is one sentence, times are in seconds since 1970.

    `return_code` is the launcher's (negative: ended by that signal); `signal` names the signal
    that ended the launcher or the first rank. `failure` is there when the state is failed.
    `retried_as` is the id of the run that its supervisor started as another try.
    """

    format: int = FORMAT
    state: FinalState
    return_code: int | None = None
    signal: str | None = None
    reason: str
    started: float
    finished: float
    failure: Failure | None = None
    retried_as: str | None = None


class RankError(msgspec.Struct, frozen=True, kw_only=True):
    """`ranks/rankN.error.json`, written by the rank that failed; `t` in seconds since 1970.

    `user_error` marks what a person can mend; the sentence is then shown without a traceback.
    `cause` is one word for the kind of failure, `last_collective` what NCCL did last.
    """

    rank: int
    t: float
    sentence: str
    traceback: str | None = None
    user_error: bool = False
    cause: str = "error"
    last_collective: str | None = None

    @property
    def is_consequence(self) -> bool:
        """Whether this rank only tells of another one that has gone or does not come."""
        return self.cause in CONSEQUENCES


def is_queued(spec: RunSpec, owner: Owner | None) -> bool:
    """Whether an unfinished run waits for its devices; from its first moment on, when it may."""
    return spec.queue if owner is None else owner.waiting


def write_owner(
    run: RunDir,
    kind: OwnerKind,
    launcher: ProcessIdentity | None = None,
    *,
    waiting: bool = False,
) -> Owner:
    """Declare the calling process the owner of the run; RunDirError when it cannot be written.

    A terminal run finds its launcher itself, among the ancestors of the caller.
    """
    above = launcher_above() if kind == "terminal" and launcher is None else None
    owner = Owner(
        kind=kind,
        process=identity.of(os.getpid()),
        launcher=above[0] if above else launcher,
        started=time.time(),
        host=platform.node(),
        waiting=waiting,
    )
    run.write(run.owner, owner)
    return owner


def is_local(owner: Owner) -> bool:
    """Whether the owner's pid means anything on this machine."""
    return owner.host in ("", platform.node())


def owner_is_alive(owner: Owner) -> bool:
    """Whether this machine still runs the owner.

    A terminal run also counts as alive while its launcher is: it may be ending the other ranks.
    """
    processes = [owner.process]
    if owner.kind == "terminal" and owner.launcher:
        processes.append(owner.launcher)
    return any(identity.is_alive(process) for process in processes)


def is_gone(owner: Owner) -> bool:
    """Whether the owner is known to have ended; another machine's processes cannot be seen."""
    return is_local(owner) and not owner_is_alive(owner)


def read_owner(run: RunDir) -> Owner | None:
    """The owner, or None when nobody took the run yet; RunDirError for a newer format."""
    owner = run.read(run.owner, Owner)
    if owner is not None:
        check_format(owner.format, str(run.owner))
    return owner


def write_exit(
    run: RunDir,
    *,
    state: FinalState,
    reason: str,
    return_code: int | None = None,
    signal: str | None = None,
    finished: float | None = None,
    failure: Failure | None = None,
    retried_as: str | None = None,
) -> ExitRecord:
    """Close the books of a run; it began when its owner took it, and ends now unless told.

    On a full disk it tries again for a few seconds, then raises RunDirError.
    """
    finished = time.time() if finished is None else finished
    owner = read_owner(run)
    record = ExitRecord(
        state=state,
        reason=reason,
        return_code=return_code,
        signal=signal,
        started=owner.started if owner else finished,
        finished=finished,
        failure=failure,
        retried_as=retried_as,
    )
    _write_patiently(run, record)
    return record


def read_exit(run: RunDir) -> ExitRecord | None:
    """The exit record, or None while the run has not ended; RunDirError for a newer format."""
    record = run.read(run.exit, ExitRecord)
    if record is not None:
        check_format(record.format, str(run.exit))
    return record


def rank_errors(run: RunDir) -> list[RankError]:
    """What the ranks say about their end: causes before consequences, the earliest first."""
    files = iter_files(run.ranks, "rank*.error.json")
    errors = [error for path in files if (error := run.read(path, RankError))]
    return sorted(errors, key=lambda error: (error.is_consequence, error.t))


def first_failure(errors: list[RankError], ended: ExitRecord | None) -> RankError | None:
    """The word of the rank that failed first; of one that could not speak, the exit record's."""
    found = ended.failure if ended else None
    if ended is None or found is None or found.rank is None:
        return errors[0] if errors else None
    own = (error for error in errors if (error.rank, error.cause) == (found.rank, found.cause))
    silent = RankError(rank=found.rank, t=ended.finished, sentence=ended.reason, cause=found.cause)
    return next(own, silent)


def _write_patiently(run: RunDir, record: ExitRecord) -> None:
    for pause_s in WRITE_PAUSES_S:
        try:
            run.write_last_words(run.exit, record)
            break
        except RunDirError:
            time.sleep(pause_s)
    else:
        run.write(run.exit, record)
    with suppress(OSError):
        run.reserve.unlink()


def launcher_above() -> tuple[ProcessIdentity, list[str]] | None:
    """The nearest ancestor that is `accelerate launch` or torchrun, and its argument list."""
    import psutil

    for parent in psutil.Process().parents():
        try:
            argv = parent.cmdline()
            if _is_launcher(argv):
                return identity.of(parent.pid), argv
        except (psutil.Error, ProcessLookupError):
            continue
    return None


def _is_launcher(argv: list[str]) -> bool:
    """`accelerate launch` as a script or a module, `accelerate-launch`, or torchrun.

    Only the first words are looked at: what follows may be anybody's arguments.
    """
    names = [os.path.basename(word) for word in argv[:4]]
    modules = {"accelerate.commands.launch", "torch.distributed.run"}
    scripts = {"accelerate-launch", "torchrun"}
    script = any(pair == ("accelerate", "launch") for pair in itertools.pairwise(names))
    return script or bool((modules | scripts) & set(names))
