"""Each failure has a kind of a closed list, and for each kind there is something to try."""

from __future__ import annotations

import itertools
import re
import shlex
import shutil
from collections import namedtuple

import msgspec
import pytest

from app import cli
from app.commands import running
from ringside.causes import FAILURE_KINDS, kind_of
from ringside.command_line import command
from ringside.hardware import Gpu, Hardware
from ringside.launch.verdict import judge
from ringside.records import ExitRecord, Failure, RankError, Standing, write_exit
from ringside.remedies import failure_kind, kind_title, what_to_try
from ringside.request import RunRequest, resolve
from ringside.run import fold_run

RUN = "20260101-000000-calm-fox"
GIB = 2**30


@pytest.fixture
def failed(make_spec, write_run):
    """The record of a failed run: `failed("data", device="cpu")`."""

    def make(kind, preset="ddp", *, failure=None, **fields):
        spec = make_spec(preset, micro_batch=32, **{"model": "test_resnet", **fields})
        run = write_run(spec, RUN, state=None, epochs=0)
        found = failure or Failure(rank=1, kind=kind)
        ended = ExitRecord(state="failed", reason="x", started=1.0, finished=2.0, failure=found)
        run.write(run.exit, ended)
        return fold_run(run)

    return make


def commands(record) -> list[str]:
    return [found for line in what_to_try(record) for found in re.findall("`(.*?)`", line)]


@pytest.mark.parametrize("kind", FAILURE_KINDS)
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_every_kind_has_a_title_and_something_to_try(failed, kind, device):
    record = failed(kind, device=device)
    assert kind_title(kind)
    tries = what_to_try(record)
    assert tries
    assert not any(line[0].islower() or "{" in line for line in tries)


def test_bad_files_can_be_left_out_where_the_data_could_be_opened(failed):
    """Else it is the folder or the table that has to be mended."""
    record = failed("data")
    assert any("--skip-bad" in line for line in what_to_try(record))
    record.started = None
    assert not any("--skip-bad" in line for line in what_to_try(record))


@pytest.mark.parametrize("kind", FAILURE_KINDS)
def test_every_command_is_one_that_ringside_takes(failed, kind, capsys):
    """Typed as it is printed, without starting anything."""
    for line in commands(failed(kind)):
        words = shlex.split(line)
        assert words[0] == "ringside"
        argv = words[1:] if words[1] != "run" else [*words[1:], "--dry-run"]
        if argv[0] == "data":
            continue  # it reads the whole data
        if argv[0] in ("stacks", "nccl"):
            argv = [argv[0], "--help"]
        with pytest.raises(SystemExit) as left:
            cli.main([word for word in argv if word != "--skip-bad"])
        assert left.value.code == 0, (line, capsys.readouterr())


def planned(line: str, capsys) -> str:
    with pytest.raises(SystemExit):
        cli.main([*shlex.split(line)[1:], "--dry-run"])
    return capsys.readouterr().out


def test_less_memory_is_half_the_batch_or_the_same_in_smaller_pieces(failed, capsys):
    half, pieces = commands(failed("out_of_memory"))
    assert "global batch 32 = 16 x 2 x 1" in planned(half, capsys)
    assert "ddp_accum4" in pieces
    assert "global batch 64 = 8 x 2 x 4" in planned(pieces, capsys)


def test_a_preset_without_a_twin_that_accumulates_is_told_to(failed, capsys):
    record = failed("out_of_memory", "fsdp")
    assert "global batch 64 = 8 x 2 x 4" in planned(commands(record)[1], capsys)


def test_a_batch_of_two_images_is_not_halved(make_spec, failed):
    record = failed("out_of_memory")
    record.spec = make_spec("ddp", micro_batch=2)
    assert what_to_try(record) == ()


def test_sixteen_bits_help_on_a_gpu_that_does_not_use_them(failed):
    assert "mixed_precision=bf16" in commands(failed("out_of_memory", device="cuda"))[-1]


def test_what_a_person_had_set_stays_set(make_spec):
    spec = make_spec("ddp", training={"clip_norm": 0.5, "compile": True}, sources={
        "training.clip_norm": "flag", "training.compile": "flag", "training.momentum": "preset",
    })  # fmt: skip
    words = shlex.split(command(spec, settings={"num_workers": 0}))
    pairs = [word for before, word in itertools.pairwise(words) if before == "--set"]
    assert pairs == ["clip_norm=0.5", "compile=true", "num_workers=0"]


@pytest.mark.parametrize(
    "asked",
    [
        {
            "preset": "ddp_accum4", "seed": 7, "profile": 2, "batch": 32, "epochs": 1,
            "image_size": 32, "processes": 2, "model": "test_resnet", "time_limit_s": 300,
            "retries": 1, "queue": True,
            "overrides": {
                "mixed_precision": "bf16", "learning_rate": "0.1", "clip_norm": "0",
                "compile": "true", "bucket_cap_mb": "null", "trackers": "tensorboard",
                "environment.GLOO_SOCKET_IFNAME": "lo",
            },
        },
        {
            "preset": "fsdp", "processes": 2, "keep_global_batch": True, "beside": True,
            "overrides": {"fsdp_reshard_after_forward": "false"},
        },
        {"preset": "ddp", "processes": 2, "gpus": (1, 3)},
    ],
)  # fmt: skip
def test_the_command_of_a_run_asks_for_the_same_run(asked, monkeypatch):
    """Read by the command line itself, and resolved on the same machine."""
    started = []
    monkeypatch.setattr(running, "start", lambda request, **_: started.append(request) or 0)
    facts = {"memory_total_bytes": 2, "memory_used_bytes": 1, "compute_capability": (9, 0)}
    gpus = tuple(Gpu(index=i, name="H200", uuid=f"GPU-{i}", **facts) for i in range(4))
    machine = Hardware(gpus=gpus if "gpus" in asked else (), num_cores=2)
    spec = resolve(RunRequest(**asked), machine)
    with pytest.raises(SystemExit) as left:
        cli.main(shlex.split(command(spec))[1:])
    assert left.value.code == 0
    again = resolve(started[0], machine)
    same = {"sources": {}, "request_id": None}
    assert msgspec.structs.replace(again, **same) == msgspec.structs.replace(spec, **same)


