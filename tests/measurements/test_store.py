"""The one store of measurements: what fits, what is too old, what cannot be read."""

from __future__ import annotations

import stat
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ringside.cores import num_cores as usable_cores
from ringside.errors import RunDirError
from ringside.hardware import Gpu, Hardware
from ringside.measurements import Arm, Description, Experiment, StepProfile, StepTiming, Sweep
from ringside.measurements.keys import fields_of_step
from ringside.measurements.store import Store, key_of_machine, key_of_model, key_of_spec
from ringside.rundir import list_run_dirs
from ringside.spec import RunSpec

GPUS = tuple(
    Gpu(index=i, name="H200", uuid=f"GPU-{i}", memory_total_bytes=1, memory_used_bytes=i)
    for i in range(4)
)
MACHINE = Hardware(gpus=GPUS, num_cores=8, versions={"torch": "2.11.0"})
replace = msgspec.structs.replace


def sweep(key: str, t: float = 1.0) -> Sweep:
    return Sweep(t=t, key=key, device_name="H200", num_ranks=2)


def description(
    spec: RunSpec, t: float = 1.0, batch: int = 64, device: str = "H200"
) -> Description:
    profile = StepProfile(
        batch=batch, step_us=(10.0,), forward_us=3.0, backward_us=6.0, optimizer_us=1.0
    )
    return Description(
        t=t, key=key_of_model(spec), model=spec.model, num_classes=2, image_size=32,
        precision="no", compile=False, channels_last=True, optimizer="adamw", device_name=device,
        num_parameters=1, parameter_bytes=4, buffer_bytes=0, optimizer_state_bytes=8,
        profiles=(profile,),
    )  # fmt: skip


def experiment(spec: RunSpec, t: float = 1.0, device: str = "H200") -> Experiment:
    arm = Arm(name="many", num_processes=2, step_ms=(1.0, 2.0))
    return Experiment(t=t, key=key_of_spec(spec), spec=spec, device_name=device, arms=(arm,))


def timing(spec: RunSpec, t: float = 1.0, device: str = "H200") -> StepTiming:
    arm = Arm(name="many", num_processes=2, step_ms=(1.0, 2.0))
    return StepTiming(t=t, key=key_of_spec(spec), spec=spec, device_name=device, arm=arm)


def test_what_was_saved_comes_back_and_is_no_run(
    root: Path, make_spec: Callable[..., RunSpec]
) -> None:
    store, spec = Store(root), make_spec("ddp")
    kept = [sweep(key_of_machine(MACHINE, 2, {})), experiment(spec), description(spec)]
    kept.append(timing(spec, t=2.0))  # later than the experiment, and no experiment
    for one in kept:
        store.save(one)
    found = [store.sweep(MACHINE, 2), store.experiment(spec), store.description(spec)]
    assert [*found, store.timing(spec)] == kept
    assert list_run_dirs(root) == []


def test_the_latest_is_taken_and_the_others_stay(root: Path) -> None:
    store, key = Store(root), key_of_machine(MACHINE, 2, {})
    for t in (5.0, 9.0, 7.0):
        store.save(sweep(key, t))
    found = store.sweep(MACHINE, 2)
    assert found is not None
    assert found.t == 9.0
    assert len(list(store.folder.iterdir())) == 3


def test_an_empty_store_has_nothing(root: Path, make_spec: Callable[..., RunSpec]) -> None:
    store, spec = Store(root), make_spec("ddp")
    assert (store.sweep(MACHINE, 2), store.experiment(spec), store.description(spec)) == (None,) * 3
    assert store.timing(spec) is None


