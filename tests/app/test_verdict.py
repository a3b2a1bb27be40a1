"""`ringside doctor RUN`: the card for people, and what scripts rely on."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from app import cli
from app.commands import verdict as command
from ringside.doctor import Case, Diagnosis, Evidence, Finding, diagnose, measuring
from ringside.doctor.applying import command_for
from ringside.doctor.walkthrough import walk
from ringside.hardware import Hardware
from ringside.speedup import baseline_of

from tests.doctor.making import bucket, facts, log, record, request  # isort: skip

DOCS = Path(cli.__file__).parents[1] / "docs"
BASE, RUN = "20260101-000000-calm-fox", "20260102-000000-swift-hare"
TOP_KEYS = {"id", "verdict", "others", "missing", "points"}
FINDING_KEYS = {
    "code", "cause", "severity", "sentence", "evidence", "share_ratio", "gain_ratio",
    "confidence", "refutation", "next_step", "preset", "overrides", "unset", "command",
}  # fmt: skip
POINT_KEYS = {"number", "name", "title", "claim", "truth", "figures", "state"}
FIGURE_KEYS = {"label", "value", "source", "how"}


@pytest.fixture
def doctor(capsys, make_spec, write_run):
    """`doctor(...)` about a run of DDP at half of its baseline's speed per device."""
    spec = make_spec("ddp", num_processes=2, micro_batch=32)
    write_run(baseline_of(spec), BASE, step_s=0.1)
    write_run(spec, RUN, step_s=0.2)

    def call(*words):
        with pytest.raises(SystemExit) as ended:
            cli.main(["doctor", RUN, *words])
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return call


def test_the_json_is_what_scripts_rely_on(doctor):
    code, out, err = doctor("--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert set(found) == TOP_KEYS
    assert found["id"] == RUN
    assert set(found["verdict"]) == FINDING_KEYS
    assert [set(one) for one in found["others"]] == [FINDING_KEYS] * len(found["others"])
    assert [set(point) for point in found["points"]] == [POINT_KEYS] * 6
    assert {frozenset(one) for point in found["points"] for one in point["figures"]} == {
        frozenset(FIGURE_KEYS)
    }
    assert found["verdict"]["cause"] == "unexplained"


def test_of_a_run_that_failed_it_says_so_first(capsys, make_spec, write_run):
    write_run(make_spec("ddp", num_processes=2), RUN, state="failed")
    with pytest.raises(SystemExit) as ended:
        cli.main(["doctor", RUN])
    assert ended.value.code == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("swift-hare failed: ")


def test_the_documents_name_every_key(doctor):
    found = json.loads(doctor("--json")[1])
    text = (DOCS / "cli-json.md").read_text(encoding="utf-8")
    section = text.partition("## `ringside doctor RUN --json`")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(\w+)`", section))
    parts = [found, found["verdict"], found["points"][0], found["points"][0]["figures"][0]]
    assert {key for part in parts for key in part} - named == set()


def test_the_card_for_people(doctor):
    code, out, _ = doctor()
    assert code == 0
    assert out.startswith("Verdict: unexplained")
    assert "Not measured:" in out
    assert "ringside doctor swift-hare --measure" in out
    assert out.count("It is said:") == 6


def test_a_card_has_evidence_bound_refutation_and_command(capsys):
    slow = facts(compute=0.4, exposed_transfer=0.4, buckets=(bucket(27_000_000, 2.9),))
    case = Case(record=record(request()), facts=slow, nccl=log("NET", "Socket"))
    command._print(case, diagnose(case), walk(case))
    out = capsys.readouterr().out
    card = out.partition("\nAlso")[0]
    assert "Verdict: link, 40 % of the step, critical, confidence high (LINK-001)" in card
    assert "27.00 MB in 9.31 ms, 2.90 GB/s" in card
    # Half the bytes save half of 9.31 ms of 33.3.
    assert "To gain: at most 14 % of the step, 1.16 times as fast" in card
    assert "Wrong if: " in card
    assert "ringside run ddp --data=emoji --model=resnet50" in card
    assert "--set=comm_hook=bf16" in card


SLOW = facts(compute=0.4, exposed_transfer=0.4)


def remedy(spec):
    finding = diagnose(Case(record=record(spec), facts=SLOW)).verdict
    return finding, shlex.split(command_for(finding, spec))


def test_a_command_changes_one_thing_and_keeps_the_rest():
    spec = request(
        batch=512, settings={"accumulation_steps": 4, "static_graph": True},
        sources={"training.accumulation_steps": "flag", "training.static_graph": "flag"},
    )  # fmt: skip
    words = remedy(spec)[1]
    assert words[:3] == ["ringside", "run", "ddp"]
    assert "--batch=128" in words  # accumulation multiplies it
    assert [word for word in words if word.startswith("--set")] == [
        "--set=accumulation_steps=4", "--set=comm_hook=bf16", "--set=static_graph=true",
    ]  # fmt: skip


def test_with_half_the_bytes_already_the_batch_grows():
    spec = request("ddp_bf16_compress", precision="bf16", settings={"comm_hook": "bf16"})
    assert "--set=accumulation_steps=4" in remedy(spec)[1]


def test_a_command_is_one_that_the_command_line_takes(capsys):
    words = remedy(request(device="cpu", gpu_ids=(), batch=64))[1]
    with pytest.raises(SystemExit) as ended:
        cli.main([*words[1:], "--dry-run"])
    out, err = capsys.readouterr()
    assert (ended.value.code, err) == (0, "")
    assert "bf16 gradients" in out


def test_a_preset_that_is_not_here_is_not_proposed():
    finding = diagnose(Case(record=record(request("mine")), facts=SLOW)).verdict
    assert (finding.code, finding.preset) == ("LINK-001", None)


@pytest.mark.parametrize("live", [RUN, BASE])
def test_nothing_is_measured_while_a_run_uses_the_devices(
    capsys, make_spec, write_run, monkeypatch, live
):
    """Neither this one nor another."""
    monkeypatch.setattr(measuring, "read_hardware", lambda: Hardware(num_cores=2))
    for run_id in (RUN, BASE):
        write_run(make_spec("ddp"), run_id, state=None if run_id == live else "completed")
    with pytest.raises(SystemExit) as ended:
        cli.main(["doctor", RUN, "--measure"])
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (2, "")
    assert err.startswith(f"{live.partition('-')[2].partition('-')[2]} uses the devices")


def test_nothing_in_a_card_does_anything_to_the_terminal(capsys):
    bad = "A\x1b[31mB"
    evidence = (Evidence(label=bad, value=bad, source=bad),)
    finding = Finding(code="LINK-001", cause="link", severity="note", confidence="low",
                      sentence=bad, refutation=bad, next_step=bad, evidence=evidence)  # fmt: skip
    command.print_diagnosis(Diagnosis(verdict=finding, others=(finding,), missing=(bad,)))
    assert "\x1b" not in capsys.readouterr().out
