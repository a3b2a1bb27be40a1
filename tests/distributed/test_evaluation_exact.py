"""The same checkpoint scores the same on one, two and three processes, and under FSDP."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from ringside import yaml_text
from ringside.events import Evaluated
from ringside.presets import accelerate_config

pytestmark = pytest.mark.distributed
SCRIPT = Path(__file__).parent / "evaluate_checkpoint.py"


@pytest.fixture
def evaluate(tmp_path, finished_run, make_request):
    """`evaluate("ddp", 2)`: the scores of the baseline's last checkpoint on two ranks."""
    checkpoint = Path(finished_run("single").path) / "checkpoints/last"

    def run(preset: str, num_processes: int) -> Evaluated:
        spec = make_request(preset)
        spec = msgspec.structs.replace(
            spec, num_processes=num_processes, global_batch=32 * num_processes
        )
        config, out = tmp_path / "accelerate.yaml", tmp_path / "out.json"
        config.write_text(yaml_text.dump(accelerate_config(spec.accelerate, num_processes)))
        (tmp_path / "spec.json").write_bytes(msgspec.json.encode(spec))
        launch = [sys.executable, "-m", "accelerate.commands.launch", "--config_file", str(config)]
        words = [str(SCRIPT), str(tmp_path / "spec.json"), str(checkpoint), str(out)]
        subprocess.run([*launch, *words], check=True, timeout=180, capture_output=True)
        return msgspec.json.decode(out.read_bytes(), type=Evaluated)

    return run


@pytest.mark.parametrize(("preset", "num_processes"), [("ddp", 2), ("ddp", 3), ("fsdp", 3)])
def test_scores_do_not_depend_on_the_number_of_processes(
    preset, num_processes, evaluate, finished_run
):
    """10 batches on 3 ranks are dealt 4, 3, 3: nothing is padded, nothing is lost."""
    one = finished_run("single").epochs[-1]
    many = evaluate(preset, num_processes)
    assert many.num_evaluated == one.num_evaluated == 320
    assert many.auc_macro == pytest.approx(one.auc_macro, abs=1e-9)
    assert many.f1_micro == pytest.approx(one.f1_micro, abs=1e-12)
    assert many.map_macro == pytest.approx(one.map_macro, abs=1e-9)
