"""Traces made by hand: each says exactly what a GPU and a host did, in microseconds."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


class Sketch:
    """Collects events of one rank: `kernel` launches and runs GPU work, `host` is a host event."""

    def __init__(self, rank: int = 0, world_size: int = 2, start: float = 1_000_000) -> None:
        self.rank, self.world_size, self.start = rank, world_size, start
        self.events: list[dict[str, Any]] = []
        self.correlation = 0

    def host(
        self, name: str, at: float, duration: float, category: str = "cpu_op", *, thread: int = 7,
        **args: Any,
    ) -> None:  # fmt: skip
        event = {"ph": "X", "cat": category, "name": name, "pid": 7, "tid": thread}
        self.events.append(event | {"ts": self.start + at, "dur": duration, "args": args})

    def step(self, number: int, at: float, duration: float) -> None:
        self.host(f"ProfilerStep#{number}", at, duration, "user_annotation")

    def kernel(
        self, at: float, duration: float, *, name: str = "gemm", launch: float | None = None,
        category: str = "kernel", stream: int = 7, device: int = 0, **args: Any,
    ) -> None:  # fmt: skip
        """Work on the GPU; `launch=None`: launched as it starts, -1: no record of its launch."""
        self.correlation += 1
        if launch != -1:
            call = {"correlation": self.correlation}
            self.host(
                "cudaLaunchKernel", at if launch is None else launch, 5, "cuda_runtime", **call
            )
        args |= {"device": device, "stream": stream, "correlation": self.correlation}
        event = {"ph": "X", "cat": category, "name": name, "pid": device, "tid": stream}
        self.events.append(event | {"ts": self.start + at, "dur": duration, "args": args})

    def collective(
        self, at: float, duration: float, elements: int = 1_000_000, **more: Any
    ) -> None:
        """An all-reduce of float32 on stream 17."""
        args = {
            "Collective name": "allreduce", "In msg nelems": elements, "dtype": "Float",
            "Group size": self.world_size, "Process Group Name": "0",
        }  # fmt: skip
        self.kernel(at, duration, name="ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                    stream=17, **(args | more))  # fmt: skip

    def content(self) -> dict[str, Any]:
        info = {"backend": "nccl", "rank": self.rank, "world_size": self.world_size}
        return {"schemaVersion": 1, "distributedInfo": info, "traceEvents": self.events}


@pytest.fixture
def sketch() -> type[Sketch]:
    """`sketch(rank=1)` begins a trace."""
    return Sketch


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a sketch or any JSON value as a trace file: `write(sketch, "rank0.json.gz")`."""

    def to_file(content: Any, name: str = "rank0.json") -> Path:
        path = tmp_path / name
        value = content.content() if isinstance(content, Sketch) else content
        data = json.dumps(value).encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return to_file
