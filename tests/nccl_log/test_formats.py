"""One sample per form that public logs show, from NCCL 2.4 to 2.30; written by hand."""

from __future__ import annotations

import pytest

from ringside.nccl_log import judge, transports
from ringside.nccl_log.facts import TreeNode
from tests.nccl_log.conftest import said, started


def test_1_two_gpus_of_three_without_p2p(read):
    """A consumer card whose third neighbour is out of reach."""
    log = read(
        said("NET/IB : No device found.", "Using network Socket"),
        said("Channel 03/0 : 1[1] -> 0[0] via P2P/direct pointer"),
        said("Channel 03 : 1[1] -> 2[2] via SHM/direct/direct"),
    )
    assert transports(log.edges) == {"P2P/direct pointer": 1, "SHM/direct/direct": 1}
    assert any("mixed" in note for note in judge(log).notes)
    assert "through host memory on 1 of 2 connections" in judge(log).sentence


def test_2_the_socket_line_is_harmless_on_one_host(read):
    log = read(
        said("Failed to open libibverbs.so[.1]", "Using network Socket"),
        *(said(f"Channel 00/0 : {a}[{a}] -> {1 - a}[{1 - a}] via P2P/IPC") for a in (0, 1)),
        started(0, 2),
        started(1, 2, bus="2000"),
    )
    verdict = judge(log)
    assert verdict.is_handicap is False
    assert any(note.startswith("Harmless") for note in verdict.notes)
    assert [warning.kind for warning in log.warnings] == ["ib"]


def test_3_two_hosts_over_ethernet_for_want_of_libibverbs(read):
    """WARN lines name the source file, and a blank line stands before them."""
    log = read(
        "\nnode1:100:100 [0] misc/ibvwrap.cc:63 NCCL WARN Failed to open libibverbs.so[.1]\n",
        said("NET/Socket : Using [0]enp36s0f1:10.1.0.4<0> [1]docker0:172.17.0.1<0>"),
        said("Using network Socket", "NCCL version 2.10.3+cuda11.1"),
        said("Channel 00 : 0[1a000] -> 1[1a000] [send] via NET/Socket/0"),
        said("Channel 00 : 0[1a000] -> 1[1a000] [receive] via NET/Socket/0", host="node2"),
        started(0, 2),
        started(1, 2, host="node2"),
    )
    assert (log.version, log.cuda) == ("2.10.3", "11.1")
    assert transports(log.edges) == {"NET/Socket": 1}
    assert [nic.name for nic in log.nics] == ["enp36s0f1", "docker0"]
    assert [(one.kind, one.where) for one in log.warnings] == [("ib", "misc/ibvwrap.cc:63")]
    assert judge(log).sentence == (
        "The hosts talk over TCP sockets on enp36s0f1, because libibverbs is not installed."
    )


def test_4_roce_and_its_cards(read):
    """The card that was expected; sockets in its place are a handicap between hosts."""
    cards = "[0]mlx5_bond:1/RoCE [1]mlx5_1:1/IB [RO]"
    found = read(said(f"NET/IB : Using {cards}; OOB eth0:10.0.0.1<0>"))
    assert [(nic.network, nic.name) for nic in found.nics] == [
        ("IB", "mlx5_bond:1/RoCE"), ("IB", "mlx5_1:1/IB"),
    ]  # fmt: skip
    missed = read(
        said("NET/IB : No device found.", "NET/Socket : Using [0]bond0:10.0.0.1<0>"),
        said("Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0"),
        started(0, 2),
        started(1, 2, host="node2"),
    )
    assert judge(missed).sentence == (
        "The hosts talk over TCP sockets on bond0, because no InfiniBand card was found."
    )


def test_5_patterns_and_gpu_direct(read):
    log = read(
        said("=== System : maxBw 48.0 totalBw 370.8 ==="),
        said("Pattern 4, crossNic 1, nChannels 4, bw 24.000000/20.500000, type NVL/PIX, "
             "sameChannels 1"),
        said("Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM"),
        said("Channel 00/0 : 1[1] -> 8[0] [send] via NET/IB/3/GDRDMA"),
        said("Channel 01/0 : 9[1] -> 0[0] [receive] via NET/IB/4(1)/GDRDMA(PCI)/Shared"),
        said("Channel 02/0 : 9[1] -> 0[0] [receive] via NET/AWS Libfabric/4/GDRDMA"),
    )  # fmt: skip
    (pattern,) = log.patterns
    assert (pattern.name, pattern.num_channels) == ("ring", 4)
    assert (pattern.bandwidth_inside_gb_per_s, pattern.bandwidth_between_gb_per_s) == (24.0, 20.5)
    assert (pattern.path_inside, pattern.path_between) == ("NVL", "PIX")
    assert transports(log.edges) == {
        "NET/IB/GDRDMA": 2, "NET/AWS Libfabric/GDRDMA": 1, "P2P/CUMEM": 1,
    }  # fmt: skip
    assert {edge.nic for edge in log.edges} == {None, 3, 4}


