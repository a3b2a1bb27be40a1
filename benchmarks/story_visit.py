"""What `benchmarks/story.py` has to measure, in an order that can be cut short anywhere."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
from story_cells import (
    DATA_PARALLEL,
    ONE,
    REFERENCE,
    TRANSPORTS,
    Cell,
    Line,
    Lines,
    num_steps,
    traced_spec,
)
from story_launch import (
    crowds_of,
    drop_trace,
    forget_failed,
    is_completed,
    prepare,
    run_of,
    say,
    train_in_turn,
)
from story_lines import line_of, with_predictions

from ringside.doctor.gathering import environment_of
from ringside.errors import RingsideError
from ringside.estimate import Inputs, estimate
from ringside.hardware import Hardware
from ringside.launch.probing import measure_description, measure_sweep
from ringside.measurements import Sweep
from ringside.measurements.crowd import with_crowd
from ringside.measurements.store import Store, key_of_model
from ringside.run import fold_run
from ringside.rundir import RunDir
from ringside.spec import RunSpec

# Guesses, by which a part begins or is left to the next call; a launch is ended in time anyway.
LAUNCH_S, SETUP_S, COMPILE_S, TRACE_S, SWEEP_S = 15.0, 4.0, 40.0, 5.0, 20.0
DESCRIPTION_S = 15.0
CROWD_S = 4.0
UNKNOWN_MS = {"cpu": 200.0, "cuda": 150.0}
DATA_PARALLEL_MS = 1300.0
LONGER = 1.5
RESERVE_S = 10.0
"""For ending a launch, the last lines and the report."""


class OutOfTime(Exception):  # noqa: N818
    """The next part would not fit into this call."""


class Visit:
    """One call: measures what is wanted and not there, until it is done or its time is over."""

    def __init__(
        self, options: argparse.Namespace, hardware: Hardware, specs: dict[Cell, RunSpec]
    ) -> None:
        self.options, self.hardware, self.specs = options, hardware, specs
        self.root, self.traces = options.out / "runs", options.out / "traced"
        self.again = options.out / "again"
        self.store, self.lines = Store(self.root), Lines(options.out / "cells.jsonl")
        self.failed: set[str] = set()
        self.has_crowded = False
        self._end = time.monotonic() + options.budget_s - RESERVE_S

    @property
    def wanted(self) -> list[Cell]:
        """The cells that --only leaves in: it names beginnings."""
        only = self.options.only
        return [
            cell
            for cell in self.specs
            if only is None or any(cell.name.startswith(word) for word in only)
        ]

    def measure(self) -> bool:
        """Whether everything that was wanted is there; else this is to be called again."""
        try:
            for cells in self._groups():
                self._measure(cells)
        except OutOfTime:
            return False
        return True

    def _groups(self) -> Iterator[list[Cell]]:
        """Cells of one transport and of as many processes: what one launch can train."""
        places = dict.fromkeys(self._place(cell) for cell in self.wanted)
        for place in places:
            yield [cell for cell in self.wanted if self._place(cell) == place]

    def _place(self, cell: Cell) -> tuple[str, bool]:
        return cell.transport, cell.preset == DATA_PARALLEL

    def _measure(self, cells: list[Cell]) -> None:
        there = self.lines.read()
        if self.options.again:
            there = {cell: line for cell, line in there.items() if not line.problem}
        cells = [cell for cell in cells if cell not in there]
        if self.options.again:
            for cell in cells:
                forget_failed(self.root, self.specs[cell])
                forget_failed(self.again, self.specs[cell])
                forget_failed(self.traces, traced_spec(self.specs[cell]))
        if not cells:
            return
        self._describe(cells)
        self._crowd(cells)
        self._sweep(cells[0].transport)
        self._train(self.root, [self.specs[cell] for cell in cells])
        timed = [cell for cell in cells if self._is_timed(cell)]
        # Another launch of the same set-up, by which a replay is calibrated.
        replayed = [cell for cell in timed if cell.transport != ONE and cell.preset == REFERENCE]
        self._train(self.again, [self.specs[cell] for cell in replayed])
        # Whatever a profiler slows in its process is timed nowhere; nn.DataParallel needs no trace.
        traced = [cell for cell in timed if cell.preset != DATA_PARALLEL]
        self._train(self.traces, [traced_spec(self.specs[cell]) for cell in traced])
        for cell in cells:
            self._add_line(cell, traced)
        if self.options.drop_traces:
            lines = self.lines.read()
            for cell in traced:
                # What the doctor got wrong is looked at again.
                if cell in lines and lines[cell].is_right is not False:
                    drop_trace(self._traced(cell))

    def told_anew(self) -> dict[Cell, Line]:
        """The finished lines; predictions and expectations as this version makes them."""
        return {
            cell: with_predictions(
                line, self.specs[cell], self.inputs(cell), self._calibrating(cell)
            )
            if cell in self.specs and line.step_ms
            else line
            for cell, line in self.lines.read().items()
        }

    def _is_timed(self, cell: Cell) -> bool:
        run = run_of(self.root, self.specs[cell])
        return run is not None and is_completed(run)

    def _add_line(self, cell: Cell, traced: list[Cell]) -> None:
        spec = self.specs[cell]
        timed = run_of(self.root, spec)
        if timed is None:
            return
        own = self._traced(cell) if cell in traced else None
        others = [run for other in traced if (run := self._traced(other)) is not None]
        line = line_of(
            cell, spec, timed, [own, *others] if own else [], self.inputs(cell), self.root,
            self._calibrating(cell),
        )  # fmt: skip
        self.lines.add(line)
        say(f"{cell.name}: {line.cause or line.problem}")

    def _traced(self, cell: Cell) -> RunDir | None:
        return run_of(self.traces, traced_spec(self.specs[cell]))

    def _calibrating(self, cell: Cell) -> RunDir | None:
        """The reference of another launch, for cells that compute what it computes."""
        reference = next(
            (one for one in self.specs if one[:3] == (cell.transport, cell.batch, REFERENCE)), None
        )
        if reference is None or cell.preset == DATA_PARALLEL or reference[3:] != cell[3:]:
            return None
        return run_of(self.again, self.specs[reference])

    def inputs(self, cell: Cell) -> Inputs:
        """What a prediction may know: one device, and the sweep of the transport."""
        spec = self.specs[cell]
        description = self.store.description(spec, hardware=self.hardware)
        inherited = self._inherited(spec) if self.options.print else None
        sweep = self._found_sweep(cell.transport, inherited)
        return Inputs(description=description, sweep=sweep)

    def _inherited(self, spec: RunSpec) -> dict[str, str] | None:
        """The variables of the machine on which a cell was measured, by its run."""
        run = run_of(self.root, spec)
        return None if run is None else environment_of(fold_run(run))

    def _found_sweep(self, transport: str, inherited: dict[str, str] | None = None) -> Sweep | None:
        """`inherited`: the variables of the ranks; this process's where there are none."""
        if transport == ONE:
            return None
        num, added = self.options.processes, TRANSPORTS[transport]
        return self.store.sweep(self.hardware, num, added, inherited=inherited)

    def _describe(self, cells: Sequence[Cell]) -> None:
        """One device's step for each model and batch among the cells, a GPU each at a time."""
        missing = {}
        for cell in cells:
            spec = self.specs[cell]
            key = key_of_model(spec), spec.micro_batch
            if cell.preset != DATA_PARALLEL and not self._is_described(cell):
                missing[key] = spec
        gpus = [gpu.index for gpu in self.hardware.gpus[: self.options.processes]] or [None]
        specs = [spec for key, spec in missing.items() if str(key) not in self.failed]
        for begin in range(0, len(specs), len(gpus)):
            batch = specs[begin : begin + len(gpus)]
            seconds = LAUNCH_S + DESCRIPTION_S + 4 * self.options.probe_seconds
            self._need(seconds + (2 * COMPILE_S if any(s.training.compile for s in batch) else 0))
            with ThreadPoolExecutor(len(gpus)) as pool:
                list(pool.map(self._describe_one, batch, gpus))

    def _is_described(self, cell: Cell) -> bool:
        found = self.inputs(cell).description
        batch = self.specs[cell].micro_batch
        return found is not None and batch in (profile.batch for profile in found.profiles)

    def _describe_one(self, spec: RunSpec, gpu: int | None) -> None:
        alone = spec if gpu is None else msgspec.structs.replace(spec, gpu_ids=(gpu,))
        name = f"description of {spec.accelerate.mixed_precision}, {spec.micro_batch} images"
        try:
            found = measure_description(
                alone, self.hardware, seconds=self.options.probe_seconds, timeout_s=self._left()
            )
            self.store.save(found)
            say(f"{name}: there")
        except RingsideError as error:
            self.failed.add(str((key_of_model(spec), spec.micro_batch)))
            say(f"{name}: {error}")

    def _crowd(self, cells: Sequence[Cell]) -> None:
        """What several processes cost each other, where one device's step is known; tried once."""
        specs = list(self._uncrowded(cells).values())
        if not specs or self.has_crowded:
            return
        compiling = COMPILE_S * sum(spec.training.compile for spec in specs)
        self._need(LAUNCH_S + len(specs) * (CROWD_S + self.options.probe_seconds) + compiling)
        self.has_crowded = True
        found = crowds_of(specs, self.options.probe_seconds, self._left())
        for spec, crowded in zip(specs, found, strict=False):
            description = self.store.description(spec, hardware=self.hardware)
            if description is not None:
                self.store.save(with_crowd(description, crowded, time.time()))
                say(f"crowd of {spec.accelerate.mixed_precision}, {spec.micro_batch} images: there")

    def _uncrowded(self, cells: Sequence[Cell]) -> dict[tuple[str, int], RunSpec]:
        """A request for each model and batch of which one device alone is known."""
        missing = {}
        for cell in cells:
            spec, found = self.specs[cell], self.inputs(cell).description
            batch, wanted = spec.micro_batch, (spec.num_processes, spec.micro_batch)
            known = {(one.num_processes, one.batch) for one in found.crowded} if found else set()
            if found is not None and spec.num_processes > 1 and wanted not in known:
                missing[key_of_model(spec), batch] = spec
        return missing

    def _sweep(self, transport: str) -> None:
        if transport == ONE or transport in self.failed or self._found_sweep(transport):
            return
        self._need(LAUNCH_S + SWEEP_S)
        try:
            found = measure_sweep(
                self.hardware, self.options.processes, environment=TRANSPORTS[transport],
                seconds=self.options.sweep_seconds, trials=False, timeout_s=self._left(),
            )  # fmt: skip
        except RingsideError as error:
            self.failed.add(transport)
            say(f"sweep of {transport}: {error}")
            return
        self.store.save(found)
        say(f"sweep of {transport}: there")

    def _train(self, root: Path, specs: list[RunSpec]) -> None:
        """Train what has no ended run yet, as many in a launch as fit into the rest of the call."""
        while pending := [spec for spec in specs if run_of(root, spec) is None]:
            chosen = self._fitting(pending)
            runs = [prepare(root, spec, self.hardware) for spec in chosen]
            begin = time.monotonic()
            in_time = train_in_turn(runs, chosen[0], self.options.window_seconds, self._left())
            num = sum(run.exit.exists() for run in runs)
            say(f"{num} of {len(runs)} runs in {root.name}: {time.monotonic() - begin:.0f} s")
            if not in_time:
                raise OutOfTime

    def _fitting(self, pending: list[RunSpec]) -> list[RunSpec]:
        chosen, seconds = list[RunSpec](), LAUNCH_S
        for spec in pending[: 1 if self.options.each else None]:
            seconds += self.guess_s(spec)
            if chosen and seconds > self._left():
                break
            chosen.append(spec)
        self._need(LAUNCH_S + self.guess_s(chosen[0]))
        return chosen

    def guess_s(self, spec: RunSpec) -> float:
        """About how long a run takes in its turn, by the prediction where there is one."""
        found = self.inputs_of(spec)
        step_ms = (estimate(spec, found).step_ms if found else None) or UNKNOWN_MS[spec.device]
        if spec.strategy == "data_parallel":
            step_ms = DATA_PARALLEL_MS
        steps = num_steps(spec) + 3 * spec.profile_steps
        extra = (COMPILE_S if spec.training.compile else 0) + (TRACE_S if spec.profile_steps else 0)
        return SETUP_S + extra + LONGER * steps * step_ms / 1000

    def inputs_of(self, spec: RunSpec) -> Inputs | None:
        """The inputs of the cell whose run, timed or traced, this is."""
        cell = next((cell for cell in self.specs if cell.name == spec.request_id), None)
        return None if cell is None else self.inputs(cell)

    def _left(self) -> float:
        return max(1.0, self._end - time.monotonic())

    def _need(self, seconds: float) -> None:
        """OutOfTime where so many seconds are not left."""
        if time.monotonic() + seconds > self._end:
            raise OutOfTime
