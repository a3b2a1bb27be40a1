"""Ranks that were started by hand on several machines: one run, or a refusal."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import msgspec
import pytest

from ringside.spec import DataSpec
from training.agreement import other_request

RANK = """
    import json, os, sys
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
    control = Control(rank, 2)

    def meet(name, spec, fingerprint):
        os.environ["RINGSIDE_RUNS"] = str(folder / name)
        try:
            plain = PlainRun(msgspec.convert(spec, RunSpec), Hardware(num_cores=2), control)
            yield f"revision {plain.spec.data.revision} {read_spec(plain.run) == plain.spec}"
            require_same_data(control, fingerprint)
            yield "same data"
        except RingsideError as error:
            yield f"refused: {error}"

    meetings = json.loads((folder / "meetings.json").read_bytes())
    said = {name: list(meet(name, *ranks[rank])) for name, ranks in meetings.items()}
    (folder / f"said{rank}.json").write_text(json.dumps(said))
    distributed.destroy_process_group()
"""


@pytest.fixture(scope="module")
def pinned(make_spec):
    """`pinned("a")`: a run on a set of the Hub, at this commit."""

    def make(revision: str, **fields):
        data = DataSpec(source="hub", repository="team/pictures", revision=revision)
        return msgspec.structs.replace(make_spec("ddp"), data=data, **fields)

    return make


@pytest.fixture(scope="module")
def meetings(tmp_path_factory, pinned):
    """Two ranks that meet several times, each with a spec and a fingerprint of its data.

    Returns for each meeting what both said and the folder of its runs.
    """
    folder = tmp_path_factory.mktemp("meetings")
    a, b, longer = pinned("a"), pinned("b"), pinned("a", epochs=9)
    specs = {
        "other commit": [(a, "print 0"), (b, "print 0")],
        "other data": [(a, "print 0"), (a, "print 1")],
        "other request": [(a, "print 0"), (longer, "print 0")],
    }
    (folder / "meetings.json").write_bytes(msgspec.json.encode(specs))
    argv = [sys.executable, "-c", dedent(RANK), str(folder)]
    clone = Path(__file__).parents[2]
    ranks = [subprocess.Popen([*argv, str(rank)], cwd=clone) for rank in range(2)]
    assert [rank.wait(timeout=120) for rank in ranks] == [0, 0]
    said = [json.loads((folder / f"said{rank}.json").read_bytes()) for rank in range(2)]
    return {name: ([one[name] for one in said], folder / name) for name in specs}


def test_all_ranks_take_the_commit_of_rank_0(meetings):
    said, root = meetings["other commit"]
    assert said == [["revision a True", "same data"]] * 2
    assert len(list(root.iterdir())) == 1


def test_other_data_on_one_rank_is_refused_on_all(meetings):
    said, _ = meetings["other data"]
    words = "refused: Rank 1 has opened other data than rank 0 (fingerprints print 1 and print 0)"
    for first, second in said:
        assert first == "revision a True"
        assert second.startswith(words)


def test_another_request_on_one_rank_leaves_no_run(meetings):
    said, root = meetings["other request"]
    for (sentence,) in said:
        assert sentence.startswith("refused: Rank 1 was asked for epochs 9 and rank 0 for 3;")
    assert not root.exists()


def test_what_belongs_to_one_machine_may_differ(pinned):
    specs = [pinned("a", gpu_ids=(0, 1)), pinned("a", gpu_ids=(2, 3), sources={"model": "flag"})]
    assert other_request(specs) is None
