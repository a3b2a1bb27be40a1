"""`benchmarks/story.py`: its arithmetic, its bars, what verdict it expects, and how it goes on."""

from __future__ import annotations

import shutil
import statistics
from pathlib import Path

import msgspec
import pytest

from ringside.errors import LaunchError
from ringside.hardware import Gpu, Hardware, read_hardware
from ringside.measurements import Description, Sweep
from ringside.records import write_exit
from ringside.run import fold_run
from ringside.spec import RunSpec
from tests.estimate.test_recorded import Timed, read

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
H200 = Gpu(
    index=0, name="NVIDIA H200", uuid="0", memory_total_bytes=150 * 2**30, memory_used_bytes=0,
    compute_capability=(9, 0),
)  # fmt: skip
GPUS = Hardware(
    num_cores=32,
    gpus=tuple(msgspec.structs.replace(H200, index=i, uuid=str(i)) for i in range(4)),
)


@pytest.fixture(autouse=True)
def _beside_benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def line(transport="nvlink", batch=256, preset="ddp", precision="fp32", *, rate=1000.0, **fields):
    """A cell with six windows at `rate` images/s on two devices, or one."""
    from story_cells import Line

    num = 1 if transport == "one" else 2
    global_batch = num * batch
    given = {
        "compiled": False, "num_devices": num, "global_batch": global_batch,
        "step_ms": (1000 * global_batch / rate,) * 6, "cause": "compute", "expected": ("compute",),
    }  # fmt: skip
    return Line(
        transport=transport, batch=batch, preset=preset, precision=precision, **given | fields
    )


def table(*lines):
    from story_report import Table

    return Table({one.cell: one for one in lines})


def singles(batch=256, fp32=1000.0, bf16=2000.0):
    return [
        line("one", batch, "single", "fp32", rate=fp32),
        line("one", batch, "single", "bf16", rate=bf16),
    ]


def verdicts(*lines):
    """Every bar's verdict for a table of which all cells were wanted."""
    from story_report import bars

    found = bars(table(*lines), [one.cell for one in lines])
    return [bar.verdict for bar in found]


NO_PREDICTIONS = ["not measured"] * 5


GOOD = (
    {"preset": "ddp", "precision": "fp32", "rate": 1960.0},
    {"preset": "ddp_bf16", "precision": "bf16", "rate": 3920.0},
    {"transport": "sockets", "preset": "fsdp", "precision": "fp32", "rate": 1000.0},
    {"transport": "sockets", "preset": "ddp_bf16", "precision": "bf16", "rate": 2360.0},
)


def planted(**changes):
    """The good table with one row changed: `row=2, rate=…`."""
    row = changes.pop("row", None)
    rows = [dict(one) | (changes if number == row else {}) for number, one in enumerate(GOOD)]
    return verdicts(*singles(), *(line(**one) for one in rows))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ["met"] * 4),
        ({"row": 0, "cause": "link"}, ["missed", "met", "met", "met"]),
        ({"row": 0, "cause": None}, ["not measured", "met", "met", "met"]),
        ({"row": 0, "expected": ()}, ["not measured", "met", "met", "met"]),
        ({"row": 0, "rate": 1890.0}, ["met", "missed", "met", "met"]),
        ({"row": 1, "rate": 3790.0}, ["met", "met", "missed", "met"]),
        ({"row": 2, "rate": 1001.0}, ["met", "met", "met", "missed"]),
        ({"row": 2, "preset": "data_parallel"}, ["met", "met", "met", "not measured"]),
        ({"row": 0, "step_ms": (261.0,) * 4}, ["not measured", "not measured", "met", "met"]),
        ({"row": 0, "step_ms": (200.0, 300.0) * 4}, ["not measured", "not measured", "met", "met"]),
        ({"row": 0, "batch": 64}, ["met", "not measured", "met", "met"]),
    ],
)
def test_each_bar_can_be_missed_by_itself(changes, expected):
    assert planted(**changes) == expected + NO_PREDICTIONS


