"""What presets gained in the runs that are there: a card promises only what somebody measured.

A run counts for a preset where it ended well, has a baseline, and used the preset as its file
stands now: nothing set by hand, nothing changed since. Runs are put together where the devices,
their number, the way between them, torch, the model, the data and the kind of scaling are the same.
"""

from __future__ import annotations

import hashlib
import math
import statistics
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from ringside.compare.comparison import last_scored, scores_apart
from ringside.errors import RunDirError
from ringside.file_cache import FileCache, signature_of
from ringside.hardware import Hardware
from ringside.presets import Preset
from ringside.records import ExitRecord
from ringside.run import RunRecord, fold_run
from ringside.rundir import RunDir, list_run_dirs
from ringside.shelf.route import route_of_run
from ringside.spec import AccelerateSettings, RunSpec, TrainingSettings
from ringside.speedup import BASELINE, Scaling, choose_baseline, speedup
from ringside.words import say

CONFIDENCE = 0.95


class Fingerprint(msgspec.Struct, frozen=True, kw_only=True):
    """What has to be the same for measurements to be put together.

    `route` is the way between the devices: `NVLink`, `PCIe`, `shared memory`, `network`, `gloo`;
    None where no log tells. `torch` is the version without its last number.
    """

    device: str
    device_name: str
    num_devices: int
    route: str | None
    torch: str | None
    model: str
    data: str
    image_size: int
    scaling: Scaling


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One measured run; `settings` tells the preset's settings, `t` is in seconds since 1970."""

    run_id: str
    preset: str
    settings: str
    fingerprint: Fingerprint
    speedup: float
    baseline_id: str
    auc_delta: float | None
    t: float


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What the cache knows of a run that has ended; `trial` is None for one that measures nothing.

    `singles` stands for the baselines that were there to choose from.
    """

    singles: str
    preset: str
    trial: Trial | None = None


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """A preset on one kind of hardware: medians over its runs, with the lowest and the highest.

    `auc_delta` is the macro AUC minus the baseline's, over the `num_scored` runs where the two are
    comparable. `auc_low` and `auc_high` hold its median with 95 % confidence (order statistics of
    the runs; Conover 1999, Practical Nonparametric Statistics, 3.2); None below six runs, which no
    distribution-free interval of that confidence is to be had from.
    """

    fingerprint: Fingerprint
    num_runs: int
    speedup: float
    speedup_low: float
    speedup_high: float
    num_scored: int = 0
    auc_delta: float | None = None
    auc_low: float | None = None
    auc_high: float | None = None
    last_t: float


def settings_of(
    accelerate: AccelerateSettings, training: TrainingSettings, environment: dict[str, str]
) -> str:
    """A short word for all settings of a preset but the number of processes."""
    plain = msgspec.structs.replace(accelerate, num_processes=None)
    data = msgspec.json.encode([plain, training, sorted(environment.items())])
    return hashlib.sha256(data).hexdigest()[:16]


def trials(root: Path, within_s: float | None = None) -> list[Trial]:
    """All measured runs below `root`; what has ended is folded once, and then kept.

    With `within_s` no more runs are folded after so long: those left out follow at a later call.
    """
    cache: FileCache[Kept] = FileCache("measured", Kept)
    runs = list_run_dirs(root)
    known = {run.id: cache.get(run.exit) for run in runs}
    # A baseline that is new, or gone, may be another one for runs that are known already.
    fresh = {run.id: _preset_of(run) for run in runs if known[run.id] is None and _ended(run)}
    presets = fresh | {run_id: kept.preset for run_id, kept in known.items() if kept is not None}
    singles = _word_for(run_id for run_id, preset in presets.items() if preset == BASELINE)
    missing = [
        run for run in runs
        if run.id in presets and ((kept := known[run.id]) is None or kept.singles != singles)
    ]  # fmt: skip
    if missing:
        bases = _baselines(run for run in runs if presets.get(run.id) == BASELINE)
        until = math.inf if within_s is None else time.monotonic() + within_s
        for run in missing:
            if time.monotonic() > until:
                break
            signature = signature_of(run.exit)
            trial = _trial(run, bases) if presets[run.id] not in ("", BASELINE) else None
            kept = Kept(singles=singles, preset=presets[run.id], trial=trial)
            known[run.id] = kept
            cache.put(run.exit, kept, signature)
        cache.save()
    return [
        kept.trial for kept in known.values()
        if kept is not None and kept.trial is not None and kept.singles == singles
    ]  # fmt: skip


def measured(preset: Preset, found: Iterable[Trial]) -> list[Measured]:
    """What was measured of a preset as it stands, the most often measured hardware first."""
    named = [trial for trial in found if trial.preset == preset.name]
    if not named:
        return []
    file = preset.file
    settings = settings_of(file.accelerate, file.training, file.environment)
    groups: dict[Fingerprint, list[Trial]] = defaultdict(list)
    for trial in named:
        if trial.settings == settings:
            groups[trial.fingerprint].append(trial)
    rows = [_together(fingerprint, group) for fingerprint, group in groups.items()]
    return sorted(rows, key=lambda one: (-one.num_runs, -one.last_t))


def measured_here(preset: Preset, hardware: Hardware, found: Iterable[Trial]) -> Measured | None:
    """The row that fits this machine best: its devices, as many as there are before fewer."""
    names = {gpu.name for gpu in hardware.gpus}
    rows = [
        one for one in measured(preset, found)
        if one.fingerprint.device == hardware.device
        and (not names or one.fingerprint.device_name in names)
        and one.fingerprint.num_devices <= hardware.num_devices()
    ]  # fmt: skip
    return max(rows, key=lambda one: (one.fingerprint.num_devices, one.num_runs), default=None)


def measured_words(preset: Preset, hardware: Hardware, root: Path) -> str:
    """The sentence for a preset's card on this machine; empty where nobody measured it."""
    found = measured_here(preset, hardware, trials(root))
    return words_of(found) if found is not None else ""


