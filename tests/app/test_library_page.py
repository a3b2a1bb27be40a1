"""The Library page over raw HTTP: presets that are kept, imported and edited, and playbooks."""

from __future__ import annotations

import re
import shutil
import zipfile
from pathlib import Path

import gradio as gr
import httpx
import pytest

from app.page.draw.library import source_table
from app.views.library import pairs_of, preset_rows, preset_view, source_views
from app.views.library_making import Making
from app.views.playbook_export import export_playbook
from app.views.prefill import prefilled
from ringside import preset_store
from ringside.errors import RingsideError
from ringside.hardware import Gpu, Hardware
from ringside.playbook import store
from ringside.presets import Library
from ringside.words import speaking
from tests.app.caller import Caller

RUN = "20260102-030401-calm-fox"
TEXT = """\
# Kept by Lea.
format: 1
about: {title: Ours, why: It is faster, when: Always, author: Lea}
accelerate: {distributed_type: MULTI_GPU, num_processes: 8}
training: {accumulation_steps: %d}
"""
ACCELERATE = """\
compute_environment: LOCAL_MACHINE
distributed_type: MULTI_GPU
fp16: true
main_process_ip: 10.0.0.3
num_processes: 8
"""


@pytest.fixture
def told(told, monkeypatch):
    """What is said of success, too."""
    monkeypatch.setattr(gr, "Info", lambda text, **_: told.append(text))
    return told


@pytest.fixture(scope="module")
def caller(served):
    return Caller(served)


@pytest.fixture
def ask(caller, served, told):
    def call(name, **values):
        told.clear()
        return caller.found(name, token=served.settings.token, **values)

    return call


@pytest.fixture
def ours():
    return preset_store.save("ours", (TEXT % 1).encode())


@pytest.fixture
def playbook(root, write_run, make_spec):
    """A playbook of one run in this user's folder, as its name."""
    write_run(make_spec("ddp", training={"bucket_cap_mb": 50}), RUN)
    return export_playbook(root, [RUN], title="Wide buckets").stem


def steps(name="ours"):
    return Library().get(name).file.training.accumulation_steps


# --- presets ----------------------------------------------------------------------------------


def test_the_list_says_where_a_preset_comes_from_and_yours_come_first(ours):
    rows = preset_rows(Library())
    assert (rows[0].name, rows[0].origin, rows[0].author) == ("ours", "yours", "Lea")
    assert rows[0].checksum == ours.checksum[:12]
    assert {row.name for row in rows if not row.is_own} == set(Library().presets) - {"ours"}


def test_an_opened_preset_has_files_versions_and_ways(ours):
    changed = preset_store.replace(ours, (TEXT % 4).encode())
    view = preset_view(changed, Hardware(num_cores=2))
    assert view.yaml == TEXT % 4
    assert "num_processes: 8" in view.accelerate_yaml
    assert view.beyond == ("training.accumulation_steps = 4",)
    assert [one.is_present for one in view.versions] == [True, False]
    assert view.versions[0].changed == (
        "-training: {accumulation_steps: 1}", "+training: {accumulation_steps: 4}",
    )  # fmt: skip
    assert [way.kind for way in view.ways] == ["accumulate", "resize", "rescale"]


def test_differences_show_what_differs_unless_all_is_asked_for(ours, make_spec):
    ddp = Library().get("ddp")
    assert [(one.name, one.first, one.second) for one in pairs_of(ours, ddp)] == [
        ("accelerate.num_processes", "8", "–")
    ]
    everything = pairs_of(ours, ddp, everything=True)
    assert len(everything) > 20
    assert sum(one.differs for one in everything) == 1
    spec = make_spec("ddp", training={"compile": True})
    assert ("training.compile", "false", "true") in [
        (one.name, one.first, one.second) for one in pairs_of(ours, spec)
    ]


def test_libraries_that_are_not_there_say_so(monkeypatch, tmp_path):
    monkeypatch.setenv("RINGSIDE_LIBRARY", f"{tmp_path / 'gone'}:hf://datasets/acme/presets@v2")
    found = source_views(Library())
    assert [one.prefix for one in found] == ["built-in", "yours", "team", "team2"]
    assert found[0].num_presets == len(Library().presets)
    assert found[0].fault is found[1].fault is None
    assert "does not exist" in found[2].fault
    assert "ringside presets fetch" in found[3].fault
    with speaking("zh"):
        shown = re.findall(r'<tr><td class="l">(.*?)</td>', source_table(found))
    assert shown == ["内置", "自己的", "team", "team2"]


