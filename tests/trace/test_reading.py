"""What is read of a file, in every schema, and what is said about files that cannot be read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringside.errors import TraceError
from ringside.trace import analyse, judge, read_trace, read_traces
from ringside.trace.kernels import class_of, element_bytes, operation_of
from ringside.trace.report import report_of
from ringside.trace.totals import totals


@pytest.fixture
def two_kernels(sketch):
    made = sketch()
    made.kernel(0, 100)
    made.collective(50, 100)
    return made


@pytest.mark.parametrize("name", ["rank0.json", "rank0.json.gz", "rank0.pt.trace.json.gz"])
def test_plain_and_packed_files_say_the_same(write, two_kernels, name):
    sums = totals(read_trace(write(two_kernels, name)))
    assert (sums.compute_us, sums.comm_us, sums.overlapped_us) == (100, 100, 50)
    assert (sums.span_us, sums.idle_us, sums.overlap_ratio) == (150, 0, 0.5)


def test_the_schema_before_2022_says_the_same(write, two_kernels):
    """Categories were capitalised, steps were operators, and streams were texts."""
    old = {"kernel": "Kernel", "cuda_runtime": "Runtime", "user_annotation": "Operator"}
    made = two_kernels
    made.step(1, 0, 100)
    made.host("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 5, 20)
    for event in made.events:
        event["cat"] = {**old, "cpu_op": "Operator"}[event["cat"]]
        event["tid"] = f"stream {event['tid']}"
    trace = read_trace(write(made))
    assert totals(trace).comm_us == 100
    assert [mark.name for mark in trace.steps] == ["ProfilerStep#1"]
    assert (trace.data_waits.end - trace.data_waits.start).tolist() == [20_000]


def test_the_bare_list_of_the_old_profiler_is_read(write, two_kernels):
    trace = read_trace(write(two_kernels.events, "worker3.json"))
    assert trace.rank == 3
    assert len(trace.work) == 2


def test_the_rank_stands_in_the_file_before_its_name(write, two_kernels):
    assert read_trace(write(two_kernels, "rank9.json")).rank == 0


def test_a_clock_that_counts_from_1970_keeps_its_quarter_microseconds(write, sketch):
    made = sketch(start=1_712_195_495_505_583.0)
    made.kernel(0.25, 1.5)
    trace = read_trace(write(made))
    assert trace.work.start.tolist() == [1_712_195_495_505_583_250]
    assert trace.work.end.tolist() == [1_712_195_495_505_584_750]
    assert trace.has_fractions


def test_waits_of_all_threads_count_where_none_has_an_operator(write, sketch):
    made = sketch()
    made.kernel(0, 100)
    made.host("cudaStreamSynchronize", 10, 5, "cuda_runtime", thread=8)
    assert len(read_trace(write(made)).synchronisations.start) == 1
    made.host("aten::add", 0, 5)
    assert len(read_trace(write(made)).synchronisations.start) == 0


def test_operators_on_other_threads_than_any_call_say_nothing_of_threads(write, sketch):
    """Some traces number the threads of the driver's calls in another way."""
    made = sketch()
    made.kernel(0, 100)
    made.host("aten::add", 0, 5, thread=9)
    made.host("cudaStreamSynchronize", 10, 5, "cuda_runtime")
    assert len(read_trace(write(made)).synchronisations.start) == 1


@pytest.mark.parametrize("category", ["user_annotation", "Operator"])
def test_ddp_waits_for_its_log_before_it_computes(write, sketch, category):
    """Of waits for events: before its forward, at the start, behind the first operator, after."""
    made = sketch()
    made.kernel(0, 100)
    for at in (1000, 2000):
        made.host("cudaEventSynchronize", at - 10, 5, "cuda_runtime")
        made.host("DistributedDataParallel.forward", at, 500, category)
        made.host("cudaEventSynchronize", at + 10, 5, "cuda_runtime")
        made.host("cudaEventSynchronize", at + 20, 5, "cuda_runtime")
        made.host("cudaStreamSynchronize", at + 30, 5, "cuda_runtime")
        made.host("aten::conv2d", at + 40, 100, "cpu_op" if category != "Operator" else category)
        made.host("cudaEventSynchronize", at + 50, 5, "cuda_runtime")
        made.host("cudaEventSynchronize", at + 510, 5, "cuda_runtime")
    trace = read_trace(write(made))
    at = [int(made.start + moment) * 1000 for moment in (1010, 1020, 2010, 2020)]
    assert trace.logging_syncs.start.tolist() == at
    assert len(trace.synchronisations.start) == 8


