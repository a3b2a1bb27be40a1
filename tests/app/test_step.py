"""Where a step goes: unlike ranks, with values worked out by hand."""

from __future__ import annotations

import re

import pytest

from app.page.draw.runs import step_card
from app.page.theme import STYLE
from app.views.step import PARTS, step_view
from ringside.events import WindowTimed


def window(step, data, forward, backward, optimizer, *, epoch=1, num_steps=10):
    """A window of two ranks: a pair is (slowest, fastest)."""
    return WindowTimed(
        epoch=epoch, step=num_steps, num_steps=num_steps, samples_per_s=640.0, train_loss=0.5,
        learning_rate=0.001, step_ms=step, step_ms_min=step, data_ms=data[0], data_ms_min=data[1],
        forward_ms=forward[0], forward_ms_min=forward[1], backward_ms=backward[0],
        backward_ms_min=backward[1], optimizer_ms=optimizer[0], optimizer_ms_min=optimizer[1],
    )  # fmt: skip


def shares(*windows):
    """The shares in percent, by the key of the part."""
    return {part.key: round(100 * part.share, 3) for part in step_view(windows).parts}


# Rank 0 waits 80 ms for its images; rank 1 has its own at once and waits those 80 ms in backward.
SLOW_LOADER = window(100.0, (80, 1), (6, 6), (88, 8), (4, 4))
# Rank 1 computes slower: rank 0 waits for it, and no image is late.
SLOW_RANK = window(100.0, (2, 2), (10, 10), (76, 40), (4, 4))


def test_a_slow_loader_on_one_rank():
    assert shares(SLOW_LOADER) == {
        "data": 80.0, "forward": 6.0, "backward": 8.0, "wait": 2.0, "optimizer": 4.0, "rest": 0.0,
    }  # fmt: skip
    assert "Waiting for images takes 80 % of a step" in step_view([SLOW_LOADER]).sentence


def test_a_slow_rank():
    assert shares(SLOW_RANK) == {
        "data": 2.0, "forward": 10.0, "backward": 40.0, "wait": 36.0, "optimizer": 4.0, "rest": 8.0,
    }  # fmt: skip
    step = step_view([SLOW_RANK])
    assert step.total == "100.0 ms"
    assert [part.time for part in step.parts] == [
        "2.0 ms", "10.0 ms", "40.0 ms", "36.0 ms", "4.0 ms", "8.0 ms",
    ]  # fmt: skip
    assert "wait for a slower one, 36 % of a step" in step.sentence


def test_of_two_waits_the_larger_one_is_named():
    both = window(100.0, (30, 30), (10, 10), (40, 25), (5, 5))
    assert shares(both)["wait"] == 15.0
    assert "Waiting for images takes 30 %" in step_view([both]).sentence


def test_the_step_that_starts_an_epoch_is_left_out_where_there_are_others():
    """On a GPU it holds 40 s of compiling."""
    start = window(40_000.0, (600, 600), (25_000, 25_000), (14_000, 14_000), (40, 40), num_steps=1)
    assert step_view([start]).total == "40.00 s"
    assert step_view([start, SLOW_RANK]).total == "100.0 ms"


def test_equal_ranks_do_not_wait():
    equal = window(100.0, (5, 5), (25, 25), (50, 50), (15, 15))
    assert shares(equal) == {
        "data": 5.0, "forward": 25.0, "backward": 50.0, "wait": 0.0, "optimizer": 15.0, "rest": 5.0,
    }  # fmt: skip
    sentence = step_view([equal]).sentence
    assert sentence.startswith("The largest part is backward, 50 %.")
    assert "waiting" not in sentence


def test_another_largest_part_says_nothing_of_backward():
    slow_optimizer = window(100.0, (5, 5), (15, 15), (20, 20), (60, 60))
    assert step_view([slow_optimizer]).sentence == "The largest part is optimizer, 60 %."


def test_waiting_in_forward_is_not_counted_twice():
    """FSDP gathers in forward, so there the other rank waits for the images of the first."""
    gathering = window(100.0, (80, 1), (85, 5), (8, 8), (2, 2))
    assert shares(gathering) == {
        "data": 80.0, "forward": 10.0, "backward": 8.0, "wait": 0.0, "optimizer": 2.0, "rest": 0.0,
    }  # fmt: skip


def test_a_run_of_an_older_ringside_keeps_the_wait_in_backward():
    old = window(100.0, (5, 5), (25, None), (50, None), (15, None))
    assert shares(old) == {
        "data": 5.0, "forward": 25.0, "backward": 50.0, "optimizer": 15.0, "rest": 5.0,
    }  # fmt: skip
    assert "waiting for each other" in step_view([old]).sentence
    slow = window(100.0, (80, 1), (6, None), (88, None), (4, None))
    assert shares(slow) == {
        "data": 80.0, "forward": 6.0, "backward": 10.0, "optimizer": 4.0, "rest": 0.0,
    }  # fmt: skip


def test_windows_count_by_their_steps_and_other_epochs_not():
    warm_up = window(900.0, (800, 800), (10, 10), (50, 50), (4, 4))
    short = window(200.0, (2, 2), (10, 10), (80, 80), (8, 8), epoch=2, num_steps=5)
    long = window(100.0, (2, 2), (10, 10), (76, 40), (4, 4), epoch=2, num_steps=15)
    step = step_view([warm_up, short, long])
    # (5 x 200 + 15 x 100) / 20; backward (5 x 80 + 15 x 40) / 20; wait (5 x 0 + 15 x 36) / 20
    assert step.total == "125.0 ms"
    assert [part.time for part in step.parts[2:4]] == ["50.0 ms", "27.0 ms"]
    assert sum(part.share for part in step.parts) == pytest.approx(1.0)


def test_no_window_is_no_step():
    assert step_view([]) is None


def test_every_part_has_a_colour_and_a_word_beside_it():
    html, style = step_card(step_view([SLOW_RANK])), STYLE.read_text()
    for part in PARTS:
        assert f".rs-c-{part} " in style or f".rs-c-{part}," in style
    legend = re.findall(r'<span><i class="rs-c-(\w+)"></i>([^<]+) <b>', html)
    assert [key for key, _ in legend] == list(PARTS)
    assert ("wait", "waiting for a rank") in legend
