"""What to try after a failure: sentences by its kind, with commands that can be copied."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ringside.causes import FailureKind, kind_of
from ringside.command_line import asked_batch, can_split, command
from ringside.run import RunRecord
from ringside.spec import RunSpec
from ringside.words import say

GIB = 2**30
MICRO_STEPS = 4
LESS_LEARNING = 0.1
# fp32 weights and AdamW's two moments in `last`, and the weights again in `best`.
CHECKPOINT_BYTES_PER_PARAMETER = 16


def failure_kind(record: RunRecord) -> FailureKind | None:
    """The kind of a run's failure; None for a run that did not fail.

    Of an older exit record, and of a run that is lost, it follows from the word of a rank.
    """
    failure = record.exit.failure if record.exit else None
    if failure is not None:
        return failure.kind if failure.kind != "unknown" else kind_of(failure.cause)
    if record.failure is None or record.state not in ("failed", "lost"):
        return None
    return kind_of(record.failure.cause)


def kind_title(kind: FailureKind) -> str:
    """What happened, in a few words: `The GPU ran out of memory`."""
    return say(f"kind.{kind}")


def what_to_try(record: RunRecord) -> tuple[str, ...]:
    """Sentences, the most promising first; none for a run that did not fail.

    Text between backquotes is a command. Free space is that of now.
    """
    kind = failure_kind(record)
    if kind is None or record.spec is None:
        return ()
    return tuple(getattr(_Remedies(record, record.spec), f"of_{kind}")())


class _Remedies:
    """For one run, a method for each kind of failure."""

    def __init__(self, record: RunRecord, spec: RunSpec) -> None:
        self.record, self.spec = record, spec

    def of_out_of_memory(self) -> Iterator[str]:
        spec, steps = self.spec, self.spec.training.accumulation_steps
        half, more = spec.global_batch // 2, steps * MICRO_STEPS
        if can_split(spec, half, steps):
            smaller = command(spec, batch=asked_batch(spec) // 2)
            yield say("remedy.smaller_batch", command=smaller, batch=half)
        if spec.strategy != "model_parallel" and can_split(spec, spec.global_batch, more):
            yield say("remedy.accumulate", command=self._accumulating(more), k=more)
        if spec.device == "cuda" and spec.accelerate.mixed_precision == "no":
            yield say("remedy.half_precision", command=self._with(mixed_precision="bf16"))

    def of_out_of_memory_host(self) -> Iterator[str]:
        workers = self.record.started.num_workers if self.record.started else None
        if workers is None or workers > 1:
            yield say("remedy.fewer_workers", command=self._with(num_workers=1))
        if self.spec.device == "cpu":
            yield from self.of_out_of_memory()
        yield say("remedy.shared_memory")

    def of_nccl_timeout(self) -> Iterator[str]:
        yield say("remedy.nccl_log", run=self.record.name)
        yield from self.of_hang()

    def of_hang(self) -> Iterator[str]:
        yield say("remedy.read_stacks", run=self.record.name)
        timeout_s = 3 * self.spec.training.timeout_s
        longer = self._with(timeout_s=timeout_s)
        yield say("remedy.longer_timeout", command=longer, timeout_s=timeout_s)
        if self.spec.training.num_workers != 0:
            yield say("remedy.no_workers", command=self._with(num_workers=0))

    def of_connection(self) -> Iterator[str]:
        yield say("remedy.other_rank", folder=self.record.path)
        name = "NCCL_SOCKET_IFNAME" if self.spec.device == "cuda" else "GLOO_SOCKET_IFNAME"
        yield say("remedy.interface", name=name)
        yield from self._again()

    def of_port(self) -> Iterator[str]:
        yield say("remedy.free_port")
        yield from self._again()

    def of_data(self) -> Iterator[str]:
        check = shlex.join(["ringside", "data", "check", self.spec.data.label])
        yield say("remedy.check_data", command=check)
        # Before training, it is the folder or the table that has to be mended.
        if self.record.started is not None:
            yield say("remedy.skip_bad", command=self._without_bad_files())

    def of_nan(self) -> Iterator[str]:
        rate = f"{self.spec.training.learning_rate * LESS_LEARNING:g}"
        yield say("remedy.less_learning", command=self._with(learning_rate=rate), rate=rate)
        if self.spec.accelerate.mixed_precision == "fp16":
            yield say("remedy.bf16", command=self._with(mixed_precision="bf16"))
        if not self.spec.training.clip_norm:
            yield say("remedy.clip", command=self._with(clip_norm=1))

    def of_import(self) -> Iterator[str]:
        yield say("remedy.install")

    def of_killed(self) -> Iterator[str]:
        yield say("remedy.who_killed")
        yield from self._again()

    def of_disk_full(self) -> Iterator[str]:
        path, needed = self.record.path, self._checkpoint_bytes()
        try:
            free = shutil.disk_usage(Path(path)).free
        except OSError:
            yield say("remedy.free_disk", path=path)
        else:
            missing = max(0, (needed or 0) - free)
            key = "remedy.free_disk_more" if missing else "remedy.free_disk_now"
            needed_gib, missing_gib = (needed or 0) / GIB, missing / GIB
            yield say(key, path=path, free=free / GIB, needed=needed_gib, missing=missing_gib)
        yield say("remedy.other_disk")

    def of_config(self) -> Iterator[str]:
        yield say("remedy.dry_run", command=f"{command(self.spec)} --dry-run")

    def of_unknown(self) -> Iterator[str]:
        yield say("remedy.console", folder=self.record.path)

    def _again(self) -> Iterator[str]:
        """Where a checkpoint is, the failure's own advice says how to resume.

        What its supervisor has tried again nobody has to.
        """
        ended = self.record.exit
        failure = ended.failure if ended else None
        is_tried = ended is not None and ended.retried_as is not None
        if not is_tried and (failure is None or failure.checkpoint is None):
            yield say("remedy.again", command=command(self.spec))

    def _without_bad_files(self) -> str:
        again = command(self.spec)
        return again if self.spec.data.skip else f"{again} --skip-bad"

    def _with(self, **settings: Any) -> str:
        return command(self.spec, settings=settings)

    def _accumulating(self, steps: int) -> str:
        """The same global batch in smaller pieces; DDP has a preset for it."""
        spec = self.spec
        has_preset = spec.preset == "ddp" and steps == MICRO_STEPS
        return command(
            spec, preset="ddp_accum4" if has_preset else None, batch=spec.global_batch,
            settings={} if has_preset else {"accumulation_steps": steps}, keep_global_batch=True,
        )  # fmt: skip

    def _checkpoint_bytes(self) -> int | None:
        """About what is stored at the end of an epoch; None before the model was built."""
        observed = self.record.observed
        if observed is None:
            return None
        return observed.num_parameters * CHECKPOINT_BYTES_PER_PARAMETER