def test_an_edit_through_the_form_is_a_new_version(ask, ours, told):
    opened = ask("edit_preset", preset_list="ours")
    assert opened["field-preset-title"] == "Ours"
    assert opened["preset-held"] == ours.checksum
    edited = _edited(opened) | {"field_preset_settings": "distributed_type=MULTI_GPU\ncompile=true"}
    ask("save_preset", field_edit_as="form", **edited)
    assert told == ["Saved ours; the version before stays in its versions."]
    file = Library().get("ours").file
    assert (file.training.compile, file.accelerate.num_processes) == (True, None)
    assert Path(ours.path).read_text().startswith("# Kept by Lea.\n")


def test_a_text_with_faults_is_not_saved_and_says_where(ask, ours, told):
    opened = ask("edit_preset", preset_list="ours")
    text = (TEXT % 1).replace("accumulation_steps", "accumulation_step")
    edited = _edited(opened) | {"field_preset_yaml": text}
    found = ask("save_preset", field_edit_as="yaml", **edited)
    assert told == ["Not saved: 1 to mend, see beside the text."]
    assert "Line 5:" in found["editor-problems"]
    assert Library().get("ours").checksum == ours.checksum
    live = ask("check_preset", field_edit_as="yaml", field_preset_yaml=text)
    assert live["editor-problems"] == found["editor-problems"]


def test_who_saves_second_loses_nothing_and_takes_nothing_away(ask, ours, told):
    opened = ask("edit_preset", preset_list="ours")
    preset_store.replace(ours, (TEXT % 2).encode())
    edited = _edited(opened) | {"field_preset_yaml": TEXT % 3}
    ask("save_preset", field_edit_as="yaml", **edited)
    assert "Somebody has saved ours since you opened it" in told[0]
    assert steps() == 2
    laid, *_ = preset_store.versions(Library().get("ours"))
    assert Path(laid.path).read_text() == TEXT % 3
    ask("bring_back", preset_list="ours", preset_history=laid.checksum)
    assert steps() == 3


def test_clone_rename_and_delete(ask, ours, told):
    proposed = ask("name_preset", preset_list="ddp")["field-new-name"]
    assert proposed == "ddp_2"
    ask("clone_preset", preset_list="ddp", field_new_name="mine")
    assert Library().get("mine").file == Library().get("ddp").file
    ask("clone_preset", preset_list="ddp", field_new_name="../../mine")
    assert "is no name for a preset" in told[0]
    ask("rename_preset", preset_list="mine", field_new_name="ours")
    assert "exists already" in told[0]
    ask("rename_preset", preset_list="mine", field_new_name="theirs")
    assert "theirs" in Library().presets
    ask("delete_preset", preset_list="theirs", preset_asked="ours")
    assert "theirs" in Library().presets
    ask("delete_preset", preset_list="theirs", preset_asked="theirs")
    assert "theirs" not in Library().presets


@pytest.mark.parametrize("name", ["rename_preset", "delete_preset", "bring_back"])
def test_what_is_built_in_stays(ask, told, name):
    before = Library().get("ddp").checksum
    ask(name, preset_list="ddp", field_new_name="mine", preset_asked="ddp", preset_history=before)
    assert len(told) == 1
    assert Library().get("ddp").checksum == before


# --- import -----------------------------------------------------------------------------------


def test_a_pasted_configuration_is_reported_and_then_saved(ask, told):
    found = ask("look_at_import", field_pasted=ACCELERATE)
    report = found["import-report"]
    for words in ("main_process_ip", "stripped", "a fact of one machine", "devices instead of 8"):
        assert words in report
    assert found["field-import-name"] == "pasted"
    assert "pasted" not in Library().presets
    ask("save_import", field_pasted=ACCELERATE, field_import_name="ddp")
    assert "exists already" in told[0]
    ask("save_import", field_pasted=ACCELERATE, field_import_name="from_lea")
    assert Library().get("from_lea").file.accelerate.mixed_precision == "fp16"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("distributed_type: DEEPSPEED\n", "DeepSpeed"),
        ("a: [", "while parsing"),
        (ACCELERATE + "token: hf_abcdefghijklmnopqrstuv\n", "secret"),
        ("<img src=x onerror=alert(1)>", "Refused"),
    ],
)
def test_a_refused_text_is_one_sentence_and_nothing_is_saved(ask, text, words):
    found = ask("look_at_import", field_pasted=text)
    assert words in found["import-report"]
    assert "<img" not in found["import-report"]
    before = set(Library().presets)
    ask("save_import", field_pasted=text, field_import_name="x")
    assert set(Library().presets) == before