def test_6_two_hosts_of_which_the_cards_do_not_reach_gpu_memory(read):
    log = read(
        said("NET/IB : Using [0]mlx5_0:1/IB ; OOB ib0:10.0.0.1<0>"),
        said("Channel 00/0 : 0[0] -> 1[1] via P2P/IPC/read"),
        said("Channel 00/0 : 1[1] -> 2[0] [send] via NET/IBext/0"),
        said("Channel 00/0 : 1[1] -> 2[0] [receive] via NET/IBext/0/GDRDMA", host="node2"),
        started(0, 3),
        started(1, 3, bus="2000"),
        started(2, 3, host="node2"),
    )
    assert transports(log.edges) == {"P2P/IPC/read": 1, "NET/IBext": 1}
    assert judge(log).sentence == (
        "Inside a host the GPUs talk directly (P2P/IPC/read, 1 channel); the hosts talk over "
        "IBext without GPUDirect RDMA, every byte through host memory."
    )
    assert judge(log).is_handicap


def test_7_a_healthy_nvswitch(read):
    log = read(
        *(said(f"Channel {c:02d}/0 : 0[0] -> 1[1] via P2P/CUMEM/read") for c in range(24)),
        said("24 coll channels, 0 collnet channels, 16 nvls channels, 32 p2p channels, "
             "32 p2p channels per peer"),
        said("NVLS multicast support is available on dev 0"),
    )  # fmt: skip
    assert transports(log.edges) == {"P2P/CUMEM/read": 24}
    assert (log.num_channels, log.num_nvls_channels, log.num_p2p_channels_per_peer) == (24, 16, 32)
    assert log.nvls_available is True


@pytest.mark.parametrize(
    ("line", "connection", "kind"),
    [
        ("Channel 00/0 : 2[201c0] -> 3[201d0] via P2P/IPC/read", 0, "P2P/IPC/read"),
        ("Channel 00 : 2[50000] -> 3[4a000] via P2P/IPC", None, "P2P/IPC"),
        ("Channel 00/1 : 2[2] -> 3[3] via P2P/indirect/1[1]/read", 1, "P2P/indirect/1/read"),
        ("Channel 00 : 2[2] -> 3[3] via P2P/common device", None, "P2P/common device"),
        ("Channel 00/0 : 2[2] -> 3[3] via P2P/MNNVL", 0, "P2P/MNNVL"),
        ("Channel 00/0 : 2[2] -> 3[3] via P2P/CUMEM/CE", 0, "P2P/CUMEM/CE"),
        ("Channel 00 : 2[1a000] -> 3[1b000] via SHM/CE/direct", None, "SHM/CE/direct"),
        ("Channel 00 : 2[2] -> 3[3] via SHM/direct", None, "SHM/direct"),
        ("Ring 00 : 2[3d000] -> 3[3e000] via direct shared memory", None, "SHM/direct"),
        ("Ring 00 : 2[2] -> 3[3] via P2P/IPC", None, "P2P/IPC"),
        ("Ring 00 : 2 -> 3 [send] via NET/Socket/1", None, "NET/Socket"),
        ("Ring 00 : 2[3d000] -> 3[3e000] [receive] via NET/IB/0/GDRDMA", None, "NET/IB/GDRDMA"),
    ],
)
def test_8_all_forms_of_an_edge(read, line, connection, kind):
    (edge,) = read(said(line)).edges
    assert (edge.channel, edge.connection, edge.src, edge.dst) == (0, connection, 2, 3)
    assert edge.name == kind


