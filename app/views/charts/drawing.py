"""From a figure to SVG and PNG, without a browser and without a network (vl-convert)."""

from __future__ import annotations

import re
from html import escape
from typing import Any

from app.views.charts import palette
from app.views.charts.figure import Figure, Picture

WIDE, NARROW = 640, 310
PNG_SCALE = 2
FONT = "system-ui, Segoe UI, Roboto, Helvetica Neue, sans-serif"
_COLOUR = re.compile("|".join(palette.VARIABLES), re.IGNORECASE)
_ID = re.compile(r'(\bid="|url\(#)([\w-]+)')


def picture(figure: Figure) -> Picture:
    """All forms of a figure."""
    import vl_convert

    wide, narrow = (_svg(figure, width) for width in (WIDE, NARROW))
    file = _described(figure, wide, "file")
    paper = file.replace(">", f'><rect width="100%" height="100%" fill="{palette.CARD}"/>', 1)
    return Picture(
        figure.name, figure.title, figure.headline, figure.description, figure.columns,
        figure.rows,
        wide=_themed(_described(figure, wide, "wide")),
        narrow=_themed(_described(figure, narrow, "narrow")),
        svg=paper,
        png=vl_convert.svg_to_png(paper, scale=PNG_SCALE),
    )  # fmt: skip


def _svg(figure: Figure, width: int) -> str:
    import vl_convert

    chart = figure.draw(width).to_dict()
    found: str = vl_convert.vegalite_to_svg(chart | configuration())
    return found


def configuration() -> dict[str, Any]:
    """What all charts share: quiet axes, no frame, the system's font, nothing behind them."""
    text = {"font": FONT, "color": palette.SOFT}
    labels = {f"label{name.title()}": value for name, value in text.items()}
    titles = {f"title{name.title()}": value for name, value in text.items()}
    config = {
        "font": FONT,
        "aria": False,  # the whole picture is described; each of its bars is noise
        "padding": {"left": 2, "right": 6, "top": 4, "bottom": 4},
        "view": {"stroke": None},
        "axis": {
            **labels, **titles, "titleFontWeight": "normal", "titleFontSize": 12,
            "labelFontSize": 12, "domainColor": palette.LINE, "tickColor": palette.LINE,
            "gridColor": palette.LINE, "labelPadding": 6,
        },
        "legend": {
            **labels, "title": None, "orient": "bottom", "labelFontSize": 12, "symbolType":
            "square", "symbolSize": 110, "columnPadding": 14, "labelLimit": 260,
        },
        "title": {**text, "fontSize": 12, "fontWeight": 600, "anchor": "start", "offset": 6},
        "text": {"font": FONT, "fontSize": 12, "color": palette.INK},
    }  # fmt: skip
    return {"config": config, "background": None}


def _described(figure: Figure, svg: str, suffix: str) -> str:
    """With a title and a description for those who hear it, and ids that no other picture has."""
    own = f"{figure.name}-{suffix}"
    svg = _ID.sub(rf"\1{own}-\2", svg)
    head, _, body = svg.partition(">")
    title, text = escape(figure.headline), escape(figure.description)
    return (
        f'{head} role="img" aria-labelledby="{own}-t {own}-d"><title id="{own}-t">{title}</title>'
        f'<desc id="{own}-d">{text}</desc>{body}'
    )


def _themed(svg: str) -> str:
    """Colours as variables of the style sheet."""

    def variable(found: re.Match[str]) -> str:
        return f"var(--rs-{palette.VARIABLES[found[0].lower()]})"

    return _COLOUR.sub(variable, svg)
