"""Bus bandwidth: what a collective of a size and a time says about the link."""

from __future__ import annotations

# nccl-tests, doc/PERFORMANCE.md: busbw = algbw · factor, algbw = S / t. For all-gather and
# reduce-scatter S is the whole array, n times the part of one rank.
_POINT_TO_POINT = frozenset({"broadcast", "reduce", "send", "recv"})


def bus_bandwidth(
    operation: str | None, num_bytes: int, group_size: int, seconds: float
) -> float | None:
    """Bytes per second over the busiest link; `num_bytes` is one rank's input.

    All-reduce 2(n-1)/n · S, all-to-all (n-1)/n · S, reduce-scatter (n-1)/n of the input, which is
    the whole array; all-gather (n-1) times the input, which is a part; broadcast and reduce S.
    With NVLS the wire carries less. None for other operations, one rank or no time.
    """
    if seconds <= 0 or group_size < 2:
        return None
    share = (group_size - 1) / group_size
    factors = {
        "all_reduce": 2 * share, "reduce_scatter": share, "all_to_all": share,
        "all_gather": float(group_size - 1), **dict.fromkeys(_POINT_TO_POINT, 1.0),
    }  # fmt: skip
    factor = factors.get(operation or "")
    return None if factor is None else factor * num_bytes / seconds