def test_items_hold_the_wait_they_count_for(write, sketch):
    """A stream that is waited for, a copy that blocks for 2 ms, and a value of the host's own."""
    made = sketch()
    made.kernel(0, 100)
    for at, call, duration in (
        (1000, "cudaStreamSynchronize", 5),
        (2000, "cudaMemcpyAsync", 2000),
        (5000, "cudaMemcpyAsync", 5),
    ):
        made.host("aten::item", at, duration + 20)
        made.host(call, at + 10, duration, "cuda_runtime")
    made.host("aten::item", 6000, 100)
    made.host("aten::item", 6200, 100, thread=9)
    made.host("cudaStreamSynchronize", 6210, 5, "cuda_runtime")
    items = read_trace(write(made)).items.start
    assert items.tolist() == [int(made.start + at) * 1000 for at in (1000, 2000)]


def test_items_whose_threads_are_numbered_in_another_way_hold_what_lies_within(write, sketch):
    made = sketch()
    made.kernel(0, 100)
    for at in (1000, 2000):
        made.host("aten::item", at, 50, thread=9)
    made.host("cudaStreamSynchronize", 1010, 5, "cuda_runtime")
    items = read_trace(write(made)).items.start
    assert items.tolist() == [int(made.start + 1000) * 1000]


def test_a_copy_that_waits_is_a_wait_on_rocm(write, sketch):
    made = sketch()
    made.kernel(0, 100)
    made.host("aten::item", 1000, 450)
    made.host("hipMemcpyWithStream", 1010, 400, "cuda_runtime")
    trace = read_trace(write(made))
    assert (len(trace.items.start), len(trace.synchronisations.start)) == (1, 1)


def test_bare_infinities_of_old_traces_are_read(tmp_path, two_kernels):
    """`"memory bandwidth (GB/s)": inf` is no JSON, but Kineto wrote it."""
    made = two_kernels
    made.events[0]["args"]["memory bandwidth (GB/s)"] = "INF"
    path = tmp_path / "rank0.json"
    path.write_text(json.dumps(made.content()).replace('"INF"', "inf"))
    assert totals(read_trace(path)).compute_us == 100


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs...)", "communication"),
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, ...)", "communication"),
        ("rccl_main_kernel", "communication"),
        ("void multimem_all_reduce_kernel<c10::BFloat16, 16>(...)", "communication"),
        ("void two_shot_all_reduce_kernel<float, 16, 8>(...)", "communication"),
        ("ncclSymkDevKernel_AllReduce_RSxLD_AGxST", "communication"),
        ("void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 32, true, 1>", "compute"),
        ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>", "compute"),
    ],
)  # fmt: skip
def test_kernels_that_communicate_are_known_by_name(name, kind):
    assert class_of("kernel", name) == kind


def test_copies_between_gpus_communicate_and_others_do_not():
    assert class_of("gpu_memcpy", "Memcpy PtoP (Device -> Device)") == "communication"
    assert class_of("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)") == "memory"
    assert class_of("Memset", "Memset (Device)") == "memory"


@pytest.mark.parametrize(
    ("text", "operation"),
    [
        ("allreduce", "all_reduce"), ("_allgather_base", "all_gather"),
        ("_reduce_scatter_base", "reduce_scatter"), ("allreduce_coalesced", "all_reduce"),
        ("all_to_allv", "all_to_all"), ("broadcast", "broadcast"),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", "reduce_scatter"),
        ("void multimem_all_reduce_kernel<float>", "all_reduce"), ("gemm", None),
    ],
)  # fmt: skip
def test_operations_have_one_name(text, operation):
    assert operation_of(text) == operation


