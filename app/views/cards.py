"""The requests that the cards of the Train page stand for: the form, with one preset each as it is.

What an advanced field changes belongs to the chosen preset alone; it might not even fit another.
"""

from __future__ import annotations

import msgspec

from app.views.before import with_files_left_out
from app.views.fields import Reports, Values, request_of
from app.views.form import distributes, strategies
from ringside.errors import RingsideError
from ringside.hardware import Hardware
from ringside.launch.bench_words import plan_line
from ringside.launch.step_bench import StepBench
from ringside.request import RunRequest, resolve
from ringside.spec import RunSpec
from ringside.words import say


def request_of_cards(values: Values) -> RunRequest:
    """The form's request without its settings; RingsideError for a form that cannot be read."""
    return msgspec.structs.replace(request_of(values), overrides={}, request_id=None)


def spec_of_card(
    name: str, request: RunRequest, values: Values, hardware: Hardware, reports: Reports
) -> RunSpec:
    """One card's request; a preset for one GPU takes the first of several that were chosen.

    RingsideError where it cannot run here.
    """
    if request.gpus and not distributes(name):
        request = msgspec.structs.replace(request, gpus=request.gpus[:1])
    spec = resolve(msgspec.structs.replace(request, preset=name), hardware)
    return with_files_left_out(spec, values, reports)


def specs_to_time(values: Values, hardware: Hardware, reports: Reports) -> tuple[RunSpec, ...]:
    """The main cards that can run here, and the chosen one: all others would take too long.

    RingsideError where there is none, with the reason of the first.
    """
    request = request_of_cards(values)
    choices = strategies(hardware)
    names = [card.name for card in choices.main if card.reason is None]
    names += [
        card.name for card in choices.more if card.name == request.preset and card.reason is None
    ]
    found: list[RunSpec] = []
    refused: list[RingsideError] = []
    for name in names:
        try:
            found.append(spec_of_card(name, request, values, hardware, reports))
        except RingsideError as error:
            refused.append(error)
    if not found:
        raise refused[0] if refused else RingsideError(say("bench.no_strategy"))
    return tuple(found)


def timing_cost(values: Values, hardware: Hardware, reports: Reports) -> str:
    """Which strategies would be timed, how many launches that are and about how long they take.

    Empty where there is nothing to time: the plan says what is wrong.
    """
    try:
        specs = specs_to_time(values, hardware, reports)
    except RingsideError:
        return ""
    names = ", ".join(spec.preset for spec in specs)
    return say("bench.what", names=names, plan=plan_line(StepBench(specs)))
