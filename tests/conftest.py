"""What every test shares: a clean environment, folders of its own, and runs made by hand."""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from ringside.checkpoints import About
from ringside.run import RunDir, RunSpec
from ringside.spec import AccelerateSettings, DataSpec, FsdpConfig, TrainingSettings

# NCCL_NVLS_ENABLE stays: where a host's GPUs are shared, multicast may be off for a reason.
FOREIGN = re.compile(
    r"(ACCELERATE|FSDP|NCCL(?!_NVLS_ENABLE$)|RINGSIDE|MASTER)_.*"
    r"|RANK|WORLD_SIZE|LOCAL_RANK|CUDA_VISIBLE_DEVICES"
)

# What pages copy for their browsers would lie in the cache of whoever runs the tests; Gradio reads
# the variable when it is imported.
_COPIES = tempfile.mkdtemp(prefix="ringside-tests-")
os.environ["GRADIO_TEMP_DIR"] = _COPIES
atexit.register(shutil.rmtree, _COPIES, ignore_errors=True)

# Repeatable, and without a limit in milliseconds: the cores may be busy.
settings.register_profile("ringside", deadline=None, derandomize=True)
settings.load_profile("ringside")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that start real runs come first: small ones then fill both workers to the end."""
    items.sort(key=lambda item: not _starts_real_runs(item))


def _starts_real_runs(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) for name in ("distributed", "browser"))


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test sees the user's runs, presets or launcher variables, and none writes there."""
    for name in [name for name in os.environ if FOREIGN.fullmatch(name)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("RINGSIDE_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def ringside(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run the command in this process: `ringside("list", "--json")` -> (exit code, out, err)."""
    from app import cli

    def call(*argv: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            cli.main(list(argv))
        out, err = capsys.readouterr()
        return left.value.code, out, err

    return call


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder that `RINGSIDE_RUNS` names."""
    return tmp_path / "runs"


@pytest.fixture(scope="session")
def make_spec() -> Callable[..., RunSpec]:
    """A spec by strategy: `make_spec("ddp", num_processes=4, micro_batch=64, model="resnet18")`."""

    def make(
        preset: str = "ddp", *, num_processes: int | None = None, micro_batch: int = 64,
        precision: str = "no", training: dict[str, Any] | None = None, image_size: int = 32,
        data: str = "emoji", **fields: Any,
    ) -> RunSpec:  # fmt: skip
        kind = {"single": "NO", "ddp": "MULTI_GPU", "fsdp": "FSDP"}[preset.partition("_")[0]]
        count = num_processes or (1 if kind == "NO" else 2)
        settings = TrainingSettings(**(training or {}))
        return RunSpec(
            preset=preset,
            accelerate=AccelerateSettings(
                distributed_type=kind,
                mixed_precision=precision,
                num_processes=count,
                fsdp_config=FsdpConfig() if kind == "FSDP" else None,
            ),
            training=settings,
            data=DataSpec(source=data, image_size=image_size),
            num_processes=count,
            global_batch=micro_batch * count * settings.accumulation_steps,
            **{"device": "cpu", "epochs": 3, **fields},
        )

    return make


@pytest.fixture
def leave_checkpoint() -> Callable[..., Path]:
    """What a resume looks at first: `leave_checkpoint(run, epoch=3)`, without any weights."""

    def leave(run: RunDir, /, **fields: Any) -> Path:
        folder = run.checkpoints / "last"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "training.pt").touch()
        about = About(
            model="resnet50", classes=("cat",), task="single_label", image_size=32, **fields
        )
        run.write(folder / "about.json", about)
        return folder

    return leave


@pytest.fixture
def write_run(root: Path) -> Callable[..., RunDir]:
    """A finished run as its files would be: epochs of `num_steps` steps that take `step_s` each.

    The first epoch takes ten times as long: whoever counts the warm-up gets other numbers.
    """

    def write(
        spec: RunSpec, run_id: str, *, step_s: float = 0.1, num_steps: int = 100, epochs: int = 3,
        state: str | None = "completed", device_name: str = "cpu", fingerprint: str = "abc",
        auc_macro: float | None = 0.8, decoder: str | None = None,
    ) -> RunDir:  # fmt: skip
        run = RunDir(root / run_id)
        run.path.mkdir(parents=True)
        run.write(run.spec, spec)
        images = num_steps * spec.global_batch
        lines: list[dict[str, Any]] = [
            {
                "kind": "run_started", "t": 1000.0, "num_train": images, "num_val": 50,
                "num_classes": 10, "task": "multi_label", "data_fingerprint": fingerprint,
                "data_title": "Emoji", "steps_per_epoch": num_steps, "learning_rate": 0.001,
                "decoder": decoder,
                "observed": {
                    "num_processes": spec.num_processes, "strategy": spec.strategy,
                    "mixed_precision": spec.accelerate.mixed_precision, "backend": "gloo",
                    "device": spec.device, "device_name": device_name, "num_parameters": 10,
                    "channels_last": spec.channels_last, "threads": spec.threads_per_device,
                },
            }
        ]  # fmt: skip
        for epoch in range(1, epochs + 1):
            seconds = num_steps * step_s * (10 if epoch == 1 else 1)
            lines += [
                {
                    "kind": "epoch_trained", "t": 1000.0 + epoch, "epoch": epoch,
                    "epoch_time_s": seconds, "epoch_time_s_min": seconds, "num_samples": images,
                    "samples_per_s": images / seconds, "num_optimizer_steps": num_steps,
                    "train_loss": 1 / epoch,
                },
                {
                    "kind": "evaluated", "t": 1000.5 + epoch, "epoch": epoch, "num_evaluated": 50,
                    "evaluation_time_s": 1.0, "val_loss": 0.5, "auc_macro": auc_macro,
                    "num_auc_classes": 10, "num_classes": 10, "f1_macro": 0.4, "f1_micro": 0.5,
                    "map_macro": 0.3,
                },
            ]  # fmt: skip
        if state == "completed":
            total_s = sum(line.get("epoch_time_s", 0.0) for line in lines)
            finished = {"kind": "run_finished", "t": 2000.0, "reason": "completed"}
            lines.append({**finished, "total_time_s": total_s})
        run.events.write_text("".join(json.dumps(line) + "\n" for line in lines))
        if state is not None:
            record = {"state": state, "reason": f"The run {state}.", "started": 1000.0}
            run.exit.write_text(json.dumps({**record, "finished": 2000.0}))
        return run

    return write
