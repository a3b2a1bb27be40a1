"""An address that fills the form: `/?preset=ddp_bf16&run=ID&set=bucket_cap_mb=50`.

`run` gives what a run of this folder asked for, `preset` and `set` what to do otherwise. Nothing
is started, and only names that Ringside knows get through.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ringside.errors import RingsideError, SpecError
from ringside.overrides import locate, parse_overrides
from ringside.presets import Library
from ringside.rundir import list_run_dirs
from ringside.spec import DataSpec, RunSpec
from ringside.words import say

MAX_SETTINGS = 20
MAX_LENGTH = 200
SEPARATORS = {"\n": "newline", ";": "semicolon", "|": "bar", ",": "comma", "none": "none"}


def prefilled(query: Iterable[tuple[str, str]], root: Path) -> dict[str, Any]:
    """Fields of the form by name; empty for an address that says nothing.

    RingsideError in a sentence for a run, a preset or a setting that there is not.
    """
    asked = [(key, value[:MAX_LENGTH]) for key, value in query]
    runs, presets, pairs = (
        [value for key, value in asked if key == name] for name in ("run", "preset", "set")
    )
    values: dict[str, Any] = {}
    settings: dict[str, str] = {}
    if runs:
        spec = _spec_of(root, runs[-1])
        values, settings = _values(spec), _own_settings(spec)
    if presets:
        values["preset"] = Library().get(presets[-1]).name
    for key, value in parse_overrides(pairs[:MAX_SETTINGS]).items():
        settings[".".join(locate(key))] = value
    if settings:
        values["overrides"] = "\n".join(f"{key}={value}" for key, value in settings.items())
    return values


def _spec_of(root: Path, run_id: str) -> RunSpec:
    """The request of the run with exactly this id."""
    run = next((run for run in list_run_dirs(root) if run.id == run_id), None)
    spec = run.read(run.spec, RunSpec) if run else None
    if spec is None:
        raise RingsideError(say("train.no_such_run", run=run_id))
    return spec


def _values(spec: RunSpec) -> dict[str, Any]:
    batch = spec.global_batch
    if not spec.keeps_global_batch:
        batch //= spec.training.accumulation_steps
    return {
        **_data(spec.data),
        "preset": spec.preset,
        "model": spec.model,
        "epochs": spec.epochs,
        "batch": batch,
        "processes": spec.num_devices,
        "image_size": spec.data.image_size,
        "seed": spec.seed,
        "keep_global_batch": spec.keeps_global_batch,
    }


def _data(data: DataSpec) -> dict[str, Any]:
    """A person's own data go into their own field."""
    if data.path is None and data.repository is None:
        return {"source": data.label}
    name = data.label
    if data.repository is not None:
        name = f"hf:{data.repository}@{data.revision}" if data.revision else data.label
    return {
        "source": "folder", "folder": name, "separator": SEPARATORS.get(data.separator or "", ""),
    }  # fmt: skip


def _own_settings(spec: RunSpec) -> dict[str, str]:
    """What the run's own request set otherwise than its preset."""
    found = {}
    for key, source in spec.sources.items():
        part, _, name = key.rpartition(".")
        if source != "flag" or part not in ("training", "accelerate"):
            continue
        try:
            locate(key)
        except SpecError:
            continue  # no setting, such as the number of processes
        value = getattr(getattr(spec, part), name, None)
        if isinstance(value, str | int | float):
            found[key] = str(value).lower() if isinstance(value, bool) else str(value)
    return found