def predicted(line, step=1.0, memory=1.0, again=None):
    """The line with predictions of so many times what was measured."""
    return msgspec.structs.replace(
        line, predicted_ms=step * line.median_ms, replayed_ms=again and again * line.median_ms,
        memory_bytes=100, predicted_memory_bytes=round(100 * memory),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("ddp", "tuned", "expected"),
    [
        ({"again": 1.02}, {"again": 0.96}, ["met"] * 5),
        ({"again": 1.04}, {"again": 1.0}, ["missed", "met", "met", "met", "met"]),
        ({"again": 1.0}, {"again": 0.94}, ["met", "missed", "met", "met", "met"]),
        (
            {"step": 1.15, "again": 1.0},
            {"step": 1.15},
            ["met", "not measured", "missed"] + ["met"] * 2,
        ),
        ({"step": 1.21}, {"step": 1.21}, ["not measured"] * 2 + ["missed"] + ["met"] * 2),
        ({"memory": 1.11}, {}, ["not measured"] * 2 + ["met", "missed", "met"]),
        ({"step": 0.90}, {"step": 1.05}, ["not measured"] * 2 + ["met", "met", "missed"]),
    ],
)
def test_each_bar_of_the_predictions_can_be_missed_by_itself(ddp, tuned, expected):
    """The second set-up is measured a tenth faster than the first."""
    lines = (
        predicted(line(preset="ddp", rate=1000.0), **ddp),
        predicted(line(preset="ddp_tuned", rate=1100.0), **tuned),
    )
    assert verdicts(*lines)[4:] == expected


def test_a_prediction_counts_where_five_blocks_agree():
    """Bars: 3 % for a replay, so half a range of 1.5 %; 10 % from one device, so 5 %."""
    from story_estimates import rows_of

    steps = (100.0, 104.0, 100.0, 104.0, 104.0, 108.0, 100.0, 104.0, 104.0, 100.0)
    (own, replay) = rows_of([predicted(line(step_ms=steps), again=1.0)])
    assert (own.kind, replay.kind) == ("one device", "replay")
    assert own.spread_ratio == pytest.approx(4 / 2 / 102)  # of 102, 102, 106, 102, 102
    assert (own.counts, replay.counts) == (True, False)


def test_nothing_measured_meets_no_bar():
    assert set(verdicts()) == {"not measured"}


def test_a_wanted_cell_that_is_not_there_is_not_right():
    from story_report import bars

    there, absent = line(), line(preset="fsdp")
    assert bars(table(there), [there.cell, absent.cell])[0].verdict == "not measured"


def test_speedup_is_at_equal_precision_and_batch():
    """2,700 of 2 x 2,000 in bf16; against fp32 it is 2.7x, of which 2x is precision."""
    ddp = line(preset="ddp_bf16", precision="bf16", rate=2700.0)
    found = table(*singles(), *singles(64, 700.0, 800.0), ddp)
    assert found.speedup(ddp) == pytest.approx(1.35)
    assert found.efficiency(ddp) == pytest.approx(0.675)
    assert found.precision_factor(ddp) == pytest.approx(2.0)
    compiled = line(preset="ddp_bf16_compiled", precision="bf16", compiled=True, rate=4000.0)
    assert table(*singles(), compiled).speedup(compiled) is None


def test_factors_multiply_and_leave_data_parallel_out():
    lines = [
        line("sockets", preset="data_parallel", rate=100.0),
        line("sockets", preset="ddp", rate=1200.0),
        line("sockets", preset="ddp_bf16_compress", precision="bf16", rate=3600.0),
    ]
    (one,) = table(*singles(), *lines).factors("sockets")
    assert (one.best, one.worst) == ("ddp_bf16_compress", "ddp")
    assert one.total == pytest.approx(3.0)
    assert one.precision == pytest.approx(2.0)
    assert one.communication == pytest.approx((3600 / 2000) / (1200 / 1000))


def test_a_line_is_the_median_of_its_windows():
    one = line(batch=64, step_ms=(10.0, 12.0, 11.0, 30.0, 11.0))
    assert one.median_ms == 11.0
    assert one.spread_ratio == pytest.approx(10 / 11)
    assert one.samples_per_s == pytest.approx(128 / 0.011)
    assert line(step_ms=(1.0,) * 4).samples_per_s is None


