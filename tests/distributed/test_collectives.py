"""The collectives of a step as the process group counts them, against DDP's own bucket layout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from ringside import yaml_text
from ringside.presets import accelerate_config

pytestmark = pytest.mark.distributed
SCRIPT = Path(__file__).parent / "count_collectives.py"


@pytest.fixture(scope="module")
def count(tmp_path_factory):
    """What each spec of a list comes to, in one launch of two processes."""

    def run(specs):
        folder = tmp_path_factory.mktemp("count")
        config, out = folder / "accelerate.yaml", folder / "out.json"
        config.write_text(yaml_text.dump(accelerate_config(specs[0].accelerate, 2)))
        (folder / "specs.json").write_bytes(msgspec.json.encode(specs))
        launch = [sys.executable, "-m", "accelerate.commands.launch", "--config_file", str(config)]
        words = [str(SCRIPT), str(folder / "specs.json"), str(out)]
        subprocess.run([*launch, *words], check=True, timeout=240, capture_output=True)
        return msgspec.json.decode(out.read_bytes())

    return run


def test_a_step_reduces_each_bucket_once_however_many_micro_steps(count, make_spec):
    """ResNet-50 with 100 classes has five buckets; a smaller model has as many as DDP says.

    Saves between the steps are not counted, and averaging weights is one message in two steps.
    """
    many = {"accumulation_steps": 4}
    specs = [
        make_spec("ddp", micro_batch=4, model="resnet50", epochs=1),
        make_spec("ddp", micro_batch=2, model="resnet50", epochs=1, training=many),
        make_spec("ddp", micro_batch=4, model="test_resnet", epochs=1,
                  training={"save_every_steps": 1}),
        make_spec("ddp", micro_batch=4, model="test_resnet", epochs=1,
                  training={"local_sgd_steps": 2}),
    ]  # fmt: skip
    resnet, accumulated, small, local = count(specs)
    assert resnet == accumulated == [5.0, 5]
    assert small[0] == small[1] >= 1
    assert local == [0.5, 0]


def test_one_process_has_none(finished_run):
    assert [row.collectives_per_step for row in finished_run("single").epochs] == [None, None]
