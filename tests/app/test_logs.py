"""Logs by byte offset."""

from __future__ import annotations

import pytest

from app.views import logs
from app.views.logs import (
    CONSOLE,
    MAX_BYTES,
    MAX_HITS,
    find_in_log,
    fold_returns,
    log_choices,
    log_path,
    read_around,
    read_before,
    read_log,
)


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


def test_earlier_text_joins_on_without_a_gap(run):
    lines = "".join(f"line {i} with some words\n" for i in range(30_000))
    run.console.write_text(lines)
    chunk = read_log(run, CONSOLE, None)
    texts, start = [chunk.text], chunk.start
    while start:
        before = read_before(run, CONSOLE, start)
        assert before.offset == start
        assert len(before.text) <= MAX_BYTES
        texts.insert(0, before.text)
        start = before.start
    assert "".join(texts) == lines


def test_one_line_longer_than_a_piece(run):
    run.console.write_text("x" * (3 * MAX_BYTES) + "\n")
    start, num = 3 * MAX_BYTES + 1, 0
    while start:
        start, num = read_before(run, CONSOLE, start).start, num + 1
    assert num == 4


def test_a_search_covers_the_whole_file(run):
    lines = [f"step {i}" + (" Loss is NaN" if i in (7, 123_456) else "") for i in range(150_000)]
    run.console.write_text("\n".join(lines))
    hits = find_in_log(run, CONSOLE, "loss is nan")
    assert [(hit.line, hit.text) for hit in hits.found] == [
        (8, "step 7 Loss is NaN"), (123_457, "step 123456 Loss is NaN"),
    ]  # fmt: skip
    data = run.console.read_bytes()
    assert all(data[hit.offset :].startswith(hit.text.encode()) for hit in hits.found)
    around = read_around(run, CONSOLE, hits.found[1].offset)
    assert around.start <= hits.found[1].offset < around.offset
    assert around.text.splitlines().count("step 123456 Loss is NaN") == 1
    assert data[around.start : around.offset].decode() == around.text


def test_a_search_is_bounded_and_takes_words_as_they_are(run):
    run.console.write_text("a.b(c\nabbc\n" * 1000 + "last a.b(c twice a.b(c")
    hits = find_in_log(run, CONSOLE, " A.B(C ")
    assert (len(hits.found), hits.more) == (MAX_HITS, True)
    assert {hit.text for hit in hits.found} == {"a.b(c"}
    assert find_in_log(run, CONSOLE, "twice a.b(c").found[0].line == 2001
    assert find_in_log(run, CONSOLE, "   ").found == ()
    assert find_in_log(run, "../spec", "a").found == ()


def test_a_link_out_of_the_run_leads_nowhere(run, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("secret\n")
    run.console.symlink_to(secret)
    assert log_path(run, CONSOLE) is None
    assert read_log(run, CONSOLE, None).text == ""


def test_viewers_share_one_read(run, monkeypatch):
    reads = []
    read = logs._read
    monkeypatch.setattr(logs, "_read", lambda *what: reads.append(what) or read(*what))
    run.console.write_text("one\n")
    offsets = {read_log(run, CONSOLE, None).offset for _ in range(20)}
    with run.console.open("a") as stream:
        stream.write("two\n")
    texts = {read_log(run, CONSOLE, offset).text for offset in offsets for _ in range(20)}
    assert texts == {"two\n"}
    assert len(reads) == 2
    run.console.write_text("a\nb\nc\nd\n")
    assert read_log(run, CONSOLE, None).text == "a\nb\nc\nd\n", "as long as before, but another"