def test_a_sweep_fits_its_own_devices_ranks_torch_and_transport(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(root)
    store.save(sweep(key_of_machine(MACHINE, 2, {"PATH": "/bin", "NCCL_DEBUG": "INFO"})))
    busy = replace(MACHINE, gpus=tuple(replace(gpu, memory_used_bytes=7) for gpu in GPUS))
    assert store.sweep(busy, 2) is not None
    assert store.sweep(MACHINE, 4) is None
    assert store.sweep(replace(MACHINE, gpus=GPUS[2:]), 2) is None
    assert store.sweep(replace(MACHINE, versions={"torch": "2.14.0"}), 2) is None
    assert store.sweep(MACHINE, 2, {"NCCL_P2P_DISABLE": "1"}) is None
    monkeypatch.setenv("NCCL_P2P_DISABLE", "1")
    assert store.sweep(MACHINE, 2) is None


def test_cpus_are_told_apart_by_their_cores() -> None:
    few, many = Hardware(num_cores=2), Hardware(num_cores=4)
    assert key_of_machine(few, 2, {}) != key_of_machine(many, 2, {})
    assert key_of_machine(few, 2, {}) == key_of_machine(Hardware(num_cores=2), 2, {})


def with_training(spec: RunSpec, **settings: Any) -> RunSpec:
    return replace(spec, training=replace(spec.training, **settings))


def test_an_experiment_fits_every_request_with_the_same_step(
    make_spec: Callable[..., RunSpec],
) -> None:
    spec = make_spec("ddp")
    same = [
        replace(spec, preset="mine", epochs=90, seed=7, sources={"a": "flag"}, weights="/w"),
        replace(spec, profile_steps=3),
        replace(spec, queue=True),
        replace(spec, beside=True, time_limit_s=60, retries=1),
        with_training(spec, learning_rate=1.0, trackers=("tensorboard",), timeout_s=60),
        with_training(spec, channels_last=True),
    ]
    other = [
        make_spec("ddp", micro_batch=32), make_spec("ddp", num_processes=4),
        make_spec("ddp", precision="bf16"), make_spec("fsdp"), replace(spec, model="resnet18"),
        with_training(spec, static_graph=True), with_training(spec, num_workers=1),
        with_training(spec, channels_last=False),
        replace(spec, environment={"NCCL_P2P_DISABLE": "1"}),
    ]  # fmt: skip
    assert {key_of_spec(one) for one in same} == {key_of_spec(spec)}
    assert len({key_of_spec(one) for one in [spec, *other]}) == 1 + len(other)


def test_a_description_fits_every_strategy_and_batch_of_its_model(
    make_spec: Callable[..., RunSpec],
) -> None:
    spec = make_spec("ddp")
    same = [
        make_spec("single"), make_spec("ddp", micro_batch=8), make_spec("ddp", num_processes=4),
        with_training(spec, bucket_cap_mb=5), with_training(spec, comm_hook="bf16"),
        # FSDP2 keeps weights in the plain layout; convolutions follow the images.
        make_spec("fsdp"), with_training(spec, channels_last=True),
    ]  # fmt: skip
    other = [
        make_spec("ddp", precision="bf16"), replace(spec, model="resnet18"),
        make_spec("ddp", image_size=64), with_training(spec, compile=True),
        with_training(spec, optimizer="sgd"), with_training(spec, channels_last=False),
        make_spec("ddp", data="synthetic"), replace(spec, threads_per_device=2),
    ]  # fmt: skip
    key = key_of_model(spec)
    assert {key_of_model(one) for one in same} == {key}
    assert len({key_of_model(one) for one in [spec, *other]}) == 1 + len(other)


def test_a_description_at_the_own_batch_comes_before_a_later_one(
    root: Path, make_spec: Callable[..., RunSpec]
) -> None:
    store, spec = Store(root), make_spec("ddp", micro_batch=64)
    store.save(description(spec, t=1.0, batch=64))
    store.save(description(spec, t=2.0, batch=16))
    own, other = store.description(spec), store.description(make_spec("ddp", micro_batch=8))
    assert (own and own.t, other and other.t) == (1.0, 2.0)


def test_another_device_does_not_fit(root: Path, make_spec: Callable[..., RunSpec]) -> None:
    store, spec = Store(root), make_spec("ddp")
    store.save(description(spec, device="A100"))
    store.save(experiment(spec, device="A100"))
    store.save(timing(spec, device="A100"))
    assert store.timing(spec, "H200") is None
    assert store.timing(spec, "A100") is not None
    assert (store.description(spec, "H200"), store.experiment(spec, "H200")) == (None, None)
    assert store.description(spec, "A100") is not None
    assert store.experiment(spec, "A100") is not None


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"format": 1}', b"\xff"])
def test_a_file_that_cannot_be_read_is_as_good_as_none(root: Path, text: bytes) -> None:
    store, key = Store(root), key_of_machine(MACHINE, 2, {})
    store.save(sweep(key)).write_bytes(text)
    assert store.sweep(MACHINE, 2) is None


def test_a_newer_format_and_a_moved_file_are_left_alone(root: Path) -> None:
    store, key = Store(root), key_of_machine(MACHINE, 2, {})
    store.save(replace(sweep(key, 5.0), format=2))
    store.save(sweep("0123456789abcdef", 6.0)).rename(store.folder / f"sweep-{key}-6.json")
    store.save(sweep(key, 1.0))
    found = store.sweep(MACHINE, 2)
    assert found is not None
    assert found.t == 1.0


def test_a_folder_that_cannot_be_written_is_named(root: Path) -> None:
    root.mkdir()
    (root / "measurements").write_text("in the way")
    with pytest.raises(RunDirError, match="measurements cannot be written"):
        Store(root).save(sweep("0123456789abcdef"))
    assert stat.S_ISREG((root / "measurements").stat().st_mode)


