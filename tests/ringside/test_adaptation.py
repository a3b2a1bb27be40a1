"""Presets for another number of devices: what is promised is what the run then does."""

from __future__ import annotations

import shlex

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringside.adaptation import adaptations, adapted_text, why_none
from ringside.errors import SpecError
from ringside.hardware import Gpu, Hardware
from ringside.overrides import parse_overrides
from ringside.preset_differences import pairs
from ringside.preset_store import save
from ringside.presets import Library, parse_preset
from ringside.request import RunRequest, resolve

EIGHT = """\
about: {title: Ours, why: w, when: w}
accelerate: {distributed_type: MULTI_GPU, num_processes: %d}
training: {accumulation_steps: %d, learning_rate_rule: %s, learning_rate: 0.1, base_batch: 256}
"""


def machine(count: int) -> Hardware:
    gpus = tuple(
        Gpu(index=i, name="H200", uuid=f"GPU-{i}", memory_total_bytes=1, memory_used_bytes=0)
        for i in range(count)
    )
    return Hardware(gpus=gpus, num_cores=64)


def preset(count: int = 8, steps: int = 1, rule: str = "linear"):
    return parse_preset(EIGHT % (count, steps, rule), name="ours", origin="yours")


def test_eight_gpus_become_two_in_three_ways():
    ways = {way.kind: way for way in adaptations(preset(), machine(2), micro_batch=32)}
    assert list(ways) == ["accumulate", "resize", "rescale"]
    pieces = {
        kind: (way.processes, way.micro_batch, way.accumulation_steps, way.global_batch)
        for kind, way in ways.items()
    }
    assert pieces == {
        "accumulate": (2, 32, 4, 256), "resize": (2, 128, 1, 256), "rescale": (2, 32, 1, 64),
    }  # fmt: skip
    rates = [way.learning_rate for way in ways.values()]
    assert rates == pytest.approx([0.1, 0.1, 0.025])  # linear: 64 of 256 images
    assert "4 times the memory" in ways["resize"].sentence
    assert "256 → 64" in ways["rescale"].sentence
    assert "0.1 → 0.025" in ways["rescale"].sentence


def test_accumulation_is_traded_for_devices_in_both_directions():
    down = {way.kind: way for way in adaptations(preset(8, 4), machine(2))}
    up = {way.kind: way for way in adaptations(preset(2, 4), machine(8))}
    assert down["accumulate"].accumulation_steps == 16
    assert up["accumulate"].accumulation_steps == 1
    assert down["rescale"].accumulation_steps == 4  # the micro-batch and its number stay
    assert "accumulate" not in {way.kind for way in adaptations(preset(8), machine(3))}


@settings(max_examples=25)
@given(
    before=st.integers(1, 8), here=st.integers(1, 8), steps=st.integers(1, 4),
    micro=st.integers(1, 16), rule=st.sampled_from(["linear", "sqrt", "none"]),
)  # fmt: skip
def test_whatever_is_proposed_is_what_the_run_then_does(before, here, steps, micro, rule):
    """The flags resolve to the batch and the learning rate that the sentence promises."""
    ours = preset(before, steps, rule)
    ways = adaptations(ours, machine(here), micro_batch=micro)
    assert (ways == ()) == (before == here)
    library = Library()
    library.presets["ours"] = ours
    for way in ways:
        assert way.global_batch == way.processes * way.micro_batch * way.accumulation_steps
        if way.kind != "rescale":
            assert way.global_batch == before * micro * steps
        spec = resolve(request_of(way.flags), machine(here), library)
        assert spec.global_batch == way.global_batch
        assert spec.micro_batch == way.micro_batch
        assert spec.learning_rate == pytest.approx(way.learning_rate)


def request_of(flags: tuple[str, ...]) -> RunRequest:
    words = shlex.split(shlex.join(flags))
    given = dict(zip(words[::2], words[1::2], strict=True))
    return RunRequest(
        preset="ours", processes=int(given["--processes"]), batch=int(given["--batch"]),
        overrides=parse_overrides([given["--set"]] if "--set" in given else []), data="products:ci",
    )  # fmt: skip


def test_an_adapted_preset_differs_in_what_was_adapted_only():
    original = save("ours", (EIGHT % (8, 1, "linear")).encode())
    way = adaptations(original, machine(2))[0]
    again = save("ours_2", adapted_text(original, way))
    changed = {
        one.name: (one.first, one.second) for one in pairs(original.file, again.file) if one.differs
    }
    assert changed == {
        "accelerate.num_processes": (8, 2), "training.accumulation_steps": (1, 4),
    }  # fmt: skip
    assert again.given - original.given == frozenset()


@pytest.mark.parametrize(
    ("name", "made_for", "words"),
    [
        ("single", None, "one process"),
        ("data_parallel", 8, "one process"),
        ("ddp", None, "as many devices as a machine has"),
        ("ddp", 2, "as many as there are"),
    ],
)
def test_where_nothing_is_to_be_adapted_the_reason_is_said(name, made_for, words):
    found = Library().get(name)
    assert adaptations(found, machine(2), made_for=made_for) == ()
    assert words in why_none(found, made_for)


def test_a_pipeline_has_stages_and_keeps_its_batch():
    (way,) = adaptations(Library().get("model_parallel"), machine(2), made_for=4, micro_batch=64)
    assert (way.kind, way.processes, way.global_batch) == ("stages", 2, 256)


def test_cuda_graphs_do_not_accumulate():
    ours = preset()
    training = msgspec.structs.replace(
        ours.file.training, compile=True, compile_mode="reduce-overhead"
    )
    ours = msgspec.structs.replace(ours, file=msgspec.structs.replace(ours.file, training=training))
    assert [way.kind for way in adaptations(ours, machine(2))] == ["resize", "rescale"]


def test_numbers_out_of_range_are_refused():
    for how in ({"devices": 0}, {"made_for": -1}, {"micro_batch": 10**6}):
        with pytest.raises(SpecError, match="between 1 and 65536"):
            adaptations(preset(), machine(2), **how)


def test_a_run_with_too_few_devices_says_where_to_look():
    library = Library()
    library.presets["ours"] = preset()
    with pytest.raises(SpecError, match="`ringside presets adapt ours`"):
        resolve(RunRequest(preset="ours"), machine(2), library)
    with pytest.raises(SpecError) as caught:
        resolve(RunRequest(preset="ours", processes=4), machine(2), library)
    assert "adapt" not in str(caught.value)
