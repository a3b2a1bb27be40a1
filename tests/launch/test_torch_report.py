"""A process of its own tells what torch knows, and never outlives the question."""

from __future__ import annotations

import sys
import time

import psutil
import pytest

from ringside.errors import LaunchError
from ringside.launch import torch_report


@pytest.fixture
def python_is(tmp_path, monkeypatch):
    """Put a shell script in the place of Python: `python_is("echo no torch; exit 1")`."""

    def replace(body: str) -> None:
        script = tmp_path / "python"
        script.write_text(f"#!/bin/sh\n{body}\n")
        script.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(script))
        monkeypatch.setattr(torch_report, "import_environment", dict)

    return replace


def test_the_real_torch_answers():
    looks = []
    found = torch_report.ask_torch(load=True, meanwhile=lambda: looks.append(time.monotonic()))
    assert found.version
    assert found.problems == ()
    assert len(found.copy_bytes_per_s) == found.num_devices
    assert len(looks) > 5


def test_the_last_line_of_a_failure_is_told(python_is):
    python_is("echo first; echo ImportError: no torch here. >&2; exit 1")
    with pytest.raises(LaunchError, match=r"could not say .*: ImportError: no torch here\.$"):
        torch_report.ask_torch(load=False, meanwhile=lambda: None)


def test_an_answer_of_another_shape_is_a_failure(python_is):
    python_is('echo "{" > "$4"')  # -m MODULE --out FILE
    with pytest.raises(LaunchError, match="it said nothing"):
        torch_report.ask_torch(load=False, meanwhile=lambda: None)


def test_a_child_that_hangs_is_ended(python_is):
    python_is("exec sleep 60")
    with pytest.raises(LaunchError, match="within 0 s"):
        torch_report.ask_torch(load=False, meanwhile=lambda: None, timeout_s=0.3)
    assert [one for one in psutil.Process().children() if one.name() == "sleep"] == []


def test_a_child_ends_with_its_asker(python_is):
    python_is("exec sleep 60")

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        torch_report.ask_torch(load=False, meanwhile=interrupt)
    assert [one for one in psutil.Process().children() if one.name() == "sleep"] == []


def test_a_machine_with_what_torch_knows(tmp_path):
    machine = torch_report.check_machine(tmp_path)
    assert machine.problems == ()
    assert (machine.torch_cuda is None) == (machine.arch_list == ())
