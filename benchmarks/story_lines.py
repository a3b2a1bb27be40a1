"""From the two runs of a cell to its line: clocks, bytes, prediction, the doctor's verdict."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
from story_cells import Cell, Line
from story_expected import expected

from ringside.doctor import Case, case_of_run, diagnose
from ringside.doctor.clocks import steady_windows
from ringside.doctor.figures import gradient_bytes, wire_bytes
from ringside.doctor.gathering import facts_of, log_of
from ringside.doctor.shares import exposed_share
from ringside.estimate import Inputs, estimate
from ringside.estimate.calibration import calibrate
from ringside.estimate.steps import NotEstimated
from ringside.records import ExitRecord
from ringside.run import fold_run
from ringside.rundir import RunDir, iter_files
from ringside.spec import RunSpec

FP32_BYTES = 4


def line_of(
    cell: Cell, spec: RunSpec, timed: RunDir, traced: list[RunDir], inputs: Inputs, root: Path,
    calibrating: RunDir | None,
) -> Line:  # fmt: skip
    """`traced`: the run of the profile, then the others of its launch, where NCCL may have logged.

    `calibrating`: another launch of the reference, where a replay of this cell can learn from it.
    `root` holds the timed runs, the baselines among them, and the store of measurements.
    """
    bare = Line(
        transport=cell.transport, batch=cell.batch, preset=cell.preset, precision=cell.precision,
        compiled=cell.compiled, num_devices=spec.num_devices, global_batch=spec.global_batch,
        run=timed.id,
    )  # fmt: skip
    ended = timed.read(timed.exit, ExitRecord)
    if ended is None or ended.state != "completed":
        return msgspec.structs.replace(bare, problem=ended.reason if ended else "It never ended.")
    case = with_profile(case_of_run(timed, root), traced)
    line = with_verdict(with_clocks(bare, case), case)
    return with_predictions(line, spec, inputs, calibrating)


def with_profile(case: Case, traced: list[RunDir]) -> Case:
    """The clocks of the timed run, the traces and NCCL's log of the launch that was profiled."""
    if not traced:
        return case
    problems = list(case.problems)
    traces = tuple(iter_files(traced[0].trace, "*.json.gz"))
    # NCCL names its file once for a process: the log of a launch lies in one of its runs.
    logs = next((found for run in traced if (found := tuple(iter_files(run.nccl, "*.log")))), ())
    return replace(
        case,
        facts=facts_of(traces, problems),
        nccl=log_of(logs, problems),
        traces=tuple(str(path) for path in traces),
        problems=tuple(problems),
    )


def with_clocks(line: Line, case: Case) -> Line:
    """What the run itself measured, and what its traces say of the exchange."""
    record = case.record
    assert record is not None
    windows, observed = steady_windows(record), record.observed
    return msgspec.structs.replace(
        line,
        step_ms=tuple(window.step_ms for window in windows),
        memory_bytes=max((w.memory_bytes for w in windows if w.memory_bytes), default=None),
        wire_bytes=wire_bytes_of(case),
        exposed_ratio=exposed_share(case),
        device_name=observed.device_name if observed else "",
        versions=observed.versions if observed else {},
        problem=" ".join(case.problems) or None,
    )


def wire_bytes_of(case: Case) -> float | None:
    """What a ring sends per rank in an optimizer step; FSDP gathers its weights in fp32, twice."""
    record, reduced = case.record, gradient_bytes(case)
    if record is None or record.spec is None or record.observed is None or not reduced:
        return None
    spec, num = record.spec, record.spec.num_processes
    if spec.strategy != "fsdp":
        return wire_bytes(reduced, num)
    config = spec.accelerate.fsdp_config
    gathers = 2 if config is None or config.fsdp_reshard_after_forward else 1
    gathered = gathers * FP32_BYTES * record.observed.num_parameters
    return wire_bytes(gathered * spec.training.accumulation_steps + reduced, num, passes=1)


def with_predictions(line: Line, spec: RunSpec, inputs: Inputs, calibrating: RunDir | None) -> Line:
    """What follows from one device, the sweep and the clocks alone, and so can be told anew."""
    found = estimate(spec, inputs)
    wanted = expected(spec, line.median_ms, inputs.description, inputs.sweep)
    line = msgspec.structs.replace(
        line,
        predicted_ms=found.step_ms,
        predicted_memory_bytes=found.memory_bytes,
        not_predicted=" ".join(found.missing) if found.step_ms is None else None,
        expected=wanted.causes,
        rule=wanted.rule,
    )
    return line if calibrating is None else with_replay(line, spec, inputs, calibrating)


def with_verdict(line: Line, case: Case) -> Line:
    """The doctor's answer."""
    diagnosis = diagnose(case)
    return msgspec.structs.replace(
        line,
        cause=diagnosis.verdict.cause,
        code=diagnosis.verdict.code,
        share_ratio=diagnosis.verdict.share_ratio,
        sentence=short(diagnosis.verdict.sentence, case),
        others=tuple(f"{one.code} {one.cause}" for one in diagnosis.others),
    )


def with_replay(line: Line, spec: RunSpec, inputs: Inputs, calibrating: RunDir) -> Line:
    """The step by a calibrated replay; as it was where the other launch explains nothing."""
    try:
        calibration = calibrate(fold_run(calibrating), inputs.description, inputs.sweep)
    except NotEstimated:
        return line
    found = estimate(spec, replace(inputs, calibration=calibration))
    return msgspec.structs.replace(line, replayed_ms=found.step_ms)


def short(sentence: str, case: Case) -> str:
    """The sentence with the names of traces without their folders."""
    for path in case.traces:
        sentence = sentence.replace(path, Path(path).name)
    return sentence
