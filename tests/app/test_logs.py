"""Logs by byte offset."""

from __future__ import annotations

import pytest

from app.views.logs import CONSOLE, MAX_BYTES, fold_returns, log_choices, read_log


@pytest.fixture
def run(runs):
    return runs.add("log-lark")


def test_only_what_is_new_comes(run):
    run.console.write_text("one\n")
    first = read_log(run, CONSOLE, None)
    assert (first.text, first.reset) == ("one\n", True)
    with run.console.open("a") as stream:
        stream.write("two\nhalf")
    second = read_log(run, CONSOLE, first.offset)
    assert (second.text, second.reset) == ("two\n", False)
    assert read_log(run, CONSOLE, second.offset).text == ""
    with run.console.open("a") as stream:
        stream.write(" a line\n")
    assert read_log(run, CONSOLE, second.offset).text == "half a line\n"


def test_a_file_that_shrank_starts_over(run):
    run.console.write_text("long line\n" * 10)
    offset = read_log(run, CONSOLE, None).offset
    run.console.write_text("new\n")
    chunk = read_log(run, CONSOLE, offset)
    assert (chunk.text, chunk.reset) == ("new\n", True)


def test_a_huge_log_comes_from_near_its_end_in_whole_lines(run):
    run.console.write_text("".join(f"line {i}\n" for i in range(100_000)))
    chunk = read_log(run, CONSOLE, None)
    assert len(chunk.text) <= MAX_BYTES
    assert chunk.text.startswith("line ")
    assert chunk.text.endswith("line 99999\n")


def test_a_viewer_who_fell_far_behind_is_reset(run):
    run.console.write_text("x\n")
    offset = read_log(run, CONSOLE, None).offset
    with run.console.open("a") as stream:
        stream.write("y\n" * MAX_BYTES)
    assert read_log(run, CONSOLE, offset).reset


def test_a_progress_bar_is_folded_and_colours_go(run):
    assert fold_returns("1%\r50%\r100%\r\n\x1b[31mred\x1b[0m\n") == "100%\nred\n"
    assert fold_returns("a\r\nb\n") == "a\nb\n"


def test_bytes_that_are_no_text_do_not_matter(run):
    run.console.write_bytes(b"ok \xff\xfe\n")
    assert read_log(run, CONSOLE, None).text.startswith("ok ")


def test_each_rank_can_be_chosen(run):
    for rank in (0, 1):
        folder = run.logs / "none_abc" / "attempt_0" / str(rank)
        folder.mkdir(parents=True)
        (folder / "stdout.log").write_text(f"from {rank}\n")
        (folder / "stderr.log").write_text(f"error {rank}\n")
    assert [label for label, _ in log_choices(run)] == [
        "launcher and all ranks", "rank 0", "rank 0, errors", "rank 1", "rank 1, errors",
    ]  # fmt: skip
    assert read_log(run, "1.stderr", None).text == "error 1\n"


def test_the_launcher_s_mark_becomes_the_rank(run):
    run.console.write_text("[default0]:[rank 0] epoch 1\n[default1]:hello\nplain\n")
    assert read_log(run, CONSOLE, None).text == "[rank 0] epoch 1\n[rank 1] hello\nplain\n"


@pytest.mark.parametrize(
    "key", ["", "../spec", "0.spec", "9.stdout", "console/../../x", "١.stdout"]
)
def test_a_key_from_nowhere_leads_to_no_file(run, key):
    assert read_log(run, key, None).text == ""


def test_no_log_yet(run):
    assert read_log(run, CONSOLE, None).text == ""
