"""What the names and categories of Kineto events mean, in every schema since 2020."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

GpuClass = Literal["compute", "communication", "memory"]

# New names stand beside those before 2022 (torch 1.8 to 1.12, tb_plugin's samples).
KERNELS = frozenset({"kernel", "Kernel"})
COPIES = frozenset({"gpu_memcpy", "Memcpy", "gpu_memset", "Memset"})
RUNTIME = frozenset({"cuda_runtime", "cuda_driver", "Runtime", "hip_runtime", "xpu_runtime"})
OPERATORS = frozenset({"cpu_op", "Operator"})
ANNOTATIONS = frozenset({"user_annotation", "python_annotation"})

# NCCL, RCCL and MSCCL; torch's symmetric-memory kernels, which carry none of those names; NVSHMEM.
_COMMUNICATION = re.compile(
    r"nccl|rccl|msccl|nvshmem|multimem_|(?:one|two)_shot_all_reduce|cross_device_reduce",
    re.IGNORECASE,
)
# Copies between two GPUs: what copy-engine collectives and nn.DataParallel consist of.
_PEER_COPY = re.compile(r"\bPtoP\b|Peer", re.IGNORECASE)

# cuDNN's BatchNorm of channels_last, as in fp32: two blocks on each multiprocessor, with all of its
# registers, that wait for each other. It begins when the whole GPU is free.
PERSISTENT = "semiPersist"

# Calls that hold the host until the GPU is done (CUDA and HIP).
# On ROCm a value is read by a copy that waits.
SYNCHRONISATIONS = re.compile(
    r"(?:cuda|hip|cu)(?:Stream|Device|Event|Ctx)Synchronize$|hipMemcpyWithStream$"
)
EVENT = "EventSync"
# A launch takes some 10 µs. One that lasts this long waits: its queue of about 1,000 is full.
BLOCKED_US = 1000.0
STEP = re.compile(r"ProfilerStep\s?#(\d+)$")
# The trainer's own mark, and what torch writes around the loader's `__next__`.
DATA_WAIT = re.compile(r"data$|enumerate\(DataLoader\)#.*__next__$")
# What torch writes around the forward of a wrapped model.
DDP_FORWARD = "DistributedDataParallel.forward"
# Annotations of c10d: `nccl:all_reduce`, `gloo:all_reduce`.
COLLECTIVE_ANNOTATION = re.compile(r"(nccl|gloo|ucc|mpi):(\w+)")


@lru_cache(maxsize=10_000)
def class_of(category: str, name: str) -> GpuClass:
    """What a piece of GPU work is for: kernels compute unless they communicate; copies move."""
    if category in KERNELS:
        return "communication" if _COMMUNICATION.search(name) else "compute"
    return "communication" if _PEER_COPY.search(name) else "memory"


# Bytes of an element, by c10d's names ("Float"), by record_function's ("float", "c10::BFloat16").
_ELEMENT_BYTES = {
    "float": 4, "double": 8, "half": 2, "bfloat16": 2, "int": 4, "long": 8, "short": 2, "char": 1,
    "byte": 1, "bool": 1, "unsigned char": 1, "signed char": 1, "long int": 8,
    "float8_e4m3fn": 1, "float8_e5m2": 1, "complexfloat": 8, "complexdouble": 16,
    "uint16": 2, "uint32": 4, "uint64": 8,
}  # fmt: skip


def element_bytes(dtype: str) -> int | None:
    """Bytes of one element; None for a type that is not known."""
    return _ELEMENT_BYTES.get(dtype.removeprefix("c10::").lower())


# c10d's and NCCL's spellings of one operation.
_OPERATIONS = {
    "allreduce": "all_reduce", "allgather": "all_gather", "reducescatter": "reduce_scatter",
    "alltoall": "all_to_all", "alltoallv": "all_to_all", "alltoallsingle": "all_to_all",
    "broadcast": "broadcast", "reduce": "reduce", "gather": "gather", "scatter": "scatter",
    "send": "send", "recv": "recv", "sendrecv": "send", "barrier": "barrier",
    "allgatherintotensor": "all_gather", "reducescattertensor": "reduce_scatter",
}  # fmt: skip
_IN_KERNEL = re.compile(
    r"(AllReduce|AllGather|ReduceScatter|Broadcast|SendRecv|AllToAll|Reduce)|"
    r"(all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|broadcast)",
    re.IGNORECASE,
)


def operation_of(text: str) -> str | None:
    """`all_reduce` for "allreduce", "_allgather_base", or a kernel's name; None when unknown."""
    plain = re.sub(r"[^a-z]", "", text.lower().removesuffix("_base"))
    plain = plain.removesuffix("coalesced")
    if plain in _OPERATIONS:
        return _OPERATIONS[plain]
    found = _IN_KERNEL.search(text)
    return operation_of(found[0]) if found and found[0] != text else None
