"""`ringside playbook …` and the page in the zip."""

from __future__ import annotations

import json
import re
import zipfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from app.resuming import spec_to_resume
from app.views.playbook_export import export_in_child, export_playbook
from ringside.errors import PlaybookError, RunDirError
from ringside.hardware import Hardware
from ringside.playbook import store
from ringside.playbook.content import Playbook, decode_playbook

BASE, RUN = "20260131-142507-calm-otter", "20260131-150000-swift-heron"
DOCS = Path(__file__).parents[2] / "docs"
VOID = {"meta", "link", "br", "img", "input", "rect", "path", "line", "circle", "use", "image"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A playbook with charts, README and page, made once from plain runs."""
    from ringside.events import WindowTimed, encode
    from ringside.run import RunDir
    from ringside.spec import AccelerateSettings, DataSpec, RunSpec, TrainingSettings

    root = tmp_path_factory.mktemp("made") / "runs"
    for run_id, kind, count in ((BASE, "NO", 1), (RUN, "MULTI_GPU", 2)):
        run = RunDir(root / run_id)
        run.path.mkdir(parents=True)
        run.write(run.spec, RunSpec(
            preset="single" if kind == "NO" else "ddp", training=TrainingSettings(),
            accelerate=AccelerateSettings(distributed_type=kind, num_processes=count),
            data=DataSpec(source="emoji"), global_batch=64 * count, num_processes=count,
            device="cpu", model="resnet18<script>", epochs=2,
        ))  # fmt: skip
        observed = {
            "num_processes": count, "strategy": "ddp", "mixed_precision": "no", "backend": "gloo",
            "device": "cpu", "device_name": "cpu", "num_parameters": 10,
        }  # fmt: skip
        lines: list[dict[str, Any]] = [{
            "kind": "run_started", "t": 1.0, "observed": observed, "num_train": 640, "num_val": 64,
            "num_classes": 2, "task": "multi_label", "data_fingerprint": "abc",
            "data_title": "Emoji <b>", "steps_per_epoch": 10, "learning_rate": 0.1,
        }]  # fmt: skip
        for epoch in (1, 2):
            lines.append({
                "kind": "epoch_trained", "t": 9.0 * epoch, "epoch": epoch, "epoch_time_s": 1.0,
                "epoch_time_s_min": 1.0, "num_samples": 640 * count, "samples_per_s": 640.0 * count,
                "num_optimizer_steps": 10, "train_loss": 1 / epoch,
            })  # fmt: skip
        window = WindowTimed(
            t=5.0, epoch=2, step=20, num_steps=10, samples_per_s=640.0, train_loss=0.5,
            learning_rate=0.1, step_ms=100.0, data_ms=10.0, forward_ms=30.0, backward_ms=50.0,
            optimizer_ms=5.0, step_ms_min=100.0, data_ms_min=10.0,
        )  # fmt: skip
        text = "".join(json.dumps(line) + "\n" for line in lines)
        run.events.write_bytes(text.encode() + encode(window))
        run.write(run.exit, {"state": "completed", "reason": "x", "started": 1.0, "finished": 2.0})
    target = root.parent / "whole.zip"
    return export_playbook(root, [BASE, RUN], target=target, title="Two <i>devices</i> & more")


def content(path: Path) -> tuple[Playbook, dict[str, bytes]]:
    with zipfile.ZipFile(path) as made:
        files = {name.partition("/")[2]: made.read(name) for name in made.namelist()}
    return decode_playbook(files.pop("playbook.json"), "x"), files


class Elements(HTMLParser):
    """Every element with its attributes, and which were left open."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag


def test_the_page_asks_for_nothing_and_runs_nothing(whole):
    text = content(whole)[1]["index.html"].decode()
    elements = Elements()
    elements.feed(text)
    assert elements.open == []
    names = {name for name, _ in elements.found}
    assert names & {"script", "link", "iframe", "img", "object", "i", "base", "form"} == set()
    attributes = [(k, v or "") for _, given in elements.found for k, v in given.items()]
    assert [k for k, _ in attributes if k.startswith("on") or k in ("src", "srcset")] == []
    links = [v for k, v in attributes if k in ("href", "xlink:href")]
    assert [link for link in links if not link.startswith("#")] == []
    assert re.search(r"@import|url\((?!#)", text) is None
    assert "Two &lt;i&gt;devices&lt;/i&gt; &amp; more" in text
    assert "prefers-color-scheme: dark" in text
    ids = [given["id"] for _, given in elements.found if "id" in given]
    assert len(ids) == len(set(ids))


def test_every_colour_of_the_page_is_there_in_light_and_dark(whole):
    text = content(whole)[1]["index.html"].decode()
    used = set(re.findall(r"var\((--rs-[\w-]+)\)", text))
    light, _, dark = text.partition("@media (prefers-color-scheme: dark)")
    dark = dark.partition("* { box-sizing")[0]
    assert used
    assert [name for name in used if f"{name}:" not in light or f"{name}:" not in dark] == []


def test_pictures_are_files_and_in_the_readme(whole):
    playbook, files = content(whole)
    assert {chart.path for chart in playbook.charts} >= {
        "charts/curve-train-loss", f"charts/{RUN}/waterfall",
    }  # fmt: skip
    readme = files["README.md"].decode()
    for chart in playbook.charts:
        assert files[f"{chart.path}.png"].startswith(b"\x89PNG")
        assert files[f"{chart.path}.svg"].startswith(b"<svg")
        assert f"]({chart.path}.png)" in readme
    for part in ("## What was found", "## Results", "ringside run ddp", "## The six points"):
        assert part in readme
    prose = re.sub(r"^```.*?^```", "", readme, flags=re.MULTILINE | re.DOTALL)
    assert "resnet18\\<script\\>" in prose
    assert "<script>" not in prose
    assert sorted(playbook.files) == sorted(files)


def test_the_readme_and_the_page_hold_the_measured_numbers(whole):
    files = content(whole)[1]
    for name in ("README.md", "index.html"):
        text = files[name].decode()
        assert "1,280 images/s" in text
        assert "2.00x" in text


def test_from_the_terminal(ringside, whole, tmp_path):
    code, out, _ = ringside("playbook", "import", str(whole))
    assert code == 0
    assert "ringside playbook replay two-i-devices-i-more" in out
    code, out, _ = ringside("playbook", "list")
    assert "two-i-devices-i-more" in out
    code, out, _ = ringside("playbook", "show", "two-i-devices-i-more")
    assert code == 0
    assert "swift-heron (ddp):" in out
    assert "2.00x" in out
    code, out, _ = ringside("playbook", "show", "two", "--run", "swift")
    assert code == 0
    assert "recorded on another machine" in out
    assert "speed-up: 2.00x" in out
    code, out, _ = ringside("playbook", "diff", "two", str(whole))
    assert out == "They do not differ.\n"
    code, out, _ = ringside("playbook", "export", "two-i-devices-i-more", "-o", f"{tmp_path}/x.zip")
    assert (tmp_path / "x.zip").read_bytes() == whole.read_bytes()
    code, _, err = ringside("playbook", "show", "three")
    assert code == 2
    assert err.startswith("There is no playbook 'three'.")
    code, out, _ = ringside("playbook", "remove", "two-i-devices-i-more", "--yes")
    assert code == 0
    assert not store.list_playbooks()


def documented(heading: str) -> set[str]:
    text = (DOCS / "cli-json.md").read_text()
    section = text.partition(f"## `{heading}`")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))


