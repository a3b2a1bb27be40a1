"""The strategies of the form, timed from the page, and what their cards say then."""

from __future__ import annotations

import json
import sys

import msgspec
import pytest

from app.page.train.timing import IDLE_POLL_S
from app.views import cards, estimates, measuring, measuring_worker
from app.views.cards import specs_to_time, timing_cost
from app.views.consultations import signature_of
from app.views.estimates import CardEstimates
from app.views.fields import LEAVE_OUT
from app.views.measuring import Measuring
from app.views.measuring_messages import Order
from ringside.errors import LaunchError, RingsideError
from ringside.identity import wait_until
from ringside.launch.step_bench import alone
from ringside.measurements import Arm, StepTiming
from ringside.measurements.store import FOLDER, Store, key_of_spec
from tests.app.caller import Caller

FILLED = {"source": "products:ci", "preset": "ddp", "model": "resnet10t", "batch": 64}
MAIN = ("ddp", "ddp_bf16", "ddp_accum4", "fsdp")
FORM = {
    "field_source": "products:ci", "field_folder": "", "field_preset": "ddp",
    "field_model": "resnet10t", "field_epochs": 1, "field_overrides": "", "field_gpus": [],
}  # fmt: skip


def no_report(_):
    return None


def timing(spec, step_ms, t=1.0, **arm):
    found = Arm(name="many", num_processes=spec.num_processes, step_ms=(step_ms,) * 5, **arm)
    return StepTiming(t=t, key=key_of_spec(spec), spec=spec, device_name="cpu", arm=found)


@pytest.fixture
def steps(monkeypatch, hardware):
    """`steps(ddp=20.0, …)`: milliseconds by preset instead of launches, or an error."""

    def time_them(**by_preset):
        def measure(spec, hardware, **_):
            given = by_preset[spec.preset]
            if isinstance(given, BaseException):
                raise given
            return timing(spec, given)

        monkeypatch.setattr("ringside.launch.step_bench.measure_step", measure)
        monkeypatch.setattr(measuring_worker, "read_hardware", lambda: hardware)

    return time_them


# --- what is timed ----------------------------------------------------------------------------


def test_the_main_strategies_and_the_chosen_one_are_timed(hardware):
    assert tuple(s.preset for s in specs_to_time(FILLED, hardware, no_report)) == MAIN
    chosen = FILLED | {"preset": "ddp_tuned", "overrides": "bucket_cap_mb=7", "precision": "bf16"}
    specs = specs_to_time(chosen, hardware, no_report)
    assert tuple(spec.preset for spec in specs) == (*MAIN, "ddp_tuned")
    # Settings are the chosen preset's own and might not fit another.
    assert {spec.training.bucket_cap_mb for spec in specs[:4]} == {None}
    assert [spec.accelerate.mixed_precision for spec in specs[:2]] == ["no", "bf16"]
    assert {spec.micro_batch for spec in specs} == {32}
    cannot = FILLED | {"preset": "ddp_fp16"}  # needs a GPU
    assert tuple(s.preset for s in specs_to_time(cannot, hardware, no_report)) == MAIN


def test_what_it_costs_is_said_before(hardware):
    line = timing_cost(FILLED, hardware, no_report)
    assert line.startswith("Times a few steps each of ddp, ddp_bf16, ddp_accum4, fsdp. 6 launches,")
    assert "2 of them one device for comparison: about 2 min." in line
    assert timing_cost(FILLED | {"batch": 33}, hardware, no_report) == ""
    with pytest.raises(RingsideError, match="choose 32 or 34"):
        specs_to_time(FILLED | {"batch": 33}, hardware, no_report)


def test_bad_files_stay_out_as_the_form_says(hardware, monkeypatch):
    monkeypatch.setattr(cards, "with_files_left_out", lambda spec, values, reports: reports(spec))
    report = object()
    found = specs_to_time(FILLED | {"bad_files": LEAVE_OUT}, hardware, lambda _: report)
    assert found == (report,) * 4


# --- the process that times --------------------------------------------------------------------


