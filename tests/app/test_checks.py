"""Checks in the background: real processes, their results, their end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from PIL import Image

from app.views import checks as checks_module
from app.views.checks import Checks, check_key
from app.views.child import Child
from ringside.data import check_data, parse_data
from ringside.errors import RingsideError
from ringside.identity import wait_until

LONG = parse_data("products")  # takes minutes
WAITS = "from app.views.child import end_with_the_page as e; import time; e(); time.sleep(60)"


@pytest.fixture
def photos(tmp_path):
    """Twelve pictures of two classes, one cut off, one with transparency, one a link to outside."""
    root = tmp_path / "photos"
    for name in ("cat", "dog"):
        (root / name).mkdir(parents=True)
        for i in range(6):
            Image.new("RGB", (24, 24), (40 * i, 90, len(name))).save(root / name / f"{i}.png")
    cut = root / "cat" / "0.png"
    cut.write_bytes(cut.read_bytes()[:50])
    Image.new("RGBA", (24, 24), (9, 9, 9, 99)).save(root / "dog" / "1.png")
    secret = tmp_path / "secret.png"
    Image.new("RGBA", (24, 24), (250, 0, 0, 99)).save(secret)
    (root / "dog" / "link.png").symlink_to(secret)
    return root


def ended(checks, spec):
    key = check_key(spec)
    assert wait_until(lambda: not checks.state(key).under_way, 60)
    return checks.state(key)


def test_a_check_finds_what_the_terminal_finds(photos):
    checks, spec = Checks(), parse_data(str(photos))
    assert checks.report(spec) is None
    checks.start(spec)
    state = ended(checks, spec)
    assert state.kind == "done"
    assert state.report == checks.report(spec) == check_data(spec)
    assert state.report.skip == {"cat/0.png"}
    # Of the two transparent pictures, only the one inside the folder is shown.
    assert [odd.file for odd in state.odd] == ["dog/1.png"]
    assert state.odd[0].png.startswith(b"\x89PNG")


def test_the_size_that_a_model_sees_makes_no_other_check(photos):
    small, large = (parse_data(str(photos), image_size=size) for size in (32, 64))
    assert check_key(small) == check_key(large)
    table = photos / "metadata.csv"
    table.write_text("file_name,labels\ncat/1.png,a;b\ndog/1.png,b\n")
    cut = parse_data(str(photos), separator=";")
    assert check_key(cut) != check_key(parse_data(str(photos)))


def test_what_cannot_be_checked_is_a_sentence(tmp_path):
    (tmp_path / "empty").mkdir()
    checks, spec = Checks(), parse_data(str(tmp_path / "empty"))
    checks.start(spec)
    state = ended(checks, spec)
    assert state.kind == "failed"
    assert str(tmp_path / "empty") in state.sentence
    assert state.report is None


def test_a_check_that_is_stopped_leaves_no_process(monkeypatch):
    checks = Checks()
    checks.start(LONG)
    checks.start(LONG)  # the same data: still one check
    key = check_key(LONG)
    assert wait_until(lambda: checks.state(key).done > 0, 60)
    (child,) = (check.child for check in checks._checks.values())
    leader = psutil.Process(child._process.pid)
    family = [leader, *leader.children(recursive=True)]
    monkeypatch.setattr(checks_module, "MAX_AT_ONCE", 1)
    with pytest.raises(RingsideError, match="1 checks are under way"):
        checks.start(parse_data("emoji"))
    checks.stop(key)
    assert checks.state(key).kind == "stopping"
    state = ended(checks, LONG)
    assert state.kind == "stopped"
    assert state.report is None
    assert wait_until(lambda: not any(process.is_running() for process in family), 10)


@pytest.fixture
def no_answer(monkeypatch):
    """Every check ends at once and says nothing."""
    monkeypatch.setattr(checks_module, "Child", lambda *_, **__: Child(["/bin/false"]))


def test_a_check_without_an_answer_is_told(no_answer):
    checks = Checks()
    checks.start(LONG)
    assert "without a result" in ended(checks, LONG).sentence


def test_the_oldest_results_are_let_go(monkeypatch, no_answer, photos):
    monkeypatch.setattr(checks_module, "MAX_KEPT", 1)
    checks = Checks()
    for spec in (LONG, parse_data(str(photos))):
        checks.start(spec)
        ended(checks, spec)
    assert checks.state(check_key(LONG)).kind == "none"


@pytest.mark.parametrize("answer", ["default_int_handler", "SIG_IGN"])
def test_a_child_ends_with_the_server(answer):
    """The server is killed and can do nothing about it; `nohup ringside ui &` ignores SIGINT."""
    server = (
        "import sys, os, signal; from app.views.child import Child; "
        f"signal.signal(signal.SIGINT, signal.{answer}); "
        f"c = Child([sys.executable, '-c', {WAITS!r}]); "
        "print(c._process.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    folder = Path(__file__).parents[2]
    killed = subprocess.run([sys.executable, "-c", server], cwd=folder, capture_output=True)
    pid = int(killed.stdout)
    assert wait_until(lambda: not psutil.pid_exists(pid) or _is_zombie(pid), 20)


def _is_zombie(pid: int) -> bool:
    return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_child_that_does_not_listen_is_killed_with_its_family():
    child = Child(["sh", "-c", "sleep 60 & echo $!; wait"], timeout_s=1.0)
    (line,) = child.lines()
    code, _ = child.finish()
    assert (code, child.timed_out) == (-9, True)
    assert wait_until(lambda: not psutil.pid_exists(int(line)) or _is_zombie(int(line)), 5)


def test_a_child_that_fails_says_why():
    child = Child([sys.executable, "-c", "raise SystemExit('no luck')"])
    assert list(child.lines()) == []
    assert child.finish() == (1, "no luck")
