"""Which variables of a rank are recorded: those that shape a run, and no others."""

from __future__ import annotations

import pytest

from ringside.environment_lint import lint
from training.observation import recorded_environment


@pytest.mark.parametrize(
    "name",
    [
        "CUDA_LAUNCH_BLOCKING", "TORCH_DISTRIBUTED_DEBUG", "TORCHDYNAMO_DISABLE",
        "PYTORCH_NO_CUDA_MEMORY_CACHING", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "OMP_PROC_BIND",
    ],
)  # fmt: skip
def test_what_the_table_of_variables_knows_is_recorded(monkeypatch, name):
    """Else `ringside doctor RUN` could not tell of it."""
    monkeypatch.setenv(name, "1")
    assert recorded_environment()[name] == "1"
    assert name in {one.name for one in lint(recorded_environment())}


@pytest.mark.parametrize(
    "name",
    ["HF_TOKEN", "WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY", "TORCHELASTIC_RUN_ID", "MASTER_ADDR",
     "RANK", "RINGSIDE_RUN", "PYTHONUNBUFFERED", "CUDA_PASSWORD"],
)  # fmt: skip
def test_secrets_and_what_launchers_set_are_not(monkeypatch, name):
    monkeypatch.setenv(name, "x")
    assert name not in recorded_environment()
