"""Below the cause of a failure stands how to go on, in the terminal and on the page alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.commands.running import ending
from app.commands.tables import print_record
from app.page.draw.runs import commands, ending_card
from app.views.ending import failure_lines
from app.views.run import run_view
from ringside.records import Failure, Standing, write_exit
from ringside.run import fold_run
from ringside.words import speaking

REASON = (
    "Rank 1 stopped at step 41 while loading data; rank 0 waited for it in the exchange after step "
    "42 for 20 s."
)


@pytest.fixture
def record(make_spec, write_run):
    run = write_run(make_spec("ddp"), "20260102-000000-sad-swan", state=None)
    failure = Failure(
        rank=1,
        cause="timeout",
        last_collective="nccl:all_reduce 57 of [8] (started)",
        checkpoint=Standing(path="checkpoints/last", epoch=2, step=40),
        advice="`ringside resume sad-swan` goes on from step 40.",
        evidence=("ranks/rank1.stack.txt",),
    )
    write_exit(run, state="failed", reason=REASON, failure=failure)
    return fold_run(run)


def test_a_failure_tells_how_to_go_on_and_where_to_look(record):
    lines = failure_lines(record)
    assert lines[0] == "`ringside resume sad-swan` goes on from step 40."
    assert lines[1] == "Last collective: nccl:all_reduce 57 of [8] (started)."
    assert lines[2] == f"More in {record.path}: ranks/rank1.stack.txt"


def test_the_terminal_and_the_page_say_the_same(record, capsys):
    print_record(Path(record.path).parent, record)
    shown = capsys.readouterr().out
    card = ending_card(run_view(record, None).ending)
    for line in (REASON, *failure_lines(record)):
        assert line in shown
        assert line in ending(record)
        assert commands(line) in card
    assert shown.count(REASON) == 1
    assert "Failed on rank 1" in card


def test_the_whole_of_it_is_said_in_the_visitor_s_language(record, capsys):
    """Files hold the English of it."""
    with speaking("zh"):
        ending_lines = run_view(record, None).ending
        print_record(Path(record.path).parent, record)
    shown = capsys.readouterr().out
    told = "rank 1 停在第 41 步，正在加载数据；rank 0 在第 42 步之后的信息交换等了它 20 秒。"
    assert ending_lines.sentence == told
    assert ending_lines.more[0] == "`ringside resume sad-swan` 从第 40 步继续。"
    assert told in shown
    assert REASON not in shown


def test_a_good_end_says_no_more(make_spec, write_run):
    run = write_run(make_spec("ddp"), "20260102-000000-glad-goat")
    assert failure_lines(fold_run(run)) == ()
