"""All pages in one application, in every language that the words have."""

from __future__ import annotations

from typing import Any

from app.page.compare import draw_compare
from app.page.doctor import draw_doctor
from app.page.library import draw_library
from app.page.runs import draw_runs
from app.page.settings import PageSettings
from app.page.skipping import ChangedOnly
from app.page.train import draw_train
from ringside.words import languages, say, speaking, spoken


class Site(ChangedOnly):
    """The pages with their events; `config`, which a page begins with, is in the spoken language.

    Gradio draws labels, headings and choices once, when pages are built. So the pages are built in
    every language, and of the others only the texts are taken: nothing has to register its label.
    """

    def __init__(self, **details: Any) -> None:
        self._texts: dict[str, dict[str, Any]] = {}
        self._configs: dict[str, Any] = {}
        super().__init__(**details)

    @property
    def config(self) -> Any:
        """What Gradio sends with a page; it copies before it changes anything."""
        language = spoken()
        if language not in self._configs:
            self._configs[language] = _in_words_of(self._own, self._texts.get(language))
        return self._configs[language]

    @config.setter
    def config(self, config: Any) -> None:
        self._own, self._configs = config, {}

    def learn(self, language: str, config: Any) -> None:
        """Take over the texts of the same pages, built in another language."""
        self._texts[language] = config
        self._configs.pop(language, None)


def _in_words_of(own: Any, other: Any | None) -> Any:
    """The same components and events, with the titles and properties of the other build."""
    if other is None:
        return own
    pairs = zip(own["components"], other["components"], strict=True)
    components = [{**mine, "props": {**theirs["props"]}} for mine, theirs in pairs]
    return {**own, "title": other["title"], "pages": other["pages"], "components": components}


def build(settings: PageSettings) -> Site:
    """Train at `/`, the others at `/` and their name; nothing is started or read yet."""
    site = _build(settings)
    for language in languages():
        if language == spoken():
            continue
        with speaking(language):
            site.learn(language, _build(settings).config)
    return site


def _build(settings: PageSettings) -> Site:
    site = Site(title=say("page.title"), analytics_enabled=False, delete_cache=(86400, 86400))
    with site:
        draw_train(site, settings)
    others = (
        ("runs", draw_runs), ("compare", draw_compare), ("doctor", draw_doctor),
        ("library", draw_library),
    )  # fmt: skip
    for name, draw in others:
        with site.route(say(f"page.{name}"), f"/{name}"):
            draw(site, settings)
    return site
