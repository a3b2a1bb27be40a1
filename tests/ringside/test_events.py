"""The lines that a run writes: every kind travels whole, and a bad line costs only itself."""

from __future__ import annotations

import json
import math
import threading

import pytest

from ringside import events as ev
from ringside.events import EventWriter, decode_lines, encode, finite
from ringside.rundir import read_new_lines
from ringside.spec import Observed

OBSERVED = Observed(
    num_processes=2, strategy="ddp", mixed_precision="bf16", backend="gloo", device="cpu",
    device_name="a CPU", num_parameters=23_712_932, bucket_bytes=(1024, 2048),
    environment={"NCCL_DEBUG": "INFO"}, versions={"torch": "2.14"},
)  # fmt: skip

EXAMPLES = (
    ev.RunStarted(
        t=1.5, observed=OBSERVED, num_train=100, num_val=20, num_classes=10, task="multi_label",
        data_fingerprint="abc", data_title="Emoji", steps_per_epoch=7, learning_rate=0.001,
    ),
    ev.PhaseStarted(t=1.5, phase="train", epoch=2),
    ev.WindowTimed(
        t=1.5, epoch=1, step=10, num_steps=10, samples_per_s=640.0, train_loss=0.5,
        learning_rate=0.001, step_ms=100.0, data_ms=1.0, forward_ms=40.0, backward_ms=50.0,
        optimizer_ms=9.0, step_ms_min=98.0, data_ms_min=0.5, memory_bytes=2**33,
    ),
    ev.EpochTrained(
        t=1.5, epoch=1, epoch_time_s=10.0, num_samples=6400, samples_per_s=640.0,
        num_optimizer_steps=100, train_loss=0.5, grad_norm=1.25, epoch_time_s_min=9.5,
        data_ratio=0.01,
    ),
    ev.Evaluated(
        t=1.5, epoch=1, num_evaluated=20, evaluation_time_s=1.0, val_loss=0.6, auc_macro=0.8,
        num_auc_classes=9, num_classes=10, undefined_classes=("ün,\ndefined",), f1_macro=0.4,
        f1_micro=0.5, map_macro=0.3, accuracy=0.2,
    ),
    ev.CheckpointSaved(t=1.5, path="checkpoints/best", epoch=1, best=True),
    ev.DdpReported(
        t=1.5, epoch=1, step=10, num_iterations=10, bucket_bytes=(1496960,),
        rebuilt_bucket_bytes=(1077568, 419392), has_rebuilt_buckets=True,
        find_unused_parameters=False, unused_parameter_bytes=0, communication_span_ms=10.5,
    ),
    ev.Profiled(t=1.5, step=20, num_steps=4, files=("trace/rank0.json.gz",), after_training=True),
    ev.Warned(t=1.5, code="data", message='two\nlines, "quotes" and 訓練'),
    ev.StopAgreed(t=1.5, request="stop", epoch=1, step=12),
    ev.RunFinished(t=1.5, reason="completed", total_time_s=40.0),
    ev.RunFailed(t=1.5, message="out of memory"),
)  # fmt: skip


def example(kind: type[ev.Event]) -> ev.Event:
    """The example of a kind; a kind without one is not tested anywhere, so it fails here."""
    found = [event for event in EXAMPLES if type(event) is kind]
    assert found, f"give {kind.__name__} an example"
    return found[0]


@pytest.mark.parametrize("kind", ev.KINDS)
def test_every_kind_travels_whole_in_one_line(kind):
    line = encode(example(kind))
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert decode_lines(line) == [example(kind)]
    assert json.loads(line)["kind"] == kind.__struct_config__.tag