@pytest.mark.parametrize(
    "message",
    [
        "Call to posix_fallocate failed : No space left on device",
        "Error while creating shared memory segment nccl-shm-send-ab (size 9637888)",
        "Error while creating shared memory segment /dev/shm/nccl-x (size 9637888), "
        "error: No space left on device (28)",
    ],
)
def test_9_a_small_dev_shm(read, message):
    """In 2.30 the function stands behind the source line."""
    for where in ("include/shm.h:28", "os/linux.cc:842 (ncclShmOpen)"):
        log = read(f"node1:100:140 [1] {where} NCCL WARN {message}\n")
        (warning,) = log.warnings
        assert (warning.kind, warning.message) == ("shm", message)
        assert warning.where == where.partition(" ")[0]
        assert "first complaint" in judge(log).sentence


def test_10_what_a_person_set(read):
    log = read(
        said("NCCL_P2P_LEVEL set by environment to LOC"),
        said("NCCL_SHM_DISABLE set by environment to 1."),
        said("NCCL_IB_HCA set to mlx5_0", "Comm config minCTAs reset to NCCL_MIN_CTAS=4"),
        said("NCCL_TOPO_FILE set by environment to /opt/topo v1.xml"),
        said("NCCL_MIN_NRINGS set to a value greater than NCCL_MAX_NRINGS, ignoring it"),
        said("Ring 00 : 0[1000] -> 1[2000] [send] via NET/Socket/0"),
        said("comm 0x5 rank 0 nranks 2 cudaDev 0 busId 1000 - Init COMPLETE"),
        said("comm 0x6 rank 1 nranks 2 cudaDev 1 busId 2000 - Init COMPLETE", pid=101, device=1),
    )  # fmt: skip
    assert log.environment == {
        "NCCL_P2P_LEVEL": "LOC", "NCCL_SHM_DISABLE": "1", "NCCL_IB_HCA": "mlx5_0",
        "NCCL_MIN_CTAS": "4", "NCCL_TOPO_FILE": "/opt/topo v1.xml",
    }  # fmt: skip
    verdict = judge(log)
    assert "although both GPUs are in one host, because NCCL_P2P_LEVEL=LOC and" in verdict.sentence
    assert verdict.next_step == "Unset NCCL_P2P_LEVEL and NCCL_SHM_DISABLE and run again."


@pytest.mark.parametrize(
    ("line", "function"),
    [
        ("128 Bytes -> Algo 0 proto 0 time 25.214764", "collective"),
        ("AllReduce: 128 Bytes -> Algo 0 proto 0 time 25.214764", "AllReduce"),
    ],
)
def test_11_a_prediction_is_called_one(read, line, function):
    (choice,) = read(said(line)).choices
    assert (choice.function, choice.size_bytes, choice.calls) == (function, 128, 1)
    assert (choice.algorithm, choice.protocol) == ("TREE", "LL")
    assert choice.predicted_us == 25.214764


def test_11_algorithms_by_name_and_symmetric_kernels(read):
    log = read(
        said("AllReduce: 512 Bytes -> Algo NVLS_TREE proto SIMPLE channel{Lo..Hi}={0..15}"),
        said("AllReduce [Symmetric]: 256 Bytes -> Kernel AllReduce_RSxLD_AGxST nchannels 8 "
             "nthreads 512 nWorks 1"),
    )  # fmt: skip
    assert [(one.algorithm, one.protocol, one.num_channels) for one in log.choices] == [
        ("SYMMETRIC", "AllReduce_RSxLD_AGxST", 8), ("NVLS_TREE", "SIMPLE", 16),
    ]  # fmt: skip


def test_12_the_census_counts_each_call_once_whatever_the_number_of_ranks(read):
    line = (
        "AllReduce: opCount {n:x} sendbuff 0x7f1 recvbuff 0x7f2 count {count} datatype {dtype} "
        "op 0 root 0 comm 0x55 [nranks=16] stream 0x99"
    )
    log = read(
        *(
            said(
                line.format(n=10, count=1, dtype=7),
                line.format(n=11, count=1, dtype=7),
                line.format(n=12, count=1000, dtype=9),
                device=rank,
                pid=100 + rank,
            )
            for rank in range(4)
        )
    )
    assert [(one.count, one.dtype, one.size_bytes, one.calls) for one in log.operations] == [
        (1, "float32", 4, 2), (1000, "bfloat16", 2000, 1),
    ]  # fmt: skip


