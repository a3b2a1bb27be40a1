"""A run's directory as it is taken along: the files that show it, each picked and cleared.

The files keep their names and their format (`docs/run-directory.md`), so that the same fold reads
them. Console, logs of ranks, notes, owner, plan, checkpoints and predictions stay behind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from ringside import events as ev
from ringside.class_scores import ClassTables
from ringside.errors import RingsideError
from ringside.estimate import Estimate
from ringside.hang import Hang
from ringside.hardware import Hardware
from ringside.nccl_log.lines import split
from ringside.playbook.content import LeftOut
from ringside.playbook.redaction import Redactor, is_allowed, path_name
from ringside.playbook.traces import cleared_trace
from ringside.rank_windows import RankWindow
from ringside.records import ExitRecord, RankError
from ringside.rundir import RunDir, iter_files
from ringside.samples import Sample
from ringside.spec import RunSpec
from ringside.words import say

MAX_TRACE_BYTES = 16 << 20
MAX_TRACES_BYTES = 48 << 20
MAX_LOG_BYTES = 1 << 20
MAX_LOGS = 32
MAX_LINES_BYTES = 32 << 20

_SET_BY = re.compile(r"([A-Z][A-Z0-9_]+) set (?:by environment|to|from)")

Files = dict[str, bytes]


class _Classes(msgspec.Struct, frozen=True):
    format: int
    classes: tuple[str, ...]


def recorded(run: RunDir, redactor: Redactor) -> tuple[Files, list[LeftOut]]:
    """The files of a run by their names in its directory, and what was not taken."""
    files: Files = {}
    left: list[LeftOut] = []
    files |= _small_files(run, redactor)
    files["events.jsonl"] = b"".join(
        ev.encode(_cleared_event(event, redactor))
        for event in ev.decode_lines(_bytes(run.events))
        if not isinstance(event, ev.UnknownEvent)
    )
    files |= _lines(run, left)
    files |= dict(_logs(run, redactor, left))
    files |= dict(_traces(run, redactor, left))
    for name in ("console.log", "logs", "predictions.npz", "checkpoints", "notes.json"):
        if (run.path / name).exists():
            left.append(LeftOut(path=name, why=say(f"playbook.left_{name.partition('.')[0]}")))
    return {name: data for name, data in files.items() if data}, left


def cleared_spec(spec: RunSpec, redactor: Redactor) -> RunSpec:
    """The request without paths: data and weights are named, nothing more."""
    data = spec.data
    if data.path is not None:
        data = msgspec.structs.replace(data, path=path_name(data.path))
    kept = msgspec.structs.replace(
        spec,
        data=msgspec.structs.replace(data, skip=()),
        environment=redactor.environment(spec.environment),
        resume_from=None if spec.resume_from is None else path_name(spec.resume_from),
        weights=None if spec.weights is None else path_name(spec.weights),
        request_id=None,
    )
    return redactor.struct(kept)


def _small_files(run: RunDir, redactor: Redactor) -> Files:
    files: Files = {}

    def keep(name: str, kind: type[Any], change: Callable[[Any], Any] = redactor.struct) -> None:
        value = run.read(run.path / name, kind)
        if value is not None:
            data = msgspec.json.encode(change(value))
            files[name] = msgspec.json.format(data, indent=1) + b"\n"

    keep("spec.json", RunSpec, lambda spec: cleared_spec(spec, redactor))
    keep("exit.json", ExitRecord)
    keep("hardware.json", Hardware, lambda found: _cleared_hardware(found, redactor))
    keep("estimate.json", Estimate)
    keep("hang.json", Hang)
    # Names of classes are what the model is about; they stay as they are.
    keep("classes.json", _Classes, lambda classes: classes)
    keep("scores/classes.json", ClassTables, lambda tables: tables)
    for path in iter_files(run.ranks, "rank*.error.json"):
        keep(f"ranks/{path.name}", RankError, lambda error: _cleared_error(error, redactor))
    return files


def _cleared_hardware(found: Hardware, redactor: Redactor) -> Hardware:
    gpus = tuple(msgspec.structs.replace(gpu, uuid=f"GPU-{gpu.index}") for gpu in found.gpus)
    return redactor.struct(msgspec.structs.replace(found, gpus=gpus, visible_devices=None))


def _cleared_error(error: RankError, redactor: Redactor) -> RankError:
    return redactor.struct(msgspec.structs.replace(error, traceback=None))


def _cleared_event(event: ev.Event, redactor: Redactor) -> ev.Event:
    """An event without paths; names of classes in it stay."""
    if isinstance(event, ev.Evaluated):
        return event
    if isinstance(event, ev.RunStarted):
        observed = msgspec.structs.replace(
            event.observed, environment=redactor.environment(event.observed.environment)
        )
        event = msgspec.structs.replace(event, observed=observed)
    return redactor.struct(event)


def _lines(run: RunDir, left: list[LeftOut]) -> Files:
    """Files that hold numbers only, line by line."""
    files: Files = {}
    kinds: list[tuple[Any, type[Any]]] = [(run.gpus, Sample)]
    kinds += [(path, RankWindow) for path in iter_files(run.ranks, "rank*.jsonl")]
    for path, kind in kinds:
        name = str(path.relative_to(run.path))
        data = _bytes(path)
        if len(data) > MAX_LINES_BYTES:
            left.append(_too_large(name, len(data), MAX_LINES_BYTES))
            continue
        files[name] = b"".join(_typed_lines(data, kind))
    return files


def _typed_lines(data: bytes, kind: type[Any]) -> Iterator[bytes]:
    for line in data.splitlines():
        try:
            yield msgspec.json.encode(msgspec.json.decode(line, type=kind)) + b"\n"
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue


def _logs(run: RunDir, redactor: Redactor, left: list[LeftOut]) -> Iterator[tuple[str, bytes]]:
    """NCCL's own lines of its logs, without those of variables that may not be named."""
    paths = list(iter_files(run.nccl, "*.log"))
    for path in paths[MAX_LOGS:]:
        left.append(LeftOut(path=f"nccl/{_log_name(path.name, redactor)}",
                            why=say("playbook.left_many", n=MAX_LOGS)))  # fmt: skip
    for path in paths[:MAX_LOGS]:
        name = f"nccl/{_log_name(path.name, redactor)}"
        data = _bytes(path)
        if len(data) > MAX_LOG_BYTES:
            left.append(_cut_off(name, len(data)))
            data = data[: data.rfind(b"\n", 0, MAX_LOG_BYTES) + 1]
        lines = data.decode(errors="replace").splitlines(keepends=True)
        yield name, "".join(_cleared_log(lines, redactor)).encode()


