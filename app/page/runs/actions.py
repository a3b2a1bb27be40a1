"""What can be asked of a run from its head: an end, a checkpoint, a profile, stacks, a new run."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

import gradio as gr

from app.page.draw.stacks import stacks_card
from app.page.frame import PRIVATE, QUEUED, acts, block, changed, hidden
from app.page.library.button import (
    PlaybookButton,
    connect_playbook_button,
    draw_playbook_button,
)
from app.page.runs.opened import OpenedRun
from app.resuming import resume_run
from app.views.run import RunView
from ringside.asking import ask_for_checkpoint, ask_to_stop_after_epoch
from ringside.launch.stack_dump import dump_stacks
from ringside.launch.stop import stop_in_background
from ringside.profile_request import ask_for_profile
from ringside.rundir import RunDir
from ringside.spec import DEFAULT_PROFILE_STEPS
from ringside.words import say

Changes = dict[Any, Any]
TO_THE_RUN = "(run) => { if (run) window.location.href = 'runs?run=' + encodeURIComponent(run); }"


@dataclass(frozen=True)
class ActionParts:
    """The buttons; `stacks` shows what the ranks answered, `go` names a run that was started.

    `resume_id` makes two presses of Resume one run.
    """

    stop: gr.Button
    after_epoch: gr.Button
    checkpoint: gr.Button
    profile: gr.Button
    resume: gr.Button
    clone: gr.HTML
    dump: gr.Button
    stacks: gr.HTML
    go: gr.Textbox
    resume_id: gr.Textbox
    playbook: PlaybookButton

    def polled(self) -> list[Any]:
        """What a poll may change."""
        return [*self.buttons().values(), self.clone]

    def buttons(self) -> dict[str, gr.Button]:
        """By the name of what they ask for."""
        names = ("stop", "after_epoch", "checkpoint", "profile", "resume", "dump")
        found = {name: getattr(self, name) for name in names}
        return found | {"playbook": self.playbook.button}


def titles() -> dict[str, str]:
    """By element id what each button is for; `live.js` sets them."""
    return {
        "stop": say("act.stop_help"),
        "after-epoch": say("act.after_epoch_help"),
        "checkpoint": say("act.checkpoint_help"),
        "profile": say("act.profile_help", n=DEFAULT_PROFILE_STEPS),
        "resume": say("act.resume_help"),
        "dump": say("hang.help"),
        "playbook": say("library.make_help"),
    }


def draw_actions() -> dict[str, Any]:
    """The buttons of the head, called inside its row; the least final first."""
    look: dict[str, Any] = {"scale": 0, "min_width": 96, "visible": False, "size": "md"}
    shown: dict[str, Any] = {
        "clone": block("clone"),
        "playbook": draw_playbook_button("playbook", **look),
        "resume": gr.Button(say("act.resume"), elem_id="resume", variant="primary", **look),
        "checkpoint": gr.Button(say("act.checkpoint"), elem_id="checkpoint", **look),
        "profile": gr.Button(say("runs.profile"), elem_id="profile", **look),
        "after_epoch": gr.Button(say("act.after_epoch"), elem_id="after-epoch", **look),
        "stop": gr.Button(say("runs.stop"), variant="stop", elem_id="stop", **look),
    }
    return shown | {"go": hidden("resumed"), "resume_id": hidden("resume-id")}


def draw_dump() -> dict[str, Any]:
    """The button below the banner of a standstill, and the place for the answer."""
    dump = gr.Button(say("hang.dump"), elem_id="dump", size="md", scale=0, visible=False)
    return {"dump": dump, "stacks": block("stacks", elem_classes="rs-card rs-maybe")}


class ActionHandlers:
    """What the buttons do; nothing here waits for a run, but for its stacks at most 3 s."""

    def __init__(self, parts: ActionParts, opened: OpenedRun) -> None:
        self.parts, self.run = parts, opened

    def connect(self) -> None:
        """Give the events their handlers; called inside the page's context."""
        parts, run, who = self.parts, self.run, self.run.who()
        for name, handler in (
            ("stop", self.stop), ("after_epoch", self.after_epoch),
            ("checkpoint", self.checkpoint), ("profile", self.profile),
        ):  # fmt: skip
            getattr(parts, name).click(handler, who, run.pulse, api_name=name, **QUEUED)
        parts.dump.click(self.dump, who, parts.stacks, api_name="dump_stacks", **QUEUED)
        resumed = parts.resume.click(
            self.resume, who | {parts.resume_id}, [parts.go, parts.resume_id],
            api_name="resume", **QUEUED,
        )  # fmt: skip
        resumed.success(None, parts.go, None, js=TO_THE_RUN, api_name="resume_open", **PRIVATE)
        connect_playbook_button(
            parts.playbook, run.id, run.token, run.settings, "playbook_of_run",
            read=lambda run_id: [run_id],
        )  # fmt: skip

    def opened(self) -> Changes:
        """A page that opens gets an id of its own for Resume."""
        return {self.parts.resume_id: secrets.token_hex(8)}

    def changes(self, view: RunView, seen: dict[str, Any]) -> Changes:
        """What the browser does not hold yet, noting it in `seen`."""
        parts, asked = self.parts.buttons(), view.asked_kinds
        states: dict[str, Any] = {
            "stop": (view.stoppable or view.state == "stopping", view.state == "stopping"),
            "after_epoch": (view.state in ("launching", "running"), "stop-after-epoch" in asked),
            "checkpoint": (view.state == "running", "checkpoint" in asked),
            "profile": (view.can_profile, "profile" in asked),
            "resume": (view.resumable, False),
            "dump": (view.hang is not None, False),
            "playbook": (view.is_over, False),
        }
        values: dict[str, Any] = {
            f"act_{name}": [state, _word(name, state[1])] for name, state in states.items()
        }
        values["act_clone"] = clone_link(view.id)
        new = changed(values, seen)
        seen |= {name: digest for name, (_, digest) in new.items()}
        found: Changes = {}
        for name, (is_shown, is_asked) in states.items():
            if f"act_{name}" in new:
                word = _word(name, is_asked)
                found[parts[name]] = gr.Button(word, visible=is_shown, interactive=not is_asked)
        if "act_clone" in new:
            found[self.parts.clone] = values["act_clone"]
        return found

    @acts("stop")
    def stop(self, data: Changes) -> Changes:
        """Leave the request; the run's owner sees to it, and the next poll shows it."""
        return self._ask(data, stop_in_background, "runs.no_run")

    @acts("stop after this epoch")
    def after_epoch(self, data: Changes) -> Changes:
        """Leave the request; the ranks agree on it between steps."""
        return self._ask(data, ask_to_stop_after_epoch)

    @acts("checkpoint")
    def checkpoint(self, data: Changes) -> Changes:
        """Leave the request; training goes on after it was saved."""
        return self._ask(data, ask_for_checkpoint)

    @acts("profile")
    def profile(self, data: Changes) -> Changes:
        """Leave the request; the ranks agree on the steps and write their traces."""
        return self._ask(data, ask_for_profile, "runs.no_profile")

    @acts("resume")
    def resume(self, data: Changes) -> Changes:
        """Start a run that goes on from the last checkpoint, as `ringside resume` does."""
        run, settings = self.run.asked(data, "act.no_run"), self.run.settings
        asked = str(data[self.parts.resume_id] or "") or secrets.token_hex(8)
        started = resume_run(
            run, settings.hardware, settings.runs_root, request_id=f"{asked[:32]}-{run.id}"
        )
        return {self.parts.go: started.id, self.parts.resume_id: secrets.token_hex(8)}

    @acts("dump stacks")
    def dump(self, data: Changes) -> Changes:
        """Where the code of each rank stands now."""
        run = self.run.asked(data, "hang.no_run")
        return {self.parts.stacks: stacks_card(dump_stacks(run))}

    def _ask(
        self, data: Changes, ask: Callable[[RunDir], object], refusal: str = "act.no_run"
    ) -> Changes:
        """Only polls draw the button: a run may have met the request before its answer is here."""
        ask(self.run.asked(data, refusal))
        return self.run.look_again()


def _word(name: str, is_asked: bool) -> str:
    """What stands on a button, before and after its request."""
    words = {
        "stop": ("runs.stop", "runs.stopping"),
        "after_epoch": ("act.after_epoch", "act.asked"),
        "checkpoint": ("act.checkpoint", "act.asked"),
        "profile": ("runs.profile", "runs.profile_asked"),
        "resume": ("act.resume", "act.resume"),
        "dump": ("hang.dump", "hang.dumping"),
        "playbook": ("library.make_short", "library.make_short"),
    }
    return say(words[name][is_asked])


def clone_link(run_id: str) -> str:
    """A link to the form, filled in as the run was asked for."""
    return (
        f'<a class="rs-button" href="./?run={escape(run_id)}" '
        f'title="{escape(say("act.clone_help"))}">{escape(say("act.clone"))}</a>'
    )
