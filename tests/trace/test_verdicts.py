"""The verdict: on runs whose cause is known, and on traces that have one cause each by design."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from ringside.trace import Cause, analyse, judge, read_traces
from ringside.trace.judging import all_checks
from ringside.words import catalogue

SHARED = Path(__file__).parents[3] / "shared"
LAB = SHARED / "lab" / "h200x2"

KNOWN = {
    "one/ddp": "launch",
    "one/ddp_bs256": "compute",
    "nvlink/ddp": "launch",
    "nvlink/ddp_bs256": "compute",
    "nvlink/hook_bf16": "launch",
    "nvlink/unused": "unused_parameters",
    "nvlink/item": "host_sync",
    "nvlink/data_starved": "data",
    "nvlink/unbucketed": "unbucketed",
    "shm/ddp": "launch",
    "shm/fp32": "launch",
    "socket/ddp": "link",
    "socket/fp32": "link",
    "socket/hook_bf16": "link",
    "socket/ddp_bs256": "compute",
    "socket/accum4": "launch",
}
PUBLIC = {
    "ddp_resnet50_2xa100": "launch",
    "unbucketed_2xv100": "unbucketed",
    "resnet50_v100_workers0": "data",
    "resnet50_v100_workers4": "compute",
    "single_gpu_v100_ns": "compute",
    "recommender_8xa100_rank3": "compute",
    "sampled_128ranks_rank0": "link",
    "edge_cpu_only_rank34": "unexplained",
    "edge_cupti_only": "unexplained",
}


def verdict_of(files):
    files = sorted(files)
    if not files:
        pytest.skip(f"no traces in {SHARED}")
    facts = analyse(read_traces(files)[0])
    return facts, judge(facts)


@pytest.mark.parametrize("name", KNOWN)
def test_runs_with_known_causes(name):
    """Two H200s; the causes stand in the lab's README, the rest is as the transport demands."""
    facts, verdict = verdict_of(LAB.glob(f"{name}.rank*.json.gz"))
    assert verdict.first.cause == KNOWN[name]
    assert verdict.first.confidence in ("high", "medium")
    assert facts.is_matched == (len(facts.ranks) == 2)


def test_data_starved_ranks_are_told_from_a_slow_link():
    """Rank 0's kernels "communicate" 82 % of its time; nearly all of that is waiting for rank 1."""
    facts, verdict = verdict_of(LAB.glob("nvlink/data_starved.rank*.json.gz"))
    waiting, pace = facts.ranks
    assert waiting.totals.exposed_us / waiting.totals.span_us == pytest.approx(0.8228, abs=1e-3)
    assert waiting.transfer_us / waiting.totals.comm_us < 0.01
    assert facts.pace is pace
    assert "40 ms a step" in verdict.first.sentence
    # 40 of 111 ms a step, and the loader sleeps on both ranks.
    assert verdict.first.share_ratio == pytest.approx(0.36, abs=0.02)


@pytest.mark.parametrize("name", ["nvlink/data_starved", "nvlink/ddp", "shm/ddp", "shm/fp32"])
def test_one_rank_that_waits_is_not_taken_for_a_slow_link(name):
    """Rank 0 waits in every step, so repetitions say nothing; the sizes of its buckets do."""
    facts, verdict = verdict_of(LAB.glob(f"{name}.rank0.json.gz"))
    assert all(rank.is_wait_estimate for rank in facts.ranks)
    assert verdict.first.cause != "link"
    assert {other.confidence for other in verdict.others if other.cause == "link"} <= {"low"}


def test_the_link_and_its_bandwidth_over_sockets():
    """The sweep of the same machines: 26 MiB take 9.5 ms alone, which is 2.9 GB/s."""
    _, verdict = verdict_of(LAB.glob("socket/ddp.rank*.json.gz"))
    assert "27.3 MB takes 9.73 ms" in verdict.first.sentence
    assert [other.cause for other in verdict.others] == ["launch"]


