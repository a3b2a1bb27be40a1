"""How two GPUs of this machine reach each other: NVLink, PCIe, across sockets, and whether P2P."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from typing import Any

from ringside.machine.facts import Link, LinkKind
from ringside.machine.nvml import ask

PCI_DEVICES = Path("/sys/bus/pci/devices")

# nvml.h, nvmlGpuTopologyLevel_t, by the names of `nvidia-smi topo -m`.
LEVELS: Mapping[int | None, LinkKind] = {
    0: "same", 10: "pix", 20: "pxb", 30: "phb", 40: "node", 50: "sys",
}  # fmt: skip
# nvml.h. nvidia-ml-py writes NVML_P2P_CAPS_INDEX_READ as a tuple, so the numbers stand here.
CAPS_READ, CAPS_NVLINK = 0, 2
P2P_OK = 0
SWITCH = 2
# As many as the newest GPU has; where nvidia-ml-py is older than the GPU it knows no better.
NUM_NVLINKS = 18


def read_links(handles: Mapping[int, Any]) -> tuple[Link, ...]:
    """A link for each pair of GPUs by index; call between nvmlInit and nvmlShutdown."""
    ends = {index: _nvlink_ends(handle) for index, handle in handles.items()}
    places = {index: place_of(handle) for index, handle in handles.items()}
    return tuple(
        _link(a, b, handles, num_nvlinks=_nvlinks_between(ends[a], ends[b], places[a], places[b]))
        for a, b in combinations(sorted(handles), 2)
    )


def num_nvlinks(handle: Any) -> int | None:
    """Active NVLinks of one GPU; None where the GPU knows of none."""
    ends = _nvlink_ends(handle)
    return None if ends is None else len(ends)


def place_of(handle: Any) -> tuple[int, int, int] | None:
    """Domain, bus and device on PCI."""
    import pynvml

    return _place(ask(pynvml.nvmlDeviceGetPciInfo, handle))


def numa_node(handle: Any) -> int | None:
    """The NUMA node that the GPU hangs on; None where the system has one or does not tell."""
    place = place_of(handle)
    if place is None:
        return None
    name = "{:04x}:{:02x}:{:02x}.0".format(*place)
    with suppress(OSError, ValueError):
        node = int((PCI_DEVICES / name / "numa_node").read_text())
        return node if node >= 0 else None
    return None


def _link(a: int, b: int, handles: Mapping[int, Any], *, num_nvlinks: int | None) -> Link:
    import pynvml

    pair = handles[a], handles[b]
    is_nvlink = bool(num_nvlinks) or _status(pair, CAPS_NVLINK) is True
    level = ask(pynvml.nvmlDeviceGetTopologyCommonAncestor, *pair)
    return Link(
        a=a,
        b=b,
        kind="nvlink" if is_nvlink else LEVELS.get(level, "unknown"),
        num_nvlinks=num_nvlinks,
        p2p=_status(pair, CAPS_READ),
    )


def _status(pair: Sequence[Any], capability: int) -> bool | None:
    import pynvml

    status = ask(pynvml.nvmlDeviceGetP2PStatus, *pair, capability)
    return None if status is None else status == P2P_OK


# The other end of one active NVLink: a GPU's place, "switch", or None where the driver hides it.
_End = tuple[int, int, int] | str | None


def _nvlink_ends(handle: Any) -> list[_End] | None:
    """Where the active NVLinks of a GPU lead to; None when it answers for no link at all."""
    import pynvml

    most = max(NUM_NVLINKS, getattr(pynvml, "NVML_NVLINK_MAX_LINKS", 0))
    states = [ask(pynvml.nvmlDeviceGetNvLinkState, handle, link) for link in range(most)]
    if all(state is None for state in states):
        return None
    return [_end(handle, link) for link, state in enumerate(states) if state]


def _end(handle: Any, link: int) -> _End:
    import pynvml

    if ask(pynvml.nvmlDeviceGetNvLinkRemoteDeviceType, handle, link) == SWITCH:
        return "switch"
    return _place(ask(pynvml.nvmlDeviceGetNvLinkRemotePciInfo, handle, link))


def _nvlinks_between(
    ends_a: list[_End] | None, ends_b: list[_End] | None, place_a: _End, place_b: _End
) -> int | None:
    """Links that lead from one to the other: directly, or through a switch that both hang on.

    None where that cannot be told, as for links whose other end the driver hides.
    """
    if ends_a is None or ends_b is None:
        return None
    direct = max(ends_a.count(place_b) if place_b else 0, ends_b.count(place_a) if place_a else 0)
    through_switch = min(ends_a.count("switch"), ends_b.count("switch"))
    hidden = min(ends_a.count(None), ends_b.count(None))
    return direct or through_switch or (None if hidden else 0)


def _place(info: Any) -> tuple[int, int, int] | None:
    return None if info is None else (int(info.domain), int(info.bus), int(info.device))
