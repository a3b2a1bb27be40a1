"""The verdicts that say that nothing holds a run back, that nobody knows, or that data lack."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ringside.doctor.bands import WARNING
from ringside.doctor.case import Case
from ringside.doctor.figures import best_busbw, efficiency_of
from ringside.doctor.findings import Finding
from ringside.doctor.phrasing import finding_of, seen
from ringside.doctor.shares import exposed_share
from ringside.doctor.traced import as_finding
from ringside.doctor.weighing import weight_of
from ringside.trace.judging import lacking, unexplained
from ringside.words import percent, say

# MLPerf-like ResNet-50 on 8 GPUs of one machine: 97 % in FP32, 84 to 87 % with 16 bits
# (NVIDIA/DeepLearningExamples, resnet50v1.5).
SCALES_WELL = 0.90
CAUSES_OF_LOSS = (1, 2)


def conclude(case: Case, findings: Sequence[Finding]) -> Finding:
    """The first finding when it weighs enough, else one of the three."""
    first = findings[0] if findings else None
    if first is not None and weight_of(first) in CAUSES_OF_LOSS:
        return first
    if (fine := nothing_found(case)) is not None:
        return fine
    if first is not None and weight_of(first) in (3, 4):
        return first
    if (fine := nothing_on_machine(case)) is not None:
        return fine
    if case.facts is None:
        return without_trace(case)
    if (why := lacking(case.facts)) is not None:
        return not_enough_data(why.sentence)
    return as_finding(unexplained(case.facts), case)


def nothing_found(case: Case) -> Finding | None:
    """Nothing holds this run back: it scales well, and nothing costs a tenth of its step.

    Seen when the speed-up against one device is 90 % of the number of devices or more, and the
    exposed communication, where it is known, is below 10 % of the step. NVIDIA's own figures for
    ResNet-50 on eight GPUs of one machine are 97 % in FP32 and 84 to 87 % with 16 bits.
    What to do: nothing. A faster step is then a matter of the model on one device.
    """
    known = efficiency_of(case)
    exposed = exposed_share(case)
    if known.efficiency_ratio is None or known.efficiency_ratio < SCALES_WELL:
        return None
    if exposed is not None and exposed >= WARNING:
        return None
    scaling = say(f"seen.{known.scaling}") if known.scaling else ""
    efficiency = say("seen.efficiency", ratio=percent(known.efficiency_ratio), scaling=scaling)
    evidence = [
        seen("efficiency", efficiency, "events.jsonl"),
        seen("images/s", f"{known.samples_per_s:.0f}", "events.jsonl"),
    ]
    if exposed is not None:
        evidence.append(
            seen("exposed communication", say("seen.of_step", share=percent(exposed, 1)), "trace")
        )
    return finding_of(
        "NONE-001", "none", "high" if exposed is not None else "medium", severity="note",
        evidence=tuple(evidence),
        values={"efficiency": known.efficiency_ratio, "speedup": known.value},
    )  # fmt: skip


def nothing_on_machine(case: Case) -> Finding | None:
    """Nothing was found on this machine that holds a run back.

    Seen when a machine was looked at, without a run, a trace or a log, and no check found more than
    a note. Where the collectives were timed too, confidence is high.
    What to do: nothing on the machine; `ringside doctor RUN` looks at a run.
    """
    machine = case.machine
    is_more = any(part is not None for part in (case.record, case.facts, case.nccl))
    if machine is None or is_more:
        return None
    gpus = ", ".join(gpu.name for gpu in machine.hardware.gpus)
    evidence = [
        seen("GPUs", gpus or say("seen.none"), "driver"),
        seen("cores", str(machine.num_cores), "affinity and cgroup"),
    ]
    if (best := best_busbw(case)) is not None:
        evidence.append(seen("bus bandwidth", f"{best[0] / 1e9:.1f} GB/s", best[1]))
    return finding_of(
        "NONE-002", "none", "medium" if case.sweep is None else "high", severity="note",
        evidence=tuple(evidence),
    )  # fmt: skip


def without_trace(case: Case) -> Finding:
    """Not explained: what was looked at shows no cause, or too little was measured to name one.

    Without a trace of all ranks, the wait for images, late ranks and the link can be told apart
    only by the controlled experiment. The verdict says so instead of guessing.
    What to do: what stands under "not measured", from the first line on.
    """
    is_timed = case.record is not None and bool(case.record.windows)
    if not is_timed and case.experiment is None:
        return not_enough_data(say("doctor.nothing_recorded"))
    return finding_of("UNEXPLAINED-001", "unexplained", "low", severity="note")


def not_enough_data(why: str) -> Finding:
    """Not enough data: nothing that was recorded allows a judgement.

    Seen when a run has timed no step yet, when a trace holds too little work, or when it holds no
    work of a GPU and no collectives.
    What to do: let the run finish two epochs, or record a trace of three steps on all ranks.
    """
    return finding_of(
        "UNEXPLAINED-002", "unexplained", "not enough data", severity="note", values={"why": why}
    )


CONCLUSIONS: dict[str, Callable[..., Finding | None]] = {
    "NONE-001": nothing_found,
    "NONE-002": nothing_on_machine,
    "UNEXPLAINED-001": without_trace,
    "UNEXPLAINED-002": not_enough_data,
}