def test_what_is_timed_is_kept_at_once(steps, hardware, runs_root, capfd):
    steps(ddp=20.0, ddp_bf16=30.0, single=16.0, ddp_accum4=70.0, fsdp=LaunchError("No room."))
    specs = specs_to_time(FILLED, hardware, no_report)
    said = measuring_worker.time_presets(specs, runs_root)
    assert said == "3 strategies timed; ddp_accum4 is the fastest. Not timed: fsdp. No room."
    lines = [json.loads(line)["line"] for line in capfd.readouterr().out.splitlines()]
    assert len(lines) == 6
    assert lines[2].startswith("3 of 6: ddp, 2 devices, 32 images each; about ")
    assert len(list((runs_root / FOLDER).iterdir())) == 5
    store = Store(runs_root)
    assert [store.timing(spec, hardware=hardware) is not None for spec in specs] == [
        True, True, True, False
    ]  # fmt: skip
    assert store.experiment(specs[0], hardware=hardware) is None


def test_how_it_ends(steps, hardware, runs_root):
    ddp, bf16, *_ = specs_to_time(FILLED, hardware, no_report)
    steps(ddp=20.0, ddp_bf16=20.4, single=16.0)
    near = "2 strategies timed; ddp and ddp_bf16 are about equally fast."
    assert measuring_worker.time_presets((ddp, bf16), runs_root) == near
    assert measuring_worker.time_presets((ddp,), runs_root) == "ddp is timed."
    steps(ddp=LaunchError("The device was lost."), single=16.0)
    with pytest.raises(RingsideError, match="Nothing could be timed: The device was lost"):
        measuring_worker.time_presets((ddp,), runs_root)


def test_nothing_is_timed_beside_a_run(steps, hardware, runs, runs_root):
    steps(ddp=20.0, single=16.0)
    runs.add("calm-otter", epochs=1)
    with pytest.raises(RingsideError, match="calm-otter uses the devices"):
        measuring_worker.time_presets(specs_to_time(FILLED, hardware, no_report), runs_root)


