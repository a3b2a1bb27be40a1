"""What `playbook.json` holds: the structured content of a playbook, and nothing of one person.

Everything in it was picked field by field (`ringside.playbook.redaction`), so it may be published.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec

from ringside.compare import ComparedRun
from ringside.doctor import Diagnosis
from ringside.doctor.walkthrough import Point
from ringside.errors import PlaybookError
from ringside.estimate import Outcome
from ringside.presets import PresetFile
from ringside.rundir import ID_PATTERN
from ringside.spec import Device
from ringside.words import say

FORMAT = 1
NAME_PATTERN = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}")
CONTENT = "playbook.json"

# What a stranger wrote is refused where it is read: folders are named by ids, and arithmetic on
# what no machine has overflows.
RunId = Annotated[str, msgspec.Meta(pattern=rf"\A(?:{ID_PATTERN.pattern})\Z")]
Count = Annotated[int, msgspec.Meta(ge=1, lt=2**31)]
Bytes = Annotated[int, msgspec.Meta(ge=0, lt=2**60)]
Moment = Annotated[float, msgspec.Meta(ge=0, lt=2**32)]
Title = Annotated[str, msgspec.Meta(max_length=400)]


class KeptLink(msgspec.Struct, frozen=True, kw_only=True):
    """The way between two GPUs by index, in the words of `ringside.machine`."""

    a: int
    b: int
    kind: str
    num_nvlinks: int | None = None
    p2p: bool | None = None


class KeptHardware(msgspec.Struct, frozen=True, kw_only=True):
    """The machine without anything that says which one it was.

    `gpus` are names in their order, `transports` what NCCL or gloo connected through.
    """

    device: Device
    gpus: Annotated[tuple[str, ...], msgspec.Meta(max_length=1024)] = ()
    gpu_memory_bytes: Bytes | None = None
    num_cores: int | None = None
    memory_bytes: Bytes | None = None
    driver: str | None = None
    system: str | None = None
    links: tuple[KeptLink, ...] = ()
    backend: str | None = None
    transports: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """`2 x NVIDIA H200`, `CPU with 32 cores`."""
        if not self.gpus:
            return say("playbook.cpu_cores", n=self.num_cores) if self.num_cores else "CPU"
        kinds = dict.fromkeys(self.gpus)
        return " + ".join(f"{self.gpus.count(kind)} x {kind}" for kind in kinds)


class KeptData(msgspec.Struct, frozen=True, kw_only=True):
    """The images by name; `source` is a module of `ringside.data.sources`.

    `fingerprint` is the hash of the manifest, equal for equal data.
    """

    source: str
    name: str
    title: str | None = None
    fingerprint: str | None = None
    synthetic: bool = False
    task: str | None = None
    image_size: Count
    num_train: int | None = None
    num_val: int | None = None
    classes: tuple[str, ...] = ()


class KeptRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the story.

    `result` is its column of the comparison of all runs of the playbook: speed, speed-up, scores,
    their differences from the reference with 95 % intervals, the gate, prediction and measurement.
    `command` starts it again; `launch` is what was executed. `wall_time_s` is in `result`.
    """

    id: RunId
    model: str
    strategy: str
    micro_batch: Count
    accumulation_steps: Count = 1
    epochs: Count
    seed: int
    command: str
    launch: str | None = None
    environment: dict[str, str] = {}
    versions: dict[str, str] = {}
    result: ComparedRun
    diagnosis: Diagnosis
    points: tuple[Point, ...] = ()
    outcome: Outcome | None = None

    @property
    def name(self) -> str:
        """The two words of its id."""
        return "-".join(self.id.split("-")[2:]) or self.id


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """A picture, as `PATH.svg` and `PATH.png`; `run` None: of all runs together."""

    path: str
    run: str | None = None
    title: str
    headline: str
    description: str = ""


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """What was not taken along, in the words of the run directory, and why."""

    path: str
    why: str


class Playbook(msgspec.Struct, frozen=True, kw_only=True):
    """All of it. `chosen` is the id of the run whose preset it keeps, `made` when (s since 1970).

    `files` has the SHA-256 of every other file, by path. A file that is not in it is no part.
    """

    format: int = FORMAT
    name: str
    title: Title
    made: Moment
    ringside: str
    chosen: str
    preset: str
    preset_file: PresetFile
    hardware: KeptHardware
    data: KeptData
    runs: Annotated[tuple[KeptRun, ...], msgspec.Meta(max_length=100)]
    charts: tuple[Chart, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    files: dict[str, str] = {}

    @property
    def run(self) -> KeptRun:
        """The chosen one."""
        return next(run for run in self.runs if run.id == self.chosen)

    @property
    def causes(self) -> tuple[str, ...]:
        """What the doctor said of the runs, each cause once, in their order."""
        return tuple(dict.fromkeys(run.diagnosis.verdict.cause for run in self.runs))


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    format: int


def encode_playbook(playbook: Playbook) -> bytes:
    """The bytes of `playbook.json`."""
    return msgspec.json.format(msgspec.json.encode(playbook), indent=1) + b"\n"


def decode_playbook(data: bytes, origin: str) -> Playbook:
    """The content, or a PlaybookError that says what is wrong with `origin`."""
    head = _decoded(data, _Head, origin)
    if head.format > FORMAT:
        raise PlaybookError(say("playbook.newer", origin=origin, format=head.format, known=FORMAT))
    found: Playbook = _decoded(data, Playbook, origin)
    if not NAME_PATTERN.fullmatch(found.name) or found.chosen not in {r.id for r in found.runs}:
        raise PlaybookError(say("playbook.damaged", origin=origin, why="name, chosen"))
    return found


def _decoded(data: bytes, kind: type[Any], origin: str) -> Any:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PlaybookError(say("playbook.damaged", origin=origin, why=str(error))) from None
