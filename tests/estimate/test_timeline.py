"""Timelines that can be drawn on paper, their limits, and that more never costs less."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringside.estimate.timeline import Message, replay
from ringside.estimate.work import Work


def work(forward=5.0, backward=10.0, optimizer=1.0, launch=(0.0, 0.0, 0.0)) -> Work:
    return Work(
        batch=1, forward_us=forward, backward_us=backward, optimizer_us=optimizer,
        launch_forward_us=launch[0], launch_backward_us=launch[1], launch_optimizer_us=launch[2],
        gradients=(), wrapper_us=0.0, spread_ratio=0.0,
    )  # fmt: skip


def test_three_buckets_by_hand():
    """Ready at 1, 5 and 10; each takes 4: 1-5, 5-9, 10-14; backward ends at 10."""
    found = replay(work(), [Message(0.1, 4), Message(0.5, 4), Message(1.0, 4)])
    assert found.exposed_us == pytest.approx(4)
    assert found.step_us == pytest.approx(5 + 14 + 1)
    assert found.communication_us == 12
    assert found.hidden_us == pytest.approx(8)


def test_a_slow_link_is_busy_from_the_first_bucket_on():
    """Ready at 1 and 5; each takes 20: 1-21, 21-41."""
    found = replay(work(), [Message(0.1, 20), Message(0.5, 20)])
    assert found.exposed_us == pytest.approx(41 - 10)


def test_without_overlap_everything_adds_up():
    found = replay(work(), [Message(1.0, 7), Message(1.0, 6)])
    assert found.step_us == pytest.approx(16 + 13)


def test_no_messages_is_the_step_of_one_device():
    assert replay(work()).step_us == pytest.approx(16)
    assert replay(work(launch=(8, 16, 2))).step_us == pytest.approx(26)


def test_a_host_that_sets_the_pace_hides_waiting():
    """Work 5 + 10 + 1 under launches of 10 + 20 + 2: all-reduces may end late by the difference.

    Launched at once, the bucket is ready at 30 of 32 and takes 12. The device is then 10 behind the
    host, and catches up, because it needs 16 for what the host launches in 32.
    """
    paced = work(launch=(10.0, 20.0, 2.0))
    found = replay(paced, [Message(1.0, 12)])
    assert found.exposed_us == pytest.approx(12)
    assert found.step_us == pytest.approx(32)


def test_a_link_that_is_slower_than_the_host_sets_the_pace():
    """From one end of communication to the next: optimizer, forward, share of backward, link."""
    paced = work(launch=(10.0, 20.0, 2.0))
    found = replay(paced, [Message(0.1, 100)])
    assert found.step_us == pytest.approx(1 + 5 + 1 + 100)


def test_micro_steps_give_the_device_time_to_catch_up():
    """The host launches 92 in three micro-steps, for which the device needs 46.

    A message of up to 92 - 46 is caught up with; a longer one sets the pace with all of the work.
    """
    paced = work(launch=(10.0, 20.0, 2.0))
    alone = replay(paced, before=[paced, paced])
    assert alone.step_us == pytest.approx(3 * 30 + 2)
    found = replay(paced, [Message(1.0, 40)], before=[paced, paced])
    assert found.step_us == pytest.approx(92)
    slow = replay(paced, [Message(1.0, 100)], before=[paced, paced])
    assert slow.step_us == pytest.approx(100 + 16 + 2 * 15)


def test_compute_beside_communication_is_slower():
    """10 of backward hide x; it takes 10 + 0.1 x, and x settles at all of it."""
    found = replay(work(), [Message(0.0, 5)], slowdown_ratio=0.1)
    assert found.step_us == pytest.approx(16 + 0.5)


def test_where_nothing_runs_beside_the_exchange_everything_adds_up():
    """Ready at 1 and 5 of 10, each takes 4: backward ends at 18, whenever they were ready."""
    found = replay(work(), [Message(0.1, 4), Message(0.5, 4)], excludes=True)
    assert (found.step_us, found.exposed_us) == pytest.approx((16 + 8, 8))
    assert found.hidden_us == pytest.approx(0)


def test_what_excludes_the_exchange_still_makes_up_for_a_slow_host():
    """Work 16 and messages of 8 under launches of 32; the last message follows the last launch."""
    paced = work(launch=(10.0, 20.0, 2.0))
    assert replay(paced, [Message(0.1, 4), Message(1.0, 4)], excludes=True).step_us == (
        pytest.approx(32)
    )
    slow = replay(paced, [Message(0.1, 40)], excludes=True)
    assert slow.step_us == pytest.approx(16 + 40)
    assert replay(paced, excludes=True).step_us == pytest.approx(32)


shares = st.lists(st.floats(0, 1), min_size=1, max_size=8).map(sorted)
times = st.floats(0, 1e4)


@given(shares, times, st.floats(1, 3), times, times, times)
def test_a_slower_link_or_device_or_host_never_makes_a_shorter_step(
    ready, duration, factor, forward, backward, launch
):
    messages = [Message(share, duration) for share in ready]
    slower = [Message(share, factor * duration) for share in ready]
    here = work(forward, backward, 1.0, (launch, launch, 0.0))
    step_us = replay(here, messages).step_us
    slack = 1e-6 * (1 + step_us)
    assert replay(here, slower).step_us >= step_us - slack
    assert replay(work(factor * forward, backward, 1.0, (launch, launch, 0.0)),
                  messages).step_us >= step_us - slack  # fmt: skip
    assert replay(work(forward, backward, 1.0, (factor * launch, launch, 0.0)),
                  messages).step_us >= step_us - slack  # fmt: skip


@given(shares, times, times, times, times)
def test_a_step_lies_between_one_device_and_no_overlap(ready, duration, forward, backward, launch):
    here = work(forward, backward, 1.0, (launch, launch, 0.0))
    found = replay(here, [Message(share, duration) for share in ready])
    slack = 1e-6 * (1 + found.step_us)
    assert found.step_us >= here.step_us - slack
    total_us = here.forward_us + here.backward_us + 1 + 2 * launch + found.communication_us
    assert found.step_us <= total_us + slack
    assert 0 <= found.exposed_us <= found.communication_us + slack


@given(shares, times, times)
def test_an_endless_link_costs_nothing(ready, forward, backward):
    here = work(forward, backward)
    found = replay(here, [Message(share, 0.0) for share in ready])
    assert found.step_us == pytest.approx(here.step_us)
    assert found.exposed_us == 0
