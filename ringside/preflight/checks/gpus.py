"""Whether somebody else computes on the chosen GPUs; runs of Ringside are `beside`."""

from __future__ import annotations

from ringside.machine.facts import Process
from ringside.preflight.case import Case
from ringside.preflight.items import Remark, remark
from ringside.words import say

CODE, ORDER = "gpus", 40


def check(case: Case) -> Remark | None:
    spec = case.spec
    if spec is None or spec.device != "cuda":
        return None
    ids = ", ".join(map(str, spec.gpu_ids))
    foreign = [
        (state.index, process)
        for state in case.gpus
        if state.index in spec.gpu_ids
        for process in state.processes
        if not process.is_ours
    ]
    if foreign:
        who = ", ".join(_who(index, process) for index, process in foreign)
        return remark("warning", "gpus_used", who=who)
    if not case.gpus:
        return remark("unknown", "gpus_unknown", ids=ids)
    return remark("fine", "gpus_fine", ids=ids)


def _who(index: int, process: Process) -> str:
    name = process.name or say("gpu.process", pid=process.pid)
    who = f"{name} ({process.user})" if process.user else name
    return say("preflight.gpus_one", who=who, index=index)