def _cleared_log(lines: list[str], redactor: Redactor) -> Iterator[str]:
    for line in lines:
        found, _ = split(line)
        named = _SET_BY.search(line)
        if found and (named is None or is_allowed(named[1])):
            for one in found:
                line = line.replace(
                    f"{one.host}:{one.pid}:", f"{redactor.host(one.host)}:{one.pid}:"
                )
            yield redactor.text(line)


def _log_name(name: str, redactor: Redactor) -> str:
    """`HOST.PID.log` without the host."""
    host, _, pid = name.removesuffix(".log").rpartition(".")
    return f"{redactor.host(host)}.{pid}.log" if pid.isdecimal() else "host.log"


def _traces(run: RunDir, redactor: Redactor, left: list[LeftOut]) -> Iterator[tuple[str, bytes]]:
    room = MAX_TRACES_BYTES
    for path in iter_files(run.trace, "rank*.json.gz"):
        name = f"trace/{path.name}"
        size = path.stat().st_size
        if size > min(room, MAX_TRACE_BYTES):
            left.append(_too_large(name, size, min(room, MAX_TRACE_BYTES)))
            continue
        try:
            data = cleared_trace(path, redactor)
        except RingsideError as error:
            left.append(LeftOut(path=name, why=redactor.text(str(error))))
            continue
        room -= len(data)
        yield name, data


def _too_large(name: str, size: int, limit: int) -> LeftOut:
    return LeftOut(path=name, why=say("playbook.left_large", size=size / 2**20,
                                      limit=limit / 2**20))  # fmt: skip


def _cut_off(name: str, size: int) -> LeftOut:
    why = say("playbook.left_end", size=size / 2**20, limit=MAX_LOG_BYTES / 2**20)
    return LeftOut(path=name, why=why)


def _bytes(path: Any) -> bytes:
    try:
        data: bytes = path.read_bytes()
    except OSError:
        return b""
    return data