@pytest.mark.parametrize(
    ("name", "hidden"),
    [("socket/fp32", 0.004), ("socket/ddp", None), ("shm/fp32", None), ("nvlink/ddp_bs256", None)],
)
def test_fp32_shuts_its_exchange_out_where_that_is_long(name, hidden):
    """cuDNN's BatchNorm has 53 layers forward and backward; torch's own runs in 16 bits."""
    facts, verdict = verdict_of(LAB.glob(f"{name}.rank*.json.gz"))
    codes = [verdict.first.code, *(other.code for other in verdict.others)]
    assert facts.pace.num_persistent == (106 if name.endswith("fp32") else 0)
    assert ("LINK-003" in codes) == (hidden is not None)
    if hidden is not None:
        assert verdict.first.code == "LINK-003"
        assert facts.pace.hidden_ratio == pytest.approx(hidden, abs=0.001)


def test_ddps_own_log_in_a_trace_of_its_first_steps():
    facts, _ = verdict_of(SHARED.glob("traces/ddp_resnet50_2xa100.json.gz"))
    assert facts.pace.host.num_logging_syncs == 8
    assert facts.pace.host.num_synchronisations == 0


@pytest.mark.parametrize("name", PUBLIC)
def test_public_traces(name):
    _, verdict = verdict_of(SHARED.glob(f"traces/{name}.json.gz"))
    assert verdict.first.cause == PUBLIC[name]
    is_judged = verdict.first.confidence != "not enough data"
    assert is_judged == (not name.startswith("edge"))


# --- one cause each, by design ------------------------------------------------------------------


class Run:
    """Steps of 10 ms of one rank: 40 kernels of `kernel_us` each, then an all-reduce."""

    def __init__(self, made, *, step_us=10_000, kernel_us=220, reduce_us=200, begin=0, late=0):
        self.made, self.step_us = made, step_us
        for number in range(4):
            at = number * step_us
            made.step(number, at, step_us)
            self.launch(at + begin, kernel_us, late)
            end = at + begin + 40 * kernel_us
            made.collective(end, reduce_us, launch=at + begin + 41)

    def is_blocked(self, at, us):
        """In every step the host waits in a launch for so long."""
        for number in range(4):
            self.made.host("cudaLaunchKernel", number * self.step_us + at, us, "cuda_runtime")

    def launch(self, at, kernel_us, late):
        for place in range(40):
            start = at + place * kernel_us
            asked = start - 1 if late else at + place
            self.made.kernel(start, kernel_us - late, launch=asked)


@pytest.fixture
def judged(write):
    def of(*runs):
        files = [write(run.made, f"rank{run.made.rank}.json") for run in runs]
        return verdict_of(files)[1]

    return of


def test_a_busy_gpu_computes(sketch, judged):
    verdict = judged(Run(sketch(0)), Run(sketch(1)))
    assert (verdict.first.cause, verdict.others) == ("compute", ())
    assert verdict.first.share_ratio == pytest.approx(0.88)


def test_a_long_transfer_is_the_link(sketch, judged):
    runs = [Run(sketch(rank), kernel_us=150, reduce_us=4000) for rank in (0, 1)]
    first = judged(*runs).first
    assert (first.cause, first.confidence) == ("link", "high")
    assert first.share_ratio == pytest.approx(0.4)


def test_gaps_before_each_launch_are_the_hosts(sketch, judged):
    runs = [Run(sketch(rank), late=100) for rank in (0, 1)]
    first = judged(*runs).first
    # 39 gaps of 100 µs, and 1 ms after the all-reduce, which was launched in time.
    assert first.cause == "launch"
    assert first.share_ratio == pytest.approx(0.39 + 0.1)


def test_a_wait_for_images_is_data_even_if_only_one_rank_has_it(sketch, judged):
    """Rank 1's loader takes 3 ms; rank 0 spends them in its all-reduce."""
    early = Run(sketch(0), kernel_us=150, reduce_us=3200)
    late = Run(sketch(1), kernel_us=150, begin=3000)
    for number in range(4):
        late.made.host("data", number * 10_000, 3000, "user_annotation")
    first = judged(early, late).first
    assert first.cause == "data"
    assert "Rank 1" in first.sentence
    assert first.share_ratio == pytest.approx(0.3, abs=0.01)


