"""What one device does in a step: the input of an estimate. One process, made-up images."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import distributed, nn
from torch.distributed import HashStore  # type: ignore[attr-defined]
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parallel import DistributedDataParallel

from ringside.cores import num_cores
from ringside.measurements import Description, Gradient, StepProfile
from ringside.measurements.derived import at_batch
from ringside.measurements.store import key_of_model
from ringside.spec import RunSpec
from training.observation import device_name, versions
from training.probes.bench import Bench
from training.probes.blocks import settle, timed_blocks
from training.probes.device_clock import elapsed_us, hold_back, mark

Part = TypeVar("Part")

REPEATS = 10
MIN_REPEATS = 3
REPEATED_S = 2.0


def measure_description(spec: RunSpec, *, seconds: float) -> Description:
    """The step at the request's own per-device batch and at half of it; `seconds` for each.

    Half of two or three images would be one, on which BatchNorm may not train: there it is twice.
    """
    own = spec.micro_batch
    batches = sorted((own, own // 2 if own >= 4 else 2 * own))
    problems: dict[str, None] = {}
    profiles = []
    facts: dict[str, Any] = {}
    for batch in batches:
        torch._dynamo.reset()  # Else a second size is compiled for any size.
        bench = Bench(at_batch(spec, batch), synthetic=True)
        profiles.append(_profile(bench, batch, seconds, problems))
        facts = _facts(bench) | _bytes(bench)
        bench.close()
    return Description(
        t=time.time(), key=key_of_model(spec), profiles=tuple(profiles), problems=tuple(problems),
        **facts,
    )  # fmt: skip


def _facts(bench: Bench) -> dict[str, Any]:
    spec = bench.spec
    return {
        "model": spec.model,
        "num_classes": bench.num_classes,
        "image_size": spec.data.image_size,
        "precision": spec.accelerate.mixed_precision,
        "compile": spec.training.compile,
        "compile_mode": spec.training.compile_mode,
        "channels_last": spec.channels_last,
        "optimizer": spec.training.optimizer,
        "device_name": device_name(bench.engine.device),
        "num_parameters": bench.engine.num_parameters,
        "versions": versions(),
        "num_cores": num_cores(),
    }


def _bytes(bench: Bench) -> dict[str, int]:
    """Of what stays on the device between steps."""
    plain, optimizer = bench.engine.plain, bench.engine.optimizer
    states = getattr(optimizer, "optimizer", optimizer).state.values()
    kept = [one for state in states for one in state.values() if isinstance(one, torch.Tensor)]
    return {
        "parameter_bytes": sum(p.nbytes for p in plain.parameters()),
        "buffer_bytes": sum(b.nbytes for b in plain.buffers()),
        "optimizer_state_bytes": sum(one.nbytes for one in kept),
        "running_bytes": sum(_running_bytes(layer) for layer in plain.modules()),
    }


def _running_bytes(layer: nn.Module) -> int:
    """Of a batch-norm's statistics; a layer of another kind has none."""
    if not isinstance(layer, _BatchNorm):
        return 0
    return sum(buffer.nbytes for buffer in layer.buffers(recurse=False))


def _profile(bench: Bench, batch: int, seconds: float, problems: dict[str, None]) -> StepProfile:
    device = bench.engine.device
    settle(bench)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    blocks = timed_blocks(bench, seconds)
    peak = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None
    parts_us = {
        part: 1000
        * statistics.median(getattr(b.sums, f"{part}_ms") / b.sums.num_steps for b in blocks)
        for part in ("forward", "backward", "optimizer")
    }

    def attempt(what: str, measure: Callable[[], Part], otherwise: Part) -> Part:
        try:
            return measure()
        except (RuntimeError, AttributeError, ValueError) as error:
            first = (str(error).splitlines() or [type(error).__name__])[0]
            problems[f"{what} could not be measured: {first}"] = None
            return otherwise

    host_us = _host_us(bench) if device.type == "cuda" else None
    return StepProfile(
        batch=batch,
        step_us=tuple(1e6 * block.step_s for block in blocks),
        forward_us=parts_us["forward"],
        backward_us=parts_us["backward"],
        optimizer_us=parts_us["optimizer"],
        host_us=host_us,
        device_us=attempt("The device's own time", lambda: _device_us(bench, host_us), None),
        gradients=attempt(
            "When gradients are ready", lambda: _gradients(bench, parts_us["backward"]), ()
        ),
        peak_bytes=peak,
        wrapped_step_us=attempt("The step inside DDP", lambda: _wrapped_us(bench, seconds), ()),
    )


