"""Two real processes side by side, which exchange nothing."""

from __future__ import annotations

import pytest

from ringside.hardware import read_hardware
from ringside.launch.crowd import measure_crowd
from ringside.request import RunRequest, resolve

pytestmark = pytest.mark.distributed


def test_the_step_among_two_processes_is_timed():
    hardware = read_hardware()
    if hardware.num_devices() < 2:
        pytest.skip("two devices are needed")
    request = RunRequest(preset="ddp", data="products:ci", model="test_resnet", batch=32)
    spec = resolve(request, hardware)
    said: list[str] = []
    found = measure_crowd(spec, seconds=0.5, say=said.append)
    assert (found.num_processes, found.batch) == (spec.num_processes, spec.micro_batch)
    assert len(found.step_us) >= 3
    assert all(us > 0 for us in found.step_us)
    assert len(said) == 1
