"""Runs side by side: speed, scores and their differences, where those are allowed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from ringside.predictions import Predictions, read_predictions, score_differences
from ringside.run import EpochRow, RunRecord
from ringside.rundir import RunDir
from ringside.scores import Interval
from ringside.spec import RunSpec
from ringside.speedup import BASELINE, SpeedUp, differences, find_baseline, speedup_of, unlike


class ComparedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One column of a comparison; score differences are against the first run.

    The intervals are 95 % paired-bootstrap intervals over the validation samples of both runs'
    last evaluations; None when one of them kept no predictions.
    """

    id: str
    preset: str
    state: str
    num_processes: int
    num_devices: int | None = None
    global_batch: int
    mixed_precision: str
    epoch_time_s: float | None
    samples_per_s: float | None
    speedup: SpeedUp
    auc_macro: float | None
    f1_macro: float | None
    f1_micro: float | None
    auc_delta: float | None
    f1_delta: float | None
    auc_interval: Interval | None = None
    f1_interval: Interval | None = None
    total_time_s: float | None
    device_hours: float | None
    not_comparable: tuple[str, ...] = ()


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Runs side by side; `precision_factor`: "bf16 at 64 images per device" to gain over fp32."""

    runs: tuple[ComparedRun, ...]
    precision_factor: dict[str, float] = {}


def compare(root: Path, records: Iterable[RunRecord]) -> Comparison:
    """Rows in the given order; scores are compared with the first run's, where that is allowed."""
    chosen = [record for record in records if record.spec is not None]
    rows = [_compared(root, record, chosen[0]) for record in chosen]
    return Comparison(runs=tuple(rows), precision_factor=_precision_factors(root, chosen))


def _compared(root: Path, record: RunRecord, first: RunRecord) -> ComparedRun:
    spec, base = record.spec, first.spec
    assert spec is not None
    assert base is not None
    reasons = differences(base, spec) + unlike(first, record)
    scored, first_scored = _last_scored(record), _last_scored(first)
    if scored and first_scored and scored.epoch != first_scored.epoch:
        reasons.append(f"scored epochs: {first_scored.epoch} and {scored.epoch}")
    if spec.epochs != base.epochs:
        # The learning rate falls over all epochs, so equal epochs of unequal runs are not alike.
        reasons.append(f"planned epochs: {base.epochs} and {spec.epochs}")
    comparable = not reasons and record is not first
    intervals = score_differences(_kept(first), _kept(record)) if comparable else {}
    total = record.total_time_s
    return ComparedRun(
        id=record.id,
        preset=spec.preset,
        state=record.state,
        num_processes=spec.num_processes,
        num_devices=spec.num_devices,
        global_batch=spec.global_batch,
        mixed_precision=spec.accelerate.mixed_precision,
        epoch_time_s=_steady_epoch_time(record),
        samples_per_s=record.steady_samples_per_s,
        speedup=speedup_of(root, record),
        auc_macro=scored.auc_macro if scored else None,
        f1_macro=scored.f1_macro if scored else None,
        f1_micro=scored.f1_micro if scored else None,
        auc_delta=_delta(scored, first_scored, "auc_macro") if comparable else None,
        f1_delta=_delta(scored, first_scored, "f1_macro") if comparable else None,
        auc_interval=intervals.get("auc_macro"),
        f1_interval=intervals.get("f1_macro"),
        total_time_s=total,
        device_hours=total * spec.num_devices / 3600 if total is not None else None,
        not_comparable=tuple(reasons),
    )


def _kept(record: RunRecord) -> Predictions | None:
    """The predictions of the run's last scored epoch, if they are that epoch's."""
    kept, scored = read_predictions(RunDir(Path(record.path))), _last_scored(record)
    return kept if kept and scored and kept.epoch == scored.epoch else None


def _last_scored(record: RunRecord) -> EpochRow | None:
    return next((row for row in reversed(record.epochs) if row.num_evaluated is not None), None)


def _delta(a: EpochRow | None, b: EpochRow | None, name: str) -> float | None:
    x, y = getattr(a, name, None), getattr(b, name, None)
    return None if x is None or y is None else float(x - y)


def _steady_epoch_time(record: RunRecord) -> float | None:
    rows = record.steady_epochs
    return sum(row.epoch_time_s for row in rows) / len(rows) if rows else None


def _precision_factors(root: Path, records: list[RunRecord]) -> dict[str, float]:
    """Gain of 16 bit over fp32 on one device, where both baselines have been measured."""
    factors: dict[str, float] = {}
    for record in records:
        spec = record.spec
        if spec is None or spec.accelerate.mixed_precision == "no":
            continue
        fp32 = msgspec.structs.replace(
            spec, accelerate=msgspec.structs.replace(spec.accelerate, mixed_precision="no")
        )
        half = record if spec.preset == BASELINE else find_baseline(root, record)
        full = find_baseline(root, _as_request(record, fp32))
        if half is None or full is None or _micro_batch(half) != _micro_batch(full):
            continue
        if half.steady_samples_per_s and full.steady_samples_per_s:
            name = f"{spec.accelerate.mixed_precision} at {_micro_batch(half)} images per device"
            factors[name] = half.steady_samples_per_s / full.steady_samples_per_s
    return factors


def _micro_batch(record: RunRecord) -> int | None:
    return record.spec.micro_batch if record.spec else None


def _as_request(record: RunRecord, spec: RunSpec) -> RunRecord:
    preset = "ddp" if spec.preset == BASELINE else spec.preset
    return msgspec.structs.replace(record, spec=msgspec.structs.replace(spec, preset=preset))
