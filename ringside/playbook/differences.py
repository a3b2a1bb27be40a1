"""In what two playbooks differ: preset, environment, hardware, versions, data and results.

Of each the chosen run speaks. What is the same in both is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from ringside.playbook.content import Playbook
from ringside.preset_differences import settings

Group = Literal["preset", "environment", "hardware", "versions", "data", "results"]
RESULTS = (
    "state", "num_processes", "num_devices", "global_batch", "mixed_precision", "epoch_time_s",
    "samples_per_s", "auc_macro", "f1_macro", "map_macro", "total_time_s", "device_hours",
)  # fmt: skip


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One thing with its two values; None where one of them does not have it."""

    group: Group
    name: str
    first: Any = None
    second: Any = None


def differences(first: Playbook, second: Playbook) -> tuple[Line, ...]:
    """All of them, group by group; empty for two that did the same with the same result."""
    left, right = dict(_facts(first)), dict(_facts(second))
    return tuple(
        Line(group=group, name=name, first=left.get((group, name)), second=right.get((group, name)))
        for group, name in dict.fromkeys([*left, *right])
        if left.get((group, name)) != right.get((group, name))
    )


def _facts(playbook: Playbook) -> Iterator[tuple[tuple[Group, str], Any]]:
    run, result = playbook.run, playbook.run.result
    yield ("preset", "name"), playbook.preset
    for name, value in settings(playbook.preset_file).items():
        yield ("preset", name), value
    for name, value in run.environment.items():
        yield ("environment", name), value
    for name, value in msgspec.to_builtins(playbook.hardware).items():
        yield ("hardware", name), value
    for name, value in run.versions.items():
        yield ("versions", name), value
    for name, value in msgspec.to_builtins(playbook.data).items():
        yield ("data", name), value
    for name in ("model", "epochs", "seed", "micro_batch", "accumulation_steps"):
        yield ("results", name), getattr(run, name)
    for name in RESULTS:
        yield ("results", name), getattr(result, name)
    yield ("results", "speedup"), result.speedup.value
    yield ("results", "verdict"), run.diagnosis.verdict.code
    yield ("results", "cause"), run.diagnosis.verdict.cause
