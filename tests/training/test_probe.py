"""Probes of one process, and the command line that all of them share."""

from __future__ import annotations

import functools
import gc
import math
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
import timm
import torch
from accelerate.state import AcceleratorState
from torch.utils.data._utils import MP_STATUS_CHECK_INTERVAL

from ringside.errors import SetupError
from ringside.measurements import Description, Experiment, Series
from ringside.measurements.store import key_of_model, key_of_spec
from ringside.spec import DataSpec, RunSpec
from training import probe
from training.engine import Engine
from training.probes.arms import measure_arm
from training.probes.bench import Bench
from training.probes.describe import measure_description
from training.probes.trials import measure_trials

NUM_CLASSES = 16


@pytest.fixture
def make(make_spec: Callable[..., RunSpec]) -> Iterator[Callable[..., RunSpec]]:
    """Specs of the small job; Accelerate's state of another test is forgotten."""
    AcceleratorState._reset_state(reset_partial_state=True)

    def small(preset: str = "single", **fields: object) -> RunSpec:
        spec = make_spec(preset, model="test_resnet", **fields)
        return msgspec.structs.replace(spec, data=DataSpec(source="products", profile="ci"))

    yield small
    gc.collect()
    AcceleratorState._reset_state(reset_partial_state=True)


def described(spec: RunSpec) -> Description:
    """Without problems; the same request is measured once."""
    found = measured(msgspec.json.encode(spec))
    assert found.problems == ()
    return found


@functools.cache
def measured(encoded: bytes) -> Description:
    return measure_description(msgspec.json.decode(encoded, type=RunSpec), seconds=0.2)


def test_workers_of_a_bench_hear_that_it_ends(make: Callable[..., RunSpec]) -> None:
    """Each that does not is waited for as long as torch waits between two looks."""
    bench = Bench(make(training={"num_workers": 2}), synthetic=False)
    bench.step()
    begin = time.monotonic()
    bench.close()
    assert time.monotonic() - begin < MP_STATUS_CHECK_INTERVAL


def test_a_description_counts_what_torch_counts(make: Callable[..., RunSpec]) -> None:
    spec = make("ddp", micro_batch=16)
    found = described(spec)
    assert found.key == key_of_model(spec)
    model = Bench(make(micro_batch=16), synthetic=True).engine.plain
    assert found.num_parameters == sum(p.numel() for p in model.parameters())
    assert found.parameter_bytes == 4 * found.num_parameters
    assert found.buffer_bytes == sum(b.nbytes for b in model.buffers())
    # All buffers of a ResNet are its batch-norms'.
    assert found.running_bytes == found.buffer_bytes
    # AdamW keeps two moments of each weight, and a count of its steps for each tensor.
    num_tensors = len(list(model.parameters()))
    assert found.optimizer_state_bytes == 8 * found.num_parameters + 4 * num_tensors
    assert (found.num_classes, found.image_size, found.precision) == (NUM_CLASSES, 32, "no")
    assert [profile.batch for profile in found.profiles] == [8, 16]


def test_a_profile_is_a_step_and_its_parts(make: Callable[..., RunSpec]) -> None:
    spec = make("ddp", micro_batch=64, training={"accumulation_steps": 4})
    small, large = described(spec).profiles
    assert (small.batch, large.batch) == (32, 64)
    for profile in (small, large):
        assert len(profile.step_us) >= 3
        parts = profile.forward_us + profile.backward_us + profile.optimizer_us
        # One thread does one part after the other, and little beside them.
        assert 0.5 * min(profile.step_us) < parts < 1.1 * max(profile.step_us)
        assert len(profile.wrapped_step_us) >= 3
        # On a CPU there is no allocator to ask, and the host is the device.
        assert (profile.peak_bytes, profile.host_us, profile.device_us) == (None, None, None)


