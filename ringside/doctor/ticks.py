"""What a run measured for each point of the checklist, and whether that needs attention."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ringside.doctor.bands import WARNING
from ringside.doctor.case import Case
from ringside.doctor.figures import (
    alone_us,
    gradient_bytes,
    num_devices,
    num_passes,
    series_of,
    source_of_bytes,
    spec_of,
    transport_of,
    wire_bytes,
)
from ringside.doctor.gains import bound_of
from ringside.doctor.phrasing import Remedy, file_of
from ringside.doctor.shares import exposed_share
from ringside.doctor.variables import variables_of
from ringside.run import EpochRow, RunRecord
from ringside.spec import RunSpec
from ringside.speedup import BASELINE
from ringside.words import percent, say

State = Literal["ok", "attention", "unknown"]
ACCUMULATED = 4
BYTES_PER_FP32 = 4


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was measured, or that was not: then `value` is None and `how` says how to.

    `value` is as people read it, unit included; `source` names the file or the probe.
    """

    label: str
    value: str | None
    source: str | None = None
    how: str | None = None


def bytes_on_the_wire(case: Case) -> tuple[State, tuple[Figure, ...]]:
    """Parameters, gradient bytes, bytes a GPU sends, and whether a backward pass can hide them."""
    num, sent = num_devices(case) or 1, gradient_bytes(case)
    observed = case.record.observed if case.record is not None else None
    parameters = observed and (observed.num_trainable_parameters or observed.num_parameters)
    alone, backward = alone_us(case), backward_us(case)
    exposed = exposed_share(case)
    known = _figure(
        "parameters", f"{parameters:,}" if parameters else None, "events.jsonl", "run"
    )  # fmt: skip
    if num == 1 and observed is not None:
        nothing = say("doctor.walk_one_device")
        return "ok", (known, _figure("gradient_bytes", nothing, "events.jsonl", "run"))
    figures = (
        known,
        _figure("gradient_bytes", _mb(sent), source_of_bytes(case), "run"),
        _figure(
            "wire_bytes", _sent(sent, num, num_passes(case)), source_of_bytes(case), "run",
        ),
        _figure("alone", _ms(alone), "sweep", "sweep"),
        _figure("backward", _ms(backward), "description", "estimate"),
    )  # fmt: skip
    if sent is None:
        return "unknown", figures
    if exposed is not None and exposed >= WARNING:
        return "attention", figures
    if alone is None or backward is None:
        return "unknown", figures
    return ("ok" if alone <= backward else "attention"), figures


def backward_us(case: Case) -> float | None:
    """The backward pass of one device alone at the run's images, without any exchange in it.

    The run's own clock is no measure: its backward pass ends when the last message has come.
    """
    spec = spec_of(case)
    profiles = case.description.profiles if case.description is not None else ()
    own = (one.backward_us for one in profiles if spec and one.batch == spec.micro_batch)
    return next(own, None)


def nccl_settings(case: Case) -> tuple[State, tuple[Figure, ...]]:
    """Variables that are set, the way of the bytes, and how long an all-reduce really takes."""
    bad = [one for one in variables_of(case) if one.level in ("handicap", "leftover")]
    transport, alone = transport_of(case), alone_us(case)
    series, sent = series_of(case), gradient_bytes(case)
    known = case.record is not None or case.nccl is not None
    told = ", ".join(f"{one.name}={one.value}" for one in bad) or say("doctor.walk_none_set")
    figures = (
        _figure("variables", told if known else None, "environment", "run"),
        _figure("transport", transport, "nccl", "nccl"),
        _figure("all_reduce", _all_reduce(alone, sent), "sweep", "sweep"),
    )
    if bad:
        return "attention", figures
    return ("ok" if known and (series is not None or transport) else "unknown"), figures


def overlap(case: Case) -> tuple[State, tuple[Figure, ...]]:
    """The overlap, which decides nothing, and the exposed share of the step, which does."""
    if case.facts is None:
        return "unknown", (
            _figure("overlap", None, None, "trace"), _figure("exposed", None, None, "trace"),
        )  # fmt: skip
    pace, exposed = case.facts.pace, exposed_share(case) or 0.0
    ratio, waiting = pace.totals.overlap_ratio, pace.breakdown.ratio("exposed_wait")
    figures = (
        _figure("overlap", say("doctor.walk_no_communication") if ratio is None else percent(ratio),
                file_of(pace), "trace"),
        _figure("exposed", percent(exposed, 1), file_of(pace), "trace"),
        _figure("waiting", percent(waiting, 1), file_of(pace), "trace"),
    )  # fmt: skip
    return ("attention" if exposed >= WARNING else "ok"), figures


def accumulation(case: Case) -> tuple[State, tuple[Figure, ...]]:
    """Micro-steps, batch and learning rate, and the most that accumulating can gain."""
    spec = spec_of(case)
    steps = spec.training.accumulation_steps if spec is not None else 1
    more = Remedy(overrides={"accumulation_steps": str(ACCUMULATED * steps)})
    bound = bound_of(more, case)
    figures = [
        _figure("micro_steps", None if spec is None else str(steps), "spec.json", "run"),
        _figure("batch", None if spec is None else f"{spec.global_batch:,}", "spec.json", "run"),
        _figure("rate", None if spec is None else _rate(spec), "spec.json", "run"),
    ]  # fmt: skip
    if steps == 1:
        shown = None if bound is None else percent(bound, 1)
        figures.append(_figure("bound", shown, "trace", "trace", k=ACCUMULATED))
    if spec is not None and steps > 1:
        return ("attention" if spec.keeps_global_batch else "ok"), tuple(figures)
    if bound is None:
        return "unknown", tuple(figures)
    return ("attention" if bound >= WARNING else "ok"), tuple(figures)