def test_one_hiccup_is_no_noise_and_unequal_windows_are():
    assert line(step_ms=(10.0, 10.0, 11.0, 11.0, 10.0, 90.0)).is_right
    noisy = line(step_ms=(10.0, 20.0, 11.0, 30.0, 14.0, 25.0), cause="link")
    assert not noisy.is_steady
    assert noisy.is_right is None
    assert list(table(*singles(), noisy).factors("nvlink")) == []


def test_more_than_all_devices_alone_is_a_doubt():
    """Of 2 x 1,000 images/s."""
    doubts = list(table(*singles(), line(rate=2300.0), line(preset="fsdp", rate=2050.0)).doubts())
    assert len(doubts) == 1
    assert doubts[0].startswith("nvlink-256-ddp: 115% of")


def test_the_report_says_what_is_missing_and_wrong():
    from story_report import markdown

    there, absent = line(cause="data", code="DATA-001"), line(preset="fsdp")
    other = line(preset="ddp_bf16", precision="bf16", rate=3000.0, memory_bytes=2**30)
    text = markdown(table(*singles(), there, other), [there.cell, absent.cell], "head")
    assert "| data (DATA-001) | – | compute |  | WRONG |" in text
    assert "Not measured yet: nvlink-256-fsdp." in text
    for block in text.split("\n\n")[1:5]:
        rows = [row.count("|") for row in block.splitlines()]
        assert len(rows) > 2
        assert len(set(rows)) == 1, block
    assert "| ddp | fp32 | 512.00 | 0.0% | 6 | 1,000 | 8.0 min | 1.00x | 50% | 1.00x |" in text


def test_a_torn_line_costs_its_cell_only(tmp_path):
    from story_cells import Lines

    lines = Lines(tmp_path / "cells.jsonl")
    assert lines.read() == {}
    first, second = line(), line(preset="fsdp")
    lines.add(first)
    lines.add(second)
    lines.add(msgspec.structs.replace(first, cause="link"))
    whole = lines.path.read_bytes()
    assert lines.read()[first.cell].cause == "link"
    lines.path.write_bytes(whole[:-20])
    assert lines.read() == {first.cell: first, second.cell: second}
    lines.add(msgspec.structs.replace(second, cause="link"))
    assert lines.read()[second.cell].cause == "link"


def test_every_precision_gets_its_baseline_and_every_transport_its_variables():
    from story_cells import PRESETS, Job, all_specs

    job = Job("resnet50", 224, 4, {64: 112, 256: 56})
    specs = all_specs(job, GPUS, ["nvlink", "sockets"], list(PRESETS))
    names = [cell.name for cell in specs]
    assert names[:6] == [
        f"one-{batch}-single-{precision}"
        for batch in (64, 256)
        for precision in ("fp32", "bf16", "bf16-compiled")
    ]
    assert len(names) == len(set(names)) == 6 + 2 * 2 * len(PRESETS)
    for cell, spec in specs.items():
        assert spec.request_id == cell.name
        assert spec.micro_batch == cell.batch
        closed = {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}
        assert spec.environment == (closed if cell.transport == "sockets" else {})
    # Enough windows for the longest accumulation, of as many images as all others.
    longest = next(spec for cell, spec in specs.items() if cell.preset == "ddp_accum8")
    assert int(longest.data.profile) // longest.global_batch >= 7


RECORDED = {
    (64, "ddp"): "link", (64, "ddp_bf16_compress"): "link", (64, "ddp_accum4"): "launch",
    (256, "ddp"): "compute", (256, "ddp_accum4"): "compute",
}  # fmt: skip


def test_the_rule_agrees_with_causes_that_were_established_on_two_h200s():
    """`benchmarks/known_causes.py` has them from traces; the rule knows clocks and a sweep only."""
    from story_expected import expected

    sweep = read("sweep", Sweep)
    seen = set()
    for timed in read("steps", list[Timed]):
        key = timed.spec.micro_batch, timed.spec.preset
        description = read(f"description-{timed.spec.micro_batch}", Description)
        step_ms = statistics.median(timed.step_ms)
        found = expected(timed.spec, step_ms, description, sweep)
        if key in RECORDED:
            seen.add(key)
            assert RECORDED[key] in found.causes, found.rule
            assert ("compute" in found.causes) == (RECORDED[key] == "compute"), found.rule
    assert seen == set(RECORDED)


