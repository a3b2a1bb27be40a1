"""Fails when a part of another library that Ringside leans on moves."""

from __future__ import annotations

import asyncio
import dataclasses

import gradio as gr
import msgspec
import pytest
import timm
import torch
from accelerate import Accelerator
from accelerate.commands.config.config_args import ClusterConfig
from accelerate.commands.launch import launch_command_parser
from gradio.state_holder import SessionState
from torch.nn.parallel import DistributedDataParallel

from app.page.skipping import ChangedOnly
from ringside.models import model_names
from ringside.presets import Library, accelerate_config
from ringside.spec import FsdpConfig
from training import fsdp

PRESETS = list(Library())


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_accelerate_knows_every_rendered_key(preset):
    """Top-level keys it would refuse; nested ones it would silently ignore."""
    config = accelerate_config(preset.file.accelerate, 2)
    fields = {field.name for field in dataclasses.fields(ClusterConfig)}
    assert set(config) <= fields
    destinations = {action.dest for action in launch_command_parser()._actions}
    assert set(config.get("fsdp_config", {})) <= destinations


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_accelerate_reads_the_committed_file(preset):
    from ringside.presets import built_in_folder

    config = ClusterConfig.from_yaml_file(str(built_in_folder() / f"{preset.name}.yaml"))
    assert config.distributed_type == preset.file.accelerate.distributed_type
    assert config.mixed_precision == preset.file.accelerate.mixed_precision
    assert config.num_processes == (1 if config.distributed_type == "NO" else 2)


def test_the_launcher_can_split_logs_by_rank():
    destinations = {action.dest for action in launch_command_parser()._actions}
    assert {"log_dir", "tee", "config_file", "num_processes", "module"} <= destinations


@pytest.mark.parametrize(
    "name",
    [
        "prepare",
        "backward",
        "clip_grad_norm_",
        "no_sync",
        "num_processes",
        "process_index",
        "device",
    ],
)
def test_the_accelerator_has_what_the_engine_uses(name):
    assert hasattr(Accelerator, name)


def test_ddp_tells_its_buckets_and_hooks():
    assert hasattr(DistributedDataParallel, "_get_ddp_logging_data")
    assert "_comm_hooks" in DistributedDataParallel.register_comm_hook.__code__.co_names


def test_the_fsdp_plugin_takes_our_precision_policy():
    plugin = fsdp.make_plugin(FsdpConfig(), "bf16")
    policy = plugin.mixed_precision_policy
    assert (plugin.fsdp_version, policy.param_dtype, policy.reduce_dtype) == (
        2, None, torch.bfloat16,
    )  # fmt: skip
    assert not plugin.cpu_ram_efficient_loading


def test_timms_names_read_as_text_are_timms_names():
    listed = set(timm.list_models())
    assert listed <= model_names()
    assert len(model_names() - listed) < 0.1 * len(listed)


def test_msgspec_unions_decode_by_kind():
    from ringside.events import KINDS

    assert len({kind.__struct_config__.tag for kind in KINDS}) == len(KINDS)
    assert all(issubclass(kind, msgspec.Struct) for kind in KINDS)


async def _skipped_by(kind: type[gr.Blocks]) -> tuple[object, bool]:
    """What `kind` answers for a skipped HTML block, and whether it made the block anew for that."""
    with kind() as page:
        asked, skipped = gr.Textbox(), gr.HTML(words={"none": "nothing"})
        asked.change(dict, None, [asked, skipped])
    (event,) = page.fns.values()
    session = SessionState(page)
    answer = await page.postprocess_data(event, {asked: "new"}, session)
    assert answer[0] == "new"
    return answer[1], session[skipped._id] is not skipped


def test_gradio_still_makes_anew_what_is_skipped() -> None:
    """Once neither holds for Gradio's own, `app/page/skipping.py` can go."""
    nothing = {"__type__": "update"}
    assert asyncio.run(_skipped_by(gr.Blocks)) == ({**nothing, "props": nothing}, True)
    assert asyncio.run(_skipped_by(ChangedOnly)) == (nothing, False)
