"""The command that reads NCCL's logs and says how the GPUs talk to each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from app.commands.printing import print_some, printable, to_the_right
from app.commands.reading import print_json
from ringside.environment_lint import Finding, lint
from ringside.nccl_log import (
    NcclLog,
    asymmetric_pairs,
    judge,
    read_nccl_log,
    rings,
    transports,
    worst_ring_edge,
)
from ringside.nccl_log.facts import LogWarning
from ringside.words import say

MAX_CHOICES = 10


def nccl(paths: list[Path], *, as_json: bool) -> int:
    """Print what the logs of one job say; a mistake in `paths` is a RingsideError."""
    log = read_nccl_log(paths)
    if as_json:
        print_json(log_json(log))
    else:
        _print(log)
    return 0


def log_json(log: NcclLog) -> dict[str, Any]:
    """The frozen shape of `nccl --json`; missing is null."""
    verdict, worst = judge(log), worst_ring_edge(log)
    return {
        "sentence": verdict.sentence,
        "is_handicap": verdict.is_handicap,
        "next_step": verdict.next_step,
        "notes": verdict.notes,
        "version": log.version,
        "cuda": log.cuda,
        "num_ranks": log.num_ranks,
        "num_hosts": log.num_hosts,
        "hosts": log.hosts,
        "transports": transports(log.edges),
        "worst_transport": worst.name if worst else None,
        "asymmetric": asymmetric_pairs(log),
        "edges": log.edges,
        "rings": rings(log),
        "trees": log.trees,
        "channels": log.num_channels,
        "p2p_channels": log.num_p2p_channels,
        "nvls_channels": log.num_nvls_channels,
        "network": log.network,
        "nics": log.nics,
        "patterns": log.patterns,
        "paths": log.paths,
        "env": log.environment,
        "variables": lint(log.environment),
        "choices": log.choices,
        "predictions": log.predictions,
        "operations": log.operations,
        "warnings": log.warnings,
        "init_s": log.init_s,
        "num_lines": log.num_lines,
        "num_torn": log.num_torn,
    }


def _print(log: NcclLog) -> None:
    verdict = judge(log)
    print(printable(verdict.sentence))
    if verdict.next_step:
        print(printable(verdict.next_step))
    print(f"\n{printable(_set_up(log))}")
    for name, num in transports(log.edges).items():
        print(f"  {num:>4} {printable(name)}")
    variables = [_variable(one) for one in lint(log.environment)]
    print_some(f"\n{say('nccl.variables')}", variables)
    print_some(f"\n{say('terminal.warnings')}", list(map(_warning, log.warnings)))
    print_some(f"\n{say('terminal.notes')}", list(verdict.notes))
    if log.choices:
        print("\n" + say("nccl.choices"))
        for choice in sorted(log.choices, key=lambda one: -one.calls)[:MAX_CHOICES]:
            size = to_the_right(say("nccl.bytes", n=choice.size_bytes), 19)
            print(
                f"  {choice.calls:>6} x {choice.function:<14} {size}  "
                f"{choice.algorithm} {choice.protocol}"
            )


def _set_up(log: NcclLog) -> str:
    """Version, ranks, hosts, channels and network in one line; what is not known is left out."""
    parts = [
        f"NCCL {log.version}" if log.version else None,
        f"CUDA {log.cuda}" if log.cuda else None,
        say("nccl.num_ranks", n=log.num_ranks) if log.num_ranks else None,
        say("nccl.host_names", names=", ".join(log.hosts)) if log.hosts else None,
        say("nccl.num_channels", n=log.num_channels) if log.num_channels else None,
        say("nccl.of_network", name=log.network) if log.network else None,
        say("nccl.init", seconds=log.init_s) if log.init_s is not None else None,
        say("nccl.num_torn", n=log.num_torn) if log.num_torn else None,
    ]
    return say("terminal.comma").join(part for part in parts if part)


def _variable(finding: Finding) -> str:
    if finding.level == "setting":
        return finding.sentence
    level = say(f"variable.level_{finding.level}")
    return say("terminal.figure", label=level, value=finding.sentence)


def _warning(one: LogWarning) -> str:
    kind = say(f"nccl.kind_{one.kind}")
    return say("nccl.warned", kind=kind, times=one.times, message=one.message)
