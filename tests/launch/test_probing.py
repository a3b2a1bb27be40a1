"""What is asked of a probe, and what becomes of one that fails."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ringside.errors import LaunchError
from ringside.hardware import Gpu, Hardware
from ringside.identity import run_processes
from ringside.launch import probing
from ringside.launch.probe import launch_probe, probe_folder, reason
from ringside.launch.probing import (
    SOCKETS,
    measure_description,
    measure_experiment,
    measure_step,
    measure_sweep,
    trials_for,
)
from ringside.measurements import Arm, Experiment, Point, Series, Sweep
from ringside.measurements.derived import one_device
from ringside.measurements.store import Store, key_of_machine, key_of_spec
from ringside.measurements.transport import log_variables, transport_of
from ringside.records import RankError
from ringside.rundir import RunDir
from ringside.spec import RunSpec

GPUS = tuple(
    Gpu(index=i, name="H200", uuid=f"GPU-{i}", memory_total_bytes=1, memory_used_bytes=0)
    for i in range(2)
)
MACHINE = Hardware(gpus=GPUS, num_cores=8, versions={"torch": "2.11.0"})
LAB = Path(__file__).parents[3] / "shared" / "lab" / "h200x2"


def sweep(*series: Series, failed: tuple[str, ...] = ()) -> Sweep:
    return Sweep(t=1.0, key="?", device_name="H200", num_ranks=2, series=series, failed=failed)


def series(**fields: Any) -> Series:
    points = (Point(num_bytes=1, median_us=1.0, p90_us=1.0, repeats=5),)
    return Series(
        operation="all_reduce", dtype="fp32", backend="nccl", num_ranks=2, points=points, **fields
    )


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Any]]:
    """Answers instead of launches: each is a result, or an error to raise; returns the calls."""

    def answer(*answers: Any) -> list[Any]:
        calls: list[Any] = []
        left = list(answers)

        def launch(spec: RunSpec, run: RunDir, kind: str, words: list[str], *_: Any, **how: Any):
            calls.append((kind, spec, words, how))
            given = left.pop(0)
            if isinstance(given, BaseException):
                raise given
            return given

        monkeypatch.setattr(probing, "launch_probe", launch)
        return calls

    return answer


def test_trials_are_those_that_would_change_something() -> None:
    usual = trials_for({}, "P2P/CUMEM")
    assert usual[0] == {}  # What two launches of the same thing differ by.
    assert usual.count({}) == 1
    assert {"NCCL_ALGO": "Tree"} in usual
    assert {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"} in usual
    assert SOCKETS not in usual
    assert trials_for({}, "NET/Socket")[:2] == ({}, SOCKETS)
    assert SOCKETS not in trials_for({}, None)
    set_already = trials_for({"NCCL_P2P_DISABLE": "1"}, "SHM/direct/direct")
    assert [one for one in usual if one not in set_already] == [{"NCCL_P2P_DISABLE": "1"}]


@pytest.mark.parametrize(
    ("environment", "undone"),
    [
        ({"NCCL_P2P_DISABLE": "1"}, {"NCCL_P2P_DISABLE": "0"}),
        (
            {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "PATH": "/bin"},
            {"NCCL_P2P_DISABLE": "0", "NCCL_SHM_DISABLE": "0"},
        ),
        ({"NCCL_DMABUF_ENABLE": "0"}, {"NCCL_DMABUF_ENABLE": "1"}),
    ],
)
def test_what_undoes_a_handicap_is_tried_first(
    environment: dict[str, str], undone: dict[str, str]
) -> None:
    assert trials_for(environment, "SHM/direct/direct")[:2] == (undone, {})


@pytest.mark.parametrize(
    "environment",
    [{"NCCL_P2P_DISABLE": "0"}, {"NCCL_ALGO": "Tree"}, {"TORCH_NCCL_BLOCKING_WAIT": "1"}],
    ids=["no handicap", "no switch", "not NCCL's"],
)
def test_what_is_no_switch_of_nccls_has_no_opposite(environment: dict[str, str]) -> None:
    assert trials_for(environment, None)[0] == {}


def test_a_sweep_on_gpus_tries_variables_and_keeps_what_failed(
    launched: Callable[..., list[Any]],
) -> None:
    tree = "NCCL_ALGO=Tree did not start: no algorithm/protocol available"
    again = series(transport="P2P/CUMEM")
    tried = sweep(again, series(environment={"NCCL_ALGO": "Ring"}), failed=(tree,))
    calls = launched(sweep(series()), tried)
    found = measure_sweep(MACHINE, 2, environment={"NCCL_P2P_DISABLE": "1"}, sizes=[5_000_000])
    assert [one.environment for one in found.series] == [{}, {"NCCL_ALGO": "Ring"}]
    assert found.control == again
    assert found.failed == (tree,)
    assert found.key == key_of_machine(MACHINE, 2, {"NCCL_P2P_DISABLE": "1"})
    (kind, spec, words, how), (second, _, trial_words, trial_how) = calls
    assert (kind, second) == ("sweep", "trials")
    assert (spec.num_processes, spec.gpu_ids, spec.device) == (2, (0, 1), "cuda")
    assert spec.environment == {"NCCL_P2P_DISABLE": "1"}
    assert words[words.index("--bytes") + 1] == "5000000"
    assert how["environment"]["NCCL_DEBUG"] == "INFO"
    assert trial_how["alone"]
    assert '{"NCCL_P2P_DISABLE":"1"}' not in trial_words
    assert '{"NCCL_ALGO":"Tree"}' in trial_words
    assert trial_words.index('{"NCCL_P2P_DISABLE":"0"}') < trial_words.index("{}")


def test_trials_that_fail_as_a_whole_are_no_error(launched: Callable[..., list[Any]]) -> None:
    launched(sweep(series()), LaunchError("It took longer than 235 s and was ended."))
    found = measure_sweep(MACHINE, 2)
    assert len(found.series) == 1
    assert found.failed == (
        "NCCL's variables could not be tried: It took longer than 235 s and was ended.",
    )


def test_no_trials_where_none_are_wanted_or_there_is_no_nccl(
    launched: Callable[..., list[Any]],
) -> None:
    calls = launched(sweep(series()), sweep(series()))
    measure_sweep(MACHINE, 2, trials=False)
    measure_sweep(Hardware(num_cores=2), 2)
    assert [kind for kind, *_ in calls] == ["sweep", "sweep"]


@pytest.mark.parametrize(
    ("num_ranks", "sentence"),
    [(1, "two ranks or more, not 1"), (3, "3 ranks need as many GPUs, .* shows 2")],
)
def test_a_sweep_of_too_few_or_too_many(num_ranks: int, sentence: str) -> None:
    with pytest.raises(LaunchError, match=sentence):
        measure_sweep(MACHINE, num_ranks)


def step(name: str, *step_ms: float, memory: int | None = None) -> Experiment:
    arm = Arm(
        name=name, num_processes=2, step_ms=step_ms, data_ms=step_ms[0], memory_bytes=memory,
        decoder="gpu",
    )  # fmt: skip
    return Experiment(t=1.0, key="?", spec=SPEC, device_name="H200", arms=(arm,))


SPEC = msgspec.json.decode(
    b'{"preset": "ddp", "accelerate": {"distributed_type": "MULTI_GPU", "num_processes": 2},'
    b'"training": {}, "data": {"source": "emoji"}, "global_batch": 64, "num_processes": 2,'
    b'"device": "cuda", "gpu_ids": [0, 1], "resume_from": "/run"}',
    type=RunSpec,
)
NAMES = (
    "one", "many", "many_without_reduction", "many_synthetic", "many_synthetic_without_reduction",
)  # fmt: skip


ORDER = ("many", "one", *NAMES[2:])


def test_an_experiment_goes_through_its_arms_and_back(launched: Callable[..., list[Any]]) -> None:
    there = [step(name, 10.0 + i, memory=i) for i, name in enumerate(ORDER)]
    back = [step(name, 20.0 + i, memory=9 - i) for i, name in enumerate(ORDER)]
    calls = launched(*there, *reversed(back))
    found = measure_experiment(SPEC, MACHINE, seconds_per_arm=8.0)
    assert [arm.name for arm in found.arms] == list(NAMES)
    by_name = {arm.name: arm for arm in found.arms}
    arms = [by_name[name] for name in ORDER]
    assert [arm.step_ms for arm in arms] == [(10.0 + i, 20.0 + i) for i in range(5)]
    assert [arm.data_ms for arm in arms] == [15.0 + i for i in range(5)]
    assert [arm.memory_bytes for arm in arms] == [9, 8, 7, 6, 5]
    assert (found.key, found.spec) == (key_of_spec(SPEC), SPEC)
    flags = [tuple(words[2:]) for _, _, words, _ in calls]
    without, synthetic = "--without-reduction", "--synthetic"
    there_flags = [(), (), (without,), (synthetic,), (synthetic, without)]
    assert flags == [*there_flags, *reversed(there_flags)]
    assert {words[1] for _, _, words, _ in calls} == {"4.0"}
    assert [spec.num_processes for _, spec, *_ in calls] == [2, 1, *[2] * 6, 1, 2]
    assert {spec.resume_from for _, spec, *_ in calls} == {None}
    # `many` chose, and the others read as it did.
    assert [spec.training.decoder for _, spec, *_ in calls] == ["auto", *["gpu"] * 9]


def test_an_experiment_that_is_cut_off_keeps_what_it_has(
    launched: Callable[..., list[Any]], tmp_path: Path
) -> None:
    """From its first whole round on, in one file that grows."""
    there = [step(name, 10.0) for name in ORDER]
    launched(*there, step(ORDER[-1], 20.0), step(ORDER[-2], 20.0), KeyboardInterrupt())
    store = Store(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        measure_experiment(SPEC, MACHINE, keep=store.save)
    (kept,) = store.folder.iterdir()
    found = msgspec.json.decode(kept.read_bytes(), type=Experiment)
    twice = {arm.name for arm in found.arms if arm.step_ms == (10.0, 20.0)}
    assert twice == set(ORDER[-2:])
    assert all(arm.step_ms for arm in found.arms)
    early: list[Experiment] = []
    launched(*there[:4], KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        measure_experiment(SPEC, MACHINE, keep=early.append)
    assert early == []


def test_an_experiment_goes_the_way_that_a_run_went(
    launched: Callable[..., list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shell's own variables of transport are taken away; the preset's count above all."""
    monkeypatch.setenv("NCCL_ALGO", "Ring")
    preset = msgspec.structs.replace(SPEC, environment={"NCCL_PROTO": "Simple"})
    had = {"NCCL_P2P_DISABLE": "1", "NCCL_DEBUG": "INFO", "PATH": "/bin"}
    calls = launched(*[step(name, 1.0) for name in (*ORDER, *reversed(ORDER))])
    found = measure_experiment(preset, MACHINE, environment=had)
    assert found.transport == {"NCCL_P2P_DISABLE": "1", "NCCL_PROTO": "Simple"}
    assert all(how["environment"] == found.transport | {"NCCL_ALGO": None} for *_, how in calls)
    launched(*[step(name, 1.0) for name in (*ORDER, *reversed(ORDER))])
    assert measure_experiment(SPEC, MACHINE).transport == {"NCCL_ALGO": "Ring"}


