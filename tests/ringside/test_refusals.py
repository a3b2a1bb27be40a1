"""What refuses a visitor of the page: in Chinese for who reads it, in English for the log.

Each mistake is made twice, by the real functions, in both languages.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from PIL import Image

import ringside
from ringside import preset_store, yaml_text
from ringside.adaptation import adaptations
from ringside.checkpoints import find_model
from ringside.data import check_data, open_data, parse_data
from ringside.data.pixels import decode_rgb
from ringside.data.prepare.files import Recipe
from ringside.data.prepare.planning import plan_preparation
from ringside.durations import parse_duration
from ringside.errors import RingsideError
from ringside.hardware import Gpu, Hardware
from ringside.importing import import_text
from ringside.launch.ladder import GRACE_VARIABLE, stop_grace_s
from ringside.launch.probing import measure_description, measure_experiment, measure_sweep
from ringside.nccl_log import read_nccl_log
from ringside.overrides import parse_overrides
from ringside.preset_editing import problems
from ringside.presets import Library, parse_preset
from ringside.profile_request import ask_for_profile
from ringside.request import RunRequest, continue_run, resolve
from ringside.run import require_spec
from ringside.rundir import RunDir, find_run, write_atomic
from ringside.trace import read_traces
from ringside.words import DEFAULT, remembering, speaking

CLONE = Path(ringside.__file__).parents[1]
CJK = re.compile(r"[\u4e00-\u9fff]")
ENGLISH = re.compile(r"(?<![\w=./:-])[a-z]{2,} [a-z]{2,} [a-z]{2,}")
QUOTED = re.compile(
    r"No such file or directory|unexpected end of data|Object missing required field `key`"
    r"|`[^`]*`"
)
"""What the system and libraries say, and what is typed."""
CPU = Hardware(num_cores=2)
OLD = Gpu(
    index=0, name="V100", uuid="GPU-0", memory_total_bytes=2**34, memory_used_bytes=0,
    compute_capability=(7, 0),
)  # fmt: skip
GPU = msgspec.structs.replace(OLD, index=1, uuid="GPU-1", compute_capability=(9, 0))
ON_OLD, ON_GPU = Hardware(gpus=(OLD,), num_cores=8), Hardware(gpus=(OLD, GPU), num_cores=8)


def refusal_of(mistake: Callable[[], Any]) -> str:
    with pytest.raises(RingsideError) as caught:
        mistake()
    return str(caught.value)


def check(mistake: Callable[[], Any]) -> None:
    """Chinese, with no English clause in it; and the log finds the sentence that English has."""
    english = refusal_of(mistake)
    with speaking("zh"), remembering() as retold:
        chinese = refusal_of(mistake)
    assert not CJK.search(english)
    assert CJK.search(chinese), chinese
    assert not ENGLISH.search(QUOTED.sub("", chinese)), chinese
    assert retold(chinese) == english


@pytest.mark.parametrize(
    ("hardware", "fields"),
    [
        (CPU, {"preset": "nope"}),
        (CPU, {"model": "resnot50"}),
        (CPU, {"epochs": 0}),
        (CPU, {"processes": 9}),
        (CPU, {"batch": 7}),
        (CPU, {"batch": 2**20, "overrides": {"accumulation_steps": "4"}}),
        (CPU, {"batch": 100_000}),
        (CPU, {"batch": 100_000, "overrides": {"accumulation_steps": "4"}}),
        (CPU, {"seed": -1}),
        (CPU, {"profile": 999}),
        (CPU, {"retries": 5}),
        (CPU, {"queue": True, "beside": True}),
        (CPU, {"time_limit_s": 0}),
        (CPU, {"gpus": (0,)}),
        (CPU, {"preset": "ddp_fp16"}),
        (CPU, {"weights": "there/is/none.pth"}),
        (CPU, {"weights": "no-such-run"}),
        (CPU, {"data": "nowhere"}),
        (CPU, {"data": ""}),
        (CPU, {"data": "emoji:x"}),
        (CPU, {"data": "products:x"}),
        (CPU, {"data": "synthetic:0"}),
        (CPU, {"data": "hf:../etc"}),
        (CPU, {"data": "emoji", "separator": ";"}),
        (CPU, {"data": "emoji", "image_size": 5}),
        (CPU, {"data": "synthetic", "overrides": {"mixup": "0.2"}}),
        (CPU, {"overrides": {"no_such": "1"}}),
        (CPU, {"overrides": {"num_processes": "3"}}),
        (CPU, {"overrides": {"best_by": "accuracy"}}),
        (CPU, {"overrides": {"learning_rate": "inf"}}),
        (CPU, {"overrides": {"accumulation_steps": "3000000000"}}),
        (CPU, {"overrides": {"learning_rate": "fast"}}),
        (CPU, {"overrides": {"momentum": "2"}}),
        (CPU, {"overrides": {"timeout_s": ""}}),
        (CPU, {"overrides": {"trackers": "nothing"}}),
        (CPU, {"overrides": {"trackers": "[1]"}}),
        (CPU, {"overrides": {"mixed_precision": "fp16"}}),
        (CPU, {"overrides": {"warmup_epochs": "9"}}),
        (CPU, {"overrides": {"momentum": "0.5"}}),
        (CPU, {"overrides": {"compile_mode": "reduce-overhead"}}),
        (CPU, {"overrides": {"cudnn_benchmark": "true"}}),
        (CPU, {"overrides": {"compile": "true", "compile_mode": "reduce-overhead"}}),
        (CPU, {"overrides": {"reduce_dtype": "bf16"}}),
        (CPU, {"overrides": {"sync_batchnorm": "true"}}),
        (CPU, {"overrides": {"decoder": "gpu"}}),
        (CPU, {"overrides": {"parallelism": "data_parallel"}}),
        (CPU, {"overrides": {"environment.OMP_NUM_THREADS": "99"}}),
        (CPU, {"overrides": {"environment.LD_PRELOAD": "x"}}),
        (CPU, {"preset": "single", "overrides": {"static_graph": "true"}}),
        (CPU, {"preset": "fsdp", "overrides": {"channels_last": "true"}}),
        (CPU, {"preset": "fsdp", "model": "vit_small_patch16_224"}),
        (ON_GPU, {"gpus": (7,)}),
        (ON_GPU, {"gpus": ()}),
        (ON_GPU, {"gpus": (1, 1)}),
        (ON_GPU, {"gpus": (0, 1), "processes": 1}),
        (ON_GPU, {"preset": "single", "gpus": (0, 1)}),
        (ON_GPU, {"overrides": {"pretrained": "true"}, "weights": "no-such-run"}),
        (ON_GPU, {"preset": "model_parallel", "model": "vit_small_patch16_224"}),
        (ON_GPU, {"preset": "model_parallel", "overrides": {"mixup": "0.2"}}),
        (ON_OLD, {"preset": "data_parallel"}),
        (ON_OLD, {"preset": "single", "overrides": {"mixed_precision": "bf16"}}),
    ],
)  # fmt: skip
def test_a_request(hardware, fields):
    check(lambda: resolve(RunRequest(**{"preset": "ddp", **fields}), hardware))


ABOUT = 'about: {title: t, why: "", when: ""}\n'


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff\xfea",
        b"a: \xff",
        b"[1]",
        b"a: &x 1",
        b"a: !!python/object:os.system x",
        b"a: 1e999",
        b"a: 1\na: 2",
        b"[1]: 2",
        b"a:\n\tb: 1",
        b"a: " + b"[" * 20 + b"]" * 20,
        b"x: " + b"1" * 2**20,
        b"format: 99",
        b"about: {}",
        b"accelerate: {}",
        ABOUT.encode() + b"accelerate: {distributed: FSDP}",
        ABOUT.encode() + b"accelerate: {distributed_type: FSPD}",
        ABOUT.encode() + b"accelerate: {distributed_type: FSDP}",
        ABOUT.encode() + b"accelerate: {mixed_precision: 7}",
        ABOUT.encode() + b"accelerate: {}\ntraining: {epochs: 1}",
        ABOUT.encode() + b"accelerate: {}\ntraining: {base_batch: 0}",
        ABOUT.encode() + b"accelerate: {}\ntraining: {compile: often}",
        ABOUT.encode() + b"accelerate: {}\nenvironment: {LD_PRELOAD: x}",
        ABOUT.encode() + b"accelerate: {}\nenvironment: {NCCL_ALGO: /etc}",
        b'about: {title: "", why: "", when: ""}\naccelerate: {}',
        b"about: {title: t, why: no, when: 3}\naccelerate: {}",
    ],
)
def test_a_preset_s_text(text):
    check(lambda: parse_preset(text, name="mine", origin="file"))


def test_the_editor_names_the_line_in_every_language():
    text = f"{ABOUT}accelerate: {{}}\n# hf_{'a' * 20}\n"
    english = problems(text), problems("a: 1\na: 2")
    with speaking("zh"):
        chinese = problems(text), problems("a: 1\na: 2")
        assert "第 1 行" in str(import_text(b"a: &x 1", origin="team.yaml").refused)
    assert [[one.line for one in found] for found in (*english, *chinese)] == [[3], [2], [3], [2]]
    for found in chinese:
        assert all(CJK.search(one.sentence) for one in found)
        assert not any(one.sentence.startswith("preset") for one in found)


def test_the_library(tmp_path):
    built_in = Library().get("ddp")
    mine = preset_store.clone(built_in, "mine")
    mistakes: list[Callable[[], object]] = [
        lambda: preset_store.clone(built_in, "../x"),
        lambda: preset_store.clone(built_in, "mine"),
        lambda: preset_store.rename(built_in, "x"),
        lambda: preset_store.rename(mine, "mine"),
        lambda: preset_store.bring_back(mine, "0" * 64),
        lambda: preset_store.replace(preset_store.seen(mine, "0"), Path(mine.path).read_bytes()),
        lambda: preset_store.delete(msgspec.structs.replace(mine, source="hf://datasets/a/b")),
        lambda: preset_store.export(mine, tmp_path / "no" / "x.yaml"),
        lambda: preset_store.export(mine, Path(mine.path)),
        lambda: yaml_text.read_bytes(tmp_path / "no"),
        lambda: adaptations(mine, CPU, devices=0),
        lambda: import_text(b"", origin="x", name="../x"),
    ]
    for mistake in mistakes:
        check(mistake)


def test_a_library_that_cannot_be_read_is_told_in_chinese(monkeypatch):
    monkeypatch.setenv("RINGSIDE_LIBRARY", "hf://datasets/a/b:hf://nonsense")
    with speaking("zh"):
        assert [bool(CJK.search(str(fault))) for fault in Library().faults] == [True, True]


TABLES = {
    "no image column": "a,b\n1,2\n",
    "no header": "1.png,cat\n2.png,dog\n",
    "no rows": "file_name,label\n",
    "no name": "file_name,label\n,cat\n1.png,dog\n",
    "columns twice": "file_name,label,label\n1.png,cat,cat\n",
    "an open quote": 'file_name,label\n1.png,"cat\n',
    "too many cells": "file_name,label\n1.png,cat,dog\n",
    "two label columns": "file_name,label,labels\n1.png,cat,cat\n",
    "no label column": "file_name,weight\n1.png,3\n2.png,4\n",
    "a strange split": "file_name,label,split\n1.png,cat,train\n2.png,dog,tain\n",
    "missing files": "file_name,label\n8.png,cat\n9.png,dog\n",
    "one class": "file_name,label\n1.png,cat\n2.png,cat\n",
    "the same labels": "file_name,labels\n1.png,cat\n2.png,cat\n",
    "no labels": "file_name,labels\n1.png,\n2.png,\n",
    "validation only": "file_name,label,split\n1.png,cat,val\n2.png,dog,val\n",
}


@pytest.fixture
def folder(tmp_path):
    """Two pictures, and room for a table."""
    for name, colour in (("1.png", (9, 9, 9)), ("2.png", (99, 9, 9))):
        Image.new("RGB", (4, 4), colour).save(tmp_path / name)
    return tmp_path


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_table_of_images(folder, table):
    (folder / "metadata.csv").write_text(table)
    check(lambda: open_data(parse_data(str(folder))))


def test_folders_and_other_files_of_images(folder):
    def at(name: str, content: bytes) -> Callable[[], object]:
        (folder / name).write_bytes(content)
        return lambda: open_data(parse_data(str(folder / name)))

    check(lambda: open_data(parse_data(str(folder))))  # images, but no class folders
    (folder / "empty").mkdir()
    check(lambda: open_data(parse_data(str(folder / "empty"))))
    check(lambda: open_data(parse_data(str(folder), separator=";")))
    check(lambda: parse_data(str(folder), separator="blank"))
    check(lambda: parse_data(str(folder / "1.png")))
    check(lambda: open_data(parse_data("emoji"), skip=["x"]))
    check(at("a.jsonl", b"[1]"))
    check(at("b.jsonl", b'{"file_name": "1.png", "label": {"a": 1}}'))
    check(at("c.jsonl", b'{"file_name": "1.png", "label": ["a", "b"]}'))
    check(at("d.csv", b"file_name,label\n\xff.png,cat"))
    (folder / "metadata.jsonl").write_text("{}")
    (folder / "metadata.csv").write_text(TABLES["no rows"])
    check(lambda: open_data(parse_data(str(folder))))


def test_a_damaged_prepared_set(folder):
    (folder / "prepared.json").write_text("{}")
    (folder / "index.json").write_text("{}")
    spec = msgspec.structs.replace(parse_data(str(folder)), source="prepared")
    check(lambda: open_data(spec))


@pytest.mark.parametrize(
    "content",
    [
        b"", b"<!doctype html>", b"version https://git-lfs", b"....ftypheic", b"<svg", b"%PDF",
        b"PK\x03\x04", b"nonsense", b"\x89PNG\r\n\x1a\nnonsense",
    ],
)  # fmt: skip
def test_a_picture(content):
    check(lambda: decode_rgb(content, "a.jpg"))


def test_a_check_of_data_speaks_to_whoever_asked(folder):
    """What it found too: bad files, what was left out, how the labels were found."""
    (folder / "3.png").write_bytes(b"")
    (folder / "metadata.csv").write_text("file_name,label\n1.png,cat\n2.png,dog\n3.png,cat\n")
    (folder / "notes.txt").write_text("x")
    with speaking("zh"):
        report = check_data(str(folder), workers=2)
        few = check_data(str(folder), workers=1)
    assert few == report
    told = [report.layout, *(bad.reason for bad in report.bad)]
    told += [note.message for note in (*report.warnings, *report.notes)]
    assert len(told) >= 4
    assert [text for text in told if not CJK.search(text) or ENGLISH.search(text)] == []


def test_a_prepared_set_is_a_file_and_so_in_english(folder, tmp_path_factory):
    (folder / "metadata.csv").write_text("file_name,label\n1.png,cat\n2.png,dog\n")
    (folder / "notes.txt").write_text("x")
    with speaking("zh"):
        plan = plan_preparation(
            parse_data(str(folder)), Recipe(), tmp_path_factory.mktemp("out") / "set"
        )
    assert plan.marker.notes
    assert not any(CJK.search(note) for note in plan.marker.notes)
    assert any(CJK.search(note) for note in plan.data.notes)


def test_runs_and_what_they_keep(root, write_run, make_spec, tmp_path, monkeypatch):
    check(lambda: find_run(root, "fox"))
    run = write_run(make_spec("single"), "20261130-000000-amber-fox")
    write_run(make_spec("single"), "20261130-000001-amber-owl")
    bare = RunDir(root / "20261130-000002-calm-owl")
    bare.path.mkdir()
    (tmp_path / "file").touch()
    monkeypatch.setenv(GRACE_VARIABLE, "soon")
    mistakes: list[Callable[[], object]] = [
        lambda: find_run(root, "amber"),
        lambda: find_run(root, "walrus"),
        lambda: find_model(root, "no/such/folder", "best"),
        lambda: find_model(root, run.id, "best"),
        lambda: ask_for_profile(run),
        lambda: ask_for_profile(run, 999),
        lambda: ask_for_profile(bare),
        lambda: require_spec(ringside_record(bare)),
        lambda: continue_run(bare, CPU),
        lambda: continue_run(run, CPU),
        lambda: write_atomic(tmp_path / "file" / "x", b""),
        lambda: parse_duration("soon"),
        lambda: parse_overrides(["x"]),
        lambda: parse_overrides(["seed=1", "a=b"]),
        lambda: parse_overrides(["momentum=1", "training.momentum=2"]),
        stop_grace_s,
    ]
    for mistake in mistakes:
        check(mistake)


def ringside_record(run: RunDir) -> Any:
    from ringside.run import fold_run

    return fold_run(run)


def test_traces_and_logs(tmp_path):
    empty, cut, other, nested = (tmp_path / f"{name}.json" for name in "abcd")
    empty.touch()
    cut.write_bytes(b'{"traceEvents": [')
    other.write_bytes(b'{"x": 1}')
    nested.write_bytes(b'{"traceEvents": []}')
    console = tmp_path / "console.txt"
    console.write_text("nothing of it\n")
    mistakes: list[Callable[[], object]] = [
        lambda: read_traces([tmp_path / "no.json"]),
        lambda: read_traces([empty]),
        lambda: read_traces([cut]),
        lambda: read_traces([nested]),
        lambda: read_traces([cut, empty]),
        lambda: read_nccl_log([]),
        lambda: read_nccl_log([tmp_path]),
        lambda: read_nccl_log([tmp_path / "no.log"]),
        lambda: read_nccl_log([empty]),
        lambda: read_nccl_log([console]),
    ]
    for mistake in mistakes:
        check(mistake)
    with speaking("zh"):
        assert CJK.search(refusal_of(lambda: read_traces([other])))  # quotes msgspec


def test_measurements_that_cannot_be(make_spec):
    spec = make_spec("ddp")
    absent = msgspec.structs.replace(spec, device="cuda", gpu_ids=(8, 9))
    mistakes: list[Callable[[], object]] = [
        lambda: measure_sweep(CPU, 1),
        lambda: measure_sweep(ON_GPU, 4),
        lambda: measure_experiment(absent, CPU),
        lambda: measure_experiment(spec, ON_GPU),
        lambda: measure_description(absent, ON_GPU),
    ]
    for mistake in mistakes:
        check(mistake)


def test_what_could_not_be_measured_is_kept_in_english(make_spec, monkeypatch):
    """The measurement is a file; who asked for it is told in their language."""
    from ringside.errors import LaunchError
    from ringside.launch import probing
    from ringside.words import say

    def fails(*_: object, **__: object) -> None:
        raise LaunchError(say("probes.too_long", timeout_s=9))

    kept: list[dict[str, Any]] = []
    replaced = msgspec.structs.replace

    def replace(value: Any, **changes: Any) -> Any:
        kept.append(changes)
        return replaced(value, **changes)

    monkeypatch.setattr(probing, "launch_probe", fails)
    monkeypatch.setattr(probing.msgspec.structs, "replace", replace)
    told: list[str] = []
    with speaking("zh"), pytest.raises(LaunchError) as caught:
        measure_experiment(make_spec("single"), CPU, say=told.append)
    said = say("probes.too_long", timeout_s=9)
    assert {one["problem"] for one in kept if "problem" in one} == {said}
    assert CJK.search(str(caught.value))
    assert str(caught.value) in told


# And no sentence of the code itself, except where no page reads it.

IN_TERMINALS = (
    "app/commands/", "app/flags/", "ringside/data/emoji/", "ringside/data/products/files.py",
    "ringside/data/prepare/planning.py", "ringside/data/prepare/writing.py",
    "ringside/labelling.py",
)  # fmt: skip
ELSEWHERE = {
    "ringside/hardware.py": "before any language is known",
    "ringside/hub_library.py": "of `ringside presets fetch`",
    "ringside/launch/supervisor.py": "of the supervisor",
    "ringside/launch/torch_report.py": "kept with the machine",
    "ringside/scores/predictions.py": "of the trainer",
}
"""Files in which a refusal stands in English, and why."""


def refusals_in_code() -> set[str]:
    """The files that raise a RingsideError with a sentence of their own."""
    kinds = {kind.__name__ for kind in subclasses(RingsideError)}
    found = set()
    for path in (*(CLONE / "ringside").rglob("*.py"), *(CLONE / "app").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            is_raised = isinstance(node, ast.Call) and getattr(node.func, "id", "") in kinds
            if is_raised and node.args and is_sentence(node.args[0]):
                found.add(path.relative_to(CLONE).as_posix())
    return found


def subclasses(kind: type[Exception]) -> set[type[Exception]]:
    return {kind}.union(*(subclasses(one) for one in kind.__subclasses__()))


def is_sentence(node: ast.expr) -> bool:
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    texts = (part.value for part in parts if isinstance(part, ast.Constant))
    return any(isinstance(text, str) and " " in text for text in texts)


def test_no_refusal_of_the_page_stands_in_the_code():
    found = {file for file in refusals_in_code() if not file.startswith(IN_TERMINALS)}
    assert found == set(ELSEWHERE)


def test_a_refusal_in_the_code_would_be_found():
    (call,) = ast.parse('SpecError(f"{name} is no run")').body
    assert isinstance(call, ast.Expr)
    assert isinstance(call.value, ast.Call)
    assert is_sentence(call.value.args[0])
    assert not is_sentence(ast.parse('say("run.none", name=name)', mode="eval").body)


def test_the_log_retells_sentences_that_stand_together():
    from ringside.words import say

    with speaking("zh"), remembering() as retold:
        first, second = say("request.queue_or_beside"), say("request.one_gpu", count=3)
        both = say("preflight.open", sentences=f"{first} {second}")
    assert CJK.search(both)
    english = retold(both)
    assert not CJK.search(english)
    for key, values in (("request.queue_or_beside", {}), ("request.one_gpu", {"count": 3})):
        assert say(key, DEFAULT, **values) in english
