"""How a rank ends: what was printed and its exit code arrive, Python's clean-up is left out."""

from __future__ import annotations

import subprocess
import sys

import pytest

ENDS = """
import atexit, sys, threading
from training.train import end_process

atexit.register(print, "cleaned up")
threading.Thread(target=threading.Event().wait).start()  # a clean end would wait for ever
print("printed", end="")
sys.stderr.write("and said")
end_process(int(sys.argv[1]))
"""


@pytest.mark.parametrize("code", [0, 1])
def test_a_rank_ends_at_once_with_all_that_it_printed(code: int) -> None:
    """A thread of gloo's that Python's clean-up meets aborts the rank after a completed run."""
    argv = [sys.executable, "-c", ENDS, str(code)]
    found = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert (found.returncode, found.stdout, found.stderr) == (code, "printed", "and said")
