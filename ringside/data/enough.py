"""Refuses a run whose data are smaller than one of its steps, before anything is launched."""

from __future__ import annotations

from ringside.data.discovery import count_training
from ringside.errors import SpecError
from ringside.spec import RunSpec, batch_parts, counted_parts
from ringside.words import say, say_count


def refuse_too_few(spec: RunSpec) -> None:
    """`SpecError` with the largest batch that works, when an epoch would have no whole step.

    Data that cannot be counted in a moment (large folders, a data set of the Hub) pass; the
    trainer looks at them again when they are open.
    """
    found = count_training(spec.data, spec.global_batch)
    if found is None or found >= spec.global_batch:
        return
    k = spec.training.accumulation_steps
    parts, part = batch_parts(spec.training, spec.num_devices)
    share = counted_parts(parts, k, part)
    raise SpecError(
        say(
            "request.too_few",
            found=say_count("training_image", found),
            batch=spec.global_batch,
            share=share,
            each=spec.global_batch // (parts * k),
            remedy=_remedy(spec, found // (parts * k) * parts),
        )
    )


def _remedy(spec: RunSpec, micro_step: int) -> str:
    """What to do; `micro_step` is how many images a micro-step can have at most."""
    k = spec.training.accumulation_steps
    if not micro_step:
        return say("request.add_images")
    if spec.keeps_global_batch or k == 1:
        return say("request.smaller_batch", batch=micro_step * k)
    return say("request.smaller_part", batch=micro_step, k=k, whole=micro_step * k)
