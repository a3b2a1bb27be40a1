"""One rank of the pipeline: the training step by GPipe's schedule, evaluation by passing on.

All micro-batches go forward, then all go backward (Huang et al. 2019, arXiv:1811.06965), through
`torch.distributed.pipelining`. Shapes are stated, not inferred: inference runs the model on made-up
images, and before torch restored the buffers it left them in BatchNorm's statistics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import distributed, nn
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from ringside.spec import RunSpec
from training.pipeline.cut import cut, keep_only
from training.pipeline.stage import Stage

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


class Pipeline:
    """The stage of this rank and its schedule; rank 0 reads images, the last has the loss.

    Takes the whole model and leaves the stage's part of it, in place.
    """

    def __init__(
        self, spec: RunSpec, model: nn.Module, rank: int, device: torch.device,
        dtype: torch.dtype | None,
    ) -> None:  # fmt: skip
        self.rank, self.world, self.device = rank, spec.num_processes, device
        self.first, self.last = rank == 0, rank == self.world - 1
        self.num_parameters = sum(p.numel() for p in model.parameters())
        size = spec.data.image_size
        images = torch.Size((spec.micro_batch, 3, size, size))
        found = cut(model, spec.model, self.world, images)
        keep_only(model, found.stages, rank)
        self.model = model
        self.stage = Stage(
            model, first=self.first, last=self.last, channels_last=spec.weights_channels_last,
            device=device, dtype=dtype,
        )  # fmt: skip
        self.borders = [self.stage.travel_shape(border) for border in found.borders[:-1]]
        self.received = None if self.first else found.borders[rank - 1]
        self._images, self._logits = images, found.borders[-1]
        self._num_chunks = spec.training.pipeline_micro_batches
        self._steps = spec.training.accumulation_steps
        self._forwards_left = 0
        self._after_forward: Callable[[], None] = lambda: None
        self.stage.register_forward_hook(self._count_forward)

    def prepare(self, loss: Loss) -> None:
        """Put the stage on its device and make the schedule; `loss` is a micro-batch's mean."""
        self.stage.to(self.device)
        stage = PipelineStage(
            self.stage, self.rank, self.world, self.device,
            input_args=self._example(self.rank - 1), output_args=self._example(self.rank),
        )  # fmt: skip
        parts = self._num_chunks * self._steps
        # The loss is divided here: the schedule's own scaling would divide the gradients of
        # earlier accumulation steps again.
        self.schedule = ScheduleGPipe(
            stage, self._num_chunks, lambda logits, targets: loss(logits, targets) / parts,
            scale_grads=False,
        )  # fmt: skip

    def step(
        self, images: torch.Tensor, targets: torch.Tensor, after_forward: Callable[[], None]
    ) -> torch.Tensor:
        """Gradients of one batch; the mean loss on the last rank, 0 on the others.

        `after_forward` is called once, when this stage has computed its last micro-batch forward.
        """
        self._forwards_left, self._after_forward = self._num_chunks, after_forward
        losses: list[torch.Tensor] = []
        inputs = (images.contiguous(memory_format=self.stage.layout),) if self.first else ()
        outcome: dict[str, Any] = {"target": targets, "losses": losses} if self.last else {}
        self.schedule.step(*inputs, **outcome)
        if not self.last:
            return torch.zeros((), device=self.device)
        return torch.stack([loss.detach() for loss in losses]).sum() * self._steps

    def clip_gradients(self, max_norm: float) -> torch.Tensor:
        """Clip by the norm over the gradients of all stages; returns that norm. A collective."""
        weights = [p for p in self.model.parameters() if p.grad is not None]
        square = get_total_norm([p.grad for p in weights if p.grad is not None]).square()
        distributed.all_reduce(square)
        norm = square.sqrt()
        clip_grads_with_norm_(weights, max_norm, norm)
        return norm

    def logits(self, images: torch.Tensor) -> torch.Tensor:
        """Forward only: float32 [n, classes] on the last rank, [n, 0] elsewhere. A collective.

        `images` [n, 3, H, W] on the first rank; of the others' only the length counts.
        """
        if self.received is None:
            values = images
        else:
            shape = self.stage.travel_shape(self.received, len(images))
            values = torch.empty(shape, dtype=self.stage.travel_dtype, device=self.device)
            distributed.recv(values, self.rank - 1)
        values = self.stage(values)
        if self.last:
            return values
        distributed.send(values, self.rank + 1)
        return torch.empty(len(images), 0, device=self.device)

    @property
    def num_micro_batches(self) -> int:
        """Into how many the schedule really cuts a batch."""
        return int(self.schedule._n_microbatches)

    @property
    def sent_bytes_per_step(self) -> int:
        """Activations and their gradients over all borders, per optimizer step."""
        values = sum(border.numel() for border in self.borders)
        return 2 * values * self.stage.travel_dtype.itemsize * self._num_chunks * self._steps

    def stage_parameters(self) -> tuple[int, ...]:
        """Parameters of each stage, as its own rank counts them. A collective."""
        mine = torch.tensor([sum(p.numel() for p in self.model.parameters())], device=self.device)
        counts = [torch.empty_like(mine) for _ in range(self.world)]
        distributed.all_gather(counts, mine)
        return tuple(int(count) for count in counts)

    def _example(self, border: int) -> torch.Tensor:
        """A meta tensor like what crosses a border; -1 are the images, the last the logits."""
        if border < 0:  # torch compares strides as well.
            return torch.empty(self._images, device="meta", memory_format=self.stage.layout)
        if border == len(self.borders):
            return torch.empty(self._logits, device="meta", requires_grad=True)
        dtype = self.stage.travel_dtype
        return torch.empty(self.borders[border], dtype=dtype, device="meta", requires_grad=True)

    def _count_forward(self, *_: Any) -> None:
        if self._forwards_left:
            self._forwards_left -= 1
            if not self._forwards_left:
                self._after_forward()
