"""What is said of a bench, to the terminal and to the page alike."""

from __future__ import annotations

from ringside.durations import duration
from ringside.errors import LaunchError
from ringside.launch.step_bench import StepBench, is_near, label
from ringside.spec import RunSpec
from ringside.words import say, say_count, say_few


def plan_line(bench: StepBench) -> str:
    """How many launches there will be, and about how long they take."""
    launches = say_count("launch", len(bench.launches))
    if not bench.num_baselines:
        return say("bench.plan", launches=launches, time=_about(bench.guess_s))
    return say(
        "bench.plan_beside",
        launches=launches, beside=bench.num_baselines, time=_about(bench.guess_s),
    )  # fmt: skip


def progress_line(bench: StepBench, number: int, spec: RunSpec, left_s: float) -> str:
    """Which launch is under way, and about how long all of them still take."""
    return say(
        "bench.progress",
        number=number, total=len(bench.launches), strategy=label(spec),
        devices=say_count("device", spec.num_devices),
        images=say_count("image", spec.micro_batch), time=_about(left_s),
    )  # fmt: skip


def outcome_line(bench: StepBench) -> str:
    """How many were timed, which is the fastest, and why others have no figure.

    LaunchError with the first reason where none has.
    """
    rows = bench.asked()
    if not rows:
        raise LaunchError(say("bench.nothing", why=next(iter(bench.refused.values()), "")))
    first, *others = rows
    n = say_count("strategy", len(rows))
    if not others:
        line = say("bench.one", name=first.preset)
    elif is_near(first, others[0]):
        line = say("bench.near", strategies=n, first=first.preset, second=others[0].preset)
    else:
        line = say("bench.fastest", strategies=n, first=first.preset)
    if not bench.refused:
        return line
    why = next(iter(bench.refused.values()))
    return say("bench.but", line=line, names=say_few(tuple(bench.refused)), why=why)


def _about(seconds: float) -> str:
    """Whole minutes from two on, else tens of seconds."""
    unit = 60 if seconds >= 120 else 10
    return duration(max(unit, unit * round(seconds / unit)))
