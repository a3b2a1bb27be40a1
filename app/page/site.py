"""All pages in one application."""

from __future__ import annotations

import gradio as gr

from app.page.compare import draw_compare
from app.page.doctor import draw_doctor
from app.page.runs import draw_runs
from app.page.settings import PageSettings
from app.page.train import draw_train
from ringside.words import say


def build(settings: PageSettings) -> gr.Blocks:
    """Train at `/`, the others at `/` and their name; nothing is started or read yet."""
    with gr.Blocks(
        title=say("page.title"), analytics_enabled=False, delete_cache=(86400, 86400)
    ) as site:
        draw_train(site, settings)
    others = (("runs", draw_runs), ("compare", draw_compare), ("doctor", draw_doctor))
    for name, draw in others:
        with site.route(say(f"page.{name}"), f"/{name}"):
            draw(site, settings)
    return site