def test_a_variable_of_the_shell_can_be_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    from ringside.launch import probe

    given: list[Any] = []

    def execute(argv: list[str], run: RunDir, environment: dict[str, str], _: float) -> int:
        run.console.write_text("Nothing was measured.\n")
        given.append(environment)
        return 1

    monkeypatch.setattr(probe, "_execute", execute)
    monkeypatch.setenv("NCCL_ALGO", "Ring")
    monkeypatch.setenv("NCCL_PROTO", "LL")
    with probe_folder() as run, pytest.raises(LaunchError):
        launch_probe(
            CPU, run, "step", [], Experiment, timeout_s=1,
            environment={"NCCL_ALGO": None, "NCCL_P2P_DISABLE": "1"},
        )  # fmt: skip
    environment = given[0]
    assert "NCCL_ALGO" not in environment
    assert (environment["NCCL_P2P_DISABLE"], environment["NCCL_PROTO"]) == ("1", "LL")
    assert environment["PATH"] == os.environ["PATH"]


def test_an_arm_that_fails_once_of_two_keeps_its_figures(
    launched: Callable[..., list[Any]],
) -> None:
    there = [step(name, 10.0) for name in ORDER]
    back = [LaunchError("The GPU ran out of memory."), *(step(name, 20.0) for name in ORDER[:4])]
    launched(*there, *back)
    found = measure_experiment(SPEC, MACHINE)
    assert found.arms[-1].step_ms == (10.0,)
    assert found.arms[-1].problem is None


