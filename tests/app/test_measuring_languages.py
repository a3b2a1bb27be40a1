"""What `bench`, `estimate` and `trace` print in another language: no English but names."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from app.commands import benching, estimating, tracing
from app.commands.tables import class_table
from ringside.class_scores import EpochClasses
from ringside.errors import LaunchError
from ringside.estimate import estimate
from ringside.hardware import Hardware
from ringside.launch.probe import probe_folder, reason
from ringside.measurements import Arm, StepTiming
from ringside.measurements.store import key_of_spec
from ringside.words import DEFAULT, catalogue, say, speak, speaking, templates
from ringside.words.retelling import retold
from tests.estimate import test_recorded as recorded

TRACES = Path(__file__).parents[3] / "shared" / "traces"
SECTIONS = ("bench.", "estimate.", "trace.")
NAMES = {
    "ms", "s", "min", "x", "MB", "GB", "GiB", "GPU", "CPU", "CUDA", "DDP", "FSDP", "NCCL", "TCP",
    "BatchNorm", "PowerSGD", "Python", "rank", "gloo", "kernel", "trace", "graph", "profiler",
    "no_sync", "prof.step", "reduce-overhead", "ringside", "run", "single", "fsdp", "ddp",
    "all-reduce", "all-to-all", "all-gather", "broadcast",
    "float", "unsigned", "signed", "char", "int", "long",
}  # fmt: skip
"""Units, names that are not translated, and those of presets, collectives and element types."""
CODE = re.compile(
    r"`[^`]*`|(?<=：)ringside .*?(?= --epochs)|^ +ringside .*|--[\w=-]+|\S*\.json\S*|\([A-Z]+-\d+\)"
    r"|[A-Za-z_]+=[A-Za-z-]+",
    re.MULTILINE,
)
"""What is typed, files, codes of checks, and settings."""
MACHINE = Hardware(num_cores=2)
ASKED = ("--data", "products:ci", "--batch", "64", "--processes", "2")


def english(text: str) -> list[str]:
    """The English words in what a person reads, but for names."""
    words = re.findall(r"[A-Za-z][\w.'-]*", CODE.sub(" ", text), re.ASCII)
    known = {name.lower() for name in NAMES}
    plain = (word.rstrip(".'") for word in words)
    return [word for word in plain if word.lower() not in known and not re.search(r"_|\d", word)]


def test_an_english_word_would_be_found():
    assert english("预设 step ms\n0 12.0") == ["step"]
    assert english("rank 0: and 3 more") == ["and", "more"]
    assert english("比单设备慢：ddp_bf16。`ringside doctor` 可以查明原因。") == []


def test_tables_of_both_languages_have_the_same_columns():
    """A head that says two things in one table would hide one of them."""
    for heads in (benching.HEADS, estimating.HEADS):
        for language in ("en", "zh"):
            told = [say(key, language) for key in heads if key]
            assert len(set(told)) == len(told)


@pytest.fixture
def steps(monkeypatch):
    """`steps(ddp=20.0, …)`: milliseconds by preset, a number of blocks, or an error."""

    def time_them(**by_preset):
        def measure(spec, _hardware, **_):
            given = by_preset[spec.preset]
            if isinstance(given, BaseException):
                raise given
            ms, blocks = given if isinstance(given, tuple) else (given, 5)
            arm = Arm(name="many", num_processes=spec.num_processes, step_ms=(ms,) * blocks)
            return StepTiming(t=1.0, key=key_of_spec(spec), spec=spec, device_name="cpu", arm=arm)

        monkeypatch.setattr("ringside.launch.step_bench.measure_step", measure)
        monkeypatch.setattr("app.commands.benching.read_hardware", lambda: MACHINE)

    return time_them


def test_all_that_a_bench_says(in_chinese, ringside, steps):
    steps(single=20.0, ddp=60.0, ddp_accum4=120.0, ddp_tuned=59.0)
    _, out, err = ringside("bench", "ddp_tuned", "ddp", *ASKED)
    assert (english(out), english(err)) == ([], [])
    assert "比单设备慢：ddp_tuned, ddp。" in out
    assert "ddp_tuned 和 ddp 差不多快：相差 1.7 %，波动 0.0 %。" in out
    _, out, _ = ringside("bench", "ddp", "ddp_accum4", *ASKED)
    assert english(out) == []
    assert "ddp_accum4 最快：比 ddp 快 100 %。" in out
    assert say("bench.accumulates", "zh") in out


def test_what_a_bench_could_not_time(in_chinese, ringside, steps):
    """A rank leaves English in its file; who reads it has it told again."""
    memory = LaunchError(say("rank_error.gpu_memory", DEFAULT))
    steps(single=memory, ddp=KeyboardInterrupt(), ddp_tuned=(20.0, 2))
    code, out, err = ringside("bench", "ddp_tuned", "ddp", "ddp_fp16", *ASKED)
    assert code == 130
    assert (english(out), english(err.replace("fp16", ""))) == ([], [])
    assert f"single，32 张图片：{say('rank_error.gpu_memory', 'zh')}" in out
    assert "ddp_tuned：只有 2 个计时段，而需要 3 个。" in out
    assert say("bench.cut_short", "zh") in err


def test_the_english_heads_are_the_same_as_ever(ringside, steps, predicted, capsys):
    steps(single=20.0, ddp=60.0)
    heads = ringside("bench", "ddp", *ASKED)[1].splitlines()[0]
    assert re.split("  +", heads.strip()) == [
        "preset", "devices", "images each", "step ms", "± ms", "images/s", "speed-up",
        "efficiency", "waits for images", "memory GiB",
    ]  # fmt: skip
    estimating._print(predicted(), {})
    lead, heads, *rows = capsys.readouterr().out.splitlines()
    assert lead == (
        "Predicted, fastest first; not measured. In brackets: where the step should lie."
    )
    assert re.split("  +", heads.strip()) == [
        "preset", "step ms", "epoch", "images/s", "speed-up", "exposed", "link gain",
        "memory GiB", "sure",
    ]  # fmt: skip
    assert re.search(r" \[[\d.]+ to [\d.]+\] ", rows[0])
    assert "A step of the fastest, in ms; device and host work side by side:" in rows
    assert any(re.match(r"forward [\d.]+  backward [\d.]+  optimizer ", row) for row in rows)


@pytest.mark.distributed
def test_a_bench_of_two_real_processes(in_chinese, ringside):
    asked = ("--model", "test_resnet", "--image-size", "32", "--batch", "16", "--processes", "2")
    code, out, err = ringside("bench", "ddp", *asked, "--seconds", "1")
    assert code == 0, err
    assert english(out) == []
    assert english(err) == []
    heads, ddp, single, *_ = out.splitlines()
    assert heads.split()[:3] == ["预设", "设备", "每设备图片"]
    assert {ddp.split()[0], single.split()[0]} == {"ddp", "single"}


@pytest.fixture(scope="module")
def predicted():
    """What is predicted from measurements of two H200s, and of one preset nothing is."""
    timed = recorded.read("steps", list[recorded.Timed])
    specs = [one.spec for one in timed if one.spec.micro_batch == 64]
    inputs = [recorded.inputs_for(spec) for spec in specs]

    def estimates():
        found = [estimate(*both) for both in zip(specs, inputs, strict=True)]
        return [*found, estimate(specs[0], estimating.Inputs())]

    return estimates


def test_all_that_an_estimate_says(in_chinese, predicted, capsys):
    estimating._print(predicted(), {"ddp_fp16": say("probes.needs_gpus")})
    out = capsys.readouterr().out
    assert english(out) == []
    assert re.search(r"^预设 +每步 ms +每轮 +图片/秒 .* 把握$", out, re.MULTILINE)
    assert re.search(r"^ddp .*\[[\d.]+ 到 [\d.]+\]", out, re.MULTILINE)
    assert re.search(
        r"^前向 [\d.]+  反向 [\d.]+  优化器 [\d.]+  下发 [\d.]+  通信 ", out, re.MULTILINE
    )
    assert re.search(r"^未给出：.*。（ddp\w*）$", out, re.MULTILINE)
    assert "\n备注：" in out


def test_all_that_the_command_adds_to_estimates(in_chinese, ringside, make_spec, write_run):
    write_run(make_spec("ddp"), "20260101-000000-calm-otter")
    code, out, err = ringside("estimate", "ddp", "ddp_powersgd", *ASKED)
    assert (code, english(out), english(err)) == (1, [], [])
    code, _, err = ringside("estimate", "ddp", *ASKED, "--like", "calm-otter")
    assert code == 2
    assert err.startswith("calm-otter 不能用来修正预测。")
    assert english(err.replace("calm-otter", "").replace("resnet", "")) == []


def test_heads_of_classes(in_chinese):
    scored = EpochClasses(epoch=1, task="multi_label", threshold=0.5, num_evaluated=0, classes=())
    heads = [str(column.header) for column in class_table(scored).columns]
    assert heads[0] == "类别"
    assert heads[-2:] == ["调优阈值", "该阈值下的 F1"]


@pytest.mark.skipif(not TRACES.is_dir(), reason=f"no traces in {TRACES}")
def test_all_that_traces_say(in_chinese, capsys):
    files = sorted(TRACES.glob("*.json.gz"))
    assert files
    for file in files:
        tracing.trace([file], as_json=False)
        out, err = capsys.readouterr()
        assert (file.name, english(out), english(err)) == (file.name, [], [])
        assert out.startswith("占一步的百分比。")
        assert "…" not in out


@pytest.mark.skipif(not TRACES.is_dir(), reason=f"no traces in {TRACES}")
def test_the_english_of_a_trace_is_the_same_as_ever(capsys):
    tracing.trace([TRACES / "ddp_resnet50_2xa100.json.gz"], as_json=False)
    out = capsys.readouterr().out
    assert out.startswith(
        "Percent of a step. transfer, wait: communication that compute does not hide; data, host,\n"
        "gaps, other: nothing runs, for want of images, launches, or for another reason.\n"
        "rank steps step ms compute transfer wait copies data host gaps other\n"
    )
    for line in (
        "Sums over the counted steps, in ms:",
        "rank  span compute comm overlapped overlap exposed transfer wait  idle",
        "Messages of rank 0:",
        "message    a step    MB  type took ms transfer ms busbw GB/s",
        "Transfer and wait are estimates from repetitions; with the traces of all ranks they are "
        "measured.",
    ):
        assert f"\n{line}\n" in out
    assert re.search(r"^and 1 more +$", out, re.MULTILINE)


def test_no_rest_of_messages_and_no_missing_rank_is_english(in_chinese):
    told = [say("trace.more_messages", n=3), say("trace.some_ranks", n=1, of=2)]
    assert [english(one) for one in told] == [[], []]


def test_how_a_measurement_ended(in_chinese):
    with probe_folder() as run:
        run.console.write_text("")
        assert english(reason(run, 3)) == []
        run.console.write_text("Killed\n")
        assert reason(run, 3).endswith("：Killed")
        with speaking(DEFAULT):
            kept = reason(run, 3)
        assert kept == "The measurement ended with exit code 3; the last it said was: Killed"
        assert retold(kept) == reason(run, 3)


def test_programs_are_answered_in_english(ringside, steps, monkeypatch):
    """`--json` is English in any terminal: so `app.entry` decides before anything is said."""
    from app.entry import choose_language

    steps(ddp=(20.0, 2), single=20.0)
    argv = ("bench", "ddp", *ASKED, "--json")
    try:
        choose_language(argv, {"RINGSIDE_LANGUAGE": "zh"})
        found = json.loads(ringside(*argv)[1])
    finally:
        speak(DEFAULT)
    assert found["refused"] == {"ddp": "It has 2 of the 3 blocks that are needed."}


def test_nothing_of_them_is_left_in_english():
    """The words themselves, also where no input above has a use for them."""
    chinese = catalogue("zh")
    keys = [key for key in templates(DEFAULT) if key.startswith(SECTIONS)]
    assert [key for key in keys if chinese[key] == templates(DEFAULT)[key]] == []
