"""Sentences about a request, from the word catalogue: the plan before anything starts."""

from __future__ import annotations

from ringside.spec import RunSpec, batch_parts
from ringside.words import say


def plan_sentence(spec: RunSpec, language: str | None = None) -> str:
    """One sentence: processes, devices, strategy, precision, and how the global batch is made."""
    n = spec.num_processes
    precision = say(f"precision.{spec.accelerate.mixed_precision}", language)
    if spec.training.compile:
        precision = say("plan.compiled", language, precision=precision)
    if (hook := spec.training.comm_hook) != "no":
        precision = say("plan.hook", language, precision=precision, hook=hook)
    return say(
        "plan.sentence",
        language,
        processes=say("plan.one_process" if n == 1 else "plan.processes", language, n=n),
        devices=_devices(spec, language),
        strategy=say(f"strategy.{spec.strategy}", language),
        precision=precision,
        global_batch=spec.global_batch,
        micro_batch=spec.micro_batch,
        parts=batch_parts(spec.training, spec.num_devices)[0],
        accumulation=spec.training.accumulation_steps,
    )


def plan_notes(spec: RunSpec, language: str | None = None) -> list[str]:
    """What else a person should know before Start: the learning rate and a batch that changed."""
    settings = spec.training
    notes = [
        say(
            "plan.learning_rate",
            language,
            rate=spec.learning_rate,
            rule=say(f"rule.{settings.learning_rate_rule}", language),
            base_rate=settings.learning_rate,
            base_batch=settings.base_batch,
        )
    ]
    k = settings.accumulation_steps
    if k > 1 and spec.keeps_global_batch:
        notes.append(
            say("plan.batch_kept", language, new=spec.global_batch, micro=spec.micro_batch)
        )
    elif k > 1:
        old, new = spec.global_batch // k, spec.global_batch
        notes.append(say("plan.batch_grew", language, old=old, new=new, k=k))
    begins_fresh = not settings.pretrained and spec.weights is None and spec.resume_from is None
    if settings.freeze == "backbone" and begins_fresh:
        notes.append(say("plan.frozen_fresh", language))
    return notes


def _devices(spec: RunSpec, language: str | None) -> str:
    if spec.device == "cuda":
        ids = [str(index) for index in spec.gpu_ids]
        text = "".join(ids[:1])
        if len(ids) > 1:
            text = say("plan.and", language, names=", ".join(ids[:-1]), last=ids[-1])
        return say("plan.gpus", language, ids=text)
    key = "plan.cpu_one" if spec.threads_per_device == 1 else "plan.cpu_many"
    each = "" if spec.num_processes == 1 else "_each"
    return say(key + each, language, threads=spec.threads_per_device)
