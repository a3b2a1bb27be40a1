"""Losses and scores of a run as curves by step, epoch, time and images.

Time is that of training alone, so that runs are not set apart by how often they evaluate: the
epochs before, and the windows of steps within the epoch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import msgspec

from ringside.run import RunRecord

CurveMetric = Literal["train_loss", "val_loss", "auc_macro", "f1_macro"]
CURVES: tuple[CurveMetric, ...] = ("train_loss", "val_loss", "auc_macro", "f1_macro")


class CurvePoint(NamedTuple):
    """One value, and where it stands: optimizer steps, epochs, seconds of training, images."""

    step: int
    epoch: float
    time_s: float
    num_samples: int
    value: float


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of one run, in the order of time."""

    id: str
    metric: CurveMetric
    points: tuple[CurvePoint, ...]


def curve(record: RunRecord, metric: CurveMetric) -> Curve:
    """What is known so far; empty before the set-up stands."""
    found = _windows(record) if metric == "train_loss" else _epochs(record, metric)
    return Curve(id=record.id, metric=metric, points=tuple(found))


def _windows(record: RunRecord) -> Iterator[CurvePoint]:
    per_epoch = record.started.steps_per_epoch if record.started else 0
    if record.spec is None or not per_epoch:
        return
    begins = _begins(record)
    within, newest = 0.0, None
    for window in record.windows:
        within = 0.0 if window.epoch != newest else within
        newest = window.epoch
        within += window.step_ms * window.num_steps / 1000
        if window.train_loss is not None:
            yield CurvePoint(
                step=window.step,
                epoch=window.step / per_epoch,
                time_s=begins.get(window.epoch, max(begins.values())) + within,
                num_samples=window.step * record.spec.global_batch,
                value=window.train_loss,
            )


def _begins(record: RunRecord) -> dict[int, float]:
    """Seconds of training before each epoch that has begun; the last one may still run."""
    begins, so_far = {}, 0.0
    for row in record.epochs:
        begins[row.epoch] = so_far
        so_far += row.epoch_time_s
    begins[record.epochs[-1].epoch + 1 if record.epochs else 1] = so_far
    return begins


def _epochs(record: RunRecord, metric: CurveMetric) -> Iterator[CurvePoint]:
    if record.spec is None or record.started is None:
        return
    so_far = 0.0
    for row in record.epochs:
        so_far += row.epoch_time_s
        value = getattr(row, metric)
        if value is not None:
            step = row.epoch * record.started.steps_per_epoch
            yield CurvePoint(
                step=step, epoch=float(row.epoch), time_s=so_far,
                num_samples=step * record.spec.global_batch, value=value,
            )  # fmt: skip


def smoothed(values: Sequence[float], weight: float) -> list[float]:
    """Exponential moving average without its bias towards zero at the start.

    The correction is that of Adam (Kingma and Ba 2015, arXiv:1412.6980, section 3): the sum is
    divided by 1 - weight^n. `weight` from 0 (as they are) to below 1.
    """
    if not 0 <= weight < 1:
        raise ValueError(f"a weight of {weight} is not from 0 to below 1")
    found, average = [], 0.0
    for n, value in enumerate(values, start=1):
        average = weight * average + (1 - weight) * value
        found.append(average / (1 - weight**n))
    return found
