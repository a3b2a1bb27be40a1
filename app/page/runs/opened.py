"""The run that the page shows, for the cards that do something with it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gradio as gr
from gradio.components import Component

from app.audit import about
from app.guard import require_token
from app.page.settings import PageSettings
from ringside.errors import RunDirError
from ringside.rundir import RunDir
from ringside.words import say


@dataclass(frozen=True)
class OpenedRun:
    """Its id and who asks; a new `pulse` makes the page poll at once."""

    id: gr.Textbox
    token: gr.Textbox
    pulse: gr.Textbox
    settings: PageSettings

    def who(self) -> set[Component]:
        """What every event that changes something sends."""
        return {self.id, self.token}

    def named(self, data: Mapping[Any, Any], refusal: str) -> RunDir:
        """The run; RunDirError with the sentence `refusal` when it is gone."""
        run = self.settings.desk.exact(data[self.id])
        if run is None:
            raise RunDirError(say(refusal, run=data[self.id] or ""))
        return run

    def asked(self, data: Mapping[Any, Any], refusal: str) -> RunDir:
        """The run, for somebody who may change it."""
        about(data[self.id])
        require_token(data[self.token], self.settings.token)
        return self.named(data, refusal)

    def look_again(self) -> dict[Any, Any]:
        """The answer to what only polls show."""
        return {self.pulse: secrets.token_hex(4)}