def test_a_rank_that_computes_longer_is_late(sketch, judged):
    """Rank 1 computes 8.8 ms, rank 0 only 6 and waits for the rest."""
    first = judged(Run(sketch(0), kernel_us=150, reduce_us=3000), Run(sketch(1))).first
    assert first.cause == "late_rank"
    assert "Rank 1 is late: it computes longer" in first.sentence
    assert first.share_ratio == pytest.approx(0.28, abs=0.01)


def test_a_rank_whose_host_is_busy_longer_is_late(sketch, judged):
    """Rank 1's host does something for 5 ms before it launches; rank 0's is blocked meanwhile."""
    early = Run(sketch(0), kernel_us=100, reduce_us=5200)
    late = Run(sketch(1), kernel_us=100, begin=5000)
    early.is_blocked(4500, 5000)
    first = judged(early, late).first
    assert first.cause == "late_rank"
    assert "Rank 1 is late: its host is busy longer" in first.sentence
    assert first.share_ratio == pytest.approx(0.5, abs=0.01)


def test_a_slower_one_of_two_slow_hosts_is_no_late_rank(sketch, judged):
    """Both GPUs idle for want of launches; that one host is slower is the smaller part of it."""
    quick = Run(sketch(0), kernel_us=20, begin=5600, reduce_us=3500)
    slow = Run(sketch(1), kernel_us=20, begin=9000)
    quick.is_blocked(6600, 3400)
    first = judged(quick, slow).first
    assert (first.cause, first.code) == ("launch", "LAUNCH-001")
    assert first.share_ratio == pytest.approx(0.9, abs=0.01)


def test_a_rank_that_computes_a_little_longer_is_late_by_that_only(sketch, judged):
    """Its host is busy 34 % longer as well, which is the smaller part of what its GPU idles."""
    quick = Run(sketch(0), kernel_us=10, begin=5600, reduce_us=3500)
    slow = Run(sketch(1), kernel_us=40, begin=8000)
    quick.is_blocked(6600, 3400)
    verdict = judged(quick, slow)
    assert (verdict.first.cause, verdict.first.share_ratio) == ("launch", pytest.approx(0.82))
    (late,) = [one for one in verdict.others if one.code == "LATE-001"]
    assert late.share_ratio == pytest.approx(0.12)
    assert "computes longer" in late.sentence


def test_one_rank_that_mostly_waits_asks_for_the_others(sketch, judged):
    made = Run(sketch(0), kernel_us=100, reduce_us=10).made
    for number in range(1, 3):
        made.collective(number * 10_000 + 4100, 4000, launch=number * 10_000 + 50)
    first = judged(_of(made)).first
    assert (first.cause, first.confidence) == ("late_rank", "low")
    assert "their traces would say" in first.sentence


def _of(made):
    run = object.__new__(Run)
    run.made = made
    return run


def test_reading_a_value_in_every_step_is_a_host_sync(sketch, judged):
    runs = []
    for rank in (0, 1):
        run = Run(sketch(rank), kernel_us=150, reduce_us=10)
        for number in range(4):
            run.made.host("aten::item", number * 10_000 + 4000, 2500)
            run.made.host("cudaStreamSynchronize", number * 10_000 + 4010, 2400, "cuda_runtime")
        runs.append(run)
    first = judged(*runs).first
    assert first.cause == "host_sync"
    assert first.share_ratio == pytest.approx(0.25)


def test_a_host_sync_that_never_lets_the_gpu_run_dry_is_harmless(sketch, judged):
    run = Run(sketch(0), kernel_us=245, reduce_us=150)
    for number in range(4):
        run.made.host("cudaStreamSynchronize", number * 10_000 + 4010, 2400, "cuda_runtime")
    assert judged(run).first.cause == "compute"


