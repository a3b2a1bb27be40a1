"""The verdict in plain words for the set-ups that people meet."""

from __future__ import annotations

import pytest

from ringside.nccl_log import asymmetric_pairs, crosses_hosts, judge
from tests.nccl_log.conftest import said, started


def pair(way: str, *, back: str | None = None, host: str = "node1") -> str:
    """Both directions between ranks 0 and 1."""
    there = said(f"Channel 00/0 : 0[0] -> 1[1] {way}")
    return there + said(f"Channel 00/0 : 1[1] -> 0[0] {back or way}", host=host, pid=101, device=1)


def two(second: str = "node1", bus: str = "2000") -> str:
    """Two ranks; the second on the host `second`."""
    return started(0, 2) + started(1, 2, host=second, bus=bus)


SOCKET = "[send] via NET/Socket/0"
CARD = said("NET/Socket : Using [0]eth0:10.0.0.1<0>")


@pytest.mark.parametrize(
    ("line", "clause"),
    [
        (said("NCCL_P2P_DISABLE set by environment to 1"),
         ", because NCCL_P2P_DISABLE=1 is set in the environment."),
        (said("NCCL_P2P_LEVEL set by environment to PIX"),
         ", because NCCL_P2P_LEVEL=PIX is set in the environment."),
        (said("Could not enable P2P between dev 0(=1000) and dev 1(=2000)"),
         ", because a driver, a virtual machine or the PCIe layout keeps the GPUs from reading "
         "each other."),
        (said("NCCL_IB_DISABLE set by environment to 1."), "."),
        ("", "."),
    ],
)  # fmt: skip
def test_host_memory_and_why(read, line, clause):
    verdict = judge(read(line, two(), pair("via SHM/direct/direct")))
    assert verdict.sentence == f"The GPUs talk through host memory{clause}"
    assert verdict.is_handicap
    assert any("does not say why" in note for note in verdict.notes) == (clause == ".")


def test_a_variable_that_is_off_is_no_cause(read):
    log = read(said("NCCL_SHM_DISABLE set by environment to 0."), CARD, two(), pair(SOCKET))
    assert judge(log).sentence == (
        "The GPUs talk over TCP sockets on eth0 although both GPUs are in one host."
    )
    assert judge(log).next_step is None


def test_sockets_in_one_host_because_dev_shm_is_small(read):
    warning = "node1:1:1 [0] a.cc:1 NCCL WARN Call to posix_fallocate failed : No space left\n"
    sentence = judge(read(warning, CARD, two(), pair(SOCKET))).sentence
    assert "is /dev/shm too small?" in sentence


@pytest.mark.parametrize(
    ("line", "clause"),
    [
        (said("NCCL_IB_DISABLE set by environment to 1."),
         ", because NCCL_IB_DISABLE=1 is set in the environment."),
        (said("NCCL_NET set by environment to Socket"),
         ", because NCCL_NET=Socket is set in the environment."),
        (said("NET/IB : No device found."), ", because no InfiniBand card was found."),
        ("", "."),
    ],
)  # fmt: skip
def test_sockets_between_hosts(read, line, clause):
    verdict = judge(read(line, CARD, two("node2"), pair(SOCKET, host="node2")))
    assert verdict.sentence == f"The hosts talk over TCP sockets on eth0{clause}"
    assert verdict.is_handicap


def test_infiniband_between_hosts_is_fine(read):
    cards = said("NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>")
    verdict = judge(read(cards, two("node2"), pair("[send] via NET/IB/0/GDRDMA", host="node2")))
    assert verdict.sentence == "The hosts talk over IB (mlx5_0:1/IB) with GPUDirect RDMA."
    assert verdict.is_handicap is False


def test_p2p_across_cpus_is_neither_good_nor_bad(read):
    pattern = "Pattern 4, crossNic 0, nChannels 1, bw 9.0/9.0, type SYS/PIX, sameChannels 1"
    verdict = judge(read(said(pattern), two(), pair("via P2P/IPC")))
    assert "over PCIe, from one CPU to another" in verdict.sentence
    assert verdict.is_handicap is None
    assert any("NCCL_P2P_DISABLE=1" in note for note in verdict.notes)


def test_two_machines_of_one_name(read):
    """No two ranks of one machine share a GPU, so these are two machines called node1."""
    log = read(CARD, two(bus="1000"), pair(SOCKET))
    assert log.num_hosts == 2
    assert [crosses_hosts(log, edge) for edge in log.edges] == [None, None]
    assert judge(log).is_handicap is None


def test_edges_that_rings_do_not_use_do_not_count(read):
    rings = said("Ring 00 : 1 -> 0 -> 1") + said("Ring 00 : 0 -> 1 -> 0", pid=101, device=1)
    other = said("Channel 01/1 : 0[0] -> 1[1] via SHM/direct/direct")
    assert judge(read(two(), rings, other, pair("via P2P/IPC"))).is_handicap is False


def test_directions_that_differ(read):
    log = read(two(), pair("via P2P/IPC", back="via SHM/direct/direct"))
    assert asymmetric_pairs(log) == [(0, 1)]
    assert any("directions differ between ranks 0 and 1" in note for note in judge(log).notes)


def test_one_direction_alone_is_not_asymmetric(read):
    assert asymmetric_pairs(read(said("Channel 00/0 : 0[0] -> 1[1] via P2P/IPC"))) == []


@pytest.mark.parametrize(
    ("log", "part"),
    [
        (started(0, 1), "one rank only"),
        (started(0, 2), "no line of a channel"),
        (started(0, 2) + "node1:1:1 [0] a.cc:1 NCCL WARN Cuda failure 'out of memory'\n",
         "first complaint: Cuda failure 'out of memory'."),
    ],
)  # fmt: skip
def test_logs_without_a_connection(read, log, part):
    assert part in judge(read(log)).sentence
    assert judge(read(log)).is_handicap is None


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("Mismatched NCCL version detected : rank 0 version 21805 rank 1 version 22005", "version"),
        ("Error : no algorithm/protocol available for function Broadcast with datatype ncclInt8. "
         "NCCL_ALGO was set to Tree.", "algorithm"),
        ("Call to posix_fallocate failed : No space left on device", "shm"),
        ("P2P is disabled between NVLINK connected GPUs 0 and 1.", "p2p"),
        ("NET/IB : Got completion from peer 10.0.0.2 with status=12", "ib"),
        ("Call to ibv_modify_qp failed with error Connection timed out", "ib"),
        ("Timeout waiting for connection", "timeout"),
        ("socketProgress: Connection closed by remote peer 10.0.0.2<4791>", "socket"),
        ("Cuda failure 2 'out of memory'", "cuda"),
        ("Message truncated", "other"),
    ],
)  # fmt: skip
def test_kinds_of_warnings(read, message, kind):
    log = read(f"node1:1:1 [0] a.cc:1 NCCL WARN {message}\n" * 2)
    assert [(one.kind, one.message, one.times) for one in log.warnings] == [(kind, message, 2)]