def test_an_arm_that_fails_is_not_tried_again(launched: Callable[..., list[Any]]) -> None:
    refusal = LaunchError("FSDP2 has no such step.")
    there = [step("many", 1.0), step("one", 1.0), refusal, step("many_synthetic", 1.0), refusal]
    calls = launched(*there, *(step(name, 2.0) for name in ("many_synthetic", "one", "many")))
    heard: list[str] = []
    found = measure_experiment(SPEC, MACHINE, say=heard.append)
    assert len(calls) == 8
    assert heard.count(str(refusal)) == 2
    assert [arm.problem for arm in found.arms] == [None, None, str(refusal), None, str(refusal)]
    assert [len(arm.step_ms) for arm in found.arms] == [2, 2, 0, 2, 0]


def test_an_experiment_without_any_arm_is_an_error(launched: Callable[..., list[Any]]) -> None:
    calls = launched(*[LaunchError(f"{name} fails.") for name in ORDER])
    with pytest.raises(LaunchError, match=r"many fails\."):
        measure_experiment(SPEC, MACHINE)
    assert len(calls) == 5


def test_one_device_has_only_its_input_to_lose(launched: Callable[..., list[Any]]) -> None:
    calls = launched(*[step("many", 10.0)] * 4)
    found = measure_experiment(one_device(SPEC), MACHINE)
    assert [arm.name for arm in found.arms] == ["many", "many_synthetic"]
    assert len(calls) == 4


