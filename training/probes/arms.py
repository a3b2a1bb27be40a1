"""One arm of the controlled experiment: the real step, or the step with one thing taken away."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import torch

from ringside.cores import num_cores
from ringside.errors import SetupError
from ringside.measurements import Arm, ArmName, Experiment
from ringside.measurements.store import key_of_spec
from ringside.spec import RunSpec
from ringside.words import say
from training.observation import device_name, versions
from training.probes.bench import Bench
from training.probes.blocks import Block, settle, timed_blocks

WITHOUT_MEANING = {
    "single": "one process reduces nothing",
    "data_parallel": "nn.DataParallel adds the gradients up in one process, and cannot leave it",
    "model_parallel": "a pipeline reduces nothing; its stages wait for each other's activations",
    "fsdp": "FSDP2 then keeps whole gradients and its optimizer has nothing to do",
}  # fmt: skip


def measure_arm(
    spec: RunSpec, name: ArmName, *, seconds: float, reduces: bool, synthetic: bool
) -> Experiment:
    """An experiment with this one arm; the same on every rank.

    SetupError where a step without reduction would be another step than the strategy's, or where
    collectives were counted although none were to be made.
    """
    if not reduces:
        _refuse_without_meaning(spec)
    bench = Bench(spec, synthetic=synthetic)
    device = bench.engine.device
    settle(bench)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    bench.trainer.collectives.begin()
    blocks = timed_blocks(bench, seconds, None if reduces else alone(bench))
    if not reduces:
        _refuse_counted(bench.trainer.collectives.per_step, spec)
    arm = _arm(name, bench, blocks)
    bench.close()
    return Experiment(
        t=time.time(),
        key=key_of_spec(spec),
        spec=spec,
        device_name=device_name(device),
        arms=(arm,),
        versions=versions(),
        num_cores=num_cores(),
    )


def _refuse_without_meaning(spec: RunSpec) -> None:
    if spec.strategy in WITHOUT_MEANING:
        raise SetupError(
            f"The step cannot be measured without its reduction: {WITHOUT_MEANING[spec.strategy]}."
        )


def _refuse_counted(per_step: float | None, spec: RunSpec) -> None:
    # SyncBatchNorm's statistics are no reduction of gradients, and stay.
    if per_step and not spec.training.sync_batchnorm:
        raise SetupError(say("refused.counted", n=per_step))


def _arm(name: ArmName, bench: Bench, blocks: Sequence[Block]) -> Arm:
    """What the blocks measured; waits and memory are those of the rank that has most."""
    num_steps = sum(block.num_steps for block in blocks)
    waits = bench.control.gather([sum(block.sums.data_ms for block in blocks) / num_steps])
    return Arm(
        name=name,
        num_processes=bench.engine.world,
        step_ms=tuple(1000 * block.step_s for block in blocks),
        data_ms=float(waits.max()),
        memory_bytes=_peak_bytes(bench),
        collectives_per_step=bench.trainer.collectives.per_step,
        decoder=bench.decoder,
    )


def alone(bench: Bench) -> Callable[[], None]:
    """The bench's step without reduction: ranks go apart, which costs no time.

    DDP's `no_sync` around forward and backward keeps its reducer from copying, reducing and
    waiting; local SGD is left without its averagings.
    """
    engine = bench.engine
    if engine.averager is not None:
        engine.averager = None
        return bench.step

    def step() -> None:
        with engine.accelerator.no_sync(engine.model):
            bench.step()

    return step


def _peak_bytes(bench: Bench) -> int | None:
    """Of the device that needs most; after the settling, in which cuDNN takes more for trying."""
    device = bench.engine.device
    own = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else 0
    return int(bench.control.gather([own]).max()) or None