def test_what_a_wait_costs_is_the_idle_time_after_it(sketch, judged):
    """The host waits for 45 % of the step, and the GPU works meanwhile; then it idles for 30 %."""
    runs = []
    for rank in (0, 1):
        run = Run(sketch(rank), kernel_us=170, reduce_us=10)
        for number in range(4):
            run.made.host("aten::item", number * 10_000 + 2000, 4510)
            run.made.host("cudaStreamSynchronize", number * 10_000 + 2010, 4500, "cuda_runtime")
        runs.append(run)
    first = judged(*runs).first
    assert first.cause == "host_sync"
    assert first.share_ratio == pytest.approx(0.319)
    assert "1x a step (1x to read a single value), 45 % of the step" in first.sentence
    assert "(idle 32 %)" in first.sentence


def waiting(sketch, *, thread, name="cudaEventSynchronize", num=50, around=None):
    """A step of 6 ms on the GPU, in which the host waits `num` times for 60 µs."""
    run = Run(sketch(0), kernel_us=150, reduce_us=10)
    for number in range(4):
        at = number * 10_000
        run.made.host("aten::conv2d", at + 1000, 20)
        if around is not None:
            run.made.host(around, at + 1500, 60 * num + 100, "user_annotation", thread=thread)
        for place in range(num):
            run.made.host(name, at + 1510 + 60 * place, 59, "cuda_runtime", thread=thread)
    return run


def test_threads_that_do_not_train_may_wait_for_the_gpu(sketch, judged):
    """A decoder of images has no operators; the profiler sees only what it calls of the driver."""
    assert judged(waiting(sketch, thread=7)).first.cause == "host_sync"
    verdict = judged(waiting(sketch, thread=8))
    assert "host_sync" not in [verdict.first.cause, *(other.cause for other in verdict.others)]


def test_what_ddp_waits_for_its_own_log_is_no_host_sync(sketch, judged):
    """It waits at the start of its forward, in the first steps of a process only."""
    forward = "DistributedDataParallel.forward"
    verdict = judged(waiting(sketch, thread=7, around=forward))
    assert "host_sync" not in [verdict.first.cause, *(other.cause for other in verdict.others)]
    stream = waiting(sketch, thread=7, around=forward, name="cudaStreamSynchronize")
    assert judged(stream).first.cause == "host_sync"
    assert judged(waiting(sketch, thread=7, around="forward")).first.cause == "host_sync"


def test_values_of_the_hosts_own_tensors_are_not_waited_for(sketch, judged):
    """A fused AdamW on a CPU reads a counter for each of 161 parameters."""
    run = Run(sketch(0), kernel_us=150, reduce_us=10)
    for number in range(4):
        for place in range(161):
            run.made.host("aten::item", number * 10_000 + 4000 + 20 * place, 19)
    verdict = judged(run)
    assert "host_sync" not in [verdict.first.cause, *(other.cause for other in verdict.others)]


BATCHNORM = "void cudnn::batchnorm_fwtr_nhwc_semiPersist<float, float, float, 512, 16, 2, 4, 1>"


def taking_turns(sketch, rank, name):
    """6 ms of compute, of which 20 kernels have a name, then 3 ms of exchange."""
    run = Run(sketch(rank), kernel_us=100, reduce_us=3000)
    for number in range(4):
        for place in range(20):
            at = number * 10_000
            run.made.kernel(at + 7000 + place * 100, 100, name=name, launch=at + 50 + place)
    return run


def test_kernels_that_need_the_whole_gpu_shut_the_exchange_out(sketch, judged):
    verdict = judged(*(taking_turns(sketch, rank, BATCHNORM) for rank in (0, 1)))
    assert (verdict.first.code, verdict.first.confidence) == ("LINK-003", "medium")
    assert verdict.first.share_ratio == pytest.approx(0.3)
    assert "0.0 % of the transfer" in verdict.first.sentence
    assert "20 kernels a step" in verdict.first.sentence
    assert "LINK-001" in [other.code for other in verdict.others]


def test_other_kernels_leave_the_link_the_cause(sketch, judged):
    name = "void at::native::batch_norm_collect_statistics_channels_last_kernel<at::native::Var"
    verdict = judged(*(taking_turns(sketch, rank, name) for rank in (0, 1)))
    assert verdict.first.code == "LINK-001"
    assert "LINK-003" not in [other.code for other in verdict.others]


