"""The `ringside` command: what it prints, what scripts rely on, and how it says no."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from app import cli
from ringside import __version__
from ringside.overrides import OPTION_OF
from ringside.run import RunDir, fold_run

CLONE = Path(cli.__file__).parents[1]
BASE, RUN = "20260101-000000-calm-fox", "20260102-000000-swift-hare"

FLAGS = {
    "run": "--batch --beside --data --dry-run --epochs --follow --gpus --image-size "
    "--keep-global-batch --model --processes --profile --queue --retry --seed --separator --set "
    "--skip-bad --time-limit --weights",
    "resume": "--beside --epochs --follow --gpus --processes --queue",
    "queue": "--json",
    "queue up": "",
    "queue down": "",
    "queue first": "",
    "queue pause": "",
    "queue resume": "",
    "watch": "",
    "list": "--archived --json --limit --preset --search --sort --state --tag",
    "tag": "",
    "note": "",
    "archive": "--undo",
    "delete": "--yes",
    "leftovers": "--clean --json",
    "show": "--classes --json",
    "export": "--checkpoint --format --out",
    "label": "--checkpoint --json --threshold --top",
    "stop": "--after-epoch",
    "stacks": "--json --native --threads",
    "checkpoint": "",
    "nccl": "--json",
    "doctor": "--json --measure --sweep",
    "preflight": "--batch --check --data --epochs --gpus --image-size --json --model --processes "
    "--queue --set",
    "profile": "--steps",
    "estimate": "--batch --data --data-rate --image-size --json --keep-global-batch --like "
    "--measure --model --processes --set",
    "bench": "--batch --data --gpus --image-size --json --keep-global-batch --model --processes "
    "--seconds --separator --set",
    "compare": "--against --baseline --classes --gate --json",
    "trace": "--json --nccl",
    "ui": "--allow-host --host --open --port --root-path --view-password-file --viewers",
    "demo": "--epochs --once --port",
    "presets list": "--json",
    "presets show": "--json",
    "presets render": "--check --processes",
    "presets check": "",
    "presets import": "--json --name --replace --save --team",
    "presets export": "--accelerate",
    "presets clone": "",
    "presets rename": "",
    "presets delete": "",
    "presets history": "--diff --json",
    "presets diff": "--all --json",
    "presets adapt": "--choose --devices --json --made-for --micro-batch --save-as",
    "presets fetch": "",
    "playbook export": "--keep --title",
    "playbook import": "--json",
    "playbook list": "--cause --hardware --json --model --search",
    "playbook show": "--json --run",
    "playbook diff": "--json",
    "playbook replay": "--choose --data --devices --json --start",
    "playbook remove": "--yes",
    "data make": "--num-images --profile --seed --workers",
    "data check": "--json --separator --workers",
    "data prepare": "--format --json --out --quality --separator --short-side --skip-bad --workers "
    "--yes",
}

LIST_KEYS = {
    "id", "state", "preset", "data", "started", "tags", "note", "archived", "queue", "retry_of",
    "retried_as",
}  # fmt: skip
SHOW_KEYS = {
    "imported_from", "id", "path", "state", "preset", "requested", "observed", "data", "epochs",
    "speedup", "speedup_details", "baseline", "estimate", "accepted_warnings", "best_checkpoint",
    "class_scores", "failure",
    "warnings", "total_time_s", "exit", "queue", "retry_of", "retried_as", "hang", "asked",
    "samples", "failure_kind", "what_to_try", "ranks",
}  # fmt: skip
PRESET_KEYS = {
    "name", "title", "devices", "origin", "source", "checksum", "author", "shadowed_by",
    "measured",
}  # fmt: skip


@pytest.fixture
def story(make_spec, write_run):
    """One device, then DDP on four at the same images per device: 3.08 times as fast."""
    base = write_run(make_spec("single"), BASE)
    return base, write_run(make_spec("ddp", num_processes=4), RUN, step_s=0.13, auc_macro=0.77)


# --- what scripts rely on ---------------------------------------------------------------------


def test_a_setting_that_is_an_option_is_sent_to_one_that_there_is():
    assert set(OPTION_OF.values()) <= set(FLAGS["run"].split())


@pytest.mark.parametrize("command", FLAGS)
def test_the_flags_are_those_that_people_have_in_their_scripts(ringside, command):
    code, out, _ = ringside(*command.split(), "--help")
    assert code == 0
    assert set(re.findall(r"^\s+(--[a-z-]+)", out, re.MULTILINE)) - {"--help"} == set(
        FLAGS[command].split()
    )


def test_the_help_names_every_kind_of_data(ringside):
    text = " ".join(ringside("run", "--help")[1].split())
    assert [
        word for word in ("emoji", "products:ci", ".csv", "hf:owner/name") if word not in text
    ] == []


@pytest.mark.parametrize("group", ["", "presets", "data", "queue", "playbook"])
def test_the_commands_are_those_that_people_know(ringside, group):
    _, out, _ = ringside(*group.split(), "--help")
    found = set(re.findall(r"^  ([a-z]+)  ", out.partition("Commands:")[2], re.MULTILINE))
    below = [command for command in FLAGS if group in command and command != group]
    names = {command.removeprefix(group).split()[0] for command in below}
    assert found == names


def documented(heading: str) -> set[str]:
    """The keys of a table of docs/cli-json.md."""
    text = (CLONE / "docs" / "cli-json.md").read_text()
    section = text.partition(f"## `{heading}`")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))


def test_list_as_json(ringside, story):
    code, out, _ = ringside("list", "--json")
    runs = json.loads(out)
    assert code == 0
    assert [run["id"] for run in runs] == [RUN, BASE]
    assert set(runs[0]) == LIST_KEYS == documented("ringside list --json")
    assert runs[0] | {"started": None} == {
        "id": RUN, "state": "completed", "preset": "ddp", "data": "emoji", "started": None,
        "tags": [], "note": "", "archived": False, "queue": None, "retry_of": None,
        "retried_as": None,
    }  # fmt: skip
    assert len(json.loads(ringside("list", "--json", "--limit", "1")[1])) == 1


def test_show_as_json(ringside, story):
    code, out, _ = ringside("show", "swift", "--json")
    run = json.loads(out)
    assert code == 0
    assert set(run) == SHOW_KEYS == documented("ringside show RUN --json")
    assert run["speedup"] == pytest.approx(3.0769, abs=1e-4)
    assert run["baseline"] == BASE
    assert run["requested"]["global_batch"] == 256
    assert run["observed"]["num_processes"] == 4
    assert run["data"]["fingerprint"] == "abc"
    assert [epoch["auc_macro"] for epoch in run["epochs"]] == [0.77] * 3
    assert run["exit"]["state"] == "completed"
    text = (CLONE / "docs" / "cli-json.md").read_text()
    named = re.findall(r"`(\w+)`", re.search(r"\| `epochs` \|.*", text)[0])[1:]
    assert set(named) == set(run["epochs"][0])


def test_show_as_json_before_anything_happened(ringside, story):
    base, _ = story
    for path in (base.events, base.exit, base.spec):
        path.unlink()
    run = json.loads(ringside("show", BASE, "--json")[1])
    assert set(run) == SHOW_KEYS
    missing = {"preset", "requested", "observed", "data", "speedup", "failure", "exit"}
    assert {key for key in run if run[key] is None} >= missing


def test_presets_as_json(ringside):
    code, out, _ = ringside("presets", "list", "--json")
    rows = json.loads(out)
    assert code == 0
    assert set(rows[0]) == PRESET_KEYS == documented("ringside presets list --json")
    assert (rows[0]["name"], rows[0]["origin"]) == ("single", "built-in")
    assert {row["name"]: row["devices"] for row in rows}["ddp_fp16"] == ["cuda"]
    shown = json.loads(ringside("presets", "show", "ddp_accum4", "--json")[1])
    assert shown["training"]["accumulation_steps"] == 4
    assert set(shown) == documented("ringside presets show NAME --json")


def test_compare_as_json(ringside, story):
    compared = json.loads(ringside("compare", "calm", "swift", "--json")[1])
    assert set(compared) == {
        "runs", "precision_factor", "reference", "baseline", "configuration", "scaling",
    }  # fmt: skip
    assert (compared["reference"], compared["baseline"]) == (BASE, None)
    first, second = compared["runs"]
    assert set(first) == documented("ringside compare RUN RUN... --json")
    text = (CLONE / "docs" / "cli-json.md").read_text().partition("## `ringside compare")[2]
    named = re.findall(r"`(\w+)`", re.search(r"\| `speedup` \|.*", text)[0])[1:]
    assert set(named) == set(first["speedup"])
    assert first["speedup"]["reason"] == "this is a baseline"
    assert second["speedup"]["scaling"] == "weak"
    assert second["auc_delta"] == pytest.approx(-0.03)


# --- what people read -------------------------------------------------------------------------


def test_list_for_people(ringside, story, root):
    code, out, err = ringside("list")
    assert code == 0
    assert [line.split()[:3] for line in out.splitlines()] == [
        [RUN, "completed", "ddp"], [BASE, "completed", "single"],
    ]  # fmt: skip
    assert str(root) in err


def test_long_names_keep_the_columns(ringside, make_spec, write_run):
    """Scripts and eyes find a column by where it begins."""
    model = "vit_large_patch14_reg4_dinov2.lvd142m"
    write_run(make_spec("single", model=model), BASE)
    write_run(make_spec("ddp"), RUN)
    first, second = ringside("list")[1].splitlines()
    assert second.index(model) == first.index("resnet50")
    assert second.index("emoji") == first.index("emoji") > second.index(model) + len(model)


def test_the_first_list_says_how_to_start(ringside):
    code, out, err = ringside("list")
    assert (code, out) == (0, "")
    assert "ringside run single" in err


def test_one_bad_run_does_not_hide_the_others(ringside, story):
    _, run = story
    run.spec.write_text('{"preset": "ddp", "global_batch": 7}')
    assert BASE in ringside("list")[1]


def test_a_run_that_cannot_be_read_is_not_left_out_of_a_comparison_silently(ringside, story):
    _, run = story
    run.spec.write_text("{")
    code, out, err = ringside("compare", "calm", "swift")
    assert (code, out) == (2, "")
    assert "holds no readable spec.json" in err


def test_show_for_people(ringside, story):
    code, out, _ = ringside("show", "swift-hare")
    assert code == 0
    assert "4 processes on CPU" in out
    assert "3.08x (weak scaling)" in out
    assert "0.770" in out


def test_compare_for_people_in_a_pipe(ringside, story):
    """Twelve columns, and none may be cut because a pipe has no width."""
    _, out, _ = ringside("compare", "calm", "swift")
    header, first, second = out.splitlines()[:3]
    assert header.split()[:5] == ["run", "preset", "devices", "precision", "epoch"]
    assert header.rstrip().endswith("device-hours")
    assert "–" in first
    assert [part for part in ("swift-hare", "3.08x", "77 %", "-0.0300") if part not in second] == []
    assert "this is a baseline" in out
    divided = "speed-up of swift-hare: its images/s divided by those of calm-fox (weak scaling)"
    assert divided in out.splitlines()
    assert "– swift-hare, no verdict: 3.08× the images/s of calm-fox; macro AUC −0.030" in out
    assert re.search(r"preset +preset +single +ddp$", out, re.MULTILINE)


def test_compare_against_a_chosen_baseline(ringside, story, make_spec, write_run):
    write_run(make_spec("ddp"), "20260103-000000-warm-seal")
    argv = ("compare", "swift", "warm", "--baseline", "calm")
    compared = json.loads(ringside(*argv, "--json")[1])
    assert (compared["baseline"], compared["reference"]) == (BASE, BASE)
    assert [run["id"][16:] for run in compared["runs"]] == ["calm-fox", "swift-hare", "warm-seal"]
    assert ringside("compare", "swift", "--baseline", "calm")[0] == 0
    for argv in (("swift", "--baseline", "swift"), ("swift", "swift"), ("swift", "swift-hare")):
        code, _, err = ringside("compare", *argv)
        assert code == 2
        assert "all of one run, swift-hare; compare needs two runs or more" in err


def test_compare_by_class(ringside, story):
    out = ringside("compare", "calm", "swift", "--classes")[1]
    assert "swift-hare: no classes to compare" in out


def test_text_in_brackets_is_shown_as_it_is(ringside, root, make_spec, write_run):
    """Errors of torch are full of brackets and colons, which rich would take for styles."""
    run = write_run(make_spec("ddp"), RUN, state="failed")
    sentence = "[rank1]: expected [3, 224] [/b] :warning: but got [bold]"
    error = {"rank": 1, "t": 5, "sentence": sentence}
    (run.path / "ranks").mkdir()
    (run.path / "ranks" / "rank1.error.json").write_text(json.dumps(error))
    code, out, _ = ringside("show", "last")
    assert code == 0
    assert sentence in out


def test_presets_for_people(ringside):
    _, out, _ = ringside("presets", "list")
    assert [line.split()[0] for line in out.splitlines()[:2]] == ["preset", "single"]
    _, out, _ = ringside("presets", "show", "ddp")
    assert [word for word in ("why ", "when ", "limits ", "MULTI_GPU") if word not in out] == []


def test_a_preset_is_printed_as_the_launcher_takes_it(ringside):
    import yaml

    code, out, _ = ringside("presets", "render", "ddp", "--processes", "4")
    assert code == 0
    assert yaml.safe_load(out)["num_processes"] == 4
    assert ringside("presets", "render", "--check") == (0, "all rendered files are current\n", "")
    assert ringside("presets", "render", "single", "--processes", "2")[0] == 2


def test_a_preset_goes_from_one_library_to_another(ringside, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert ringside("presets", "export", "ddp_bf16")[0] == 0
    sent = tmp_path / "ddp_bf16.yaml"
    code, out, _ = ringside("presets", "check", str(sent))
    assert code == 0
    assert "fine" in out
    code, _, err = ringside("presets", "import", str(sent), "--save")
    assert code == 2
    assert "exists already" in err
    assert ringside("presets", "import", str(sent), "--name", "ours", "--save")[0] == 0
    assert "yours" in ringside("presets", "show", "ours")[1]
    assert ringside("presets", "export", "ours", "again.yaml")[0] == 0
    assert (tmp_path / "again.yaml").read_bytes() == sent.read_bytes()


def test_a_broken_preset_of_the_team_is_named_beside_the_list(ringside, tmp_path, monkeypatch):
    (tmp_path / "bad.yaml").write_text("about: [")
    monkeypatch.setenv("RINGSIDE_LIBRARY", str(tmp_path))
    code, out, err = ringside("presets", "list", "--json")
    assert code == 0
    assert json.loads(out)
    assert "left out: bad.yaml, line 1" in err


# --- running ----------------------------------------------------------------------------------


def test_a_dry_run_shows_all_and_starts_nothing(ringside, root):
    code, out, _ = ringside("run", "ddp_accum4", "--dry-run", "--batch", "64", "--processes", "2")
    assert code == 0
    assert "global batch 256 = 32 x 2 x 4" in out
    assert "grew from 64 to 256" in out
    assert "training.accumulation_steps = 4  (preset)" in out
    assert "data.image_size = 32  (default)" in out
    assert 'distributed_type: "MULTI_GPU"' in out
    assert "accelerate.commands.launch --config_file" in out
    assert "-m training.train --run-dir" in out
    assert not root.exists()


def test_a_dry_run_lists_the_environment(ringside):
    argv = ["run", "ddp", "--dry-run", "--set", "environment.NCCL_DEBUG=INFO"]
    code, out, _ = ringside(*argv, "--set", "environment.OMP_NUM_THREADS=1")
    assert code == 0
    assert "  environment.NCCL_DEBUG = INFO  (flag)" in out.splitlines()
    assert "  threads_per_device = 1  (flag)" in out.splitlines()


@pytest.fixture
def started(monkeypatch, write_run):
    """Instead of a launcher: the run is there at once, in the given state."""
    from ringside.launch import local

    def start(state: str = "completed") -> None:
        monkeypatch.setattr(
            local, "start_run", lambda spec, *_: write_run(spec, RUN, state=state, epochs=2)
        )

    return start


def test_run_returns_and_says_how_to_follow(ringside, started, root):
    started()
    code, out, _ = ringside("run", "ddp", "--epochs", "2", "--set", "learning_rate=1e-2")
    assert code == 0
    assert f"run {RUN} in {root / RUN}" in out
    assert "ringside watch swift-hare" in out
    spec = fold_run(RunDir(root / RUN)).spec
    assert (spec.preset, spec.epochs, spec.training.learning_rate) == ("ddp", 2, 0.01)


@pytest.mark.parametrize(("state", "expected"), [("completed", 0), ("stopped", 0), ("failed", 1)])
def test_follow_and_watch_end_with_the_run(ringside, started, state, expected):
    started(state)
    code, out, _ = ringside("run", "ddp", "--epochs", "2", "--follow")
    assert code == expected
    assert "epoch 2 of 2" in out
    assert "AUC 0.800" in out
    assert f"{state}: The run {state}." in out
    assert ringside("watch", "swift")[1] in out
    assert ringside("watch", "swift")[0] == expected


def test_what_a_person_should_know_is_said_as_it_comes(ringside, make_spec, write_run):
    """Each event once and in its place, however late one looks."""
    run = write_run(make_spec("ddp", epochs=2), RUN, epochs=2)
    started, *epochs = map(json.loads, run.events.read_text().splitlines())
    lines = [
        {"kind": "phase_started", "phase": "data"},
        {"kind": "phase_started", "phase": "setup"},
        {**started, "num_left_out": 3},
        {"kind": "warned", "code": "resume", "message": "Not as before: the seed."},
        {"kind": "phase_started", "phase": "train", "epoch": 1},
        *epochs[:2],
        {"kind": "warned", "code": "early-stop", "message": "Nothing better for 1 epoch."},
        *epochs[2:-2],
    ]
    run.events.write_text("".join(json.dumps(line) + "\n" for line in lines))
    record = json.loads(run.exit.read_text())
    run.exit.write_text(json.dumps({**record, "reason": "Completed."}))
    code, out, _ = ringside("watch", "swift")
    said = out.splitlines()
    assert code == 0
    assert said[:2] == ["reading the data ...", "building the model ..."]
    assert said[2].startswith("note: 3 of 12800 training images are left out")
    assert said[3] == "note: Not as before: the seed."
    assert said[4].startswith("epoch 1 of 2")
    assert said[5] == "note: Nothing better for 1 epoch."
    # The second epoch was never evaluated, and the last line says one word once.
    assert said[6].startswith("epoch 2 of 2")
    assert "AUC –" in said[6]
    assert said[7:] == ["Completed."]


def test_stop_of_a_run_that_has_ended(ringside, story):
    code, out, _ = ringside("stop", "swift")
    assert (code, out) == (0, "swift-hare has ended already: completed.\n")


def test_stop_after_the_epoch_leaves_a_request(ringside, make_spec, write_run):
    run = write_run(make_spec("ddp"), RUN, state=None)
    code, out, _ = ringside("stop", "--after-epoch")
    assert code == 0
    assert "after this epoch" in out
    assert run.requested("stop-after-epoch")
    assert not run.requested("stop")


def test_the_version(ringside):
    assert ringside("--version") == (0, f"ringside {__version__}\n", "")


# --- mistakes and bugs ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "part"),
    [
        ("run", "Missing argument"),
        ("run nope", "no preset 'nope'"),
        ("run ddp_bf61", "Did you mean 'ddp_bf16'?"),
        ("run ddp --epochs many", "--epochs"),
        ("run ddp --epochs 0", "epochs must be at least 1"),
        ("run ddp --data nowhere", "'nowhere'"),
        ("run ddp --model resnet5O", "Did you mean 'resnet50'?"),
        ("run ddp --set learning_rate", "KEY=VALUE"),
        ("run ddp --set =1", "KEY=VALUE"),
        ("run ddp --set compile=yes", "compile must be true or false, not yes."),
        ("run ddp --set compile=true --set compile=false", "set the same thing"),
        ("run ddp --dry-run --set momentum=0.8", "momentum needs optimizer sgd"),
        ("run fsdp --dry-run --model vit_small_patch16_224", "FSDP wraps blocks"),
        ("run ddp --set lerning_rate=1", "'learning_rate'"),
        ("run ddp --processes 1000", "1000 processes"),
        ("run ddp --dry-run --seed -1", "seed"),
        ("run ddp --dry-run --batch abc", "abc"),
        ("run ddp --dry-run --time-limit 0s", "time limit 0 s"),
        ("run ddp --dry-run --model=", "no model ''"),
        ("run ddp --no-such-flag", "--no-such-flag"),
        ("frobnicate", "frobnicate"),
        ("show", "There are none yet"),
        ("show zebra", "No run 'zebra'"),
        ("watch zebra", "No run 'zebra'"),
        ("stop ../..", "No run '../..'"),
        ("compare zebra lion", "No run 'zebra'"),
        ("compare zebra", "two runs or more"),
        ("compare", "Missing argument"),
        ("list --limit 0", "--limit"),
        ("presets show nope", "no preset 'nope'"),
        ("presets check nowhere.yaml", "cannot be read"),
        ("presets import nowhere.yaml", "cannot be read"),
        ("presets export ddp /no/such/folder/x.yaml", "does not exist"),
        ("presets render ddp --processes 0", "cannot start 0 processes"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(ringside, argv, part):
    code, out, err = ringside(*argv.split())
    assert code == 2
    assert out == ""
    assert part in err
    assert err.count("\n") == 1
    assert "Traceback" not in err


@pytest.mark.parametrize("argv", ["", "presets", "data"])
def test_without_a_command_the_help_is_shown(ringside, argv):
    code, out, err = ringside(*argv.split())
    assert code == 2
    assert "Commands:" in out + err
    assert "Traceback" not in err


def test_a_folder_that_cannot_be_written_is_a_mistake(ringside, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RINGSIDE_RUNS", str(tmp_path / "file" / "runs"))
    code, _, err = ringside("run", "single")
    assert code == 2
    assert "Set RINGSIDE_RUNS" in err


def test_a_run_of_a_newer_ringside_is_a_mistake(ringside, story):
    _, run = story
    run.spec.write_text('{"format": 2, "galaxy": "far"}')
    code, _, err = ringside("show", "swift")
    assert code == 2
    assert "update Ringside" in err
    assert BASE in ringside("list")[1]


def test_a_bug_is_exit_code_3_with_a_traceback(ringside, monkeypatch):
    from app.commands import reading

    def broken(**_: object) -> None:
        raise ZeroDivisionError("deep inside")

    monkeypatch.setattr(reading, "list_runs", broken)
    code, _, err = ringside("list")
    assert code == 3
    assert "ZeroDivisionError: deep inside" in err
    assert "This is a bug in Ringside" in err


def test_ctrl_c_is_130(ringside, monkeypatch):
    from app.commands import reading

    def interrupted(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(reading, "list_runs", interrupted)
    code, _, err = ringside("list")
    assert code == 130
    assert "Traceback" not in err


# --- as a process of its own ------------------------------------------------------------------

COMMAND = "from app.cli import main; main()"


def process(*argv: str, code: str = COMMAND, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *argv], capture_output=True, text=True, cwd=CLONE, **options
    )


def test_a_mistake_in_a_shell():
    done = process("run", "nope")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("There is no preset 'nope'.")


def test_a_reader_that_has_seen_enough_is_no_fault():
    """`ringside presets list | head -1`."""
    command = f"{{ {sys.executable} -c '{COMMAND}' presets list; echo $? >&2; }} | true"
    environment = {name: value for name, value in os.environ.items() if "UNBUFFERED" not in name}
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, cwd=CLONE, env=environment
    )
    assert done.stderr == "0\n"


HEAVY = """
import sys
from app.cli import main
try:
    main()
finally:
    heavy = {"torch", "gradio", "numpy", "rich", "sklearn", "pandas", "datasets", "accelerate",
             "timm", "pyarrow", "PIL", "psutil", "yaml", "jsonschema", "altair"}
    print(sorted(heavy & set(sys.modules)), file=sys.stderr)
"""


def test_list_answers_at_once(story):
    """Nothing heavy on the way of the command that people type most."""
    done = process("list", code=HEAVY)
    assert done.returncode == 0
    assert done.stdout.count("\n") == 2
    assert done.stderr.splitlines()[-1] == "[]"
