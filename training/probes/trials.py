"""The same few sizes with other variables, to see what they do on this machine.

NCCL and gloo read their variables once in a process, so each trial has fresh processes. They are
forked from one that has loaded torch and touched no GPU: a trial then starts in about a second
instead of the ten that a launcher needs.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import distributed
from torch.distributed import FileStore  # type: ignore[attr-defined]

from ringside.errors import RunDirError
from ringside.measurements.sweep import Series
from ringside.measurements.transport import log_variables, transport_of
from ringside.records import RankError, rank_errors
from ringside.rundir import RunDir, write_atomic
from ringside.spec import RunSpec
from training.control import Control
from training.failure import recognise
from training.probes.sweep import Sweeper, all_gather, rounded

UNCHANGED = "The same with no other variable"
LAST_ERROR = re.compile(r"Last error:\s*(.+)")


def measure_trials(
    spec: RunSpec, environments: Sequence[Mapping[str, str]], folder: Path, *,
    sizes: Sequence[int], seconds: float, timeout_s: float,
) -> tuple[tuple[Series, ...], tuple[str, ...]]:  # fmt: skip
    """A series for each of `environments` that worked, and a sentence for each that did not.

    `seconds` of repeats each; one that has not ended after `timeout_s` is killed. What they leave
    lies below `folder`.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    found, failed = [], []
    for number, environment in enumerate(environments):
        own = RunDir(folder / f"trial{number}")
        own.ranks.mkdir(parents=True)
        own.nccl.mkdir()
        in_time = _run(context, spec, dict(environment), own, list(sizes), seconds, timeout_s)
        series = own.read(own.path / "series.json", Series)
        if series is not None:
            found.append(msgspec.structs.replace(series, transport=transport_of(own.path)))
        else:
            failed.append(_sentence(environment, own, timeout_s if not in_time else None))
    return tuple(found), tuple(failed)


def _run(
    context: Any, spec: RunSpec, environment: dict[str, str], run: RunDir, sizes: list[int],
    seconds: float, timeout_s: float,
) -> bool:  # fmt: skip
    """Start all ranks and wait for them; whether they ended by themselves."""
    arguments = spec, environment, str(run.path), sizes, seconds, timeout_s
    ranks = [
        context.Process(target=_rank, args=(rank, *arguments)) for rank in range(spec.num_processes)
    ]
    for rank in ranks:
        rank.start()
    deadline = time.monotonic() + timeout_s
    # When one has failed, the others wait for it in vain.
    while any(rank.is_alive() for rank in ranks) and time.monotonic() < deadline:
        if any(rank.exitcode for rank in ranks):
            deadline = min(deadline, time.monotonic() + 1)
        time.sleep(0.05)
    in_time = time.monotonic() < deadline or any(rank.exitcode for rank in ranks)
    for rank in ranks:
        rank.kill()
        rank.join()
    return in_time


def _sentence(environment: Mapping[str, str], run: RunDir, timeout_s: float | None) -> str:
    words = " ".join(f"{name}={value}" for name, value in environment.items()) or UNCHANGED
    if timeout_s is not None:
        return f"{words} did not finish within {timeout_s:.0f} s."
    errors = rank_errors(run)
    return f"{words} did not start: {errors[0].sentence if errors else 'a rank was killed.'}"


def _rank(
    rank: int, spec: RunSpec, environment: dict[str, str], path: str, sizes: list[int],
    seconds: float, timeout_s: float,
) -> None:  # fmt: skip
    """One rank of one trial, in a process of its own."""
    run = RunDir(Path(path))
    os.environ.update(environment | log_variables(run.path))
    try:
        series = _measure(rank, spec, run, sizes, seconds, timeout_s)
        if rank == 0:
            ours = msgspec.structs.replace(series, environment=environment)
            write_atomic(run.path / "series.json", msgspec.json.encode(ours))
    except Exception as error:
        cause, sentence = recognise(error)
        inner = LAST_ERROR.search(str(error))
        record = RankError(
            rank=rank, t=time.time(), cause=cause, sentence=inner.group(1) if inner else sentence
        )
        with suppress(RunDirError):
            run.write(run.ranks / f"rank{rank}.error.json", record)
        os._exit(1)  # Cleaning up would wait for the others.
    os._exit(0)


def _measure(
    rank: int, spec: RunSpec, run: RunDir, sizes: list[int], seconds: float, timeout_s: float
) -> Series:
    device = torch.device(f"cuda:{rank}" if spec.device == "cuda" else "cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    else:
        torch.set_num_threads(spec.threads_per_device)
    distributed.init_process_group(
        "nccl" if device.type == "cuda" else "gloo",
        store=FileStore(str(run.path / "store"), spec.num_processes),
        rank=rank,
        world_size=spec.num_processes,
        timeout=timedelta(seconds=timeout_s),
    )
    control = Control(rank, spec.num_processes, timeout_s)
    _start_as_ddp(device, spec.num_processes)
    sweeper = Sweeper(control, device, seconds, len(sizes))
    series = sweeper.series("all_reduce", "fp32", rounded(sizes, spec.num_processes))
    control.gather([])  # None leaves before all have ended.
    return series


def _start_as_ddp(device: torch.device, world: int) -> None:
    """DDP compares and spreads parameters with other collectives than all-reduce.

    With NCCL_ALGO=Tree these have no algorithm (NCCL 2.28), so DDP would not start.
    """
    one, gathered = torch.ones(1, device=device), torch.ones(world, device=device)
    distributed.broadcast(one, src=0)
    all_gather(gathered, one)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