def test_order_is_kept():
    events = [*EXAMPLES, *reversed(EXAMPLES)]
    assert decode_lines(b"".join(map(encode, events))) == events


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_told_from_a_missing_one(value):
    """JSON has no NaN; a diverged loss must not look like a loss that was never measured."""
    import msgspec

    event = msgspec.structs.replace(
        example(ev.EpochTrained), train_loss=value, grad_norm=None, data_ratio=0.5
    )
    (read,) = decode_lines(encode(finite(event)))
    assert read.train_loss is None
    assert read.grad_norm is None
    assert read.non_finite == ("train_loss",)
    assert read.data_ratio == 0.5


@pytest.mark.parametrize("kind", ev.KINDS)
def test_finite_events_are_left_as_they_are(kind):
    assert finite(example(kind)) == example(kind)


GARBAGE = [
    b"\x00\xff\xfe",
    b"{",
    b"not json",
    b"[]",
    b"1",
    b'{"t": 1}',
    b'{"kind": "energy_measured", "t": 1, "joules": 5}',
    b'{"kind": "epoch_trained", "epoch": "one"}',
    b'{"kind": "warned", "code": "c", "message": "torn',
    b'{"kind": "warned", "code": "c", "message": "a"} {"kind": "warned"}',
]


@pytest.mark.parametrize("garbage", GARBAGE)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_bad_line_costs_only_itself(garbage, place):
    """A full disk or a newer writer must not hide the rest of a run."""
    first, second = example(ev.Warned), example(ev.RunFinished)
    lines = [encode(first), encode(second)]
    lines.insert(place, garbage + b"\n")
    read = decode_lines(b"".join(lines))
    assert [event for event in read if event in (first, second)] == [first, second]
    unknown = read[place]
    assert isinstance(unknown, ev.UnknownEvent)
    assert unknown.line == garbage.decode(errors="replace")
    assert unknown.reason


def test_unknown_fields_of_a_newer_writer_are_passed_over():
    line = json.dumps({"kind": "warned", "code": "c", "message": "m", "t": 2, "colour": "red"})
    assert decode_lines(line.encode() + b"\n") == [ev.Warned(t=2, code="c", message="m")]


def test_nothing_is_nothing():
    assert decode_lines(b"") == []
    assert decode_lines(b"\n\n") == []


# --- the file ---------------------------------------------------------------------------------


def test_a_half_written_line_waits_for_its_other_half(tmp_path):
    path = tmp_path / "events.jsonl"
    line = encode(example(ev.Warned))
    path.write_bytes(line + line[:20])
    data, offset = read_new_lines(path, 0)
    assert decode_lines(data) == [example(ev.Warned)]
    assert read_new_lines(path, offset) == (b"", offset)
    with path.open("ab") as stream:
        stream.write(line[20:])
    data, offset = read_new_lines(path, offset)
    assert decode_lines(data) == [example(ev.Warned)]
    assert offset == path.stat().st_size


def test_a_file_that_is_not_there_yet_has_no_lines(tmp_path):
    assert read_new_lines(tmp_path / "events.jsonl", 0) == (b"", 0)


def test_the_writer_stamps_the_time_and_appends(tmp_path):
    path = tmp_path / "events.jsonl"
    for message in ("a", "b"):
        writer = EventWriter(path)
        writer.write(ev.Warned(code="c", message=message))
        writer.close()
    first, second = decode_lines(path.read_bytes())
    assert (first.message, second.message) == ("a", "b")
    assert 1_700_000_000 < first.t <= second.t


def test_lines_of_several_writers_never_mix(tmp_path):
    """Rank 0 and its failure handler may write at once; half lines would lose both."""
    path = tmp_path / "events.jsonl"

    def write(letter: str) -> None:
        writer = EventWriter(path)
        for number in range(50):
            writer.write(ev.Warned(code=f"{letter}{number}", message=letter * 5000))
        writer.close()

    threads = [threading.Thread(target=write, args=(letter,)) for letter in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    events = decode_lines(path.read_bytes())
    assert all(isinstance(event, ev.Warned) for event in events)
    for letter in "abcd":
        codes = [event.code for event in events if event.code.startswith(letter)]
        assert codes == [f"{letter}{number}" for number in range(50)]
