"""Writes `gpus.jsonl` beside a run: a thread of its owner that looks every two seconds.

NVML may fail, and a question may hang with a driver that does: neither touches the run, nor the
thread that owns it.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress

import msgspec

from ringside.errors import RunDirError
from ringside.hardware import Hardware
from ringside.identity import ProcessIdentity
from ringside.launch.rank_load import RankLoad
from ringside.machine.gpu_sample import GpuSampler
from ringside.machine.nvml import open_nvml
from ringside.rundir import RunDir, write_atomic
from ringside.samples import Sample, read_samples
from ringside.spec import RunSpec

PERIOD_S = 2.0
MAX_LINES = 3000
"""Then the file is thinned out. A line of eight GPUs has about 2 kB."""
NUM_OLD = 1200
RECENT_S = 600.0
"""The newest ten minutes keep every sample."""
JOIN_S = 1.0


class Sampler:
    """Samples a run from `start` to `end`; `ranks` gives the process of each rank."""

    def __init__(
        self, run: RunDir, ranks: Callable[[], Mapping[int, ProcessIdentity | None]]
    ) -> None:
        self._run, self._load = run, RankLoad(ranks)
        self._over = threading.Event()
        self._num_lines = 0
        self._thread = threading.Thread(target=self._follow, name="sampler", daemon=True)

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    def end(self) -> None:
        """No more samples; a thread that hangs in the driver is left behind."""
        self._over.set()
        self._thread.join(JOIN_S)

    def _follow(self) -> None:
        with ExitStack() as stack, suppress(Exception):
            gpus = self._open(stack)
            while not self._over.wait(PERIOD_S):
                # What fails costs this sample.
                with suppress(Exception):
                    self._sample(gpus)

    def _sample(self, gpus: Sequence[GpuSampler]) -> None:
        sample = Sample(
            t=time.time(), gpus=tuple(gpu.sample() for gpu in gpus), ranks=self._load.now()
        )
        if (sample.gpus or sample.ranks) and not self._over.is_set():
            self._keep(sample)

    def _open(self, stack: ExitStack) -> list[GpuSampler]:
        """The GPUs of the run; none on a CPU, and none where the driver does not answer."""
        spec = self._run.read(self._run.spec, RunSpec)
        hardware = self._run.read(self._run.hardware, Hardware)
        if spec is None or hardware is None or spec.device != "cuda":
            return []
        own = tuple(gpu for gpu in hardware.gpus if gpu.index in spec.gpu_ids)
        handles = stack.enter_context(open_nvml(msgspec.structs.replace(hardware, gpus=own), []))
        return [GpuSampler(index, handle) for index, handle in sorted(handles.items())]

    def _keep(self, sample: Sample) -> None:
        # A full disk costs the sample.
        with suppress(OSError, RunDirError):
            with self._run.gpus.open("ab", buffering=0) as stream:
                stream.write(msgspec.json.encode(sample) + b"\n")
            self._num_lines += 1
            if self._num_lines >= MAX_LINES:
                kept = thinned(read_samples(self._run))
                lines = b"".join(msgspec.json.encode(one) + b"\n" for one in kept)
                write_atomic(self._run.gpus, lines)
                self._num_lines = len(kept)


def thinned(samples: Sequence[Sample]) -> list[Sample]:
    """The newest `RECENT_S` seconds whole, and before them about `NUM_OLD` samples at equal gaps.

    So the whole run is seen, however long it is. They are taken by their number and by the time
    between neighbours: the clock may have been set back meanwhile.
    """
    num_old = len(samples) - round(RECENT_S / PERIOD_S) - 1
    if num_old <= NUM_OLD:
        return list(samples)
    steps = (max(0.0, b.t - a.t) for a, b in itertools.pairwise(samples[:num_old]))
    clock = list(itertools.accumulate(steps, initial=0.0))
    gap_s, kept = clock[-1] / NUM_OLD, [0]
    for number, t in enumerate(clock):
        if t - clock[kept[-1]] >= gap_s > 0:
            kept.append(number)
    return [*(samples[number] for number in kept), *samples[num_old:]]
