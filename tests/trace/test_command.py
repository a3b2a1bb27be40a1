"""`ringside trace`: what it prints, what scripts rely on, and how it says no."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from app import cli
from ringside.trace.thresholds import THRESHOLDS

CLONE = Path(cli.__file__).parents[1]

TOP_KEYS = {"ranks", "verdict", "others", "bad", "diagnosis"}
DIAGNOSIS_KEYS = {"verdict", "others", "missing"}
VERDICT_KEYS = {"code", "cause", "share_ratio", "sentence", "confidence", "refutation", "is_minor"}
RANK_KEYS = {
    "rank", "file", "world_size", "num_steps", "is_cpu_estimate", "is_wait_estimate",
    "overlap_ratio", "comm_us", "overlapped_us", "exposed_us", "transfer_us", "wait_us",
    "compute_us", "idle_us", "span_us", "breakdown", "host", "steps", "buckets",
}  # fmt: skip


@pytest.fixture
def ringside(capsys):
    """Run the command in this process: `ringside(path, "--json")` -> (exit code, out, err)."""

    def run(*argv: object) -> tuple[object, str, str]:
        with pytest.raises(SystemExit) as left:
            cli.main(["trace", *map(str, argv)])
        out, err = capsys.readouterr()
        return left.value.code, out, err

    return run


@pytest.fixture
def run_of_two(sketch, write):
    """Two ranks that move bytes for 4 of 10 ms; rank 0 comes 500 µs earlier."""
    files = []
    for rank, early in ((0, 500), (1, 0)):
        made = sketch(rank)
        for number in range(4):
            at = number * 10_000
            made.step(number, at, 10_000)
            for place in range(40):
                made.kernel(at + place * 130, 130, launch=at + place)
            made.collective(at + 5700 - early, 4000 + early, launch=at + 50)
        files.append(write(made, f"rank{rank}.json"))
    return files


def test_the_json_is_what_scripts_rely_on(ringside, run_of_two):
    code, out, err = ringside(*run_of_two, "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert set(found) == TOP_KEYS
    assert set(found["verdict"]) == VERDICT_KEYS
    assert set(found["diagnosis"]) == DIAGNOSIS_KEYS
    assert [set(rank) for rank in found["ranks"]] == [RANK_KEYS, RANK_KEYS]
    first = found["ranks"][0]
    numbers = {key: first[key] for key in RANK_KEYS if key.endswith(("_us", "_ratio"))}
    assert numbers == {
        "overlap_ratio": 0.0, "comm_us": 13_500, "overlapped_us": 0, "exposed_us": 13_500,
        "transfer_us": 12_000, "wait_us": 1_500, "compute_us": 15_600,
        "idle_us": 29_700 - 13_500 - 15_600, "span_us": 29_700,
    }  # fmt: skip
    assert found["verdict"]["cause"] == "link"
    assert found["verdict"]["share_ratio"] == pytest.approx(0.4)


def test_the_documents_name_every_key(ringside, run_of_two):
    found = json.loads(ringside(*run_of_two, "--json")[1])
    rank = found["ranks"][0]
    inner = [found, found["verdict"], found["diagnosis"], rank, rank["breakdown"], rank["host"]]
    inner += [rank["steps"][0], rank["buckets"][0]]
    text = (CLONE / "docs" / "cli-json.md").read_text()
    section = text.partition("## `ringside trace FILE --json`")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(\w+)`", section))
    assert {key for part in inner for key in part} - named == set()


def test_the_report_for_people(ringside, run_of_two):
    code, out, _ = ringside(*run_of_two)
    assert code == 0
    assert max(map(len, out.partition("Verdict")[0].splitlines())) <= 90
    assert "…" not in out
    rows = {line.split()[0]: line.split() for line in out.splitlines() if line[:2] in ("0 ", "1 ")}
    assert rows["1"][:4] == ["1", "29.7", "15.6", "12.0"]
    assert out.count("Verdict: ") == 1
    assert "Verdict: link, 40 % of the step, critical, confidence high (LINK-001)" in out
    assert "all-reduce" in out
    assert "bus bandwidth 1.00 GB/s" in out
    assert "Wrong if:" in out


def test_with_the_logs_of_nccl_the_way_of_the_bytes_is_known(ringside, run_of_two, tmp_path):
    log = tmp_path / "nccl.log"
    log.write_text("".join(
        f"vm:{rank}:{rank} [{rank}] NCCL INFO {text}\n"
        for rank in (0, 1)
        for text in (
            "NCCL version 2.28.9+cuda13.0",
            "NCCL_P2P_DISABLE set by environment to 1",
            "NCCL_SHM_DISABLE set by environment to 1",
            f"Channel 00/0 : {rank}[{rank}] -> {1 - rank}[{1 - rank}] [send] via NET/Socket/0",
            f"comm 0x7f{rank} rank {rank} nranks 2 cudaDev {rank} nvmlDev {rank} "
            f"busId {rank + 1}000 commId 0xabc - Init COMPLETE",
        )
    ))  # fmt: skip
    assert "LINK-014" not in ringside(*run_of_two)[1]
    code, out, _ = ringside(*run_of_two, "--nccl", log)
    assert code == 0
    assert "LINK-014" in out
    assert "NCCL_P2P_DISABLE" in out
    diagnosis = json.loads(ringside(*run_of_two, "--nccl", log, "--json")[1])["diagnosis"]
    assert "LINK-014" in {one["code"] for one in (diagnosis["verdict"], *diagnosis["others"])}
    code, _, err = ringside(*run_of_two, "--nccl", tmp_path / "no.log")
    assert (code, "no.log" in err) == (2, True)


def test_a_bad_file_is_named_and_the_rest_is_read(ringside, run_of_two, tmp_path):
    bad = tmp_path / "cut.json"
    bad.write_text('{"traceEvents": [')
    code, out, err = ringside(bad, *run_of_two, "--json")
    assert code == 1
    assert err == f"{bad} is cut off: copy or record it again.\n"
    assert json.loads(out)["bad"] == [err.strip()]
    assert len(json.loads(out)["ranks"]) == 2


def test_nothing_to_read_is_a_mistake_in_one_sentence(ringside, tmp_path):
    code, out, err = ringside(tmp_path / "no.json")
    assert (code, out) == (2, "")
    assert err == f"There is no file {tmp_path / 'no.json'}: check the path.\n"


def test_names_of_files_do_nothing_to_the_terminal(ringside, tmp_path):
    bad = tmp_path / "a\x1b[31mb.json"
    bad.write_text("nothing")
    _, _, err = ringside(bad)
    assert "\x1b" not in err


def test_thresholds_and_document_say_the_same():
    text = (CLONE / "docs" / "trace.md").read_text()
    rows = re.findall(r"^\| `([A-Z_]+)` \| ([\d.,]+) \| (.*?) \| (.*?) \|$", text, re.MULTILINE)
    documented = {row[0]: (float(row[1].replace(",", "")), *row[2:]) for row in rows}
    assert documented == {
        name: (limit.value, limit.unit, limit.source) for name, limit in THRESHOLDS.items()
    }


def test_importing_the_package_loads_no_numpy():
    code = "import sys, ringside.trace.judging as j; j.all_checks(); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=CLONE, capture_output=True, text=True, check=True
    )
    assert "numpy" not in done.stdout.split()
