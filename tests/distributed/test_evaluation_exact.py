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
    """`evaluate(["ddp"], 2)`: for each preset, the baseline's last checkpoint on two ranks."""
    checkpoint = Path(finished_run("single").path) / "checkpoints/last"

    def run(presets: list[str], num_processes: int) -> list[Evaluated]:
        sizes = {"num_processes": num_processes, "global_batch": 32 * num_processes}
        specs = [msgspec.structs.replace(make_request(preset), **sizes) for preset in presets]
        config, out = tmp_path / "accelerate.yaml", tmp_path / "out.json"
        config.write_text(yaml_text.dump(accelerate_config(specs[0].accelerate, num_processes)))
        (tmp_path / "specs.json").write_bytes(msgspec.json.encode(specs))
        launch = [sys.executable, "-m", "accelerate.commands.launch", "--config_file", str(config)]
        words = [str(SCRIPT), str(tmp_path / "specs.json"), str(checkpoint), str(out)]
        subprocess.run([*launch, *words], check=True, timeout=180, capture_output=True)
        return msgspec.json.decode(out.read_bytes(), type=list[Evaluated])

    return run


@pytest.mark.parametrize("num_processes", [2, 3])
def test_scores_do_not_depend_on_the_number_of_processes(num_processes, evaluate, finished_run):
    """10 batches on 3 ranks are dealt 4, 3, 3: nothing is padded, nothing is lost."""
    one = finished_run("single").epochs[-1]
    found = evaluate(["ddp", "fsdp"], num_processes)
    assert len(found) == 2
    for many in found:
        assert many.num_evaluated == one.num_evaluated == 320
        assert many.auc_macro == pytest.approx(one.auc_macro, abs=1e-9)
        assert many.f1_micro == pytest.approx(one.f1_micro, abs=1e-12)
        assert many.map_macro == pytest.approx(one.map_macro, abs=1e-9)