def precision(case: Case) -> tuple[State, tuple[Figure, ...]]:
    """The type of the computation, and the bytes of a gradient that really cross the wire."""
    observed = case.record.observed if case.record is not None else None
    if observed is None:
        return "unknown", (
            _figure("computed", None, None, "run"), _figure("gradient_width", None, None, "run"),
        )  # fmt: skip
    width = bytes_per_gradient(case)
    figures = (
        _figure("computed", say(f"precision.{observed.mixed_precision}"), "events.jsonl", "run"),
        _figure("gradient_width", None if width is None else f"{width:.2g}", "events.jsonl", "run"),
        _figure("hook", observed.comm_hook, "events.jsonl", "run"),
    )
    if width is None:
        return ("ok" if (num_devices(case) or 1) == 1 else "unknown"), figures
    is_wide = observed.mixed_precision != "no" and width >= BYTES_PER_FP32
    matters = (exposed_share(case) or 0.0) >= WARNING
    return ("attention" if is_wide and matters else "ok"), figures


def scores(case: Case) -> tuple[State, tuple[Figure, ...]]:
    """AUC and F1 of the last evaluation beside those of the baseline, which a run may be itself."""
    own, base = _scored(case.record), _scored(case.baseline)
    spec = spec_of(case)
    whose = [("own", own), ("baseline", base)]
    if spec is not None and spec.preset == BASELINE:
        whose = whose[:1]
    figures = tuple(
        _figure(f"{who}_{name}", None if row is None else _score(row, name), "events.jsonl",
                "run" if who == "own" else "baseline")
        for name in ("auc_macro", "f1_macro")
        for who, row in whose
    )  # fmt: skip
    if own is not None and len(whose) == 1:
        return "ok", figures
    if own is None or base is None or case.record is None or case.baseline is None:
        return "unknown", figures
    return ("attention" if _is_worse(case.record, case.baseline) else "ok"), figures


def bytes_per_gradient(case: Case) -> float | None:
    """What one rank hands to the reduction per optimizer step and trained parameter."""
    observed = case.record.observed if case.record is not None else None
    sent = gradient_bytes(case)
    if observed is None or not sent:
        return None
    num = observed.num_trainable_parameters or observed.num_parameters
    return sent / num if num else None


def _is_worse(record: RunRecord, baseline: RunRecord) -> bool:
    """Whether a score fell by more than chance: the whole 95 % interval of a paired bootstrap is
    below zero, or, where predictions were not kept, the score fell by more than a point."""
    from pathlib import Path

    from ringside.predictions import read_predictions, score_differences
    from ringside.rundir import RunDir

    kept = [read_predictions(RunDir(Path(one.path))) for one in (baseline, record)]
    found = score_differences(*kept)
    if found is not None:
        return any(one.high < 0 for one in found.means.values() if one is not None)
    own, base = _scored(record), _scored(baseline)
    pairs = [(getattr(own, name), getattr(base, name)) for name in ("auc_macro", "f1_macro")]
    return any(a is not None and b is not None and a < b - FALL for a, b in pairs)


FALL = 0.01


def _scored(record: RunRecord | None) -> EpochRow | None:
    rows = record.epochs if record is not None else []
    return next((row for row in reversed(rows) if row.num_evaluated is not None), None)


def _score(row: EpochRow, name: str) -> str | None:
    value = getattr(row, name)
    return None if value is None else f"{value:.4f}"


def _figure(name: str, value: str | None, source: str | None, how: str, **values: Any) -> Figure:
    label = say(f"doctor.walk_figure_{name}", **values)
    if value is None:
        return Figure(label=label, value=None, how=say(f"doctor.walk_how_{how}"))
    return Figure(label=label, value=value, source=source)


def _rate(spec: RunSpec) -> str:
    """`0.004, square-root rule`."""
    rule = say(f"rule.{spec.training.learning_rate_rule}")
    return say("doctor.walk_rate", rate=spec.learning_rate, rule=rule)


def _sent(num_bytes: int | None, num: int, passes: int) -> str | None:
    """`142.28 MB = 2(n-1)/n, n = 4`; None for one device, which sends nothing."""
    if not num_bytes or num < 2:
        return None
    return f"{_mb(wire_bytes(num_bytes, num, passes))} = {passes}(n-1)/n, n = {num}"


def _all_reduce(alone: float | None, num_bytes: int | None) -> str | None:
    return None if alone is None else f"{_ms(alone)}, {_mb(num_bytes)}"


def _mb(num_bytes: float | None) -> str | None:
    return None if num_bytes is None else f"{num_bytes / 1e6:.2f} MB"


def _ms(microseconds: float | None) -> str | None:
    return None if microseconds is None else f"{microseconds / 1000:.2f} ms"
