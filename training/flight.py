"""What NCCL did last: torch's flight recorder, which keeps the newest collectives of a process.

Names of variables as in torch 2.11 and 2.14 (FlightRecorder.hpp, ProcessGroupNCCL.hpp); the older
name of the dump file is set beside the newer one.
"""

from __future__ import annotations

import json
import os
from typing import Any

import torch

from ringside.rundir import RunDir

NUM_COLLECTIVES = "2000"


def record_collectives() -> None:
    """Switch the recorder on; before the process group is made. What the user set is kept."""
    os.environ.setdefault("TORCH_FR_BUFFER_SIZE", NUM_COLLECTIVES)
    os.environ.setdefault("TORCH_NCCL_DUMP_ON_TIMEOUT", "1")


def dump_into(run: RunDir) -> None:
    """On a timeout NCCL's own watchdog leaves `ranks/flight_rankN`, for `torchfrtrace`."""
    for name in ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"):
        os.environ.setdefault(name, str(run.ranks / "flight_rank"))


def last_collective() -> str | None:
    """The newest collective that NCCL did not complete, else the newest; None without NCCL."""
    dump = getattr(getattr(torch._C, "_distributed_c10d", None), "_dump_nccl_trace_json", None)
    if dump is None or not torch.cuda.is_available():
        return None
    try:
        entries = json.loads(dump()).get("entries", [])
    except (RuntimeError, ValueError, TypeError):
        return None
    return name_last(entries)


def name_last(entries: list[dict[str, Any]]) -> str | None:
    """A phrase for the entry that counts, such as `nccl:all_reduce 57 of [25557032] (started)`."""
    open_entries = [entry for entry in entries if entry.get("state") != "completed"]
    if not entries:
        return None
    entry = open_entries[0] if open_entries else entries[-1]
    sizes = " and ".join(str(size) for size in entry.get("input_sizes", []))
    name, number = entry.get("profiling_name"), entry.get("collective_seq_id")
    return f"{name} {number} of {sizes or 'no tensor'} ({entry.get('state')})"