def test_13_two_cards_offered_one_used(read):
    log = read(
        said("NCCL version 2.4.8+cuda10.0"),
        said("NET/Socket : Using [0]eth0:10.0.0.1<0> [1]eth1:10.1.0.1<0>"),
        said("NET/Socket: Using 2 threads and 8 sockets per thread"),
        said("Ring 00 : 3 -> 4 [send] via NET/Socket/0"),
        said("Ring 01 : 3 -> 4 [send] via NET/Socket/0"),
        said("Trees [0] 3->2->-1/-1/-1 [1] -1->2->3/-1/-1"),
    )  # fmt: skip
    assert len(log.nics) == 2
    assert {edge.nic for edge in log.edges} == {0}
    assert log.trees[1] == TreeNode(channel=1, rank=2, parent=None, children=(3,))


def test_14_trees(read):
    trees = " ".join(f"[{c}] 1/-1/-1->0->-1" for c in range(24))
    log = read(said(f"Trees {trees}", "Tree 24 : 5 -> 0 -> 1/2/-1"))
    assert len(log.trees) == 25
    assert (log.trees[0].children, log.trees[0].parent) == ((1,), None)
    assert (log.trees[24].children, log.trees[24].parent) == ((1, 2), 5)


def test_14_a_line_of_trees_that_nccl_cut_loses_only_its_last(read):
    items = " ".join(f"[{c}] 1/-1/-1->0->12" for c in range(64))
    log = read(said("Trees " + items[:1017]))
    assert {node.parent for node in log.trees} == {12}
    assert len(log.trees) > 40


def test_the_old_table_of_predictions(read):
    log = read(
        said("Latency/AlgBw |    Tree/    LL |    Tree/ LL128 |    Ring/Simple |"),
        said(" Max NThreads |            512 |            640 |            512 |"),
        said("    AllReduce |     8.0/  61.1 |     0.0/   0.0 |    15.2/ 360.0 |"),
        said("    AllReduce |     1.0/   1.0 |     1.0/   1.0 |     1.0/   1.0 |"),
    )
    found = [(one.algorithm, one.protocol, one.latency_us) for one in log.predictions]
    assert found == [("TREE", "LL", 8.0), ("RING", "SIMPLE", 15.2)]


def test_rings_from_the_lists_of_rank_0(read):
    from ringside.nccl_log import rings

    log = read(started(0, 3), said("Channel 00/02 :    0   2   1", "Channel 01/02 : 0 1 2"))
    assert rings(log) == {0: [0, 2, 1], 1: [0, 1, 2]}
    assert log.num_channels == 2


@pytest.mark.parametrize(
    "prefix",
    ["", "[default0]:", "[rank0]: ", "0: ", "[1,0]<stdout>:", "[2026-05-05 12:00:01] ", "w-0 | ",
     "> > (WorkerDict pid=35) "],
)  # fmt: skip
def test_what_launchers_put_in_front(read, prefix):
    log = read(prefix + said("Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM"))
    assert (log.hosts, len(log.edges)) == (("node1",), 1)


@pytest.mark.parametrize("function", ["", " - ncclCommInitRankConfig"])
def test_the_seconds_of_the_start(read, function):
    """2.22 does not name the function."""
    line = f"Init timings{function}: rank 1 nranks 2 total 1.08 (kernels 0.51, bootstrap 0.22)"
    assert read(started(0, 2), started(1, 2), said(line, pid=101, device=1)).init_s == 1.08


def test_lines_without_a_head_and_with_colours(read):
    log = read(
        "NCCL version 2.26.2+cuda12.2\r\n",
        "\x1b[36mnode1:7:7 [0] NCCL INFO Using network IB\x1b[0m\n",
        "[rank1]:[E1129] [PG 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5)\n",
    )
    assert (log.version, log.network) == ("2.26.2", "IB")
    assert [warning.kind for warning in log.warnings] == ["timeout"]


def test_two_communicators_are_kept_apart(read):
    """The ranks of a split are others; an edge belongs to what its process began last."""
    edge = "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM"
    log = read(
        said("ncclCommInitRankConfig comm 0x1 rank 0 nranks 4 cudaDev 0 nvmlDev 0 busId 10 "
             "commId 0xaa - Init START", edge),
        said("ncclCommSplit comm 0x2 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 10 parent 0x1 "
             "splitCount 1 color 0 key 0- Init START", edge),
        said("[Rank 0] ncclCommGrow comm 0x3 rank 0 nranks 8 cudaDev 0 nvmlDev 0 busId 10 "
             "commId 0xbb - Init START"),
    )  # fmt: skip
    assert [(one.id, one.num_ranks) for one in log.communicators] == [
        ("aa", 4), ("child 1, colour 0", 2), ("bb", 8),
    ]  # fmt: skip
    assert len(log.edges) == 2
    assert log.num_ranks == 8