def test_an_uploaded_file_is_read_into_the_field_and_is_gone(ask, served):
    for content, words in (
        (ACCELERATE.encode(), "an Accelerate configuration"), (b"\xff\xfe\x00", "UTF-16"),
        (b"x" * (2**20 + 5), "larger than 1 MiB"),
    ):  # fmt: skip
        path = _upload(served, "lea's config.yaml", content)
        found = ask("read_preset_file", field_preset_file=path)
        assert words in found["import-report"]
        assert not Path(path["path"]).exists()


# --- the form of Train ------------------------------------------------------------------------


def test_the_form_becomes_a_preset(ask, caller, told):
    values = {"field_preset": "ddp", "field_overrides": "bucket_cap_mb=50", "field_source": "emoji"}
    found = ask("name_form", **values)
    assert found["field-form-name"] == "ddp_2"
    words = {"field_form_title": "T" * 81, "field_form_why": "W", "field_form_when": "N"}
    ask("save_form", **values, **words, field_form_name="wide")
    assert "These words cannot be a preset's" in told[0]
    ask("save_form", **values, **words | {"field_form_title": "T"}, field_form_name="wide")
    kept = Library().get("wide")
    assert kept.origin == "yours"
    assert (kept.file.training.bucket_cap_mb, kept.file.accelerate.num_processes) == (50, None)
    ask("name_form", **values | {"field_overrides": "no_such=1"})
    assert "makes no run" in told[0]


# --- playbooks --------------------------------------------------------------------------------


def test_a_playbook_is_opened_served_and_replayed(ask, served, playbook):
    shown = ask("show_playbook", playbook_list=playbook)
    assert "Wide buckets" in shown["playbook-head"]
    page = httpx.get(f"{served.url}/playbook/{playbook}/page")
    policies = page.headers.get_list("content-security-policy")
    assert any(policy.startswith("sandbox; default-src 'none'") for policy in policies)
    assert "<script" not in page.text
    content = httpx.get(f"{served.url}/playbook/{playbook}/zip")
    assert content.headers["content-disposition"] == f'attachment; filename="{playbook}.zip"'
    assert content.content.startswith(b"PK")
    # The preset is not in the library, so pressing the button puts it there first.
    assert all(one.file.training.bucket_cap_mb != 50 for one in Library() if one.origin == "yours")
    found = ask("replay_playbook", playbook_list=playbook, playbook_replay="")
    assert found["playbook-go"] == f"?playbook={playbook}"
    filled = prefilled([("playbook", playbook)], served.settings.runs_root, Hardware(num_cores=2))
    preset = Library().get(filled.values["preset"])
    assert (preset.origin, preset.file.training.bucket_cap_mb) == ("yours", 50)
    assert (filled.values["source"], filled.values["batch"], filled.values["processes"]) == (
        "emoji", 128, 2,
    )  # fmt: skip


def test_a_replay_on_other_devices_is_adapted(playbook, served):
    preset_store.save("wide", (TEXT % 1).encode())
    gpus = tuple(
        Gpu(index=i, uuid=f"u{i}", name="H200", memory_total_bytes=2**37, memory_used_bytes=0)
        for i in (4, 6, 7, 8)
    )
    hardware = Hardware(num_cores=16, gpus=gpus)
    query = [("preset", "wide"), ("way", "rescale")]
    found = prefilled(query, served.settings.runs_root, hardware)
    assert found.values["gpus"] == [4, 6, 7, 8]
    assert "4 devices instead of 8" in found.lost[0]
    found = prefilled([query[0], ("way", "accumulate")], served.settings.runs_root, hardware)
    assert found.values["overrides"] == "training.accumulation_steps=2"
    with pytest.raises(RingsideError, match="'sideways' is no way for wide"):
        prefilled([query[0], ("way", "sideways")], served.settings.runs_root, hardware)