def test_weights_separator_and_left_out_files_stay(make_spec):
    spec = make_spec("single", weights="/w s/best.pth")
    data = msgspec.structs.replace(spec.data, separator=";", skip=("a.png",))
    words = shlex.split(command(msgspec.structs.replace(spec, data=data)))
    assert words[words.index("--weights") + 1] == "/w s/best.pth"
    assert words[words.index("--separator") + 1] == ";"
    assert words.count("--skip-bad") == 1


def test_a_path_with_spaces_is_quoted(make_spec):
    spec = make_spec("single")
    data = msgspec.structs.replace(spec.data, source="folder", path="/my $data/Lea's")
    words = shlex.split(command(msgspec.structs.replace(spec, data=data)))
    assert words[words.index("--data") + 1] == "/my $data/Lea's"


def test_how_much_is_missing_on_the_disk(failed, write_run, monkeypatch):
    """25 million parameters: 0.37 GiB with the optimizer's state and the best weights."""
    record = failed("disk_full")
    observed = msgspec.structs.replace(record.observed, num_parameters=25_000_000)
    record.observed = observed
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage(GIB, GIB, GIB // 10))
    assert what_to_try(record)[0] == (
        f"The disk of {record.path} has 0.1 GiB free and a checkpoint needs about 0.4 GiB: "
        "free 0.3 GiB more there."
    )
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage(GIB, 0, GIB))
    assert what_to_try(record)[0].endswith("has 1.0 GiB free now.")


def test_a_run_with_a_checkpoint_is_resumed_and_not_begun_again(failed):
    fresh = commands(failed("killed"))
    assert any(line.startswith("ringside run") for line in fresh)


def test_with_a_checkpoint_the_advice_says_resume(failed):
    standing = Standing(path="checkpoints/last", epoch=1, step=3)
    record = failed("killed", failure=Failure(kind="killed", checkpoint=standing))
    assert not any("ringside run" in line for line in what_to_try(record))


def test_older_records_and_lost_runs_get_their_kind_from_the_cause(failed):
    assert failure_kind(failed(None, failure=Failure(cause="gpu_memory"))) == "out_of_memory"


def test_a_lost_run_has_the_kind_of_the_rank_that_spoke(make_spec, write_run):
    run = write_run(make_spec(), RUN, state="lost", epochs=0)
    assert failure_kind(fold_run(run)) is None
    run.ranks.mkdir()
    error = RankError(rank=0, t=1.0, sentence="x", cause="import")
    run.write(run.ranks / "rank0.error.json", error)
    assert failure_kind(fold_run(run)) == "import"


@pytest.mark.parametrize("state", ["completed", "stopped"])
def test_a_run_that_did_not_fail_has_nothing_to_try(make_spec, write_run, state):
    record = fold_run(write_run(make_spec(), RUN, state=state))
    assert (failure_kind(record), what_to_try(record)) == (None, ())


def test_a_timeout_is_nccl_s_when_nccl_says_so(make_spec, write_run):
    """The words of torch 2.11's watchdog (ProcessGroupNCCL.cpp), as rank 0 raises them."""
    run = write_run(make_spec(device="cuda"), RUN, state=None, epochs=0)
    run.ranks.mkdir()
    words = (
        "torch.distributed.DistBackendError: [Rank 0] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=57, OpType=ALLREDUCE, NumelIn=25557032, NumelOut=25557032, "
        "Timeout(ms)=600000) ran for 600026 milliseconds before timing out."
    )
    error = RankError(rank=0, t=1.0, sentence="x", cause="timeout", traceback=words)
    run.write(run.ranks / "rank0.error.json", error)
    assert judge(run, 1).failure.kind == "nccl_timeout"
    gloo = msgspec.structs.replace(error, traceback="Timed out waiting 8000ms for recv operation")
    run.write(run.ranks / "rank0.error.json", gloo)
    assert judge(run, 1).failure.kind == "hang"


def test_a_killed_loader_worker_is_a_matter_of_memory_where_the_kernel_says_so():
    assert kind_of("loader_worker") == "killed"
    assert kind_of("loader_worker", memory_ran_out=True) == "out_of_memory_host"
    assert kind_of("something new") == "unknown"


def test_the_kind_is_stored_with_the_exit(make_spec, write_run):
    run = write_run(make_spec(), RUN, state=None, epochs=0)
    run.ranks.mkdir()
    error = RankError(rank=1, t=1.0, sentence="x", cause="not_finite", user_error=True)
    run.write(run.ranks / "rank1.error.json", error)
    verdict = judge(run, 2)
    write_exit(run, state="failed", reason=verdict.reason, failure=verdict.failure)
    stored = msgspec.json.decode(run.exit.read_bytes())
    assert (stored["failure"]["kind"], stored["failure"]["cause"]) == ("nan", "not_finite")
