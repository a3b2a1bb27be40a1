"""Why the bytes go the way they go, as far as the log says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ringside.nccl_log.facts import NcclLog, WarningKind
from ringside.words import say


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """Variables (`NAME=value`) that lead this way, and what the log itself complains about."""

    variables: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()

    @property
    def clause(self) -> str:
        """`, because A=1 and B=1 are set in the environment`, or nothing when no cause is known."""
        reasons = list(self.reasons)
        if self.variables:
            key = "nccl.are_set" if len(self.variables) > 1 else "nccl.is_set"
            reasons.insert(0, say(key, names=listed(self.variables)))
        return say("nccl.because", reasons=listed(reasons)) if reasons else ""

    def __add__(self, other: Cause) -> Cause:
        return Cause(
            variables=(*self.variables, *other.variables), reasons=(*self.reasons, *other.reasons)
        )


def why_not_direct(log: NcclLog) -> Cause:
    """Why GPUs of one host do not read each other's memory (P2P)."""
    variables = _switched_on(log, "NCCL_P2P_DISABLE")
    level = log.environment.get("NCCL_P2P_LEVEL")
    if not variables and level in ("LOC", "NVL", "PIX", "PXB", "PHB"):
        variables = (f"NCCL_P2P_LEVEL={level}",)
    refused = not variables and _complains(log, "p2p")
    return Cause(variables=variables, reasons=(say("nccl.no_p2p"),) if refused else ())


def why_not_shared_memory(log: NcclLog) -> Cause:
    """Why GPUs of one host do not pass their bytes through its memory."""
    variables = _switched_on(log, "NCCL_SHM_DISABLE")
    failed = not variables and _complains(log, "shm")
    return Cause(variables=variables, reasons=(say("nccl.small_shm"),) if failed else ())


def why_sockets(log: NcclLog) -> Cause:
    """Why hosts talk over TCP sockets instead of InfiniBand or RoCE."""
    variables = _switched_on(log, "NCCL_IB_DISABLE")
    if log.environment.get("NCCL_NET") == "Socket":
        variables = (*variables, "NCCL_NET=Socket")
    if variables or log.missing_infiniband is None:
        return Cause(variables=variables)
    has_no_library = "libibverbs" in log.missing_infiniband
    return Cause(reasons=(say("nccl.no_library" if has_no_library else "nccl.no_card"),))


def listed(words: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *most, last = words
    return say("nccl.and", names=", ".join(most), last=last) if most else last


def _switched_on(log: NcclLog, name: str) -> tuple[str, ...]:
    value = log.environment.get(name)
    return () if value in (None, "", "0") else (f"{name}={value}",)


def _complains(log: NcclLog, kind: WarningKind) -> bool:
    return any(warning.kind == kind for warning in log.warnings)


def names_of(variables: Sequence[str]) -> list[str]:
    """The names in `NAME=value`."""
    return [variable.partition("=")[0] for variable in variables]
