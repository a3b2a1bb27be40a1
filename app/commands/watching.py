"""Commands that look at a run under way, or ask it for something: stacks, checkpoint."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ringside.asking import ask_for_checkpoint
from ringside.errors import LaunchError
from ringside.launch.blame import place
from ringside.launch.stack_dump import dump_stacks, processes_of, rank_processes
from ringside.marks import Mark, read_marks
from ringside.rundir import RunDir, find_run, runs_root
from ringside.stacks import Group, RankStacks, ThreadStack, groups
from ringside.words import say, translated

NATIVE_S = 60.0


def stacks(run_id: str, *, threads: bool, native: bool, as_json: bool) -> int:
    """Print where every rank stands; 1 when one of them does not answer."""
    run = find_run(runs_root(), run_id)
    before = read_marks(run)
    found = dump_stacks(run)
    # A rank that has come on meanwhile stood somewhere between; its stack alone is certain.
    marks = {mark.rank: mark for mark in read_marks(run) if mark in before}
    if as_json:
        from app.commands.reading import print_json

        print_json(stacks_json(found, marks))
    else:
        print(say("following.run", run=run.id, path=run.path), file=sys.stderr)
        for line in stack_lines(found, marks, threads=threads):
            print(line)
        if native:
            _print_native(run)
    return 1 if any(one.problem for one in found) else 0


def checkpoint(run_id: str) -> int:
    """Ask a run under way to save; it answers in its events."""
    run = find_run(runs_root(), run_id)
    ask_for_checkpoint(run)
    print(say("following.saves", run=run.name, what=say("request.checkpoint")))
    return 0


def stacks_json(found: Sequence[RankStacks], marks: dict[int, Mark]) -> list[dict[str, Any]]:
    """The frozen shape of `stacks --json`: one object a rank."""
    return [
        {
            "rank": one.rank,
            "place": place(marks[one.rank]) if one.rank in marks else None,
            "doing": one.doing,
            "problem": one.problem,
            "threads": [_thread_json(thread) for thread in one.threads],
        }
        for one in found
    ]


def _thread_json(thread: ThreadStack) -> dict[str, Any]:
    frames = [msgspec.to_builtins(frame) | {"own": frame.is_own} for frame in thread.frames]
    return {"name": thread.name, "main": thread.is_main, "frames": frames}


def stack_lines(
    found: Sequence[RankStacks], marks: dict[int, Mark], *, threads: bool = False
) -> Iterator[str]:
    """Ranks that stand alike together, the smallest group first; our own calls below each."""
    by_rank = {one.rank: one for one in found}
    for group in groups(found):
        yield group_line(group, by_rank, marks)
        if threads:
            for rank in group.ranks:
                yield from _thread_lines(by_rank[rank])
        else:
            yield from (f"    {frame.text}" for frame in group.own)


def group_line(group: Group, by_rank: dict[int, RankStacks], marks: dict[int, Mark]) -> str:
    """`ranks 0, 1: at step 41 in the backward pass; waits in all_reduce (…)`."""
    key = "stacks.rank" if len(group.ranks) == 1 else "stacks.ranks"
    who = say(key, ranks=", ".join(map(str, group.ranks)))
    first = by_rank[group.ranks[0]]
    where = place(marks[first.rank]) if first.rank in marks else None
    if first.problem:
        return _of_group(who, where, first.problem)
    doing = translated(f"doing.{group.doing}", group.doing) if group.doing else None
    what = doing or (None if where else say("stacks.somewhere"))
    line = _of_group(who, where, what)
    if group.innermost is None:
        return line
    return say("terminal.aside", text=line, aside=group.innermost.text)


def _of_group(who: str, where: str | None, what: str | None) -> str:
    if where and what:
        return say("stacks.of_group_both", who=who, where=where, what=what)
    return say("stacks.of_group", who=who, what=where or what)


def _thread_lines(one: RankStacks) -> Iterator[str]:
    for thread in one.threads:
        name = say("stacks.main") if thread.is_main else thread.name or thread.ident
        yield "  " + say("stacks.thread", rank=one.rank, name=name)
        yield from (f"    {frame.text}" for frame in thread.frames)


def _print_native(run: RunDir) -> None:
    """py-spy also shows the calls of C and C++; it needs leave to trace the process (ptrace)."""
    beside = os.path.dirname(sys.executable)
    tool = shutil.which("py-spy", path=beside) or shutil.which("py-spy")
    if tool is None:
        raise LaunchError("--native needs py-spy, which is not installed: pip install py-spy.")
    for rank, process in rank_processes(run, processes_of(run)).items():
        if process is None:
            continue
        print("\n" + say("stacks.by_tool", rank=rank), flush=True)
        argv = [tool, "dump", "--native", "--pid", str(process.pid)]
        try:
            subprocess.run(argv, stdin=subprocess.DEVNULL, timeout=NATIVE_S, check=False)
        except subprocess.TimeoutExpired:
            raise LaunchError(
                f"py-spy had no stacks of rank {rank} within {NATIVE_S:.0f} s; ask again."
            ) from None
        except OSError as error:
            raise LaunchError(f"py-spy cannot be started: {tool}: {error.strerror}.") from None
