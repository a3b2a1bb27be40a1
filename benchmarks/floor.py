"""The floor: what one training step costs with timm, torch and nothing else, on made-up input.

    python benchmarks/floor.py --batch 256 --precision bf16 --compile
    torchrun --nproc-per-node 2 benchmarks/floor.py --batch 256 --precision bf16 --compile

One batch lies on the device before the clock starts; no loader, no scores, no file, none of
Ringside's code. `--batch` counts images of one device. Prints one JSON object: images/s over all
devices by the median step, and the peak memory of one device.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
from collections.abc import Callable

import timm
import torch
from torch import distributed, nn
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.nn.parallel import DistributedDataParallel

DTYPES = {"fp32": None, "fp16": torch.float16, "bf16": torch.bfloat16}


def parse_arguments() -> argparse.Namespace:
    """Flags of this benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--batch", type=int, default=256, help="images of one device and step")
    parser.add_argument("--precision", choices=DTYPES, default="bf16")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--compile-mode", default=None, help="reduce-overhead or torch's default")
    parser.add_argument("--optimizer", choices=("sgd", "adamw"), default="sgd")
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--warmup", type=int, default=50, help="steps before the clock starts")
    parser.add_argument("--steps", type=int, default=200)
    return parser.parse_args()


def main() -> None:
    """Measure and print."""
    arguments = parse_arguments()
    device, world = join()
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    step = make_step(arguments, device, world)
    batch = made_up(arguments, device)
    for _ in range(arguments.warmup):
        step(*batch)
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(arguments.steps + 1)]
    marks[0].record()
    for mark in marks[1:]:
        step(*batch)
        mark.record()
    torch.cuda.synchronize()
    times = [begin.elapsed_time(end) for begin, end in itertools.pairwise(marks)]
    report(times, arguments, device, world)


def join() -> tuple[torch.device, int]:
    """This process's GPU and the number of processes; torchrun says whether there are several."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    torch.cuda.set_device(device)
    if world > 1:
        distributed.init_process_group("nccl")
    return device, world


def make_step(
    arguments: argparse.Namespace, device: torch.device, world: int
) -> Callable[[torch.Tensor, torch.Tensor], None]:
    """One optimizer step on images and targets, channels_last, with a fused optimizer."""
    torch.manual_seed(0)
    model = timm.create_model(arguments.model, num_classes=arguments.classes).to(device)
    model = model.to(memory_format=torch.channels_last)
    forward: nn.Module = model
    if arguments.compile or arguments.compile_mode:
        forward = torch.compile(model, mode=arguments.compile_mode)  # type: ignore[assignment]
    if world > 1:
        forward = DistributedDataParallel(forward, [device.index], broadcast_buffers=False)
    optimizer: torch.optim.Optimizer
    if arguments.optimizer == "sgd":
        optimizer = torch.optim.SGD(model.parameters(), 1e-3, 0.9, nesterov=True, fused=True)
    else:
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3, fused=True)
    dtype = DTYPES[arguments.precision]
    scaler = torch.amp.GradScaler(device.type, enabled=dtype == torch.float16)

    def step(images: torch.Tensor, targets: torch.Tensor) -> None:
        with torch.autocast(device.type, dtype, enabled=dtype is not None):
            logits = forward(images)
        loss = binary_cross_entropy_with_logits(logits.float(), targets)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()

    return step


def made_up(
    arguments: argparse.Namespace, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """Images in channels_last and targets of one batch, on the device."""
    size = arguments.image_size
    images = torch.randn(arguments.batch, 3, size, size, device=device)
    targets = torch.randint(0, 2, (arguments.batch, arguments.classes), device=device).float()
    return images.to(memory_format=torch.channels_last), targets


def report(
    times: list[float], arguments: argparse.Namespace, device: torch.device, world: int
) -> None:
    """One line of JSON from rank 0."""
    if int(os.environ.get("RANK", "0")) == 0:
        median = statistics.median(times)
        found = {
            "samples_per_s": 1000 * arguments.batch * world / median,
            "step_ms": median,
            "step_ms_p90": statistics.quantiles(times, n=10)[-1],
            "memory_bytes": torch.cuda.max_memory_allocated(device),
            "devices": world,
            "device": torch.cuda.get_device_name(device),
            "torch": torch.__version__,
            **{key: getattr(arguments, key) for key in ("batch", "precision", "optimizer")},
            "compile": arguments.compile_mode or arguments.compile,
        }
        print(json.dumps(found), flush=True)
    if world > 1:
        distributed.destroy_process_group()


if __name__ == "__main__":
    main()