def median_limits(values: list[float]) -> tuple[float, float] | None:
    """The narrowest pair of order statistics that holds the median with 95 % confidence.

    Values from the r-th to the r-th from the end hold it with 1 - 2 P(Binomial(n, 1/2) < r).
    """
    ordered, n = sorted(values), len(values)
    best, below = None, 0.0
    for r in range(1, n // 2 + 1):
        below += math.comb(n, r - 1) / 2**n
        if 1 - 2 * below < CONFIDENCE:
            break
        best = ordered[r - 1], ordered[n - r]
    return best


def _together(fingerprint: Fingerprint, group: list[Trial]) -> Measured:
    gains = [trial.speedup for trial in group]
    deltas = [trial.auc_delta for trial in group if trial.auc_delta is not None]
    limits = median_limits(deltas)
    return Measured(
        fingerprint=fingerprint,
        num_runs=len(group),
        speedup=statistics.median(gains),
        speedup_low=min(gains),
        speedup_high=max(gains),
        num_scored=len(deltas),
        auc_delta=statistics.median(deltas) if deltas else None,
        auc_low=limits[0] if limits else None,
        auc_high=limits[1] if limits else None,
        last_t=max(trial.t for trial in group),
    )


def _ended(run: RunDir) -> bool:
    return signature_of(run.exit) is not None


def _preset_of(run: RunDir) -> str:
    """The preset of a run that ended well; empty for every other."""
    spec, ended = run.read(run.spec, RunSpec), run.read(run.exit, ExitRecord)
    is_fine = spec is not None and ended is not None and ended.state == "completed"
    return spec.preset if is_fine and spec is not None else ""


def _word_for(names: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()[:16]


def _baselines(runs: Iterable[RunDir]) -> list[tuple[RunSpec, Any]]:
    found = []
    for run in runs:  # newest first
        record = _fold(run)
        if record is not None and record.spec is not None:
            found.append((record.spec, lambda record=record: record))
    return found


def _trial(run: RunDir, baselines: list[tuple[RunSpec, Any]]) -> Trial | None:
    record = _fold(run)
    if record is None or record.spec is None or record.observed is None:
        return None
    spec, observed = record.spec, record.observed
    baseline = choose_baseline(record, baselines)
    gain = speedup(record, baseline)
    if baseline is None or gain.value is None or gain.scaling is None:
        return None
    version = observed.versions.get("torch")
    fingerprint = Fingerprint(
        device=spec.device, device_name=observed.device_name, num_devices=spec.num_devices,
        route=route_of_run(run, observed.backend), model=spec.model, data=spec.data.label,
        torch=".".join(version.split(".")[:2]) if version else None,
        image_size=spec.data.image_size, scaling=gain.scaling,
    )  # fmt: skip
    return Trial(
        run_id=run.id, preset=spec.preset, fingerprint=fingerprint, speedup=gain.value,
        settings=settings_of(spec.accelerate, spec.training, spec.environment),
        baseline_id=baseline.id, auc_delta=_auc_delta(record, baseline),
        t=record.finished_t or record.last_event_t or 0.0,
    )  # fmt: skip


def _auc_delta(record: RunRecord, baseline: RunRecord) -> float | None:
    if scores_apart(baseline, record):
        return None
    own, base = last_scored(record), last_scored(baseline)
    if own is None or base is None or own.auc_macro is None or base.auc_macro is None:
        return None
    return own.auc_macro - base.auc_macro


def _fold(run: RunDir) -> RunRecord | None:
    try:
        return fold_run(run)
    except RunDirError:
        return None  # written by a newer Ringside


def words_of(found: Measured) -> str:
    """Such as "on 2 x NVIDIA H200 over NVLink: 1.93x, AUC ±0.000; measured 12 times, …"."""
    mark = found.fingerprint
    where = say(
        "measured.where_over" if mark.route else "measured.where",
        n=mark.num_devices, device=mark.device_name, route=mark.route,
    )  # fmt: skip
    gain = say(
        "measured.gain_one" if found.num_runs == 1 else "measured.gain",
        value=found.speedup, low=found.speedup_low, high=found.speedup_high,
        scaling=say(f"scaling.{mark.scaling}"),
    )  # fmt: skip
    day = _day(found.last_t)
    times = say("measured.once" if found.num_runs == 1 else "measured.times", n=found.num_runs)
    return say(
        "measured.sentence", where=where, gain=gain, score=_score_words(found), times=times,
        day=day, model=mark.model, data=mark.data,
    )  # fmt: skip


def _score_words(found: Measured) -> str:
    if found.auc_delta is None:
        return say("measured.no_score")
    if found.auc_low is None or found.auc_high is None:
        key = "measured.score_one" if found.num_scored == 1 else "measured.score"
        return say(key, delta=found.auc_delta, n=found.num_scored)
    return say(
        "measured.score_limits", delta=found.auc_delta, low=found.auc_low, high=found.auc_high
    )


def _day(t: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(t, UTC).date().isoformat()
