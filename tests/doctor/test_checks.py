"""What every check has: a page, a cause of the list, a sample that it sees and one it does not."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import get_args

import pytest

from ringside.doctor import Case, all_checks
from ringside.doctor.findings import Severity
from ringside.doctor.traced import trace_findings
from ringside.trace.findings import Cause, Confidence
from ringside.trace.judging import all_checks as trace_checks
from ringside.words import speaking

SAMPLES = Path(__file__).parent / "samples"
CHECKS = {check.CODE: check for check in (*trace_checks(), *all_checks())}
CODE = re.compile(r"[A-Z]+-\d{3}")


def sample(code):
    name = code.lower().replace("-", "_")
    if not (SAMPLES / f"{name}.py").exists():
        pytest.fail(f"there is no sample of {code}: write tests/doctor/samples/{name}.py")
    return importlib.import_module(f"tests.doctor.samples.{name}")


def found(code, case):
    """What the check of a code says about a case."""
    if code in {check.CODE for check in trace_checks()}:
        return next((one for _, one in trace_findings(case) if one.code == code), None)
    return CHECKS[code].check(case)


def test_codes_are_unique():
    codes = [check.CODE for check in (*trace_checks(), *all_checks())]
    assert len(codes) > 40
    assert sorted(codes) == sorted(set(codes))


def test_there_is_no_sample_without_a_check():
    names = {code.lower().replace("-", "_") for code in CHECKS}
    assert {path.stem for path in SAMPLES.glob("*.py")} <= names


@pytest.mark.parametrize("code", CHECKS)
def test_a_check_has_what_its_page_needs(code):
    check = CHECKS[code]
    assert CODE.fullmatch(code)
    assert check.CAUSE in get_args(Cause)
    title, blank, *text = (check.__doc__ or "").strip().splitlines()
    assert title.endswith(".")
    assert blank == ""
    body = "\n".join(text)
    assert re.search(r"^Seen ", body, re.MULTILINE)
    assert re.search(r"^What to do: ", body, re.MULTILINE)
    assert re.search(r"^Sources?: ", body, re.MULTILINE)


@pytest.mark.parametrize("code", CHECKS)
def test_a_check_sees_its_cause(code):
    finding = found(code, sample(code).firing())
    assert finding is not None
    assert (finding.code, finding.cause) == (code, CHECKS[code].CAUSE)
    assert finding.severity in get_args(Severity)
    assert finding.confidence in get_args(Confidence)
    assert finding.evidence
    assert finding.next_step != finding.refutation
    for text in (finding.sentence, finding.refutation, finding.next_step):
        assert re.search(r"[.?]$", text)
        assert "None" not in text
        assert "nan" not in text.split()
    assert finding.share_ratio is None or 0 <= finding.share_ratio <= 1


@pytest.mark.parametrize("code", CHECKS)
def test_a_check_is_silent_where_its_cause_is_not(code):
    assert found(code, sample(code).silent()) is None


@pytest.mark.parametrize("code", CHECKS)
def test_a_check_says_nothing_about_what_nobody_measured(code):
    assert found(code, Case()) is None


ENGLISH = re.compile(r"(?<![\w=./_-])(?:[a-z]{3,} [a-z]{2,}|an?|of|on|step|none|yes)(?![\w_./-])")
OTHERS_WORDS = re.compile(r"`[^`]*`|（power brake）")
"""What is typed, and what `nvidia-smi` calls a reason that no word of Chinese says alone."""
QUOTES = ("console.log", "nccl")
"""Sources that are quoted as they are."""


@pytest.mark.parametrize("code", [check.CODE for check in all_checks()])
def test_what_was_seen_is_told_in_chinese(code):
    with speaking("zh"):
        finding = found(code, sample(code).firing())
    assert finding is not None
    sentences = [finding.sentence, finding.refutation, finding.next_step]
    told = [*sentences, *(one.value for one in finding.evidence if one.source not in QUOTES)]
    told += [one.label for one in finding.evidence]
    assert [one for one in told if ENGLISH.search(OTHERS_WORDS.sub("", one))] == []