def test_only_playbooks_of_the_library_are_served(served, playbook, tmp_path):
    (tmp_path / "secret.zip").write_bytes(b"PK")
    for name in ("nope", "..", "%2e%2e", f"..%2f{playbook}", str(tmp_path / "secret"), "%00"):
        for what in ("zip", "page"):
            answer = httpx.get(f"{served.url}/playbook/{name}/{what}")
            assert answer.status_code == 404, name
            assert "Traceback" not in answer.text


def test_a_playbook_comes_in_once_it_was_checked(ask, served, playbook, tmp_path, told):
    content = httpx.get(f"{served.url}/playbook/{playbook}/zip").content
    path = _upload(served, "from lea.zip", content)
    ask("import_playbook", field_playbook_file=path)
    assert told[0].startswith("Imported as wide-buckets-2; its preset is ddp")
    assert not Path(path["path"]).exists()
    bad = tmp_path / "bad.zip"
    with zipfile.ZipFile(bad, "w") as archive:
        archive.writestr("../evil.txt", "x")
    path = _upload(served, "bad.zip", bad.read_bytes())
    ask("import_playbook", field_playbook_file=path)
    assert "evil" in told[0]
    assert len(store.list_playbooks()) == 2
    ask("remove_playbook", playbook_list="wide-buckets-2", playbook_asked="")
    assert len(store.list_playbooks()) == 2
    ask("remove_playbook", playbook_list="wide-buckets-2", playbook_asked="wide-buckets-2")
    assert [one.name for one in store.list_playbooks()] == [playbook]


def test_two_playbooks_are_held_beside_each_other(ask, root, playbook, write_run, make_spec):
    other = "20260102-030402-pale-otter"
    write_run(make_spec("ddp", training={"bucket_cap_mb": 75}), other)
    second = export_playbook(root, [other], title="Wider").stem
    found = ask("playbook_difference", playbook_list=playbook, field_against_playbook=second)
    assert "training.bucket_cap_mb" in found["playbook-difference"]
    assert "training.clip_norm" not in found["playbook-difference"]


def test_one_playbook_is_made_at_a_time(monkeypatch, tmp_path):
    calls = []

    def export(root, ids, **_):
        calls.append(ids)
        if len(calls) > 1:
            raise RingsideError("No run.")
        with pytest.raises(RingsideError, match="Another playbook"):
            making.start(["b"])
        making.start(["a"])  # the same again is the one under way
        return tmp_path / "kept.zip"

    monkeypatch.setattr("app.views.library_making.export_in_child", export)
    making = Making(tmp_path)
    for ids, kind in ((["a"], "done"), (["c"], "failed")):
        making.start(ids)
        while making.state.kind == "running":
            pass
        assert making.state.kind == kind
    assert calls == [("a",), ("c",)]
    assert making.state.sentence == "No run."


@pytest.mark.parametrize(
    ("event", "fields"),
    [
        ("playbook_of_run", lambda run: {"run_id": run.id}),
        ("playbook_of_runs", lambda run: {"field_runs": f'{{"runs": ["{run.id}"]}}'}),
        ("make_playbook", lambda run: {"field_playbook_runs": [run.id]}),
    ],
)
def test_one_press_on_each_page_makes_a_playbook(ask, served, runs_at, monkeypatch, event, fields):
    run = runs_at(served.settings.runs_root).add("calm-fox", ended="completed")
    asked = []
    making = type("Making", (), {"start": lambda _, *args: asked.append(args[0])})()
    making.state = served.settings.making.state
    monkeypatch.setitem(served.settings.__dict__, "making", making)
    ask(event, **fields(run))
    assert asked == [[run.id]]
    shutil.rmtree(run.path)


@pytest.mark.parametrize("chosen", [[], ["nope"], ["../x"], None, [["x"]], "x"])
def test_a_playbook_of_no_run_is_refused(ask, served, told, chosen):
    ask("make_playbook", field_playbook_runs=chosen)
    assert told == ["Choose between 1 and 12 runs that are there and over."]
    assert served.settings.making.state.kind == "none"


def _edited(opened):
    """The fields of an opened editor, as a browser sends them back."""
    names = [name for name in opened if name.startswith(("field-preset-", "preset-"))]
    return {name.replace("-", "_"): opened[name] for name in names}


def _upload(served, name, content):
    files = {"files": (name, content)}
    (path,) = httpx.post(f"{served.url}/gradio_api/upload", files=files).json()
    return {"path": path, "meta": {"_type": "gradio.FileData"}, "orig_name": name}