def _host_us(bench: Bench) -> float:
    """How long the host needs for a step when the device has nothing queued."""
    found = []
    for _ in range(REPEATS):
        bench.engine.synchronize()
        begin = time.perf_counter()
        bench.step()
        found.append(1e6 * (time.perf_counter() - begin))
    bench.engine.synchronize()
    return statistics.median(found)


def _device_us(bench: Bench, host_us: float | None) -> float | None:
    """The device's time for a step that was queued while it was held back."""
    if host_us is None:
        return None
    device, found = bench.engine.device, []
    for _ in range(REPEATS):
        bench.engine.synchronize()
        hold_back(1.5e-6 * host_us)
        begin = mark(device)
        bench.step()
        found.append((begin, mark(device)))
    bench.engine.synchronize()
    return statistics.median(elapsed_us(*pair) for pair in found)


def _gradients(bench: Bench, backward_us: float) -> tuple[Gradient, ...]:
    """When each parameter's gradient is there, in separate steps with a hook on each of them.

    Hooks and events make a backward pass longer, so times are scaled until the last one ends with
    the pass as it was without them. Under compilation hooks run where the compiled backward ends.
    """
    device, plain = bench.engine.device, bench.engine.plain
    named = {name: p for name, p in plain.named_parameters() if p.requires_grad}
    ready: dict[str, list[Any]] = {name: [] for name in named}

    def keep(name: str) -> Callable[[torch.Tensor], None]:
        return lambda _parameter: ready[name].append(mark(device))

    handles = [p.register_post_accumulate_grad_hook(keep(name)) for name, p in named.items()]
    try:
        _backward(bench)  # A compiled model may look at its hooks once more.
        for marks in ready.values():
            marks.clear()
        repeats = max(MIN_REPEATS, min(REPEATS, int(REPEATED_S / (1e-6 * backward_us))))
        begins = [_backward(bench) for _ in range(repeats)]
        bench.engine.synchronize()
    finally:
        for handle in handles:
            handle.remove()
    at_us = {
        name: statistics.median(map(elapsed_us, begins, marks))
        for name, marks in ready.items()
        if len(marks) == repeats
    }
    scale = backward_us / max(at_us.values())
    found = (
        Gradient(name=name, num_elements=named[name].numel(), ready_us=scale * us)
        for name, us in at_us.items()
    )
    return tuple(sorted(found, key=lambda gradient: gradient.ready_us))


def _backward(bench: Bench) -> Any:
    """A step without its optimizer; the mark where its backward pass begins."""
    engine = bench.engine
    images, targets, _ = next(bench.stream)
    with engine.autocast():
        logits = engine.model(images)
    loss = engine.loss(logits, targets)
    begin = mark(engine.device)
    engine.accelerator.backward(loss)
    engine.optimizer.zero_grad()
    return begin


def _wrapped_us(bench: Bench, seconds: float) -> tuple[float, ...]:
    """Blocks of the same step inside torch's DDP with its own defaults, alone in its group."""
    engine, unwrapped = bench.engine, bench.engine.model
    backend = "nccl" if engine.device.type == "cuda" else "gloo"
    distributed.init_process_group(backend, store=HashStore(), rank=0, world_size=1)
    try:
        engine.model = _wrapped(unwrapped, engine.device)
        settle(bench)
        return tuple(1e6 * block.step_s for block in timed_blocks(bench, seconds))
    finally:
        engine.model = unwrapped
        distributed.destroy_process_group()


def _wrapped(model: nn.Module, device: torch.device) -> DistributedDataParallel:
    ids = [torch.cuda.current_device()] if device.type == "cuda" else None
    # As the trainer wraps: BatchNorm statistics are averaged before they are used.
    return DistributedDataParallel(model, device_ids=ids, broadcast_buffers=False)
