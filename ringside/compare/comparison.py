"""The columns of a comparison, and who is compared with whom."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from ringside.compare.by_class import ComparedClass, compared_classes, last_classes
from ringside.compare.configuration import Difference, configuration
from ringside.compare.cost import Until, cost_of
from ringside.compare.gate import Gate, gate
from ringside.compare.prediction import Predicted, predicted_of
from ringside.compare.scaling import ScalingSeries, scaling_series
from ringside.predictions import Predictions, read_predictions, score_differences
from ringside.run import EpochRow, RunRecord
from ringside.rundir import RunDir
from ringside.scores import Differences, Interval, Metric
from ringside.spec import RunSpec
from ringside.speedup import (
    BASELINE,
    SpeedUp,
    apart,
    differences,
    find_baseline,
    other_content,
    speedup,
    speedup_of,
    task_differences,
    unlike,
)
from ringside.words import say

Differ = Callable[[RunRecord, RunRecord], Differences | None]
METRICS: tuple[Metric, ...] = ("auc_macro", "f1_macro", "map_macro")


class ComparedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One column of a comparison; differences are against the reference.

    The intervals are 95 % paired-bootstrap intervals over the validation samples of both runs'
    last evaluations; None when one of them kept no predictions. `rate_ratio`: images/s over those
    of the reference, which is no speed-up unless the reference is the run's baseline.
    `not_comparable` says what keeps its scores from being compared, `speed_not_comparable` what
    keeps only its speed. `device_hours` are hours until `wall_time_until`, times devices.
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
    rate_ratio: float | None = None
    speedup: SpeedUp
    auc_macro: float | None
    f1_macro: float | None
    f1_micro: float | None
    map_macro: float | None = None
    auc_delta: float | None
    f1_delta: float | None
    map_delta: float | None = None
    auc_interval: Interval | None = None
    f1_interval: Interval | None = None
    map_interval: Interval | None = None
    gate: Gate
    total_time_s: float | None
    wall_time_s: float | None = None
    wall_time_until: Until | None = None
    device_hours: float | None
    predicted: Predicted | None = None
    classes: tuple[ComparedClass, ...] | None = None
    not_comparable: tuple[str, ...] = ()
    speed_not_comparable: tuple[str, ...] = ()


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Runs side by side; `precision_factor`: "bf16 at 64 images per device" to gain over fp32.

    `reference` is the run that the others are compared with. `baseline` is what speed-ups were
    asked to be divided by; None: each by its own.
    """

    runs: tuple[ComparedRun, ...]
    precision_factor: dict[str, float] = {}
    reference: str | None = None
    baseline: str | None = None
    configuration: tuple[Difference, ...] = ()
    scaling: tuple[ScalingSeries, ...] = ()


def kept_differences(first: RunRecord, second: RunRecord) -> Differences | None:
    """The intervals of two runs from the predictions that both kept; seconds for large splits."""
    return score_differences(kept_predictions(first), kept_predictions(second))


def compare(
    root: Path,
    records: Iterable[RunRecord],
    baseline: RunRecord | None = None,
    *,
    differ: Differ = kept_differences,
) -> Comparison:
    """Rows in the given order; differences are against the baseline, else against the first run.

    A chosen `baseline` also divides every speed-up, where it fits; one that is not among the
    records comes first. `differ` works out intervals; a page hands in one that does not wait.
    """
    chosen = [record for record in records if record.spec is not None]
    if baseline is not None and all(record.id != baseline.id for record in chosen):
        chosen.insert(0, baseline)
    if not chosen:
        return Comparison(runs=())
    reference = next((r for r in chosen if baseline and r.id == baseline.id), chosen[0])
    rows = tuple(
        _compared(record, reference, _speedup(root, record, baseline), differ) for record in chosen
    )
    apart = {record.id for record in chosen if _speeds_apart(reference, record)}
    return Comparison(
        runs=rows,
        precision_factor=_precision_factors(root, chosen),
        reference=reference.id,
        baseline=baseline.id if baseline else None,
        configuration=configuration(chosen),
        scaling=scaling_series(row for row in rows if row.id not in apart),
    )


