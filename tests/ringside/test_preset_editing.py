"""A preset as YAML and as a form: the same file either way, and faults with their lines."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ringside.errors import PresetError, RingsideError
from ringside.preset_editing import (
    Problem,
    fields_of,
    preset_of,
    preset_text,
    problems,
    with_fields,
)
from ringside.presets import About, Library, parse_preset

TEXT = """\
# Kept by Lea.
format: 1
about: {title: Ours, why: It is faster, when: Always}
accelerate: {distributed_type: MULTI_GPU, num_processes: 4}
training: {trackers: [tensorboard, wandb]}
environment: {NCCL_ALGO: Ring}
"""


def content(text):
    return parse_preset(text, name="x", origin="file").file


@pytest.mark.parametrize("name", sorted(Library().presets))
def test_form_and_yaml_are_the_same_preset(name):
    preset = Library().get(name)
    text = Path(preset.path).read_text()
    assert content(with_fields(text, fields_of(text))) == preset.file
    assert content(preset_text(preset.file)) == preset.file
    assert problems(text) == ()


def test_a_form_changes_words_and_settings_and_keeps_the_head():
    fields = fields_of(TEXT)
    assert fields.settings.splitlines() == [
        "accelerate.distributed_type=MULTI_GPU", "accelerate.num_processes=4",
        "training.trackers=tensorboard, wandb", "environment.NCCL_ALGO=Ring",
    ]  # fmt: skip
    lines = "distributed_type=FSDP\nfsdp_reshard_after_forward=false\n\ncompile=true"
    changed = msgspec.structs.replace(fields, title="Theirs", settings=lines)
    made = with_fields(TEXT, changed)
    assert made.startswith("# Kept by Lea.\n")
    file = content(made)
    assert (file.about.title, file.about.why) == ("Theirs", "It is faster")
    assert file.accelerate.fsdp_config.fsdp_reshard_after_forward is False
    assert (file.accelerate.num_processes, file.training.compile) == (None, True)
    assert file.environment == {}


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("training.compile", "training.compile.* is no setting"),
        ("training.compil=true", "no setting of this name.*compile"),
        ("compile=true\ntraining.compile=false", "compile stands twice"),
        ("clip_norm=much", "clip_norm must be a number of at least 0, not much"),
        ("environment.LD_PRELOAD=x", "environment may hold"),
    ],
)
def test_a_line_that_cannot_be_is_a_sentence(lines, words):
    with pytest.raises(RingsideError, match=words):
        with_fields(TEXT, msgspec.structs.replace(fields_of(TEXT), settings=lines))


def test_every_part_has_its_own_fault_and_line():
    text = "about:\n  title: t\naccelerate:\n  distributed_typ: NO\ntraining:\n  compile: 3\nx: 1\n"
    found = problems(text)
    assert [one.line for one in found] == [1, 4, 6, 7]
    assert "why" in found[0].sentence
    assert found[1].sentence.startswith("accelerate.distributed_typ: unknown key")
    assert found[2].sentence == "training.compile: Expected `bool`, got `int`"
    assert "x: unknown key" in found[3].sentence


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", None, "empty"),
        ("- 1\n", None, "parts about, accelerate"),
        ("a: 1\nb: ]\n", 2, "while parsing"),
        ("a: 1\na: 2\n", 2, "stands already in line 1"),
        ("a: &x 1\n", 1, "anchors"),
        (TEXT + "# hf_abcdefghijklmnopqrstuv\n", 7, "looks like a secret"),
        (TEXT.replace("format: 1", "format: 9"), None, "format 9"),
        ("about: {title: a, why: b, when: c}\n", None, "parts about"),
        ("accelerate: {}\n", None, "about"),
        ("x" * (2**20 + 1), None, "larger than 1 MiB"),
    ],
)
def test_faults_of_the_text_have_their_line(text, line, words):
    (found,) = problems(text)
    assert isinstance(found, Problem)
    assert found.line == line
    assert words in found.sentence
    with pytest.raises(PresetError):
        fields_of(text if "secret" not in words else "")


def test_a_run_s_request_becomes_a_preset(make_spec):
    spec = make_spec("ddp", num_processes=4, training={"bucket_cap_mb": 50}, precision="bf16")
    flagged = msgspec.structs.replace(spec, sources={"accelerate.num_processes": "flag"})
    words = About(title="T", why="W", when="N")
    file = preset_of(flagged, words)
    assert file.training == spec.training
    assert (file.accelerate.mixed_precision, file.accelerate.num_processes) == ("bf16", None)
    assert file.about.devices == ("cuda", "cpu")
    stated = msgspec.structs.replace(spec, sources={"accelerate.num_processes": "preset"})
    assert preset_of(stated, words).accelerate.num_processes == 4
    assert content(preset_text(file)) == file
