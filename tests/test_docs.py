"""The documents name what the code has: presets, commands, files, events and their fields."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ringside.events import KINDS
from ringside.hang import Hang, Standstill
from ringside.hardware import Gpu, Hardware
from ringside.identity import ProcessIdentity
from ringside.launch.plan import LaunchPlan
from ringside.marks import Mark
from ringside.presets import BUILT_IN, Library
from ringside.records import ExitRecord, Failure, Owner, RankError, Standing
from ringside.rundir import RunDir
from ringside.samples import GpuSample, RankSample, Sample
from ringside.shelf.notes import Notes
from ringside.spec import (
    AccelerateSettings,
    DataSpec,
    FsdpConfig,
    Observed,
    RunSpec,
    TrainingSettings,
)

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
CONTRACT = ROOT / "docs" / "run-directory.md"
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
MAX_README_LINES = 150

SECTION_OF: dict[type[msgspec.Struct], str] = {
    RunSpec: "`spec.json`",
    AccelerateSettings: "`spec.json`",
    FsdpConfig: "`spec.json`",
    TrainingSettings: "`spec.json`",
    DataSpec: "`spec.json`",
    LaunchPlan: "`plan.json` and `hardware.json`",
    Hardware: "`plan.json` and `hardware.json`",
    Gpu: "`plan.json` and `hardware.json`",
    Observed: "Observed",
    RankError: "Rank files",
    Owner: "The owner",
    ProcessIdentity: "The owner",
    ExitRecord: "The end",
    Failure: "The end",
    Standing: "The end",
    Notes: "Notes",
    Hang: "Standing still",
    Standstill: "Standing still",
    Mark: "Standing still",
    Sample: "Samples",
    GpuSample: "Samples",
    RankSample: "Samples",
    **{kind: f"`{kind.__struct_config__.tag}`" for kind in KINDS},
}

_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE_BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def sections(text: str) -> dict[str, str]:
    """The text below each heading, up to the next heading of any level."""
    parts = _HEADING.split(_CODE_BLOCK.sub("", text))
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.fixture(scope="module")
def generate() -> Any:
    """The script that writes what documents take from the code."""
    found = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def anchor(heading: str) -> str:
    """The anchor that a heading gets: small letters, hyphens, no punctuation."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def broken_links(document: Path) -> list[str]:
    """Relative links that lead to no file, or to no heading of it."""
    broken = []
    for link in _LINK.findall(_CODE_BLOCK.sub("", document.read_text(encoding="utf-8"))):
        name, _, heading = link.partition("#")
        if "://" in name:
            continue
        target = (document.parent / name).resolve() if name else document
        if not target.exists():
            broken.append(link)
        elif heading:
            anchors = map(anchor, sections(target.read_text(encoding="utf-8")))
            broken += [] if heading in anchors else [link]
    return broken


def test_the_readme_is_short():
    assert len(README.read_text(encoding="utf-8").splitlines()) <= MAX_README_LINES


def test_the_readme_names_every_built_in_preset():
    text = README.read_text(encoding="utf-8")
    table = text.partition("<!-- presets:begin -->")[2].partition("<!-- presets:end -->")[0]
    names = [preset.name for preset in Library() if preset.origin == BUILT_IN]
    assert [name for name in names if f"`{name}`" not in table] == []


def test_the_page_of_commands_is_current(generate):
    """And the README leads to it."""
    assert generate.COMMANDS.read_text(encoding="utf-8") == generate.commands_page(), (
        "run make docs"
    )
    assert "(docs/commands.md)" in README.read_text(encoding="utf-8")


def test_the_contract_names_every_file_of_a_run():
    text = sections(CONTRACT.read_text(encoding="utf-8"))["Files"]
    run = RunDir(Path("run"))
    names = [name for name, value in vars(RunDir).items() if isinstance(value, property)]
    files = {name: path.name for name in names if isinstance(path := getattr(run, name), Path)}
    assert files
    assert [name for name in names if not re.search(rf"[`.]{name}`", text)] == []
    assert [name for name in files if f"| `{name}` |" not in text] == []
    assert [file for file in files.values() if f"| `{file}" not in text] == []


@pytest.mark.parametrize("kind", SECTION_OF, ids=lambda kind: kind.__name__)
def test_the_contract_names_every_field(kind):
    text = sections(CONTRACT.read_text(encoding="utf-8"))[SECTION_OF[kind]]
    assert [name for name in kind.__struct_fields__ if f"`{name}`" not in text] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_relative_links_lead_somewhere(document):
    assert broken_links(document) == []


@pytest.mark.parametrize("document", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_has_its_three_parts(document):
    found = list(sections(document.read_text(encoding="utf-8")))
    assert found[0].startswith(f"{document.stem[:4]}: ")
    assert found[1:] == ["Context", "Decision", "Consequences"]


def test_decisions_are_numbered_without_gaps():
    numbers = [int(page.stem[:4]) for page in DECISIONS]
    assert numbers == list(range(1, len(numbers) + 1))


def test_the_pages_of_the_checks_are_those_of_the_code(generate):
    wanted = generate.check_pages()
    there = {p.name: p.read_text(encoding="utf-8") for p in (ROOT / "docs/checks").glob("*.md")}
    assert sorted(there) == sorted(wanted), "run `make docs`"
    assert [name for name in wanted if there[name] != wanted[name]] == [], "run `make docs`"


def test_the_pages_of_the_presets_are_current(generate):
    """And so are the library's table and what becomes of the field's configurations."""
    wanted = generate.preset_pages()
    there = {p.name: p.read_text(encoding="utf-8") for p in generate.PRESETS.glob("*.md")}
    assert there == wanted, "run `make docs`"
    library = generate.LIBRARY_README.read_text(encoding="utf-8")
    assert generate.library_readme(library) == library, "run `make docs`"
    assert broken_links(generate.LIBRARY_README) == []
    assert generate.imports_page() == generate.IMPORTS.read_text(encoding="utf-8")
