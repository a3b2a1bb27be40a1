"""What a checkpoint says of pictures: the output of `python -m training.label`, made readable."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from app.views.child import Child
from ringside.checkpoints import COMMON_THRESHOLD, About, Thresholds, read_about, read_thresholds
from ringside.errors import RingsideError
from ringside.labelling import Label
from ringside.words import say

TIMEOUT_S = 120.0
NUM_GUESSES = 5
MAX_GUESSES = 12
# A picture needs no GPU, and a run that has them keeps them to itself.
ENVIRONMENT = {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "2"}


class NoAnswerError(RingsideError):
    """The process that holds the model gave no answer; `details` is for the log."""

    details = ""


@dataclass(frozen=True)
class Guess:
    """One class and its probability; `threshold` is None where one class is chosen of all."""

    name: str
    probability: float
    threshold: float | None
    passes: bool


class _Picture(msgspec.Struct, frozen=True):
    file: str
    labels: list[Label]


class _Bad(msgspec.Struct, frozen=True):
    file: str
    reason: str


class _Answer(msgspec.Struct, frozen=True):
    images: list[_Picture]
    bad: list[_Bad]


def guesses_of(
    model: Path, pictures: Sequence[Path]
) -> tuple[dict[Path, tuple[tuple[Guess, ...], int]], dict[Path, str]]:
    """(guesses, how many more pass) of each picture; and for the others what is wrong with them.

    The guesses are the labels that pass, and as many of the next ones as make NUM_GUESSES.
    Raises RingsideError when the model cannot be used.
    """
    about, tuned = read_about(model), read_thresholds(model)
    answer = _ask(model, pictures)
    guessed = {Path(one.file): chosen(one.labels, about, tuned) for one in answer.images}
    return guessed, {Path(one.file): one.reason for one in answer.bad}


def chosen(
    labels: Sequence[Label], about: About, tuned: Thresholds
) -> tuple[tuple[Guess, ...], int]:
    """What is shown of a picture's classes, the most probable first; and how many more pass.

    A label passes above its tuned threshold, above 0.5 where none was tuned; in a single-label
    task the most probable class does.
    """
    is_multi = about.task == "multi_label"
    ranked = sorted(labels, key=lambda label: -label.probability)
    guesses = [
        _guess(label, tuned.of(label.name) if tuned.num_evaluated else COMMON_THRESHOLD)
        if is_multi
        else Guess(label.name, label.probability, None, rank == 0)
        for rank, label in enumerate(ranked)
    ]
    passing = [guess for guess in guesses if guess.passes]
    others = [guess for guess in guesses if not guess.passes]
    shown = passing[:MAX_GUESSES] + others[: max(0, NUM_GUESSES - len(passing))]
    return tuple(sorted(shown, key=lambda guess: -guess.probability)), max(
        0, len(passing) - MAX_GUESSES
    )


def _guess(label: Label, threshold: float) -> Guess:
    return Guess(label.name, label.probability, threshold, label.probability > threshold)


def _ask(model: Path, pictures: Sequence[Path]) -> _Answer:
    """All probabilities above 0, from the code of `ringside label`."""
    argv = [sys.executable, "-m", "training.label", "--json", "--threshold", "0", "--"]
    child = Child(
        [*argv, str(model), *map(str, pictures)], environment=ENVIRONMENT, timeout_s=TIMEOUT_S
    )
    output = b"".join(child.lines())
    code, errors = child.finish()
    if code in (0, 1):
        try:
            return msgspec.json.decode(output, type=_Answer)
        except msgspec.DecodeError:
            pass  # 1 is also what a traceback ends with
    if code == 2 and errors and not child.timed_out:
        raise RingsideError(errors.splitlines()[-1])
    failed = NoAnswerError(say("try.too_long" if child.timed_out else "try.broken"))
    failed.details = f"exit code {code}: {errors}"
    raise failed