def test_a_sweep_is_found_by_what_a_runs_ranks_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by the variables of whoever asks; the log's own do not count."""
    over_sockets = {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}
    hardware, store = Hardware(num_cores=2), Store(tmp_path)
    found = sweep(key_of_machine(hardware, 2, over_sockets))
    store.save(found)
    ranks = over_sockets | {"OMP_NUM_THREADS": "1", "NCCL_DEBUG": "INFO"}
    assert store.sweep(hardware, 2, {}, inherited=ranks) == found
    assert store.sweep(hardware, 2, {}, inherited={}) is None
    for name, value in over_sockets.items():
        monkeypatch.setenv(name, value)
    assert store.sweep(hardware, 2, {}, inherited={}) is None


@pytest.mark.parametrize(
    ("versions", "num_cores", "is_found"),
    [
        ({"torch": "2.11.0+cu130"}, 8, True),
        ({"torch": "2.14.1+cu130"}, 8, False),
        ({"torch": "2.11.0"}, 2, False),
        ({}, None, True),
    ],
    ids=["this torch, another build", "another torch", "other cores", "nobody wrote it down"],
)
def test_a_step_of_another_torch_or_another_cpu_does_not_fit(
    root: Path, make_spec: Callable[..., RunSpec], versions: dict[str, str],
    num_cores: int | None, is_found: bool,
) -> None:  # fmt: skip
    store, spec = Store(root), make_spec("ddp")
    here = Hardware(num_cores=8, versions={"torch": "2.11.0"})
    known = {"versions": versions, "num_cores": num_cores}
    store.save(replace(description(spec), **known))
    store.save(replace(experiment(spec), **known))
    store.save(replace(timing(spec), **known))
    assert (store.timing(spec, hardware=here) is not None) == is_found
    assert (store.description(spec, hardware=here) is not None) == is_found
    assert (store.experiment(spec, hardware=here) is not None) == is_found


def test_what_fits_is_what_is_installed_here(
    root: Path, make_spec: Callable[..., RunSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, spec = Store(root), make_spec("ddp")
    torch, cores = metadata.version("torch"), usable_cores()
    own = replace(description(spec), versions={"torch": torch}, num_cores=cores)
    store.save(own)
    store.save(replace(own, t=2.0, versions={"torch": "1.0.0"}))
    store.save(replace(own, t=3.0, num_cores=cores + 1))
    assert store.description(spec) == own
    # The cores beside a GPU are no part of what fits.
    on_gpu = replace(spec, device="cuda", gpu_ids=(0, 1))
    other = replace(own, key=key_of_model(on_gpu), num_cores=cores + 1)
    store.save(other)
    assert store.description(on_gpu) == other


def test_an_experiment_fits_the_way_that_the_bytes_of_a_run_went(
    root: Path, make_spec: Callable[..., RunSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, spec = Store(root), make_spec("ddp")
    off = {"NCCL_P2P_DISABLE": "1"}
    slow = replace(experiment(spec, t=2.0), transport=off)
    for one in (experiment(spec), slow):
        store.save(one)
    assert store.experiment(spec, inherited=off | {"PATH": "/bin", "NCCL_DEBUG": "INFO"}) == slow
    assert store.experiment(spec, inherited={}) == experiment(spec)
    assert store.experiment(spec, inherited={"NCCL_ALGO": "Ring"}) is None
    monkeypatch.setenv("NCCL_P2P_DISABLE", "1")
    assert store.experiment(spec) == slow


def test_a_timing_fits_the_same_step_and_transport_and_the_latest_wins(
    root: Path, make_spec: Callable[..., RunSpec]
) -> None:
    store, spec = Store(root), make_spec("ddp")
    off = {"NCCL_P2P_DISABLE": "1"}
    slow = replace(timing(spec, t=9.0), transport=off)
    for one in (timing(spec, t=5.0), timing(spec, t=3.0), slow):
        store.save(one)
    assert store.timing(spec, inherited={}) == timing(spec, t=5.0)
    assert store.timing(spec, inherited=off) == slow
    assert store.timing(make_spec("ddp", micro_batch=32), inherited={}) is None
    made_up = replace(spec, data=replace(spec.data, source="synthetic"))
    assert store.timing(made_up, inherited={}) is None


def test_what_was_measured_while_images_stayed_channels_last_fits_no_more(
    make_spec: Callable[..., RunSpec],
) -> None:
    """Once `channels_last: false` changed the layout of the weights alone."""
    off = with_training(make_spec("ddp"), channels_last=False)
    assert fields_of_step(off)["training"]["channels_last"] is not False
