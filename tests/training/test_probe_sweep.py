"""Which repeats of a collective count, and what a sweep holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import distributed

from training.control import Control
from training.probes import sweep
from training.probes.sweep import came_late, control_series, measure_sweep, point_of


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Control]:
    """The side group of a world of one."""
    distributed.init_process_group(
        "gloo", store=distributed.FileStore(str(tmp_path / "store"), 1), rank=0, world_size=1
    )
    control = Control(0, 1)
    control.group = distributed.new_group(backend="gloo")
    yield control
    distributed.destroy_process_group()


def test_a_repeat_is_late_when_one_rank_was_in_it_much_longer() -> None:
    """One rank waited 270 us for the other, which was through in 32; and 12 ms of 49 is little."""
    times = np.array([[32.0, 302.0, 100.0, 49_000.0], [33.0, 32.0, 140.0, 39_500.0]])
    assert came_late(times, "cuda").tolist() == [False, True, False, False]
    assert came_late(times, "cpu").tolist() == [False, False, False, False]
    assert came_late(np.array([[100.0], [1300.0]]), "cpu").tolist() == [True]


def test_late_repeats_are_counted_and_left_out() -> None:
    times = [10.0, 11.0, 12.0, 13.0, 14.0, 500.0, 600.0]
    point = point_of(1024, times, [us > 100 for us in times])
    assert (point.median_us, point.p25_us, point.p75_us) == (12.0, 11.0, 13.0)
    assert point.p90_us == pytest.approx(13.6)
    assert (point.repeats, point.num_late, point.num_bytes) == (5, 2, 1024)


def test_where_nearly_all_were_late_all_count() -> None:
    point = point_of(1024, [10.0, 20.0, 30.0, 40.0, 50.0], [True] * 3 + [False] * 2)
    assert (point.median_us, point.repeats, point.num_late) == (30.0, 5, 3)


def test_a_cpu_has_the_collectives_of_ddp_and_fsdp_in_both_precisions(alone: Control) -> None:
    found = measure_sweep(alone, torch.device("cpu"), seconds=0.1, wanted=[5000])
    assert [(one.operation, one.dtype, one.backend) for one in found] == [
        ("all_reduce", "fp32", "gloo"), ("all_reduce", "bf16", "gloo"),
        ("reduce_scatter", "fp32", "gloo"), ("all_gather", "fp32", "gloo"),
        ("reduce_scatter", "bf16", "gloo"), ("all_gather", "bf16", "gloo"),
    ]  # fmt: skip
    for series in found:
        assert series.points[0].num_bytes == 5000
        for point in series.points:
            assert point.p25_us is not None
            assert point.p75_us is not None
            assert 0 < point.p25_us <= point.median_us <= point.p75_us <= point.p90_us


def test_the_side_group_is_timed_on_itself(alone: Control, monkeypatch: pytest.MonkeyPatch) -> None:
    groups: list[Any] = []
    all_reduce = distributed.all_reduce

    def watched(tensor: torch.Tensor, *, group: Any = None) -> Any:
        groups.append(group)
        assert tensor.device.type == "cpu"
        return all_reduce(tensor, group=group)

    monkeypatch.setattr(sweep.distributed, "all_reduce", watched)
    found = control_series(alone, 0.05)
    assert found.backend == "gloo"
    assert [one.num_bytes for one in found.points] == [2**10, 2**16, 2**20]
    assert set(groups) == {alone.group}