WAITS = """
import sys, time
order = sys.stdin.buffer.readline()
from app.views.child import end_with_the_page
end_with_the_page()
print('{"type":"said","line":"half way"}', flush=True)
try:
    time.sleep(60)
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_the_server_times_one_request_at_a_time_and_stops(hardware, runs_root, monkeypatch):
    monkeypatch.setattr(measuring, "WORKER", (sys.executable, "-c", WAITS))
    specs = specs_to_time(FILLED, hardware, no_report)
    measure = Measuring(runs_root)
    measure.start("presets", hardware, specs=specs)
    measure.start("presets", hardware, specs=specs)  # pressed twice it is one
    for other in (lambda: measure.start("machine", hardware),
                  lambda: measure.start("presets", hardware, specs=specs[:1])):  # fmt: skip
        with pytest.raises(RingsideError, match="Another measurement"):
            other()
    assert wait_until(lambda: measure.state.line == "half way", 20)
    measure.stop()
    assert wait_until(lambda: not measure.state.under_way, 20)
    assert measure.state.line == "Stopped; what was timed until then is kept."


def test_an_order_goes_through_json(hardware):
    order = Order("presets", "/runs", specs=specs_to_time(FILLED, hardware, no_report))
    assert msgspec.json.decode(msgspec.json.encode(order), type=Order) == order


# --- the cards ---------------------------------------------------------------------------------


def test_what_was_measured_goes_before_what_is_predicted(hardware, runs_root, monkeypatch):
    monkeypatch.setattr(estimates, "inputs_for", lambda *_, **__: None)
    monkeypatch.setattr(estimates, "estimate", lambda spec, _: spec.preset)
    monkeypatch.setattr(estimates, "estimate_words", lambda found: f"predicted: {found}")
    store, (ddp, bf16, *_) = Store(runs_root), specs_to_time(FILLED, hardware, no_report)
    words = CardEstimates(hardware, runs_root, no_report)
    assert words.of(FILLED) == {}
    store.save(timing(ddp, 20.0, memory_bytes=21_200_000_000))
    measured = "measured here: 20.0 ms a step · 3,200 images/s · 21.2 GB"
    assert words.of(FILLED)["ddp"] == measured
    assert words.of(FILLED)["ddp_bf16"] == "predicted: ddp_bf16"
    # 64 in 20 ms against 32 in 16 ms; the baseline of another precision is another one.
    store.save(timing(alone(ddp), 16.0))
    store.save(timing(bf16, 20.0, memory_bytes=10**9))
    assert words.of(FILLED)["ddp"] == measured.replace("20.0", "1.60× · 20.0")
    assert words.of(FILLED)["ddp_bf16"].startswith("measured here: 20.0 ms")
    # Who waits for the devices does the same step; another batch is another one.
    assert words.of(FILLED | {"when_busy": "queue", "epochs": 9}) == words.of(FILLED)
    assert words.of(FILLED | {"batch": 32})["ddp"] == "predicted: ddp"
    other = msgspec.structs.replace(hardware, versions={"torch": "2.99.0"})
    store.save(msgspec.structs.replace(timing(ddp, 1.0, t=9.0), versions={"torch": "2.14.1"}))
    assert words.of(FILLED)["ddp"].startswith("measured here: 32.00× · 1.0 ms")
    assert "32.00×" not in CardEstimates(other, runs_root, no_report).of(FILLED)["ddp"]


def test_words_are_worked_out_again_only_for_something_new(hardware, runs_root, monkeypatch):
    (ddp, *_) = specs_to_time(FILLED, hardware, no_report)
    store, words, asked = Store(runs_root), CardEstimates(hardware, runs_root, no_report), []
    once = words._words
    monkeypatch.setattr(words, "_words", lambda *given: asked.append(1) or once(*given))
    store.save(timing(ddp, 20.0))
    for values in (FILLED, FILLED, FILLED | {"preset": "fsdp"}):
        words.of(values)
    assert len(asked) == 1
    store.save(timing(ddp, 30.0, t=2.0))
    words.of(FILLED)
    assert len(asked) == 2
    monkeypatch.setattr(words, "_left_out", lambda _: frozenset({"a.png"}))
    words.of(FILLED)
    assert len(asked) == 3


def test_the_doctor_does_not_look_again_for_a_timing(hardware, runs_root):
    (ddp, *_) = specs_to_time(FILLED, hardware, no_report)
    before = signature_of(runs_root, None)
    Store(runs_root).save(timing(ddp, 20.0))
    assert signature_of(runs_root, None) == before


# --- the page ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def caller(served):
    return Caller(served)


def shown(answer):
    """Without what an event leaves as it is."""
    return {
        name: value for name, value in answer.items()
        if value not in ({"__type__": "update"}, None)
    }  # fmt: skip


def test_the_button_starts_it_with_the_form_and_says_so(caller, served, monkeypatch, told):
    asked = []
    start = lambda self, what, _, specs: asked.append((what, [s.preset for s in specs]))  # noqa: E731
    monkeypatch.setattr(Measuring, "start", start)
    answer = caller.found("time_presets", token=served.settings.token, **FORM)
    assert (asked, told) == ([("presets", list(MAIN))], [])
    assert answer["timing-seen"]
    caller.call("time_presets", token="guess", **FORM)
    caller.call("time_presets", token=served.settings.token, **FORM | {"field_batch": 33})
    assert len(asked) == 1
    assert "choose 32 or 34" in told[1]


def test_another_measurement_or_a_run_is_a_sentence(caller, served, runs_at, told):
    run = runs_at(served.settings.runs_root).add("calm-otter", epochs=1)
    caller.call("time_presets", token=served.settings.token, **FORM)
    assert "calm-otter uses the devices" in told[0]
    run.exit.write_text("{}")
    assert not served.settings.measuring.state.under_way


def test_an_idle_tick_is_small_and_a_measurement_changes_it(caller, served):
    first = caller.found("poll_timing")
    assert first["timing-seen"]
    quiet = caller.call("poll_timing", timing_seen=first["timing-seen"])
    assert len(quiet.content) <= 512
    assert len(quiet.request.content) <= 512
    folder = served.settings.runs_root / FOLDER
    folder.mkdir(exist_ok=True)
    (folder / "steptiming-x-1.json").write_text("{}")
    found = caller.found("poll_timing", timing_seen=first["timing-seen"])
    assert found["measured"] != first["measured"]
    assert IDLE_POLL_S > 1