@pytest.mark.parametrize(
    ("link", "launch", "causes"),
    [
        (0.05, 0.0, ("compute", "none")),
        (0.15, 0.0, ("link", "compute", "none")),
        (0.30, 0.0, ("link",)),
        (0.30, 0.14, ("link",)),
        (0.30, 0.16, ("link", "launch")),
        (0.09, 0.25, ("launch",)),
    ],
)
def test_shares_are_judged_by_the_doctors_bands(link, launch, causes):
    from story_expected import by_shares

    assert by_shares(link, launch).causes == causes


def test_what_was_not_measured_expects_nothing():
    from story_cells import Job, all_specs
    from story_expected import expected

    specs = all_specs(Job("resnet50", 224, 2, {64: 56}), GPUS, ["shm"], ["ddp", "data_parallel"])
    by_name = {cell.name: spec for cell, spec in specs.items()}
    assert expected(by_name["shm-64-ddp"], 10.0, None, None).causes == ()
    assert expected(by_name["shm-64-data_parallel"], None, None, None).causes == ("data_parallel",)


@pytest.fixture
def call(monkeypatch, tmp_path):
    """`call(*flags)`: the benchmark on two processes, with launches that only note what they got.

    `call.trained`: names in their order. `call.per_launch`: runs that end before the time is over.
    `call.fails`: the name of a cell whose run fails.
    """
    import story
    import story_visit

    def train_in_turn(runs, _spec, _window_s, _timeout_s):
        run_call.launches += 1
        for number, run in enumerate(runs):
            if number == run_call.per_launch:
                return False
            name = run.read(run.spec, RunSpec).request_id
            run_call.trained.append(f"{run.path.parent.name}/{name}")
            state = "failed" if name == run_call.fails else "completed"
            write_exit(run, state=state, reason=f"It {state}.")
            if state == "failed":
                return True
        return True

    def run_call(*flags):
        flags = ["--out", str(tmp_path), "--device", "cpu", "--processes", "2", *flags]
        given = ["--model", "test_resnet", "--batches", "4", "--micro-steps", "56"]
        return story.main([*flags, *given, "--presets", "ddp", "fsdp"])

    def absent(*_arguments, **_options):
        raise LaunchError("Not here.")

    run_call.trained, run_call.per_launch, run_call.fails = [], None, None
    run_call.launches = 0
    monkeypatch.setattr(story_visit, "train_in_turn", train_in_turn)
    for name in ("measure_description", "measure_sweep"):
        monkeypatch.setattr(story_visit, name, absent)
    monkeypatch.setattr(story, "read_hardware", lambda: Hardware(num_cores=2))
    return run_call


CELLS = ["one-4-single-fp32", "gloo-4-ddp", "gloo-4-fsdp"]


def test_a_call_without_enough_time_starts_nothing(call, capsys):
    assert call("--budget-s", "20") == 3
    assert call.trained == []
    assert (
        "Not measured yet: one-4-single-fp32, gloo-4-ddp, gloo-4-fsdp." in capsys.readouterr().out
    )


def test_calls_go_on_where_the_last_one_ended(call, capsys):
    """The time is over after each run; nothing is trained twice, and profiles come last."""
    call.per_launch = 1
    codes = [call(), call()]
    call.per_launch = None
    codes.append(call())
    assert codes == [3, 3, 0]
    assert call.trained == [
        "runs/one-4-single-fp32", "traced/one-4-single-fp32", "runs/gloo-4-ddp",
        "runs/gloo-4-fsdp", "again/gloo-4-ddp", "traced/gloo-4-ddp", "traced/gloo-4-fsdp",
    ]  # fmt: skip
    assert "Not measured yet" not in capsys.readouterr().out.rpartition("# The story")[2]
    assert call() == 0
    assert len(call.trained) == 7