def test_as_json(ringside, whole):
    imported = json.loads(ringside("playbook", "import", str(whole), "--json")[1])
    assert set(imported) == documented("ringside playbook import FILE --json")
    (line,) = json.loads(ringside("playbook", "list", "--json")[1])
    assert set(line) == documented("ringside playbook list --json")
    assert (line["speedup"], line["samples_per_s"]) == (2.0, 1280.0)
    shown = json.loads(ringside("playbook", "show", "two", "--json")[1])
    assert shown["chosen"] == RUN
    run = json.loads(ringside("playbook", "show", "two", "--run", "swift", "--json")[1])
    assert run["imported_from"] == "Two <i>devices</i> & more"
    assert run["speedup"] == 2.0
    replayed = json.loads(ringside("playbook", "replay", "two", "--json")[1])
    assert set(replayed) == documented("ringside playbook replay NAME --json")
    assert json.loads(ringside("playbook", "diff", "two", "two", "--json")[1]) == []


def test_the_fields_of_the_content_are_documented(whole):
    from ringside.playbook.content import KeptData, KeptHardware, KeptRun

    text = (DOCS / "playbook.md").read_text()
    for kind in (Playbook, KeptRun, KeptData, KeptHardware):
        missing = [name for name in kind.__struct_fields__ if f"`{name}`" not in text]
        assert (kind, missing) == (kind, [])


def test_a_recorded_run_cannot_go_on(whole):
    receipt = store.import_playbook(whole)
    for run in store.recorded_runs(store.find_playbook(receipt.name)):
        with pytest.raises(RunDirError, match="came with a playbook"):
            spec_to_resume(run, Hardware(num_cores=2))


def test_in_a_process_of_its_own(root, write_run, make_spec):
    write_run(make_spec("single"), BASE)
    path = export_in_child(root, [BASE], title="One click")
    assert path == store.own_folder() / "one-click.zip"
    assert store.find_playbook("one-click").playbook is not None
    with pytest.raises(PlaybookError, match="holds no readable"):
        export_in_child(root, ["20260131-142507-no-one"])
