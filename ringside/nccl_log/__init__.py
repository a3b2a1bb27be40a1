"""Reads what NCCL logs with NCCL_DEBUG=INFO: which way the bytes go between the GPUs, and why.

A log says *which path*, never *how long*: the times in it are NCCL's predictions.
"""

from __future__ import annotations

from ringside.nccl_log.derive import (
    asymmetric_pairs,
    crosses_hosts,
    ring_edges,
    rings,
    transports,
    worst_ring_edge,
)
from ringside.nccl_log.facts import NcclLog
from ringside.nccl_log.files import read_nccl_log, read_text
from ringside.nccl_log.verdict import Verdict, judge

__all__ = [
    "NcclLog",
    "Verdict",
    "asymmetric_pairs",
    "crosses_hosts",
    "judge",
    "read_nccl_log",
    "read_text",
    "ring_edges",
    "rings",
    "transports",
    "worst_ring_edge",
]
