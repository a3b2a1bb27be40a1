"""Which way each pair of GPUs reaches each other, as a matrix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

from app.views.charts import palette
from app.views.charts.figure import Figure
from ringside.machine import Link, Machine
from ringside.words import say

FILLS = {
    "nvlink": palette.COMPUTE, "pix": palette.OPTIMIZER, "pxb": palette.OPTIMIZER,
    "phb": palette.OTHER_2, "node": palette.OTHER_2, "sys": palette.WAIT, "same": palette.TRACK,
    "unknown": palette.OTHER_3,
}  # fmt: skip


def topology(machine: Machine) -> Figure | None:
    """The links of all GPUs; None with fewer than two of them or without a known link."""
    indices = [gpu.index for gpu in machine.gpus]
    if len(indices) < 2 or not machine.links:
        return None
    found = {frozenset((link.a, link.b)): link for link in machine.links}
    rows = tuple(
        (f"GPU {a}", *(_cell(found.get(frozenset((a, b))), same=a == b) for b in indices))
        for a in indices
    )
    return Figure(
        name="topology",
        title=say("charts.topology"),
        headline=_headline(machine.links),
        description=" ".join(_in_words(link) for link in machine.links),
        columns=("", *(f"GPU {index}" for index in indices)),
        rows=rows,
        draw=partial(_draw, indices, found),
    )


def _cell(link: Link | None, *, same: bool) -> str:
    if same:
        return "·"
    if link is None:
        return say("charts.link_unknown")
    name = say(f"charts.link_{link.kind}")
    return f"{name} ×{link.num_nvlinks}" if link.num_nvlinks else name


def _code(link: Link | None, kind: str) -> str:
    """As `nvidia-smi topo -m` writes it, where words have no room."""
    if kind == "same":
        return "·"
    return f"NV{link.num_nvlinks or ''}" if link and kind == "nvlink" else kind.upper()


def _headline(links: Sequence[Link]) -> str:
    """The best way, and whether all pairs go it; memory access that is refused comes first."""
    refused = sum(link.p2p is False for link in links)
    if refused:
        return say("charts.no_p2p", n=refused, of=len(links))
    kinds = Counter(link.kind for link in links)
    best, *others = sorted(kinds, key=list(FILLS).index)
    if not others:
        return say("charts.all_pairs", kind=say(f"charts.link_{best}"))
    rest = ", ".join(say(f"charts.link_{kind}") for kind in others)
    return say("charts.some_pairs", n=kinds[best], of=len(links), rest=rest,
               kind=say(f"charts.link_{best}"))  # fmt: skip


def _in_words(link: Link) -> str:
    return say("charts.pair", a=link.a, b=link.b, kind=_cell(link, same=False))


def _draw(indices: Sequence[int], found: dict[frozenset[int], Link], width: int) -> Any:
    import altair as alt

    is_narrow = (width - 60) // len(indices) < 100
    cells = []
    for a in indices:
        for b in indices:
            link = found.get(frozenset((a, b)))
            kind = "same" if a == b else link.kind if link else "unknown"
            fill = FILLS[kind]
            text = palette.SOFT if kind == "same" else palette.text_on(fill)
            label = _code(link, kind) if is_narrow else _cell(link, same=a == b)
            cells.append({"a": f"GPU {a}", "b": f"GPU {b}", "fill": fill, "ink": text,
                          "label": label})  # fmt: skip
    names = [f"GPU {index}" for index in indices]
    axis = {"domain": False, "ticks": False, "labelAngle": 0, "title": None}
    base = alt.Chart(alt.InlineData(values=cells)).encode(
        x=alt.X("b:N", sort=names, axis=alt.Axis(**axis, orient="top")),
        y=alt.Y("a:N", sort=names, axis=alt.Axis(**axis)),
    )
    boxes = base.mark_rect(stroke=palette.CARD, strokeWidth=2, cornerRadius=4)
    words = base.mark_text(limit=(width - 60) // len(indices) - 6)
    return alt.layer(
        boxes.encode(color=alt.Color("fill:N", scale=None)),
        words.encode(text="label:N", color=alt.Color("ink:N", scale=None)),
    ).properties(width=min(width - 60, 110 * len(indices)), height=min(280, 46 * len(indices)))
