"""The house rules that keep the terminal quick, the page free of torch, and the parts apart."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import ringside

CLONE = Path(ringside.__file__).parents[1]
PACKAGES = ("ringside", "training", "app")


def sources(*packages: str) -> list[Path]:
    return [path for package in packages for path in sorted((CLONE / package).rglob("*.py"))]


def imported(path: Path) -> Iterator[str]:
    """The top names of all packages that a file imports, inside functions too."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def test_imports_go_one_way():
    """The contracts of pyproject.toml: app and training never meet, the domain knows neither."""
    code = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run(
        [sys.executable, "-c", code, "--no-cache"], cwd=CLONE, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


LIGHT = """
import importlib, pkgutil, sys
import ringside
heavy = {"torch", "torchvision", "accelerate", "timm", "gradio", "numpy", "pandas", "sklearn",
         "datasets", "evaluate", "pyarrow", "PIL", "rich", "altair", "psutil", "pynvml"}
seen = set()
for name in ["ringside." + m.name for m in pkgutil.iter_modules(ringside.__path__)] + ["app.cli"]:
    importlib.import_module(name)
    found = heavy & set(sys.modules) - seen
    seen |= found
    if found:
        print(name, *sorted(found))
"""


def test_the_domain_and_the_command_are_light():
    """Whoever types `ringside list` does not wait for numpy, and needs no torch to look at runs."""
    done = subprocess.run(
        [sys.executable, "-c", LIGHT], cwd=CLONE, capture_output=True, text=True, check=True
    )
    assert done.stdout == ""


def test_only_the_page_knows_gradio():
    """gradio breaks arguments weekly: one folder to mend."""
    users = {path for path in sources(*PACKAGES) if "gradio" in set(imported(path))}
    page = CLONE / "app" / "page"
    assert {path for path in users if page not in path.parents} == set()


def test_no_module_hides_a_library_or_holds_odds_and_ends():
    """`training/datasets.py` would be imported instead of the library of that name."""
    odds = {"utils.py", "helpers.py", "common.py", "misc.py"}
    assert {path for path in sources(*PACKAGES) if path.name in odds} == set()
    hiding = {path.stem for path in sources("training")} & {"datasets", "evaluate", "accelerate"}
    assert hiding == set()
