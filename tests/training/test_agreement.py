"""Ranks that were started by hand on several machines: one run, or a refusal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import msgspec
import pytest

from ringside.spec import DataSpec
from training.agreement import other_request

RANK = """
    import sys
    from pathlib import Path
    import msgspec
    from torch import distributed
    from ringside.errors import RingsideError
    from ringside.hardware import Hardware
    from ringside.rundir import RunDir
    from ringside.spec import RunSpec
    from training.agreement import require_same_data
    from training.control import Control
    from training.join import PlainRun, read_spec

    folder, rank = Path(sys.argv[1]), int(sys.argv[2])
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2
    )
    spec = msgspec.json.decode((folder / f"spec{rank}.json").read_bytes(), type=RunSpec)
    control = Control(rank, 2)
    try:
        plain = PlainRun(spec, Hardware(num_cores=2), control)
        print("revision", plain.spec.data.revision, read_spec(plain.run) == plain.spec)
        require_same_data(control, f"print {min(rank, int(sys.argv[3]))}")
        print("same data")
    except RingsideError as error:
        print("refused:", error)
    distributed.destroy_process_group()
"""


@pytest.fixture
def join(tmp_path):
    """Two ranks with these specs meet; returns what each printed."""

    def run(specs, *, same_data: bool = True) -> list[str]:
        for rank, spec in enumerate(specs):
            (tmp_path / f"spec{rank}.json").write_bytes(msgspec.json.encode(spec))
        argv = [sys.executable, "-c", dedent(RANK), str(tmp_path)]
        folder = Path(__file__).parents[2]
        ranks = [
            subprocess.Popen(
                [*argv, str(rank), "0" if same_data else "1"], cwd=folder, text=True,
                stdout=subprocess.PIPE,
            )
            for rank in range(2)
        ]  # fmt: skip
        return [rank.communicate(timeout=60)[0] for rank in ranks]

    return run


@pytest.fixture
def pinned(make_spec):
    """`pinned("a")`: a run on a set of the Hub, at this commit."""

    def make(revision: str, **fields):
        data = DataSpec(source="hub", repository="team/pictures", revision=revision)
        return msgspec.structs.replace(make_spec("ddp"), data=data, **fields)

    return make


def test_all_ranks_take_the_commit_of_rank_0(join, pinned, root):
    printed = join([pinned("a"), pinned("b")])
    assert all(text.endswith("revision a True\nsame data\n") for text in printed)
    assert len(list(root.iterdir())) == 1


def test_other_data_on_one_rank_is_refused_on_all(join, pinned):
    words = "refused: Rank 1 has opened other data than rank 0 (fingerprints print 1 and print 0)"
    for text in join([pinned("a"), pinned("a")], same_data=False):
        assert words in text


def test_another_request_on_one_rank_leaves_no_run(join, pinned, root):
    for text in join([pinned("a"), pinned("a", epochs=9)]):
        assert text.startswith("refused: Rank 1 was asked for epochs 9 and rank 0 for 3;")
    assert not root.exists()


def test_what_belongs_to_one_machine_may_differ(pinned):
    specs = [pinned("a", gpu_ids=(0, 1)), pinned("a", gpu_ids=(2, 3), sources={"model": "flag"})]
    assert other_request(specs) is None