@pytest.mark.parametrize("measure", [measure_experiment, measure_description])
def test_devices_that_are_not_there(measure: Callable[..., Any]) -> None:
    with pytest.raises(LaunchError, match="is for GPUs and this machine trains on a CPU"):
        measure(SPEC, Hardware(num_cores=2))
    with pytest.raises(LaunchError, match="names GPU 1, which this machine does not show"):
        measure(SPEC, msgspec.structs.replace(MACHINE, gpus=GPUS[:1]))


CPU = msgspec.structs.replace(one_device(SPEC), device="cpu", gpu_ids=())


def test_a_users_mistake_is_the_sentence_of_the_probe() -> None:
    wrong = msgspec.structs.replace(CPU, model="no_such_model")
    with (
        probe_folder() as run,
        pytest.raises(LaunchError, match="timm cannot make 'no_such_model'"),
    ):
        launch_probe(wrong, run, "describe", [], Experiment, timeout_s=120)


def test_a_probe_that_dies_without_a_word_is_told_by_its_console(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from ringside.launch import probe

    monkeypatch.setattr(probe.sys, "executable", "/bin/echo")
    with (
        probe_folder() as run,
        pytest.raises(LaunchError, match="exit code 0; the last it said was: -m accelerate"),
    ):
        launch_probe(CPU, run, "step", [], Experiment, timeout_s=20)
    assert run_processes(run.id) == set()


HANGS = """#!{python}
import sys, time
open(sys.argv[sys.argv.index("--out") + 1], "wb").write({written!r})
time.sleep(60)
"""


@pytest.mark.parametrize("is_whole", [True, False])
def test_what_was_written_counts_although_its_launch_hangs_at_the_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_whole: bool
) -> None:
    from ringside.launch import probe

    expected = sweep(series())
    written = msgspec.json.encode(expected) if is_whole else b"{"
    script = tmp_path / "python"
    script.write_text(HANGS.format(python=sys.executable, written=written))
    script.chmod(0o755)
    monkeypatch.setattr(probe.sys, "executable", str(script))
    with probe_folder() as run:
        if is_whole:
            assert launch_probe(CPU, run, "sweep", [], Sweep, timeout_s=2, alone=True) == expected
        else:
            with pytest.raises(LaunchError, match="took longer than 2 s and was ended"):
                launch_probe(CPU, run, "sweep", [], Sweep, timeout_s=2, alone=True)
        assert run_processes(run.id) == set()