def _compared(
    record: RunRecord, reference: RunRecord, gain: SpeedUp, differ: Differ
) -> ComparedRun:
    spec = record.spec
    assert spec is not None
    is_reference = record is reference
    speeds_apart = _speeds_apart(reference, record)
    apart = scores_apart(reference, record)
    base = None if apart or is_reference else reference
    scored = last_scored(record)
    found = differ(base, record) if base else None
    deltas = _deltas(scored, last_scored(base) if base else None)
    intervals: dict[Metric, Interval | None] = found.means if found else {}
    rate_ratio = None if speeds_apart or is_reference else _rate_ratio(record, reference)
    judged = Gate(verdict="reference") if is_reference else gate(
        deltas, intervals, num_images=found.num_samples if found else 0, rate_ratio=rate_ratio,
        apart=apart,
    )  # fmt: skip
    samples_per_s, epoch_time_s = record.steady_samples_per_s, _steady_epoch_time(record)
    cost = cost_of(record)
    return ComparedRun(
        id=record.id,
        preset=spec.preset,
        state=record.state,
        num_processes=spec.num_processes,
        num_devices=spec.num_devices,
        global_batch=spec.global_batch,
        mixed_precision=spec.accelerate.mixed_precision,
        epoch_time_s=epoch_time_s,
        samples_per_s=samples_per_s,
        rate_ratio=rate_ratio,
        speedup=gain,
        **_scores(scored, deltas, intervals),
        gate=judged,
        total_time_s=record.total_time_s,
        wall_time_s=cost.wall_time_s if cost else None,
        wall_time_until=cost.until if cost else None,
        device_hours=cost.device_hours if cost else None,
        predicted=predicted_of(
            record, epoch_time_s=epoch_time_s, samples_per_s=samples_per_s, speedup=gain.value
        ),
        classes=compared_classes(last_classes(record), last_classes(base) if base else None, found),
        not_comparable=tuple(apart),
        speed_not_comparable=tuple(one for one in speeds_apart if one not in apart),
    )


def _scores(
    scored: EpochRow | None,
    deltas: dict[Metric, float | None],
    intervals: dict[Metric, Interval | None],
) -> dict[str, Any]:
    """The fields of the scores of the last evaluation."""
    names: tuple[Metric, ...] = (*METRICS, "f1_micro")
    fields: dict[str, Any] = {name: getattr(scored, name, None) for name in names}
    for metric in METRICS:
        short = metric.removesuffix("_macro")
        fields |= {f"{short}_delta": deltas[metric], f"{short}_interval": intervals.get(metric)}
    return fields


def _speedup(root: Path, record: RunRecord, baseline: RunRecord | None) -> SpeedUp:
    """Against the chosen baseline, else against the one that is found."""
    if baseline is None:
        return speedup_of(root, record)
    if record.id == baseline.id:
        return SpeedUp(samples_per_s=record.steady_samples_per_s, reason=say("compare.is_chosen"))
    return speedup(record, baseline)


def _speeds_apart(base: RunRecord, record: RunRecord) -> list[str]:
    assert base.spec is not None
    assert record.spec is not None
    return differences(base.spec, record.spec) + unlike(base, record)


def scores_apart(base: RunRecord, record: RunRecord) -> list[str]:
    """What keeps scores from being compared; another device or its threads do not."""
    assert base.spec is not None
    assert record.spec is not None
    reasons = task_differences(base.spec, record.spec) + other_content(base, record)
    scored, first_scored = last_scored(record), last_scored(base)
    if scored and first_scored and scored.epoch != first_scored.epoch:
        reasons.append(apart("scored epochs", first_scored.epoch, scored.epoch))
    if record.spec.epochs != base.spec.epochs:
        # The learning rate falls over all epochs, so equal epochs of unequal runs are not alike.
        reasons.append(apart("planned epochs", base.spec.epochs, record.spec.epochs))
    return reasons


def kept_predictions(record: RunRecord) -> Predictions | None:
    """The predictions of the run's last scored epoch, if they are that epoch's."""
    kept, scored = read_predictions(RunDir(Path(record.path))), last_scored(record)
    return kept if kept and scored and kept.epoch == scored.epoch else None


def last_scored(record: RunRecord) -> EpochRow | None:
    """The row of the last evaluation."""
    return next((row for row in reversed(record.epochs) if row.num_evaluated is not None), None)


def _deltas(scored: EpochRow | None, base: EpochRow | None) -> dict[Metric, float | None]:
    """By metric how much higher the first evaluation scored; None where one has no score."""
    deltas: dict[Metric, float | None] = {}
    for metric in METRICS:
        own, others = getattr(scored, metric, None), getattr(base, metric, None)
        deltas[metric] = None if own is None or others is None else float(own - others)
    return deltas


def _rate_ratio(record: RunRecord, reference: RunRecord) -> float | None:
    own, others = record.steady_samples_per_s, reference.steady_samples_per_s
    return own / others if own and others else None


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
            precision = spec.accelerate.mixed_precision
            name = say("apart.alone", precision=precision, n=_micro_batch(half))
            factors[name] = half.steady_samples_per_s / full.steady_samples_per_s
    return factors


def _micro_batch(record: RunRecord) -> int | None:
    return record.spec.micro_batch if record.spec else None


def _as_request(record: RunRecord, spec: RunSpec) -> RunRecord:
    preset = "ddp" if spec.preset == BASELINE else spec.preset
    return msgspec.structs.replace(record, spec=msgspec.structs.replace(spec, preset=preset))
