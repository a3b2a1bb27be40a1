"""HTML of the ranks' stacks: who stands where, our own code first, everything folded below."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from app.page.draw import heading, items
from ringside.stacks import Group, RankStacks, groups
from ringside.words import say, translated


def stacks_card(stacks: Sequence[RankStacks]) -> str:
    """Ranks that stand at the same place in one line; the odd one first."""
    lines = [_line(group) for group in groups(stacks) if group.innermost is not None]
    problems = [f"{say('log.rank', rank=one.rank)}: {one.problem}" for one in stacks if one.problem]
    folded = "".join(map(_threads, stacks))
    return f"{heading(say('hang.stacks'))}{items([*lines, *problems])}{folded}"


def _line(group: Group) -> str:
    ranks = say("hang.group", ranks=", ".join(map(str, group.ranks)))
    place = group.own[0].text if group.own else group.innermost.text if group.innermost else ""
    doing = translated(f"doing.{group.doing}", group.doing) if group.doing else say("hang.unknown")
    return f"{ranks}: {doing} · {place}"


def _threads(one: RankStacks) -> str:
    """Every thread of a rank, as the interpreter told it."""
    if not one.threads:
        return ""
    text = "\n\n".join(
        "\n".join(
            [f"{thread.name or thread.ident}{' *' if thread.is_main else ''}",
             *(f"  {frame.text}" for frame in thread.frames)]
        )
        for thread in sorted(one.threads, key=lambda thread: not thread.is_main)
    )  # fmt: skip
    name = escape(say("log.rank", rank=one.rank))
    return (
        f'<details class="rs-more"><summary>{name}</summary>'
        f'<pre class="rs-frames" tabindex="0">{escape(text)}</pre></details>'
    )