def test_the_first_cause_is_told_and_not_its_consequence() -> None:
    with probe_folder() as run:
        lost = RankError(rank=0, t=1.0, sentence="Lost.", cause="lost_connection")
        run.write(run.ranks / "rank0.error.json", lost)
        first = RankError(rank=1, t=2.0, sentence="The GPU ran out of memory.", cause="gpu_memory")
        run.write(run.ranks / "rank1.error.json", first)
        assert reason(run, 1) == "The GPU ran out of memory."


def test_nccls_log_goes_into_the_folder_and_tells_the_transport(tmp_path: Path) -> None:
    folder = tmp_path / "50 %"
    (folder / "nccl").mkdir(parents=True)
    assert log_variables(folder)["NCCL_DEBUG_FILE"] == f"{tmp_path}/50 %%/nccl/%h.%p.log"
    assert transport_of(folder) is None
    (folder / "nccl" / "host.1.log").write_text("nothing of NCCL's\n")
    assert transport_of(folder) is None


@pytest.mark.parametrize(
    ("name", "transport"), [("nvlink", "P2P/CUMEM"), ("shm", "SHM"), ("socket", "NET/Socket")]
)
@pytest.mark.skipif(not LAB.is_dir(), reason="the logs of two H200s are not beside this checkout")
def test_the_transport_of_real_logs(tmp_path: Path, name: str, transport: str) -> None:
    import gzip

    (tmp_path / "nccl").mkdir()
    for rank in (0, 1):
        packed = (LAB / name / f"nccl.rank{rank}.log.gz").read_bytes()
        (tmp_path / "nccl" / f"host.{rank}.log").write_bytes(gzip.decompress(packed))
    found = transport_of(tmp_path)
    assert found is not None
    assert found.startswith(transport)


def test_a_step_is_kept_as_it_was_asked_for(
    launched: Callable[..., list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The decoder that was chosen for it stands in the arm; variables of the ranks beside it."""
    monkeypatch.setenv("NCCL_ALGO", "Ring")
    calls = launched(step("many", 10.0), step("many_synthetic", 9.0))
    found = measure_step(SPEC, MACHINE, seconds=2.0, decoder="gpu")
    assert (found.key, found.spec, found.arm.decoder) == (key_of_spec(SPEC), SPEC, "gpu")
    assert (found.device_name, found.transport) == ("H200", {"NCCL_ALGO": "Ring"})
    ((_, spec, words, _),) = calls
    assert (spec.training.decoder, words) == ("gpu", ["--seconds", "2.0"])
    assert measure_step(SPEC, MACHINE, synthetic=True).arm.name == "many_synthetic"
    assert calls[1][2][2:] == ["--synthetic"]