def test_sizes_of_elements():
    names = ["Float", "BFloat16", "Long", "c10::Half", "unsigned char", "float", "nonsense"]
    assert [element_bytes(name) for name in names] == [4, 2, 8, 2, 1, 4, None]


def test_a_collective_without_arguments_gets_them_from_the_annotation_around_its_launch(
    write, sketch
):
    """Before torch 2.2 only the annotation knew the shape; the kernel was launched inside it."""
    made = sketch()
    shape = {"Input Dims": [[8, 1024, 100]], "Input type": ["float"]}
    made.host("nccl:all_to_all", 100, 50, "user_annotation", **shape)
    made.kernel(300, 40, name="ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", launch=120)
    made.kernel(400, 40, name="ncclKernel_AllReduce_RING_LL_Sum_float", launch=200)
    first, second = read_trace(write(made)).collectives
    assert (first.operation, first.num_bytes) == ("all_to_all", 8 * 1024 * 100 * 4)
    assert (second.operation, second.num_bytes) == ("all_reduce", None)


def test_work_on_the_cpu_stands_in_where_there_is_no_gpu(write, sketch):
    """gloo's annotations communicate, operators but for wrappers compute."""
    made = sketch()
    made.step(1, 0, 1000)
    made.host("autograd::engine::evaluate_function: AddmmBackward0", 0, 300)
    made.host("aten::linear", 10, 80)
    made.host("aten::addmm", 20, 60)
    made.host("c10d::allreduce_", 200, 20)
    made.host("gloo:all_reduce", 50, 100, "user_annotation", **{"Input Dims": [[10]]})
    trace = read_trace(write(made))
    assert trace.is_cpu_estimate
    sums = totals(trace)
    assert (sums.compute_us, sums.comm_us, sums.overlapped_us) == (80, 100, 40)


def test_events_that_make_no_sense_are_left_out(write, two_kernels):
    made = two_kernels
    odd = {"ph": "X", "cat": "kernel", "name": "odd", "pid": 0, "tid": 7, "args": {}}
    made.events += [
        {**odd, "ts": "soon", "dur": 1}, {**odd, "ts": 1e300, "dur": 1},
        {**odd, "ts": -5, "dur": 1},
        {**odd, "ts": 1, "dur": 1, "args": []}, {**odd, "ts": 1, "dur": 1, "args": {"device": []}},
        {"ph": "M"}, 17, None, [], "text",
    ]  # fmt: skip
    assert len(read_trace(write(made)).work) == 2


# --- what cannot be read ------------------------------------------------------------------------


ARGS = {"stream": 7, "correlation": 3, "Collective name": "", "Input Dims": [[1]]}
KERNEL = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 5.5, "dur": 2}
KERNEL |= {"args": ARGS}
WHOLE = json.dumps({"distributedInfo": {"rank": 0}, "traceEvents": [KERNEL] * 12}).encode()
PACKED = gzip.compress(WHOLE)


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("rank0.json", b"", "is empty"),
        ("rank0.json", b"  \n", "is empty"),
        ("rank0.json", WHOLE[:-40], "is cut off"),
        ("rank0.json.gz", PACKED[:-20], "is cut off or damaged"),
        ("rank0.json.gz", PACKED[:60] + b"\x00" * 20 + PACKED[80:], "is cut off or damaged"),
        ("notes.json", b"# Notes", "is no JSON"),
        ("numbers.json", b"[1, 2", "is cut off"),
        ("deep.json", b"[" * 100_000, "nested too deeply"),
        ("run.json", b'{"name": "ddp"}', "is no trace of torch.profiler"),
        ("text.json", b'"traceEvents"', "is no trace of torch.profiler"),
        ("none.json", b'{"traceEvents": []}', "neither GPU work nor operators"),
    ],
)
def test_one_sentence_names_the_file_and_the_mend(tmp_path, name, data, words):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(TraceError, match=words) as raised:
        read_trace(path)
    sentence = str(raised.value)
    assert str(path) in sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence


def test_the_rest_of_the_files_is_read(write, tmp_path, two_kernels):
    good = write(two_kernels, "rank0.json")
    bad = tmp_path / "rank1.json"
    bad.write_bytes(WHOLE[:100])
    traces, faults = read_traces([bad, good])
    assert [trace.file for trace in traces] == [str(good)]
    assert [str(bad) in fault for fault in faults] == [True]


