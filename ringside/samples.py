"""`gpus.jsonl`: how busy the devices of a run were, a line every two seconds.

On GPUs each line has what NVML says of the run's own, on any machine the processor time and memory
of each rank. Older lines are thinned out by the writer (`ringside.launch.sampling`), so that the
file of a long run stays small; a reader then begins anew.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from ringside.rundir import RunDir
from ringside.words import translated

MAX_POINTS = 300


class GpuSample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One GPU at one moment, by its physical index; None is what the driver does not tell.

    PCIe and NVLink are bytes per second received and sent, NVLink over all links of the GPU.
    `throttle_reasons` are the words of `ringside.machine.gpus.REASONS`, without "idle".
    """

    index: int
    utilisation_ratio: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    power_w: float | None = None
    sm_clock_mhz: int | None = None
    temperature_c: int | None = None
    pcie_rx_bytes_per_s: float | None = None
    pcie_tx_bytes_per_s: float | None = None
    nvlink_rx_bytes_per_s: float | None = None
    nvlink_tx_bytes_per_s: float | None = None
    throttle_reasons: tuple[str, ...] = ()


class RankSample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The processes of one rank, its loader workers among them.

    `cpu_cores` is how many cores they kept busy since the sample before (1.5: one and a half).
    `memory_bytes` is their proportional set size: a page that several share counts once.
    """

    rank: int
    cpu_cores: float | None = None
    memory_bytes: int | None = None
    num_processes: int = 1


class Sample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line: `t` in seconds since 1970, the run's GPUs by index, its ranks by number."""

    t: float
    gpus: tuple[GpuSample, ...] = ()
    ranks: tuple[RankSample, ...] = ()


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """One curve: `name` is a field of the sample, `of` is "gpu" or "rank", `index` which one.

    `points` are (seconds since 1970, value), at most `MAX_POINTS`; `p50` (by time) and `max` are of
    all samples that are kept, `limit` is the memory of the GPU where that is what the curve shows.
    """

    of: str
    index: int
    name: str
    points: tuple[tuple[float, float], ...]
    last: float
    p50: float
    max: float
    limit: float | None = None


GPU_FIELDS = tuple(
    name for name in GpuSample.__struct_fields__
    if name not in ("index", "memory_total_bytes", "throttle_reasons")
)  # fmt: skip
RANK_FIELDS = ("cpu_cores", "memory_bytes")


class SampleReader:
    """Follows the samples of a run; `poll` reads what is new and says whether there was any."""

    def __init__(self, run: RunDir) -> None:
        self.samples: list[Sample] = []
        self._path: Path = run.gpus
        self._offset, self._newest = 0, b""

    def poll(self) -> bool:
        """Bring `samples` up to date; a file that was thinned out is read anew."""
        try:
            with self._path.open("rb") as stream:
                stream.seek(self._offset - len(self._newest))
                data = stream.read()
                # The number of the file tells nothing: the file system uses it again.
                if not data.startswith(self._newest):
                    self._offset, self._newest, self.samples = 0, b"", []
                    stream.seek(0)
                    data = stream.read()
        except OSError:
            return False
        data = data[len(self._newest) :]
        end = data.rfind(b"\n") + 1
        if end:
            self._offset += end
            self._newest = data[data.rfind(b"\n", 0, end - 1) + 1 : end]
        self.samples.extend(decode_samples(data[:end]))
        return end > 0

    def series(self, max_points: int = MAX_POINTS) -> tuple[Series, ...]:
        """All curves, GPUs first, each by index and in the order of the fields."""
        return series_of(self.samples, max_points)


def read_samples(run: RunDir) -> list[Sample]:
    """All samples that are kept, oldest first; none where nothing was sampled."""
    reader = SampleReader(run)
    reader.poll()
    return reader.samples


def decode_samples(data: bytes) -> Iterator[Sample]:
    """The samples in whole lines; one that cannot be read is passed over."""
    decoder = msgspec.json.Decoder(Sample)
    for line in data.splitlines():
        try:
            yield decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue


