"""The fold: what the page, the terminal and a report say of a run, from its files alone."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringside.errors import RunDirError
from ringside.records import write_owner
from ringside.run import RunReader, fold_run, list_runs, running_beside, summarise
from ringside.rundir import RunDir, create_run_dir

OBSERVED = (
    '{"num_processes":2,"strategy":"ddp","mixed_precision":"no","backend":"gloo","device":"cpu",'
    '"device_name":"cpu","num_parameters":10}'
)
WINDOW = (
    '"learning_rate":0.001,"step_ms":100,"data_ms":1,"forward_ms":40,"backward_ms":50,'
    '"optimizer_ms":9,"step_ms_min":98,"data_ms_min":0.5'
)
STARTED = (
    '{"kind":"run_started","t":101,"observed":' + OBSERVED + ',"num_train":1280,"num_val":50,'
    '"num_classes":10,"task":"multi_label","data_fingerprint":"abc","data_title":"Emoji",'
    '"steps_per_epoch":10,"learning_rate":0.001}'
)
LINES = [
    '{"kind":"phase_started","t":100,"phase":"data"}',
    STARTED,
    '{"kind":"warned","t":101,"code":"data","message":"Drew 10 of 50 images."}',
    '{"kind":"phase_started","t":102,"phase":"train","epoch":1}',
    '{"kind":"window_timed","t":103,"epoch":1,"step":5,"num_steps":5,"samples_per_s":256,'
    '"train_loss":0.7,' + WINDOW + "}",
    '{"kind":"epoch_trained","t":110,"epoch":1,"epoch_time_s":10,"num_samples":1280,'
    '"samples_per_s":128,"num_optimizer_steps":10,"train_loss":0.6,"epoch_time_s_min":9}',
    '{"kind":"phase_started","t":111,"phase":"evaluate","epoch":1}',
    '{"kind":"evaluated","t":112,"epoch":1,"num_evaluated":50,"evaluation_time_s":1,"val_loss":0.5,'
    '"auc_macro":0.75,"num_auc_classes":9,"num_classes":10,"undefined_classes":["ünknown"],'
    '"f1_macro":0.4,"f1_micro":0.5,"map_macro":0.3}',
    '{"kind":"checkpoint_saved","t":113,"path":"checkpoints/best","epoch":1,"best":true}',
    '{"kind":"checkpoint_saved","t":113,"path":"checkpoints/last","epoch":1}',
    '{"kind":"energy_measured","t":113,"joules":5}',
    '{"kind":"epoch_trained","t":120,"epoch":2,"epoch_time_s":5,"num_samples":1280,'
    '"samples_per_s":256,"num_optimizer_steps":10,"train_loss":null,"epoch_time_s_min":5,'
    '"non_finite":["train_loss"]}',
    '{"kind":"epoch_trained","t":122,"epoch":3,"epoch_time_s":3,"num_samples":1280,'
    '"samples_per_s":426.7,"num_optimizer_steps":10,"train_loss":0.4,"epoch_time_s_min":3}',
    '{"kind":"evaluated","t":125,"epoch":3,"num_evaluated":50,"evaluation_time_s":1,"val_loss":0.4,'
    '"auc_macro":0.9,"num_auc_classes":9,"num_classes":10,"f1_macro":0.6,"f1_micro":0.7,'
    '"map_macro":0.5}',
    '{"kind":"run_finished","t":130,"reason":"completed","total_time_s":30}',
]
EXIT = '{"state":"completed","reason":"The run completed.","started":99,"finished":131}'


@pytest.fixture
def run(root, make_spec) -> RunDir:
    """A run of two processes, 64 images each, over three epochs; nothing has happened yet."""
    run = create_run_dir(root)
    run.write(run.spec, make_spec("ddp", model="resnet18"))
    return run


def happen(run: RunDir, *lines: str) -> None:
    with run.events.open("a") as stream:
        stream.write("".join(f"{line}\n" for line in lines))


# --- from files to a record -------------------------------------------------------------------


def test_a_whole_run(run):
    happen(run, *LINES)
    run.exit.write_text(EXIT)
    record = fold_run(run)
    assert (record.id, record.name, record.path) == (run.id, run.name, str(run.path))
    assert (record.state, record.final) == ("completed", True)
    assert (record.phase, record.epoch) == ("evaluate", 1)
    assert record.spec.model == "resnet18"
    assert record.observed == record.started.observed
    assert record.observed.num_processes == 2
    assert [row.epoch for row in record.epochs] == [1, 2, 3]
    assert [row.epoch_time_s for row in record.epochs] == [10, 5, 3]
    assert [row.train_loss for row in record.epochs] == [0.6, None, 0.4]
    assert [window.step for window in record.windows] == [5]
    assert [warning.message for warning in record.warnings] == ["Drew 10 of 50 images."]
    assert [event.line for event in record.unknown] == [LINES[10]]
    assert record.best_checkpoint == "checkpoints/best"
    assert (record.total_time_s, record.finished_t, record.last_event_t) == (30, 131, 130)
    # Warm-up left out by hand: 2 x 1280 images in 5 + 3 seconds.
    assert record.steady_samples_per_s == 320


def test_scores_are_attached_to_their_epoch_and_missing_ones_stay_missing(run):
    """A zero in place of "not measured" would look like a model that learned nothing."""
    happen(run, *LINES)
    first, second, third = fold_run(run).epochs
    assert (first.auc_macro, first.num_auc_classes, first.num_evaluated) == (0.75, 9, 50)
    assert (first.f1_macro, first.f1_micro, first.map_macro) == (0.4, 0.5, 0.3)
    assert first.undefined_classes == ("ünknown",)
    assert first.accuracy is None
    assert (second.auc_macro, second.f1_macro, second.num_evaluated) == (None, None, None)
    assert (third.auc_macro, third.f1_macro) == (0.9, 0.6)


def test_a_run_of_one_epoch_has_no_steady_speed(run):
    happen(run, *LINES[:6])
    assert fold_run(run).steady_samples_per_s is None


def test_nothing_written_yet(root):
    record = fold_run(RunDir(root / "20260101-000000-calm-fox"))
    assert (record.state, record.spec, record.epochs) == ("launching", None, [])
    assert record.time_left_s() is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"preset": 1}', "\x00", '{"global_batch": 7}'])
def test_a_spec_that_cannot_be_read_costs_only_itself(run, text):
    run.spec.write_text(text)
    happen(run, *LINES)
    record = fold_run(run)
    assert record.spec is None
    assert len(record.epochs) == 3
    assert summarise(run) is None
    assert list_runs(run.path.parent) == []


@pytest.mark.parametrize("extra", [{}, {"galaxy": "far"}])
def test_a_run_of_a_newer_ringside_is_refused_in_a_sentence(run, extra):
    """Also when it holds fields that are unknown here."""
    written = json.loads(run.spec.read_text()) | {"format": 2, **extra}
    run.spec.write_text(json.dumps(written))
    with pytest.raises(RunDirError, match=r"has format 2, .*update Ringside"):
        fold_run(run)
    assert list_runs(run.path.parent) == []


# --- reading while it is written --------------------------------------------------------------


@given(cuts=st.lists(st.integers(0, sum(len(f"{x}\n".encode()) for x in LINES)), max_size=12))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_polling_comes_to_the_same_as_reading_at_the_end(run, cuts):
    """Wherever the file was cut, even in the middle of a letter, nothing is lost or doubled."""
    data = "".join(f"{line}\n" for line in LINES).encode()
    run.events.write_bytes(b"")
    reader = RunReader(run)
    begin = 0
    for end in [*sorted(cuts), len(data)]:
        with run.events.open("ab") as stream:
            stream.write(data[begin:end])
        reader.poll()
        begin = end
    assert msgspec.json.encode(reader.record) == msgspec.json.encode(fold_run(run))
    assert len(reader.record.epochs) == 3


def test_poll_says_whether_anything_changed(root, make_spec):
    """The page draws again exactly when it is told to."""
    run = create_run_dir(root)
    reader = RunReader(run)
    assert not reader.poll()
    run.write(run.spec, make_spec("ddp"))
    assert reader.poll()
    assert not reader.poll()
    happen(run, *LINES[:3])
    assert reader.poll()
    assert not reader.poll()
    happen(run, *LINES[3:])
    run.exit.write_text(EXIT)
    assert reader.poll()
    assert (reader.record.state, len(reader.record.epochs)) == ("completed", 3)
    assert not reader.poll()


class RunThatEndsWhileItIsRead(RunDir):
    """The trainer writes its last lines and leaves after events.jsonl was read."""

    def read(self, path, kind):
        if path == self.exit and not path.exists():
            happen(self, *LINES[5:])
            path.write_text(EXIT)
        return super().read(path, kind)


def test_the_last_lines_of_a_run_that_ends_while_it_is_read_are_not_lost(run):
    happen(run, *LINES[:5])
    record = fold_run(RunThatEndsWhileItIsRead(run.path))
    assert (record.state, len(record.epochs), record.total_time_s) == ("completed", 3, 30)


# --- states -----------------------------------------------------------------------------------


def own(run: RunDir, **changes: object) -> None:
    """An owner by hand; without changes it is one that ended long ago."""
    process = {"pid": 1, "create_time": 1.0, "boot_id": "another boot"}
    owner = {"kind": "supervisor", "process": process, "started": 99.0, "host": ""}
    run.owner.write_text(json.dumps(owner | changes))


@pytest.mark.parametrize("final", ["completed", "stopped", "failed", "lost"])
def test_the_exit_record_has_the_last_word(run, final):
    happen(run, *LINES[:5])
    run.request("stop")
    own(run)
    run.exit.write_text(EXIT.replace("completed", final, 1))
    assert fold_run(run).state == final
    assert summarise(run).state == final


def test_a_run_under_way(run):
    reader = RunReader(run)

    def state() -> str:
        reader.poll()
        assert summarise(run).state == fold_run(run).state == reader.record.state
        return reader.record.state

    assert state() == "launching"
    write_owner(run, "supervisor")
    happen(run, LINES[0])
    assert state() == "launching"
    happen(run, STARTED)
    assert state() == "running"
    run.request("stop")
    assert state() == "stopping"
    own(run)
    reader = RunReader(run)
    assert state() == "lost"
    run.exit.write_text(EXIT.replace("completed", "stopped", 1))
    assert state() == "stopped"


def test_a_process_of_another_machine_is_not_taken_for_dead(run):
    """A shared folder: its pid means nothing here."""
    happen(run, *LINES[:5])
    own(run, host="another-machine")
    assert fold_run(run).state == "running"
    assert summarise(run).state == "running"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"kind": 1}'])
def test_garbage_in_the_small_files_costs_only_itself(run, text):
    happen(run, *LINES)
    for path in (run.owner, run.exit, run.ranks / "rank0.error.json"):
        path.write_text(text)
    record = fold_run(run)
    assert (record.owner, record.exit, record.failure) == (None, None, None)
    assert (record.state, len(record.epochs)) == ("running", 3)


def test_the_failure_is_the_first_ranks_word(run):
    """Rank 0 often reports only that another rank went away."""
    happen(run, STARTED, '{"kind":"run_failed","t":120,"message":"connection closed by peer"}')
    assert fold_run(run).failure.sentence == "connection closed by peer"
    for rank, t, sentence in ((0, 120, "connection closed by peer"), (1, 119, "out of memory")):
        error = {"rank": rank, "t": t, "sentence": sentence, "user_error": True}
        (run.ranks / f"rank{rank}.error.json").write_text(json.dumps(error))
    failure = fold_run(run).failure
    assert (failure.rank, failure.sentence, failure.user_error) == (1, "out of memory", True)


# --- time left --------------------------------------------------------------------------------


def test_time_left_by_hand(run):
    """3 epochs of 10 steps of 128 images; at step 5, 256 images/s: 25 x 128 / 256 = 12.5 s."""
    happen(run, *LINES[:4])
    assert fold_run(run).time_left_s(now=103) is None
    happen(run, LINES[4])
    record = fold_run(run)
    assert record.time_left_s(now=103) == pytest.approx(12.5)
    assert record.time_left_s(now=106) == pytest.approx(9.5)
    assert record.time_left_s(now=1e6) == 0
    # From the first whole epoch on its speed counts, warm or not: 25 x 128 / 128 = 25 s.
    happen(run, LINES[5])
    assert fold_run(run).time_left_s(now=103) == pytest.approx(25)


def test_a_run_that_ended_has_no_time_left(run):
    happen(run, *LINES[:5])
    run.exit.write_text(EXIT.replace("completed", "failed", 1))
    assert fold_run(run).time_left_s(now=103) is None


# --- the list ---------------------------------------------------------------------------------


def test_the_list_is_newest_first_and_says_what_each_run_is(root, make_spec, write_run):
    write_run(make_spec("single", data="products"), "20260101-000000-calm-fox")
    write_run(make_spec("ddp", num_processes=4), "20260102-000000-calm-owl", state="failed")
    (root / "20260103-000000-no-spec").mkdir()
    (root / "notes").mkdir()
    newest, oldest = list_runs(root)
    assert (newest.id, newest.state, newest.preset) == ("20260102-000000-calm-owl", "failed", "ddp")
    assert (newest.num_processes, newest.model, newest.data) == (4, "resnet50", "emoji")
    assert newest.started is None
    assert (oldest.id, oldest.preset, oldest.data) == (
        "20260101-000000-calm-fox", "single", "products",
    )  # fmt: skip


def test_the_list_of_a_folder_that_is_not_there_is_empty(tmp_path):
    assert list_runs(tmp_path / "nowhere") == []


@pytest.mark.parametrize(
    ("state", "cores", "expected"),
    [(None, 3, ["calm-fox"]), (None, 4, []), ("completed", 3, [])],
)
def test_a_run_beside_another_is_named_when_threads_exceed_cores(
    state, cores, expected, root, make_spec, write_run
):
    """Two processes run already and two more are asked for."""
    write_run(make_spec("ddp"), "20260101-000000-calm-fox", state=state)
    assert running_beside(root, make_spec("ddp"), cores) == expected


def test_gpus_are_shared_by_index(root, make_spec, write_run):
    live = make_spec("ddp", device="cuda", gpu_ids=(0, 1))
    write_run(live, "20260101-000000-calm-fox", state=None)
    asked = make_spec("single", device="cuda", gpu_ids=(1,))
    assert running_beside(root, asked, 64) == ["calm-fox"]
    asked = make_spec("single", device="cuda", gpu_ids=(2,))
    assert running_beside(root, asked, 64) == []
