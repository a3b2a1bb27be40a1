"""A step at batches that were not measured, and which of host and device sets its pace."""

from __future__ import annotations

import pytest

from ringside.estimate.work import work_at


def test_a_measured_step_comes_back_exactly(make_description):
    work = work_at(make_description(), 32)
    assert work.step_us == pytest.approx(16_000)
    assert (work.forward_us, work.backward_us, work.optimizer_us) == pytest.approx(
        (5_000, 10_000, 1_000)
    )
    assert [g.ready_us for g in work.gradients] == pytest.approx([1_000, 3_000, 5_000, 10_000])


def test_between_two_batches_everything_is_linear(make_description):
    work = work_at(make_description(), 24)
    assert work.step_us == pytest.approx(12_000)
    assert work.gradients[-1].ready_us == pytest.approx(7_500)
    assert not work.is_extrapolated


@pytest.mark.parametrize(("batch", "is_known"), [(7, False), (8, True), (64, True), (65, False)])
def test_a_step_is_said_up_to_twice_the_measured_batches(make_description, batch, is_known):
    work = work_at(make_description(), batch)
    assert (work is not None) == is_known
    if work:
        assert work.is_extrapolated
        assert work.step_us == pytest.approx(500 * batch)


def test_one_batch_says_nothing_about_another(make_description, make_profile):
    description = make_description(make_profile(32))
    assert work_at(description, 32) is not None
    assert work_at(description, 16) is None


def test_time_between_the_marks_is_part_of_the_step(make_description, make_profile):
    work = work_at(make_description(make_profile(32, step_us=(17_000.0,))), 32)
    assert work.step_us == pytest.approx(17_000)
    assert work.backward_us == pytest.approx(10_000)


def test_a_host_that_sets_the_pace_leaves_the_device_its_own_time(make_description, make_profile):
    """Marks on the device then show the host's pace, so they are the launches' times."""
    paced = make_profile(32, host_us=16_000.0, device_us=8_000.0)
    work = work_at(make_description(paced), 32)
    assert work.is_host_bound
    assert work.step_us == work.launch_us == pytest.approx(16_000)
    assert work.device_us == pytest.approx(8_000)
    assert work.backward_us == work.gradients[-1].ready_us == pytest.approx(5_000)
    assert work.launch_backward_us == pytest.approx(10_000)


def test_launches_are_as_many_at_every_batch(make_description, make_profile):
    """At 32 images the host sets a pace of 16 ms, so it takes as long where the device does."""
    paced = make_profile(32, host_us=14_000.0, device_us=8_000.0)
    free = make_profile(64, host_us=9_000.0, device_us=32_000.0)
    both = make_description(paced, free)
    assert work_at(both, 64).launch_us == pytest.approx(16_000)
    assert work_at(make_description(free), 64).launch_us == pytest.approx(9_000)
    assert work_at(both, 64).step_us == pytest.approx(32_000)


def test_the_optimizer_is_no_longer_where_the_host_is_slow(make_description, make_profile):
    """Its launches take 2 of 16 ms, and on the device, as at 64 images, half a millisecond."""
    paced = make_profile(
        32, optimizer_us=2_000.0, backward_us=9_000.0, host_us=16_000.0, device_us=8_500.0
    )
    free = make_profile(64, optimizer_us=500.0, host_us=16_000.0, device_us=32_000.0)
    work = work_at(make_description(paced, free), 32)
    assert (work.optimizer_us, work.launch_optimizer_us) == pytest.approx((500, 2_000))
    assert work.device_us == pytest.approx(8_500)
    assert work.backward_us == pytest.approx(8_000 * 9 / 14)


def test_the_optimizer_has_no_part_in_what_grows_with_the_batch(make_description, make_profile):
    """The device takes 2 + 0.1 ms an image; of what does not grow the optimizer has its share of
    the launches, 2 of 16."""
    profiles = [
        make_profile(
            batch, step_us=(16_000.0,), forward_us=5_000.0, backward_us=9_000.0,
            optimizer_us=2_000.0, host_us=16_000.0, device_us=2_000.0 + 100 * batch,
        )
        for batch in (32, 64)
    ]  # fmt: skip
    for batch in (32, 64):
        work = work_at(make_description(*profiles), batch)
        assert work.optimizer_us == pytest.approx(250)
        assert work.device_us == pytest.approx(2_000 + 100 * batch)


def test_larger_batches_tell_the_devices_own_time(make_description, make_profile):
    """Batches 64 and 128 take 10 and 18 ms: 2 ms and 0.125 ms an image, so 6 ms for 32."""
    profiles = (
        make_profile(32, host_us=16_000.0),
        make_profile(64, step_us=(10_000.0,), host_us=4_000.0),
        make_profile(128, step_us=(18_000.0,), host_us=4_000.0),
    )
    work = work_at(make_description(*profiles), 32)
    assert work.is_device_known
    assert work.device_us == pytest.approx(6_000)


def test_without_larger_batches_the_devices_own_time_is_unknown(make_description, make_profile):
    profiles = make_profile(16, host_us=16_000.0), make_profile(32, host_us=16_000.0)
    work = work_at(make_description(*profiles), 32)
    assert not work.is_device_known
    assert work.device_us == pytest.approx(16_000)


def test_the_wrapper_lies_on_whichever_sets_the_pace(make_description, make_profile):
    here = make_profile(32, wrapped_step_us=(18_000.0,))
    work = work_at(make_description(here), 32).with_wrapper()
    assert work.step_us == pytest.approx(18_000)
    assert work.gradients[-1].ready_us == pytest.approx(12_000)
    paced = make_profile(32, wrapped_step_us=(18_000.0,), host_us=16_000.0, device_us=8_000.0)
    work = work_at(make_description(paced), 32).with_wrapper()
    assert (work.step_us, work.device_us) == pytest.approx((18_000, 8_000))


def test_a_scaler_keeps_the_host_from_running_ahead(make_description, make_profile):
    profile = make_profile(32, host_us=16_000.0, device_us=8_000.0)
    work = work_at(make_description(profile, precision="fp16"), 32)
    assert (work.device_us, work.launch_us) == pytest.approx((16_000, 0))


def test_half_the_range_of_the_blocks_is_the_spread(make_description, make_profile):
    work = work_at(make_description(make_profile(32, step_us=(15e3, 16e3, 17e3))), 32)
    assert work.spread_ratio == pytest.approx(1 / 16)