def test_gradients_are_ready_from_the_last_layer_to_the_first(
    make: Callable[..., RunSpec],
) -> None:
    _, profile = described(make("ddp", micro_batch=16)).profiles
    model = Bench(make(micro_batch=16), synthetic=True).engine.plain
    sizes = {name: p.numel() for name, p in model.named_parameters()}
    assert {one.name: one.num_elements for one in profile.gradients} == sizes
    times = [one.ready_us for one in profile.gradients]
    assert times == sorted(times)
    assert times[0] > 0
    assert times[-1] == pytest.approx(profile.backward_us)
    names = [one.name for one in profile.gradients]
    assert names[0].startswith("fc.")
    assert names[-1].startswith("conv1.")
    # The first layer's gradient needs the whole pass, and the last layer's next to nothing of it.
    assert times[0] < 0.3 * times[-1]


def test_compiled_gradients_come_together(
    make: Callable[..., RunSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The graph is cut and run as under inductor, which would take a minute to compile it."""
    monkeypatch.setattr(
        Engine, "_compiled", lambda _self, model: torch.compile(model, backend="aot_eager")
    )
    found = described(make(micro_batch=4, training={"compile": True}))
    for profile in found.profiles:
        times = [one.ready_us for one in profile.gradients]
        assert len(times) > 40
        assert times[0] > 0.5 * times[-1]


def test_a_frozen_backbone_has_no_gradients(make: Callable[..., RunSpec]) -> None:
    found = described(make(micro_batch=4, training={"freeze": "backbone"}))
    names = {one.name for one in found.profiles[0].gradients}
    assert names == {"fc.weight", "fc.bias"}


def test_few_images_have_twice_as_many_beside_them(make: Callable[..., RunSpec]) -> None:
    found = described(make(micro_batch=2))
    assert [profile.batch for profile in found.profiles] == [2, 4]


def test_what_cannot_be_measured_is_a_problem_and_not_the_end(
    make: Callable[..., RunSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("NCCL is not here\nand a long story")

    monkeypatch.setattr("torch.distributed.init_process_group", refuse)
    found = measure_description(make(micro_batch=4), seconds=0.1)
    assert found.problems == ("The step inside DDP could not be measured: NCCL is not here",)
    assert [profile.wrapped_step_us for profile in found.profiles] == [(), ()]
    assert all(profile.gradients for profile in found.profiles)


def test_the_input_of_a_bench_never_ends(make: Callable[..., RunSpec]) -> None:
    bench = Bench(make(micro_batch=64), synthetic=False)
    steps = bench.trainer.order.steps_per_epoch
    for _ in range(2 * steps + 1):
        bench.step()
    assert bench.trainer.order.epoch == 3


def test_weights_of_the_hub_are_not_asked_for(
    make: Callable[..., RunSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    create = timm.create_model

    def watched(name: str, **arguments: object) -> object:
        asked.append(arguments["pretrained"])
        return create(name, **arguments)

    monkeypatch.setattr(timm, "create_model", watched)
    Bench(make(micro_batch=4, training={"pretrained": True}), synthetic=True)
    assert asked == [False]


def test_a_closed_bench_holds_no_memory(make: Callable[..., RunSpec]) -> None:
    bench = Bench(make(micro_batch=4), synthetic=True)
    bench.step()
    weights = weakref.ref(next(bench.engine.plain.parameters()))
    bench.close()
    assert weights() is None


@pytest.mark.parametrize("preset", ["single", "fsdp"])
def test_a_step_that_would_be_another_one_is_refused(
    make: Callable[..., RunSpec], preset: str
) -> None:
    with pytest.raises(SetupError, match="cannot be measured without its reduction"):
        measure_arm(make(preset), "many", seconds=1, reduces=False, synthetic=False)


def write(spec: RunSpec, folder: Path) -> list[str]:
    (folder / "spec.json").write_bytes(msgspec.json.encode(spec))
    return ["--spec", str(folder / "spec.json"), "--out", str(folder / "out.json")]


@pytest.mark.parametrize(
    ("flags", "name", "waits"), [([], "one", True), (["--synthetic"], "many_synthetic", False)]
)
def test_a_step_from_the_command_line(
    make: Callable[..., RunSpec], tmp_path: Path, flags: list[str], name: str, waits: bool
) -> None:
    spec = make(micro_batch=32)
    assert probe.main(["step", *write(spec, tmp_path), "--seconds", "0.3", *flags]) == 0
    found = msgspec.json.decode((tmp_path / "out.json").read_bytes(), type=Experiment)
    (arm,) = found.arms
    assert (arm.name, arm.num_processes, arm.problem) == (name, 1, None)
    assert len(arm.step_ms) >= 3
    assert all(math.isfinite(ms) and ms > 0 for ms in arm.step_ms)
    assert arm.data_ms is not None
    assert (arm.data_ms > 1) == waits
    assert arm.decoder == ("cpu" if waits else None)
    assert (found.key, found.spec) == (key_of_spec(spec), spec)


def test_a_rank_that_has_written_ends_at_once(make: Callable[..., RunSpec], tmp_path: Path) -> None:
    """Whatever still runs in it: NCCL's threads can outlive a clean end."""
    words = ["probe", "step", *write(make(micro_batch=8), tmp_path), "--seconds", "0.1"]
    script = (
        "import runpy, sys, threading\n"
        "threading.Thread(target=threading.Event().wait).start()\n"
        f"sys.argv = {words!r}\n"
        "print('said')\n"
        "runpy.run_module('training.probe', run_name='__main__')\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], timeout=60, capture_output=True, text=True
    )
    assert (ended.returncode, ended.stdout) == (0, "said\n")
    assert (tmp_path / "out.json").is_file()


def test_mistakes_are_one_sentence_and_exit_code_2(
    make: Callable[..., RunSpec], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = write(make(), tmp_path)
    (tmp_path / "bad.json").write_text("{}")
    cases = [
        (["sweep", *words], "A collective needs two ranks or more, and one process was started."),
        (["step", *words, "--without-reduction"], "one process reduces nothing"),
        (["step", "--spec", str(tmp_path / "no.json"), *words[2:]], "no.json cannot be read"),
        (["step", "--spec", str(tmp_path / "bad.json"), *words[2:]], "bad.json is no RunSpec"),
        (["step", *words[:3], str(tmp_path / "no" / "out.json")], "There is no folder"),
    ]
    for argv, sentence in cases:
        AcceleratorState._reset_state(reset_partial_state=True)
        assert probe.main(argv) == 2
        said = capsys.readouterr().err
        assert sentence in said
        assert said.startswith("[rank 0] ")
        assert said.count("\n") == 1
    assert not (tmp_path / "out.json").exists()


@pytest.mark.parametrize(
    "words", [["wrong"], ["step", "--seconds", "0"], ["sweep", "--bytes", "-1"], ["trials"],
              ["trials", "--environment", "{"]],
)  # fmt: skip
def test_flags_that_cannot_be_read(words: list[str], tmp_path: Path) -> None:
    required = [] if words == ["trials"] else ["--spec", "s", "--out", "o"]
    with pytest.raises(SystemExit) as ended:
        probe.main([*words, *required])
    assert ended.value.code == 2


def test_trials_have_fresh_processes_and_failures_are_sentences(
    make: Callable[..., RunSpec], tmp_path: Path
) -> None:
    """gloo reads the name of its interface once; one that does not exist cannot be used."""
    absent = {"GLOO_SOCKET_IFNAME": "absent0"}
    found, failed = measure_trials(
        make("ddp"), [{"GLOO_SOCKET_IFNAME": "lo"}, absent, {}], tmp_path,
        sizes=[4096, 10_001], seconds=0.2, timeout_s=30,
    )  # fmt: skip
    assert [one.environment for one in found] == [{"GLOO_SOCKET_IFNAME": "lo"}, {}]
    for one in found:
        assert isinstance(one, Series)
        assert [point.num_bytes for point in one.points] == [4096, 10_000]
        assert (one.operation, one.backend, one.transport) == ("all_reduce", "gloo", None)
    (sentence,) = failed
    assert sentence.startswith("GLOO_SOCKET_IFNAME=absent0 did not start: ")
    assert "absent0" in sentence.partition(": ")[2]


def test_a_trial_that_takes_too_long_is_ended(make: Callable[..., RunSpec], tmp_path: Path) -> None:
    found, failed = measure_trials(
        make("ddp"), [{"GLOO_SOCKET_IFNAME": "lo"}], tmp_path, sizes=[2**26], seconds=60,
        timeout_s=2,
    )  # fmt: skip
    assert (found, failed) == ((), ("GLOO_SOCKET_IFNAME=lo did not finish within 2 s.",))