@dataclass
class _Column:
    """The values of one curve with their times, and the memory of its GPU."""

    of: str
    index: int
    name: str
    limit: float | None
    times: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)


def series_of(samples: Sequence[Sample], max_points: int = MAX_POINTS) -> tuple[Series, ...]:
    """The curves of samples; what no sample has is no curve."""
    return tuple(_series(column, max_points) for column in _columns(samples))


def reason_told(reason: str) -> str:
    """A word for what holds clocks down, in the language that is spoken."""
    return translated(f"throttle.{reason}", reason.replace("_", " "))


def throttled(samples: Sequence[Sample]) -> dict[int, dict[str, float]]:
    """By GPU the share (0 to 1) of the time in which each reason held its clocks down."""
    weights = _weights([sample.t for sample in samples])
    held: dict[int, dict[str, float]] = {}
    for sample, weight in zip(samples, weights, strict=True):
        for gpu in sample.gpus:
            of_gpu = held.setdefault(gpu.index, {})
            for reason in gpu.throttle_reasons:
                of_gpu[reason] = of_gpu.get(reason, 0.0) + weight
    whole = sum(weights)
    return {
        index: {reason: time / whole for reason, time in of_gpu.items()}
        for index, of_gpu in held.items()
    }


def _columns(samples: Sequence[Sample]) -> list[_Column]:
    found: dict[tuple[str, int, str], _Column] = {}
    order = {name: place for place, name in enumerate((*GPU_FIELDS, *RANK_FIELDS))}
    for sample in samples:
        for of, index, name, value, limit in _values(sample):
            key = (of, index, name)
            column = found.get(key)
            if column is None:
                column = found[key] = _Column(of, index, name, limit)
            column.times.append(sample.t)
            column.values.append(value)
    return sorted(found.values(), key=lambda one: (one.of, one.index, order[one.name]))


def _values(sample: Sample) -> Iterator[tuple[str, int, str, float, float | None]]:
    rows: Iterable[tuple[str, int, Any, tuple[str, ...], float | None]] = (
        *(("gpu", gpu.index, gpu, GPU_FIELDS, gpu.memory_total_bytes) for gpu in sample.gpus),
        *(("rank", rank.rank, rank, RANK_FIELDS, None) for rank in sample.ranks),
    )
    for of, index, row, names, total in rows:
        for name in names:
            value = getattr(row, name)
            if value is not None:
                yield of, index, name, float(value), total if name.startswith("memory") else None


def _series(column: _Column, max_points: int) -> Series:
    points = list(zip(column.times, column.values, strict=True))
    return Series(
        of=column.of, index=column.index, name=column.name,
        points=tuple(thin_points(points, max_points)), last=column.values[-1],
        p50=_median_by_time(column), max=max(column.values), limit=column.limit,
    )  # fmt: skip


def thin_points(points: Sequence[tuple[float, float]], limit: int) -> list[tuple[float, float]]:
    """At most `limit` points: of each stretch the lowest and the highest value, in their order.

    The newest point is always there.
    """
    if len(points) <= limit or limit < 4:
        return list(points[-limit:] if limit < 4 else points)
    num = (limit - 1) // 2
    kept = []
    for part in range(num):
        stretch = points[part * (len(points) - 1) // num : (part + 1) * (len(points) - 1) // num]
        ends = {min(stretch, key=lambda p: p[1]), max(stretch, key=lambda p: p[1])}
        kept.extend(sorted(ends))
    return [*kept, points[-1]]


def _median_by_time(column: _Column) -> float:
    """The value that the curve was below for half of the time."""
    weights = _weights(column.times)
    weighted = sorted(zip(column.values, weights, strict=True))
    half, so_far = sum(weights) / 2, 0.0
    for value, gap in weighted:
        so_far += gap
        if so_far >= half:
            return value
    return weighted[-1][0]


def _weights(times: Sequence[float]) -> list[float]:
    """How long each sample stands for: up to the next one, for those of long ago lie further apart.

    A clock that was set back is no time.
    """
    gaps = [max(0.0, after - before) for before, after in itertools.pairwise(times)]
    return [*gaps, gaps[-1]] if any(gaps) else [1.0] * len(times)