def test_a_folder_and_a_run_directory_mean_their_files(tmp_path, write, sketch):
    inner = tmp_path / "trace"
    inner.mkdir()
    for rank in (1, 0):
        made = sketch(rank=rank)
        made.kernel(0, 10)
        (inner / f"rank{rank}.json").write_text(json.dumps(made.content()))
    (inner / "notes.txt").write_text("nothing")
    for path in (inner, tmp_path):
        assert [trace.rank for trace in read_traces([path])[0]] == [0, 1]


def test_a_rank_without_gpu_work_is_not_compared_with_the_others(write, two_kernels, sketch):
    made = sketch(1)
    made.host("aten::mm", 0, 100)
    made.host("gloo:all_reduce", 0, 100, "user_annotation")
    traces, faults = read_traces([write(two_kernels), write(made, "rank1.json")])
    assert [trace.rank for trace in traces] == [0]
    assert ["holds no GPU work, unlike the others" in fault for fault in faults] == [True]


def test_two_files_of_one_rank_belong_to_two_runs(write, two_kernels):
    files = [write(two_kernels, "a.json"), write(two_kernels, "b.json")]
    with pytest.raises(TraceError, match=r"both say rank 0: name the files of one run"):
        read_traces(files)
    assert len(read_traces([files[0], files[0]])[0]) == 1


@pytest.mark.parametrize("what", ["missing.json", "."])
def test_paths_without_traces(tmp_path, what):
    with pytest.raises(TraceError, match=r"check the path|holds no trace"):
        read_traces([tmp_path / what])


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.integers(0, 2100), noise=st.binary(max_size=6), at=st.integers(0, 2100))
def test_damage_never_ends_in_a_traceback(tmp_path: Path, cut, noise, at):
    damaged = (WHOLE[:at] + noise + WHOLE[at + len(noise) :])[:cut]
    path = tmp_path / "rank0.json"
    path.write_bytes(damaged)
    sentence = str(path)
    try:
        totals(read_trace(path))
    except TraceError as error:
        sentence = str(error)
    assert str(path) in sentence


ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 2000), st.sampled_from([2**40, 2**62, 2**70, 1e300]),
    st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=3), st.just([[8], [3, -1]]),
    st.just(["float", ""]), st.just({}),
)  # fmt: skip
ARGUMENTS = (
    "stream", "device", "correlation", "bytes", "Collective name", "In msg nelems", "dtype",
    "Group size", "Process Group Name", "Seq", "Input Dims", "Input type",
)  # fmt: skip
NAMES = ("ncclDevKernel_AllReduce", "gemm", "nccl:all_reduce", "record_param_comms", "data",
         "ProfilerStep#1", "ProfilerStep#2", "aten::item", "cudaLaunchKernel")  # fmt: skip
CATEGORIES = ("kernel", "gpu_memcpy", "cuda_runtime", "cpu_op", "user_annotation")
TIME = st.one_of(st.integers(0, 2000), ODD)
EVENTS = st.lists(
    st.fixed_dictionaries(
        {
            "ph": st.just("X"), "cat": st.sampled_from(CATEGORIES),
            "name": st.sampled_from(NAMES), "ts": TIME, "dur": TIME,
            "args": st.dictionaries(st.sampled_from(ARGUMENTS), ODD, max_size=6),
        },
        optional={"pid": ODD, "tid": ODD},
    ),
    max_size=30,
)  # fmt: skip


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=EVENTS, second=EVENTS)
def test_odd_values_never_end_in_a_traceback(tmp_path: Path, first, second):
    """Whatever stands in the fields, there is a report that can be printed, or a sentence."""
    files = []
    for rank, events in enumerate((first, second)):
        files.append(tmp_path / f"rank{rank}.json")
        files[-1].write_text(json.dumps({"traceEvents": events}))
    try:
        traces, bad = read_traces(files)
    except TraceError:
        return
    facts = analyse(traces)
    report = msgspec.json.encode(report_of(facts, judge(facts), bad))
    assert len(json.loads(report)["ranks"]) == len(traces) == 2 - len(bad)
