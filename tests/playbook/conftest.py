"""A story of two runs with everything in it that must not leave the machine."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ringside.playbook.gathering import Draft, gather
from ringside.run import RunDir
from ringside.spec import DataSpec
from ringside.words import DEFAULT, speaking

BASE, RUN = "20260131-142507-calm-otter", "20260131-150000-swift-heron"
HOST, USER, ADDRESS = "gpu-node-17.corp.example", "aliceb", "10.20.30.44"
HOME = f"/home/{USER}"
TOKENS = (
    "hf_AbCdEfGhIjKlMnOpQrSt",
    "swordfish-9971",
    "ghp_0123456789abcdefghij0123456789abcdef",
    "only-in-a-variable-7",
)
MARKS = (HOST, "gpu-node-17", USER, HOME, ADDRESS, *TOKENS, "GPU-11111111-2222", "bob@corp.example")


def trace(rank: int) -> bytes:
    """A small trace of one rank, as Kineto writes it, with a stack, a host and a path in it."""
    events: list[dict[str, Any]] = [
        {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{n}", "pid": 7, "tid": 7,
         "ts": 1000.0 * n, "dur": 1000.0, "args": {"External id": n}} for n in range(1, 4)
    ]  # fmt: skip
    for n in range(1, 4):
        events.append({
            "ph": "X", "cat": "kernel", "name": "gemm", "pid": rank, "tid": 7,
            "ts": 1000.0 * n + 100, "dur": 500.0, "args": {
                "device": rank, "stream": 7, "correlation": n, "Call stack": f"{HOME}/x.py(3): f",
            },
        })  # fmt: skip
        events.append({
            "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7,
            "ts": 1000.0 * n + 50, "dur": 5.0, "args": {"correlation": n, "cbid": 211},
        })  # fmt: skip
    events.append({"ph": "M", "name": "process_name", "pid": 7, "tid": 0,
                   "args": {"name": f"{HOME}/venv/bin/python3", "host": HOST}})  # fmt: skip
    content = {
        "schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2},
        "host_name": HOST, "traceName": f"{HOME}/runs/trace.json", "traceEvents": events,
    }  # fmt: skip
    return gzip.compress(json.dumps(content).encode())


LOG = f"""\
{HOST}:895:895 [0] NCCL INFO NCCL version 2.28.9+cuda13.0
{HOST}:895:895 [0] NCCL INFO NET/Socket : Using [0]eth0:{ADDRESS}<0>
{HOST}:895:895 [0] NCCL INFO Using network Socket
{HOST}:895:895 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1
{HOST}:895:895 [0] NCCL INFO NCCL_API_TOKEN set by environment to {TOKENS[1]}
{HOST}:895:895 [0] NCCL INFO NCCL_TOPO_FILE set by environment to {HOME}/topo.xml
{USER} says {TOKENS[1]} to the console
"""


@pytest.fixture
def story(
    root: Path, make_spec: Any, write_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[RunDir]:
    """A baseline and a run on two devices, each with names, paths and tokens wherever they fit."""
    monkeypatch.setenv("HF_TOKEN", TOKENS[1])
    monkeypatch.setenv("USER", USER)
    data = DataSpec(source="folder", path=f"{HOME}/secret place/photos", image_size=32,
                    skip=(f"{USER}.jpg",))  # fmt: skip
    runs = []
    for preset, run_id, step_s in (("single", BASE, 0.1), ("ddp", RUN, 0.12)):
        spec = msgspec.structs.replace(
            make_spec(preset), data=data, weights=f"{HOME}/w/start.safetensors",
            environment={"NCCL_P2P_DISABLE": "1"},
        )  # fmt: skip
        run = write_run(spec, run_id, step_s=step_s)
        _plant(run)
        runs.append(run)
    return runs


def _plant(run: RunDir) -> None:
    lines = run.events.read_text().splitlines()
    started = json.loads(lines[0])
    started["data_title"] = f"photos of {USER}"
    started["observed"]["environment"] = {
        "NCCL_P2P_DISABLE": "1", "HF_TOKEN": TOKENS[0], "NCCL_API_TOKEN": TOKENS[3],
        "NCCL_TOPO_FILE": f"{HOME}/topo.xml", "USER": USER, "NCCL_SOCKET_IFNAME": "eth0",
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": f"{HOME}/runs/flight",
    }  # fmt: skip
    started["observed"]["versions"] = {"torch": "2.11.0"}
    lines[0] = json.dumps(started)
    lines.insert(1, json.dumps({
        "kind": "warned", "t": 1.0, "code": "data",
        "message": f"{HOME}/secret place/photos/a.jpg on {HOST} ({ADDRESS}): token={TOKENS[1]}, "
        f"ask bob@corp.example; https://{USER}:{TOKENS[2]}@hub.example/x",
    }))  # fmt: skip
    lines.insert(2, json.dumps({"kind": "of_tomorrow", "t": 1.0, "who": USER}))
    run.events.write_text("\n".join(lines) + "\n")
    ended = json.loads(run.exit.read_text())
    run.exit.write_text(json.dumps({**ended, "reason": f"Completed on {HOST} in {run.path}."}))
    run.owner.write_text(json.dumps({"host": HOST, "kind": "supervisor"}))
    run.hardware.write_text(json.dumps({
        "gpus": [{"index": 0, "name": "NVIDIA H200", "memory_total_bytes": 1,
                  "memory_used_bytes": 0, "uuid": "GPU-11111111-2222-3333-4444-555555555555"}],
        "num_cores": 8, "system": "Linux 6.1", "visible_devices": "GPU-11111111-2222",
    }))  # fmt: skip
    run.console.write_text(f"{USER}@{HOST}: {TOKENS[0]}")
    run.write(run.notes, {"format": 1, "note": f"call {USER} at {HOST}", "tags": [USER]})
    run.write(run.classes, {"format": 1, "classes": ["cat", "dog"]})
    for folder in (run.ranks, run.nccl, run.trace):
        folder.mkdir(exist_ok=True)
    error = {"rank": 0, "t": 1.0, "sentence": f"{HOME}/x.py failed", "traceback": f"at {HOME}"}
    run.write(run.ranks / "rank0.error.json", error)
    (run.nccl / f"{HOST}.895.log").write_text(LOG)
    for rank in range(2):
        (run.trace / f"rank{rank}.json.gz").write_bytes(trace(rank))


@pytest.fixture
def draft(root: Path, story: list[RunDir]) -> Draft:
    """The playbook of the story, without charts."""
    with speaking(DEFAULT):
        return gather(root, story, title="Over sockets")


@pytest.fixture
def packed(draft: Draft, tmp_path: Path) -> Path:
    """The same as a zip, with a README."""
    from ringside.playbook import store
    from ringside.playbook.readme import readme

    files = draft.files | {"README.md": readme(draft.playbook).encode()}
    return store.keep(draft.playbook, files, tmp_path / "over-sockets.zip")