def test_a_table_is_told_anew_from_what_was_measured(call, capsys, monkeypatch):
    """On another machine too: the requests are those of the machine that the runs name."""
    import story
    import story_cells
    import story_lines
    from story_expected import Expected

    assert call() == 0
    read_specs = story.all_specs
    machines, asked = [], []

    def specs_on(job, hardware, *rest):
        machines.append(hardware.num_cores)
        return read_specs(job, hardware, *rest)

    def expect(spec, *_measured):
        asked.append(spec.request_id)
        return Expected(("compute",), "as somebody found out later")

    timed = line(transport="gloo", batch=4, rule="as it was thought")
    monkeypatch.setattr(story, "read_hardware", lambda: Hardware(num_cores=64))
    monkeypatch.setattr(story, "all_specs", specs_on)
    monkeypatch.setattr(story_lines, "expected", expect)
    monkeypatch.setattr(story_cells.Lines, "read", lambda _: {timed.cell: timed})
    capsys.readouterr()
    call("--print")
    told = capsys.readouterr().out
    assert (machines, asked) == ([2], ["gloo-4-ddp"])
    assert "as somebody found out later" in told
    assert "as it was thought" not in told
    assert "Verdicts are those of the visit" in told
    assert len(call.trained) == 7


def test_only_names_beginnings(call):
    assert call("--only", "gloo-4-d") == 0
    assert call.trained == ["runs/gloo-4-ddp", "again/gloo-4-ddp", "traced/gloo-4-ddp"]


@pytest.mark.parametrize(("flags", "launches"), [((), 5), (("--each",), 7)])
def test_one_launch_trains_all_of_a_transport_or_each_run_has_its_own(call, flags, launches):
    assert call(*flags) == 0
    assert call.launches == launches


def test_what_fails_is_told_and_tried_again_when_asked(call, capsys):
    call.fails = "gloo-4-ddp"
    call()
    assert "gloo-4-ddp: It failed." in capsys.readouterr().out
    assert [name for name in call.trained if "ddp" in name] == ["runs/gloo-4-ddp"]
    before, call.fails = len(call.trained), None
    call()
    assert len(call.trained) == before
    call("--again")
    assert call.trained[before:] == [f"{where}/gloo-4-ddp" for where in ("runs", "again", "traced")]
    assert "It failed" not in capsys.readouterr().out.rpartition("# The story")[2]


def test_short_epochs_are_refused(call, capsys):
    import story

    with pytest.raises(SystemExit):
        story.parse_arguments(["--out", "x", "--batches", "64", "--micro-steps", "48"])
    assert "multiples of 8, and 56 or more" in capsys.readouterr().err


@pytest.mark.distributed
def test_runs_train_in_turn_and_one_that_fails_is_written_down(tmp_path):
    """FSDP after DDP in the same processes, each in a group of its own; the third cannot train."""
    from story_cells import Job, all_specs
    from story_launch import is_completed, prepare, run_of, train_in_turn

    hardware = read_hardware()
    job = Job("test_resnet", 32, 2, {4: 8})
    specs = list(all_specs(job, hardware, ["gloo"], ["ddp", "fsdp_bf16", "ddp_bf16"]).values())
    several = [spec for spec in specs if spec.num_processes == 2]
    runs = [prepare(tmp_path, spec, hardware) for spec in several]
    shutil.rmtree(runs[2].ranks)
    assert train_in_turn(runs, several[0], 0.1, 120.0)
    assert [is_completed(run) for run in runs] == [True, True, False]
    for run, strategy in zip(runs[:2], ("ddp", "fsdp"), strict=True):
        record = fold_run(run)
        assert record.observed.strategy == strategy
        assert record.observed.num_processes == 2
        assert record.steady_samples_per_s
        assert not list(run.checkpoints.glob("*"))
    assert run_of(tmp_path, several[0]).id == runs[0].id
    assert fold_run(runs[2]).exit.reason


@pytest.mark.distributed
def test_what_a_killed_call_left_is_trained_anew(tmp_path):
    """Without an end a run is no run, and its launch leaves its time limit behind."""
    from story_cells import Job, all_specs
    from story_launch import prepare, run_of, train_in_turn

    hardware = read_hardware()
    (spec, *_) = all_specs(Job("test_resnet", 32, 2, {4: 8}), hardware, ["gloo"], ["ddp"]).values()
    left = prepare(tmp_path, spec, hardware)
    assert train_in_turn([left], spec, 0.1, 0.6) is False
    assert run_of(tmp_path, spec) is None
    again = prepare(tmp_path, spec, hardware)
    assert not left.path.exists()
    assert again.read(again.spec, RunSpec) == spec
