"""Made, imported, found, compared and replayed again."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringside import presets
from ringside.errors import PlaybookError, RunDirError
from ringside.hardware import Gpu, Hardware
from ringside.imported import refuse_imported
from ringside.launch.stop import stop_run
from ringside.playbook import archive, store
from ringside.playbook.content import NAME_PATTERN, Playbook, decode_playbook, encode_playbook
from ringside.playbook.differences import differences
from ringside.playbook.gathering import gather, preset_text, slug
from ringside.playbook.replay import keep_preset, replay
from ringside.playbook.store import Query
from ringside.presets import About, PresetFile, parse_preset
from ringside.run import fold_run
from ringside.spec import AccelerateSettings, TrainingSettings
from ringside.speedup import find_baseline

BASE, RUN = "20260131-142507-calm-otter", "20260131-150000-swift-heron"


def content(path: Path) -> Playbook:
    return archive.read_content(archive.open_source(path))


def test_export_import_export_gives_the_same(packed, tmp_path):
    receipt = store.import_playbook(packed)
    assert receipt.name == "over-sockets"
    again = store.export_kept(store.find_playbook("over-sockets"), tmp_path / "again.zip")
    assert again.read_bytes() == packed.read_bytes()


def test_the_recorded_runs_give_the_same_playbook_again(packed, tmp_path, draft):
    """What the import unpacked is enough to work everything out once more, traces included."""
    receipt = store.import_playbook(packed)
    folder = store.own_folder() / receipt.name / "runs"
    runs = store.recorded_runs(store.find_playbook(receipt.name))
    again = gather(folder, runs, title="Over sockets").playbook
    was = draft.playbook
    assert again.hardware == was.hardware
    assert again.data == was.data
    assert again.preset_file == was.preset_file
    for one, other in zip(again.runs, was.runs, strict=True):
        # Variables that were left out are not complained of any more, nor is their point.
        assert one.diagnosis.verdict == other.diagnosis.verdict
        assert [p.figures for p in one.points if p.name != "nccl"] == [
            p.figures for p in other.points if p.name != "nccl"
        ]
        assert one.result == other.result
        assert (one.command, one.environment) == (other.command, other.environment)


def test_what_it_says_of_the_runs(draft, story, root):
    first, second = draft.playbook.runs
    assert (first.id, second.id) == (BASE, RUN)
    # 128 images in 0.12 s against 64 in 0.1 s.
    assert second.result.speedup.value == pytest.approx(128 / 0.12 / (64 / 0.1))
    assert draft.playbook.chosen == RUN
    assert draft.playbook.data.classes == ("cat", "dog")
    assert draft.playbook.data.fingerprint == "abc"
    assert second.command.startswith("ringside run ddp --data photos --model resnet50")


def test_the_preset_joins_the_library_once(packed):
    first, second = store.import_playbook(packed), store.import_playbook(packed)
    assert (first.name, second.name) == ("over-sockets", "over-sockets-2")
    assert (first.preset, first.is_new) == ("ddp_2", True)
    assert (second.preset, second.is_new) == ("ddp_2", False)
    kept = presets.Library().get("ddp_2")
    assert kept.file.environment == {"NCCL_P2P_DISABLE": "1"}
    assert presets.Library().get("ddp").origin == presets.BUILT_IN


def test_recorded_runs_are_apart_from_those_of_this_machine(packed, root, story):
    receipt = store.import_playbook(packed)
    run = next(r for r in store.recorded_runs(store.find_playbook(receipt.name)) if r.id == RUN)
    record = fold_run(run)
    assert record.state == "completed"
    assert len(record.epochs) == 3
    for own in story:
        own.exit.unlink()
        own.spec.unlink()
    assert find_baseline(root, record) is None
    with pytest.raises(RunDirError, match="recorded on another machine"):
        refuse_imported(run)
    before = sorted(run.path.rglob("*"))
    ended = stop_run(run, timeout_s=0.1)
    assert ended is not None
    assert ended.state == "completed"
    assert sorted(run.path.rglob("*")) == before


def test_it_is_found_by_words_model_hardware_and_cause(packed):
    store.import_playbook(packed)
    cause = content(packed).causes[0]
    for query in (
        Query(), Query(search="SOCKETS over"), Query(model="resnet"), Query(hardware="h200"),
        Query(cause=cause.replace("_", " ")),
    ):  # fmt: skip
        assert [entry.name for entry in store.list_playbooks(query)] == ["over-sockets"]
    for query in (Query(search="nvlink"), Query(model="vit"), Query(hardware="a100")):
        assert store.list_playbooks(query) == []


def test_the_team_s_folder_is_read_and_a_bad_file_in_it_is_named(packed, tmp_path, monkeypatch):
    team = tmp_path / "team"
    (team / "playbooks").mkdir(parents=True)
    (team / "playbooks" / "good.zip").write_bytes(packed.read_bytes())
    (team / "playbooks" / "bad.zip").write_text("no zip")
    monkeypatch.setenv("RINGSIDE_LIBRARY", str(team))
    good, bad = store.list_playbooks()
    assert (good.name, good.place, good.fault) == ("good", "team", None)
    assert bad.playbook is None
    assert "is no zip" in str(bad.fault)
    with pytest.raises(PlaybookError, match="your own folder"):
        store.remove_playbook("good")
    with pytest.raises(PlaybookError, match="still packed"):
        store.recorded_runs(good)


def test_an_unknown_name_gets_a_hint(packed):
    with pytest.raises(PlaybookError, match="nor any other"):
        store.find_playbook("x")
    store.import_playbook(packed)
    with pytest.raises(PlaybookError, match="Did you mean 'over-sockets'"):
        store.find_playbook("over-socket5")
    assert store.find_playbook(str(packed)).playbook is not None


def test_only_files_of_the_playbook_are_read(packed):
    entry = store.find_playbook(store.import_playbook(packed).name)
    assert store.read_file(entry, "README.md").startswith(b"# Over sockets")
    for name in ("imported.json", "../../presets/ddp_2.yaml", "/etc/passwd"):
        with pytest.raises(PlaybookError):
            store.read_file(entry, name)


def test_two_imports_at_once_get_two_names(packed):
    names: list[str] = []
    threads = [
        threading.Thread(target=lambda: names.append(store.import_playbook(packed).name))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(names)) == 4
    assert not list(store.own_folder().glob(".*"))


def test_an_import_that_fails_half_way_leaves_nothing(packed, monkeypatch):
    def fails(*_: object) -> None:
        raise PlaybookError("no room")

    monkeypatch.setattr(store, "_place", fails)
    with pytest.raises(PlaybookError, match="no room"):
        store.import_playbook(packed)
    assert not list(store.own_folder().iterdir())
    assert "ddp_2" not in presets.Library().presets


def test_nothing_is_overwritten(packed, draft):
    with pytest.raises(PlaybookError, match="exists already"):
        store.keep(draft.playbook, draft.files, packed)


def test_removing(packed):
    name = store.import_playbook(packed).name
    store.remove_playbook(name)
    assert store.list_playbooks() == []
    assert "ddp_2" in presets.Library().presets
    with pytest.raises(PlaybookError):
        store.remove_playbook("../presets")


def test_runs_of_which_none_can_be_made(root, story, write_run, make_spec):
    with pytest.raises(PlaybookError, match="name them"):
        gather(root, [])
    with pytest.raises(PlaybookError, match="named twice"):
        gather(root, [story[0], story[0]])
    running = write_run(make_spec("ddp"), "20260131-170000-brisk-hare", state=None)
    with pytest.raises(PlaybookError, match="brisk-hare is not over"):
        gather(root, [running])
    with pytest.raises(PlaybookError, match="none of these runs"):
        gather(root, story, chosen="20260131-170000-brisk-hare")


def test_differences_are_only_those(draft):
    one = draft.playbook
    assert differences(one, one) == ()
    training = msgspec.structs.replace(one.preset_file.training, comm_hook="bf16")
    file = msgspec.structs.replace(one.preset_file, training=training)
    other = msgspec.structs.replace(
        one, preset_file=file, hardware=msgspec.structs.replace(one.hardware, num_cores=99)
    )
    found = {(line.group, line.name): (line.first, line.second) for line in differences(one, other)}
    assert found == {
        ("preset", "training.comm_hook"): ("no", "bf16"), ("hardware", "num_cores"): (8, 99),
    }  # fmt: skip


def gpus(count: int) -> Hardware:
    return Hardware(num_cores=32, gpus=tuple(
        Gpu(index=n, name="H200", uuid=str(n), memory_total_bytes=1, memory_used_bytes=0)
        for n in range(count)
    ))  # fmt: skip


def test_replay_on_as_many_devices_is_the_same_run(packed):
    entry = store.find_playbook(store.import_playbook(packed).name)
    found = replay(entry, gpus(2), data="emoji")
    assert found.ways == ()
    assert found.is_kept
    assert found.command == (
        "ringside run ddp_2 --data emoji --model resnet50 --epochs 3 --batch 128 --processes 2 "
        "--image-size 32 --seed 0"
    )


def test_replay_on_other_devices_keeps_the_global_batch(packed):
    entry = store.find_playbook(store.import_playbook(packed).name)
    one = replay(entry, gpus(1), data="emoji")
    assert one.ways[0].global_batch == 128
    assert one.request.overrides == {"accumulation_steps": "2"}
    assert one.request.batch == 64
    four = replay(entry, gpus(4), data="emoji")
    assert (four.ways[0].kind, four.ways[0].global_batch) == ("resize", 128)
    rescaled = replay(entry, gpus(4), data="emoji", choose="rescale")
    assert rescaled.request.batch == 256
    with pytest.raises(PlaybookError, match="no way"):
        replay(entry, gpus(4), choose="stages")


def test_replay_asks_for_images_that_were_somebody_s(packed):
    entry = store.find_playbook(str(packed))
    found = replay(entry, gpus(2))
    assert found.needs_data
    assert not found.is_kept
    assert "'photos'" in " ".join(found.notes)
    assert keep_preset(entry) == "ddp_2"
    assert replay(entry, gpus(2)).is_kept


names = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=120)


@given(names)
def test_a_title_becomes_a_name(title):
    assert NAME_PATTERN.fullmatch(slug(title))


words = st.text(st.characters(codec="ascii", categories=("L", "N", "P", "Zs")), min_size=1)


@given(
    title=words.map(lambda text: text[:80]),
    why=words,
    training=st.builds(
        TrainingSettings,
        learning_rate=st.floats(1e-6, 10), accumulation_steps=st.integers(1, 64),
        comm_hook=st.sampled_from(["no", "fp16", "bf16"]), compile=st.booleans(),
        trackers=st.lists(st.sampled_from(["tensorboard", "wandb"]), max_size=2).map(tuple),
        ema_decay=st.none() | st.floats(0.1, 0.9),
    ),
    count=st.none() | st.integers(1, 8),
)  # fmt: skip
def test_a_preset_is_the_same_after_yaml(title, why, training, count):
    file = PresetFile(
        about=About(title=title, why=why, when="now"),
        accelerate=AccelerateSettings(distributed_type="MULTI_GPU", num_processes=count),
        training=training,
    )
    assert parse_preset(preset_text(file), name="x", origin="file").file == file


def test_the_content_is_the_same_after_json(draft):
    assert decode_playbook(encode_playbook(draft.playbook), "x") == draft.playbook