def test_an_exchange_beside_such_kernels_is_not_shut_out(sketch, judged):
    """Another 6 % of the exchange runs while something computes."""
    runs = [taking_turns(sketch, rank, BATCHNORM) for rank in (0, 1)]
    for run in runs:
        for number in range(4):
            run.made.kernel(number * 10_000 + 5000, 180, launch=number * 10_000 + 70)
    assert judged(*runs).first.code == "LINK-001"


def test_gradients_one_by_one_are_unbucketed(sketch, judged):
    runs = []
    for rank in (0, 1):
        run = Run(sketch(rank), kernel_us=150, reduce_us=10)
        for number in range(4):
            for place in range(60):
                run.made.collective(number * 10_000 + 6100 + place * 50, 10, elements=1000 + place)
        runs.append(run)
    first = judged(*runs).first
    assert first.cause == "unbucketed"
    assert "61 separate all-reduces" in first.sentence
    assert first.share_ratio == pytest.approx(0.3, abs=0.01)


def test_the_search_for_unused_parameters_is_named(sketch, judged):
    run = Run(sketch(0))
    for number in range(4):
        name = "torch.distributed.ddp.reducer::search_unused_parameters"
        run.made.host(name, number * 10_000 + 50, 100)
    verdict = judged(run)
    assert verdict.first.cause == "unused_parameters"
    assert verdict.first.share_ratio == pytest.approx(0.01)
    assert [other.cause for other in verdict.others] == ["compute"]


def test_synchronised_batchnorm_is_named(sketch, judged):
    run = Run(sketch(0), kernel_us=150, reduce_us=10)
    for number in range(4):
        for layer in range(20):
            run.made.host("SyncBatchNorm", number * 10_000 + layer, 1)
            run.made.collective(
                number * 10_000 + 6100 + layer * 150, 100, 128, **{"Collective name": "allgather"}
            )
    first = judged(run).first
    assert first.cause == "sync_batchnorm"
    assert "20 layers" in first.sentence
    assert first.share_ratio == pytest.approx(0.2, abs=0.01)


def test_data_parallel_is_named_before_all_else(sketch, judged):
    run = Run(sketch(0), kernel_us=100)
    for number in range(4):
        at = number * 10_000
        run.made.host("DataParallel.forward", at, 3000, "user_annotation")
        copy = {"category": "gpu_memcpy", "name": "Memcpy PtoP (Device -> Device)"}
        run.made.kernel(at + 5000, 2000, device=1, launch=at, **copy)
    first = judged(run).first
    assert first.cause == "data_parallel"
    assert "2 GPUs" in first.sentence


def test_ddp_is_not_taken_for_data_parallel(sketch, judged):
    run = Run(sketch(0))
    run.made.host("DistributedDataParallel.forward", 0, 3000, "user_annotation")
    assert judged(run).first.cause == "compute"


def test_too_little_is_said_so(sketch, judged):
    made = sketch(0)
    made.kernel(0, 100)
    first = judged(_of(made)).first
    assert (first.cause, first.confidence) == ("unexplained", "not enough data")
    assert first.share_ratio is None


def test_nothing_known_is_unexplained(sketch, judged):
    """Work that was launched long before and waits for no reason that the trace shows."""
    made = sketch(0)
    for number in range(4):
        made.step(number, number * 10_000, 10_000)
        for place in range(40):
            start = number * 10_000 + place * 250
            made.kernel(start + 150, 100, launch=number * 10_000 + place)
    verdict = judged(_of(made))
    assert verdict.first.cause == "unexplained"
    assert verdict.first.confidence == "low"


# --- the contract of the checks -----------------------------------------------------------------


def test_every_check_is_found_and_has_its_place():
    orders = [check.ORDER for check in all_checks()]
    assert orders == sorted(set(orders))
    names = {check.__name__.rpartition(".")[2] for check in all_checks()}
    names -= {"late_rank_alone", "link_persistent"}
    assert names <= set(get_args(Cause))
    assert set(get_args(Cause)) - names == {"environment", "none", "unexplained"}
    assert {name for name in names if f"trace.{name}_refutation" not in catalogue()} == set()
