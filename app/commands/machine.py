"""The command that checks this machine: what it has, how its devices talk, what holds runs back."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from app.commands.reading import print_json
from ringside.doctor import Finding
from ringside.errors import RingsideError
from ringside.machine import Machine
from ringside.machine.yardsticks import judge, yardstick_of
from ringside.measurements import Series, Sweep
from ringside.rundir import runs_root
from ringside.words import say


def check(*, as_json: bool, sweep: bool) -> int:
    """Print what is known of this machine.

    1 when its devices cannot talk to each other, 2 when a run uses them: then nothing is timed.
    """
    from ringside.doctor.machine_check import machine_findings
    from ringside.doctor.measuring import look_at_machine

    began = time.monotonic()
    root = runs_root()
    _tell(say("machine.looking"))
    machine, path = look_at_machine(root)
    stored = {"machine": str(path)}
    if not as_json:
        from app.commands import machine_tables

        machine_tables.print_machine(machine)
    code, measured, why = 0, None, None
    if sweep:
        code, measured, why = _sweep(machine, root, stored)
    findings = machine_findings(machine, measured)
    if as_json:
        report = machine_json(machine, measured, findings, stored)
        problems = [*machine.problems, *([why] if why else [])]
        print_json({**report, "problems": problems, "taken_s": time.monotonic() - began})
    else:
        machine_tables.print_rest(machine, measured, findings)
        if why:
            print(why, file=sys.stderr)
        print("\n" + say("machine.kept", files=", ".join(stored.values())))
    return code


def machine_json(
    machine: Machine, sweep: Sweep | None, findings: tuple[Finding, ...], stored: dict[str, str]
) -> dict[str, Any]:
    """The frozen shape of `doctor --json`; missing is null."""
    return {
        "machine": machine,
        "findings": findings,
        "sweep": sweep_json(sweep, machine) if sweep is not None else None,
        "stored": {"machine": stored["machine"], "sweep": stored.get("sweep")},
    }


def sweep_json(sweep: Sweep, machine: Machine) -> dict[str, Any]:
    """A sweep with what its times say in bytes a second, and its experiments."""
    from ringside.measurements.comparison import drift_ratio, trials

    return {
        "device_name": sweep.device_name,
        "num_ranks": sweep.num_ranks,
        "versions": sweep.versions,
        "series": [_series_json(one, sweep, machine) for one in sweep.series],
        "experiments": [
            {
                "environment": trial.environment,
                "outcome": trial.outcome,
                "transport": trial.transport,
                "ratios": [
                    {"num_bytes": size, "ratio": ratio} for size, ratio in trial.ratios.items()
                ],
            }
            for trial in trials(sweep)
        ],
        "drift_ratio": drift_ratio(sweep),
        "failed": sweep.failed,
    }


def _series_json(series: Series, sweep: Sweep, machine: Machine) -> dict[str, Any]:
    from ringside.measurements.bandwidths import bandwidths
    from ringside.measurements.interpolation import summary

    alpha_us, busbw = summary(series) or (None, None)
    rates = {row.num_bytes: row for row in bandwidths(series)}
    return {
        "operation": series.operation,
        "dtype": series.dtype,
        "backend": series.backend,
        "environment": series.environment,
        "transport": series.transport,
        "alpha_us": alpha_us,
        "busbw_bytes_per_s": busbw,
        "healthy": healthy(series, sweep.device_name, machine),
        "points": [
            {
                "num_bytes": point.num_bytes,
                "median_us": point.median_us,
                "p25_us": point.p25_us,
                "p75_us": point.p75_us,
                "p90_us": point.p90_us,
                "repeats": point.repeats,
                "num_late": point.num_late,
                "algbw_bytes_per_s": row.algbw_bytes_per_s if row else None,
                "busbw_bytes_per_s": row.busbw_bytes_per_s if row else None,
            }
            for point in series.points
            for row in [rates.get(point.num_bytes)]
        ],
    }


def healthy(series: Series, device_name: str, machine: Machine) -> dict[str, Any] | None:
    """The published range for this way beside the largest message; None without either."""
    from ringside.measurements.bandwidths import plateau

    # The ranges are those of all-reduce.
    top = plateau(series) if series.operation == "all_reduce" else None
    yardstick = yardstick_of(series.transport, device_name, machine.links)
    if yardstick is None or top is None or top.busbw_bytes_per_s is None:
        return None
    return {
        "num_bytes": top.num_bytes,
        "busbw_bytes_per_s": top.busbw_bytes_per_s,
        "low_bytes_per_s": yardstick.low_bytes_per_s,
        "high_bytes_per_s": yardstick.high_bytes_per_s,
        "standing": judge(top.busbw_bytes_per_s, yardstick),
        "source": yardstick.source,
    }


def _sweep(
    machine: Machine, root: Path, stored: dict[str, str]
) -> tuple[int, Sweep | None, str | None]:
    """Exit code, the sweep, or a sentence why this machine's devices could not be timed."""
    from ringside.doctor.measuring import sweep_machine
    from ringside.launch.occupied import DevicesInUseError

    try:
        found = sweep_machine(machine.hardware, root, _tell)
    except RingsideError as error:
        return 2 if isinstance(error, DevicesInUseError) else 1, None, str(error)
    if found is None:
        _tell(say("machine.one_device"))
        return 0, None, None
    stored["sweep"] = str(found[1])
    return 0, found[0], None


def _tell(sentence: str) -> None:
    """Progress; standard output is for the result."""
    print(sentence, file=sys.stderr)
