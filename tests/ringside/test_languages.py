"""The languages of the words: none lacks a sentence, none keeps a dead one, each is its own."""

from __future__ import annotations

import ast
import functools
import re
import string
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ringside
from ringside.data import source_names
from ringside.doctor import checks as doctor_checks
from ringside.machine.gpus import REASONS
from ringside.presets import Library
from ringside.samples import reason_told
from ringside.stacks import DOING
from ringside.words import (
    DEFAULT,
    VARIABLE,
    catalogue,
    in_this_language,
    language_of,
    languages,
    nearest_language,
    remembering,
    say,
    speak,
    speaking,
    spoken,
    templates,
    translated,
)

CLONE = Path(ringside.__file__).parents[1]
OTHERS = [language for language in languages() if language != DEFAULT]
ELSEWHERE = ("preset.", "evidence.", "data_source.", "throttle.", "doing.")
"""Sections whose English stands in preset files and in code."""
OWN_FORM = {"figures.clock"}
"""Dates have another order in each language."""
NAMES = {
    "/dev/shm", "OMP_NUM_THREADS", "nn.DataParallel", "local SGD", "Local SGD", "SyncBatchNorm",
    "find_unused_parameters", "NVLink", "InfiniBand", "PCIe", "Ringside", "Traceback", "NEW-RUN",
    "NCCL", "torch", "FSDP2", "fp16", "bf16", "fp32", "Python", "ringside", "log10", "FSDP",
    "rank", "Accelerate", "PowerSGD", "TCP", "socket", "commit", "fsdp_reshard_after_forward",
}  # fmt: skip
CJK = re.compile(r"[\u4e00-\u9fff]")


def placeholders(template: str) -> list[tuple[str, str, str | None]]:
    parts = string.Formatter().parse(template)
    return sorted((name, form or "", conversion) for _, name, form, conversion in parts if name)


def prose(template: str) -> str:
    """A sentence without its values and without what is typed."""
    return re.sub(r"`[^`]*`|\{[^}]*\}", "", template)


@pytest.mark.parametrize("language", OTHERS)
def test_every_language_has_the_same_sentences_with_the_same_values(language):
    english, own = templates(DEFAULT), templates(language)
    assert sorted(english.keys() - own.keys()) == []
    extra = own.keys() - english.keys()
    assert sorted(key for key in extra if not key.startswith(ELSEWHERE)) == []
    shared = english.keys() - OWN_FORM
    assert [k for k in shared if placeholders(english[k]) != placeholders(own[k])] == []
    named = {key: ([p[0] for p in placeholders(texts[key])] for texts in (english, own))
             for key in OWN_FORM}  # fmt: skip
    assert [key for key, (first, second) in named.items() if first != second] == []
    assert [key for key, text in own.items() if not text.strip()] == []


def test_no_english_sentence_is_left_in_the_chinese():
    left = [
        key
        for key, text in templates("zh").items()
        if not CJK.search(text)
        and prose(text) not in NAMES
        and any(len(word) > 3 and word not in NAMES for word in re.findall("[\\w/.]+", prose(text)))
    ]
    assert left == []
    several = re.compile(r"(?<![\w=.-])[a-z]{2,} [a-z]{2,} [a-z]{2,}")
    assert [k for k, text in templates("zh").items() if several.search(prose(text))] == []


def test_the_chinese_has_chinese_punctuation():
    """Half-width signs between Chinese words are what is left when a sentence was patched."""
    mixed = re.compile(r"[\u4e00-\u9fff][,;:!?]|[,;!?][\u4e00-\u9fff]|[\u4e00-\u9fff]\.(?!\w)")
    assert [key for key, text in templates("zh").items() if mixed.search(text)] == []


@pytest.mark.parametrize("language", OTHERS)
def test_every_built_in_preset_is_told_in_every_language(language):
    own = {key for key in templates(language) if key.startswith("preset.")}
    wanted = {
        f"preset.{preset.name}_{part}"
        for preset in Library().presets.values()
        for part in ("title", "why", "when", "limits")
        if preset.origin == "built-in" and getattr(preset.about, part)
    }
    assert own == wanted


def labels_of_evidence() -> set[str]:
    """What `seen` is called with in the doctor's code."""
    found = set()
    for path in Path(doctor_checks.__file__).parents[1].rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            is_call = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "seen"
            if is_call and isinstance(node.args[0], ast.Constant):
                found.add(f"evidence.{node.args[0].value}")
    return found


@pytest.mark.parametrize("language", OTHERS)
def test_every_label_of_evidence_is_told_in_every_language(language):
    wanted = labels_of_evidence()
    assert len(wanted) > 50
    assert {key for key in templates(language) if key.startswith("evidence.")} == wanted


@pytest.mark.parametrize("language", OTHERS)
def test_all_that_a_rank_may_do_is_told_in_every_language(language):
    own = {key for key in templates(language) if key.startswith("doing.")}
    assert own == {f"doing.{words}" for words in DOING}


@pytest.mark.parametrize("language", OTHERS)
def test_every_data_source_is_told_in_every_language(language):
    told = {key for key in templates(language) if key.startswith("data_source.")}
    assert told >= {f"data_source.{source.title}" for source in source_names()}
    strings = code()[0]
    assert [key for key in told if key.removeprefix("data_source.") not in strings] == []


@pytest.mark.parametrize("language", OTHERS)
def test_all_that_holds_clocks_down_is_told_in_every_language(language):
    own = {key for key in templates(language) if key.startswith("throttle.")}
    assert own == {f"throttle.{reason}" for reason in REASONS.values()}


def test_what_holds_clocks_down_is_told_in_the_language_that_is_spoken():
    assert reason_told("power cap") == "power cap"
    with speaking("zh"):
        assert reason_told("power cap") == "功耗上限"
        assert reason_told("sw_new_reason") == "sw new reason"


# Which keys are used: literal ones, and those that an f-string makes of words that the code knows.


Pattern = list[str | None]
"""An f-string, with None for each hole."""


@functools.cache
def code() -> tuple[set[str], set[str], list[Pattern], list[Pattern]]:
    """(strings, words that may stand in a hole, patterns of keys, patterns of names)."""
    strings, words, patterns = set[str](), set[str](), list[Pattern]()
    for package in ("ringside", "app", "training"):
        for path in (CLONE / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_bytes())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    strings.add(node.value)
                elif isinstance(node, ast.JoinedStr):
                    patterns.append(
                        [
                            str(part.value) if isinstance(part, ast.Constant) else None
                            for part in node.values
                        ]
                    )
                elif isinstance(node, ast.keyword | ast.arg) and node.arg:
                    words.add(node.arg)
                elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                    words.add(node.target.id)
    words |= {re.sub("[ -]", "_", text.lower()) for text in strings} | strings
    words |= {str(number) for number in range(10)}
    words.discard("")
    keys = [parts for parts in patterns if "." in (parts[0] or "")]
    names = [
        parts for parts in patterns
        if re.fullmatch(r"\w*_\w*", "".join(part or "" for part in parts)) and None in parts
    ]  # fmt: skip
    return strings, words, keys, names


@functools.cache
def is_made(text: str) -> bool:
    """Whether the code knows the word, or puts it together, as in `{who}_{metric}`."""
    _, words, _, names = code()
    return text in words or any(fits(text, parts, is_plain) for parts in names)


def is_plain(text: str) -> bool:
    return text in code()[1] and not text.isdigit()


def fits(text: str, parts: Pattern, is_known: Callable[[str], bool]) -> bool:
    """Whether the text is the pattern with a known word in each hole."""
    if not parts:
        return not text
    first, rest = parts[0], parts[1:]
    if first is not None:
        return text.startswith(first) and fits(text[len(first) :], rest, is_known)
    ends = range(len(text) + 1) if rest else (len(text),)
    return any(fits(text[end:], rest, is_known) and is_known(text[:end]) for end in ends)


def is_used(key: str) -> bool:
    strings, _, keys, _ = code()
    if key in strings:
        return True
    section = key.partition(".")[0] + "."
    if any(fits(key, parts, is_made) for parts in keys if (parts[0] or "").startswith(section)):
        return True
    # `say(key + "_each")` and the like: a literal that goes on with another.
    ends = range(len(section) + 1, len(key))
    return any(key[:end] in strings and key[end:] in strings for end in ends)


def test_every_sentence_is_said_somewhere():
    assert [key for key in templates(DEFAULT) if not is_used(key)] == []


def test_a_dead_sentence_would_be_found():
    assert not is_used("page.nobody_says_this")
    assert not is_used("doctor.link_999_next")
    assert not is_used("field.no_such_field")
    assert is_used("doctor.link_016_next")


def test_every_field_has_a_help_text_and_no_help_is_left_over():
    fields, helps = (
        {key.partition(".")[2] for key in templates(DEFAULT) if key.startswith(section)}
        for section in ("field.", "help.")
    )
    without = {"upload"}  # says it all in its label
    assert fields - without == helps


# How a language is chosen.


@pytest.fixture
def quiet_process() -> Iterator[None]:
    yield
    speak(DEFAULT)


@pytest.mark.parametrize(
    ("environment", "language"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
        ({"LC_ALL": "C.UTF-8", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LC_ALL": "", "LANG": "zh_TW"}, "zh"),
        ({VARIABLE: "zh", "LANG": "en_US.UTF-8"}, "zh"),
        ({VARIABLE: "ZH-cn"}, "zh"),
        ({VARIABLE: "en", "LC_ALL": "zh_CN.UTF-8"}, "en"),
    ],
)
def test_the_variable_comes_first_then_the_locale(environment, language):
    assert language_of(environment) == (language, None)


def test_an_unknown_language_is_said_and_english_is_spoken():
    language, complaint = language_of({VARIABLE: "tlh", "LANG": "zh_CN"})
    assert language == "en"
    assert complaint is not None
    assert VARIABLE in complaint
    assert "tlh" in complaint
    assert "zh" in complaint


def test_a_tag_that_is_no_language_is_none():
    assert nearest_language("../../etc/passwd") is None
    assert nearest_language("") is None
    with pytest.raises(ValueError, match="no language"), speaking("xx"):
        pass


def test_a_context_speaks_for_itself(quiet_process):
    assert say("state.failed") == "failed"
    with speaking("zh"):
        assert say("state.failed") == "失败"
        assert say("state.failed", "en") == "failed"
        with speaking("en"):
            assert say("state.failed") == "failed"
        assert spoken() == "zh"
    assert spoken() == "en"
    speak("zh")
    assert say("state.failed") == "失败"


def test_a_thread_speaks_the_language_it_was_started_in(quiet_process):
    said = []

    def work() -> None:
        said.append(say("state.failed"))

    with speaking("zh"):
        for target in (work, in_this_language(work)):
            thread = threading.Thread(target=target)
            thread.start()
            thread.join()
    assert said == ["failed", "失败"]


def test_a_sentence_that_a_language_lacks_is_said_in_english(monkeypatch):
    assert catalogue("zh").keys() >= templates(DEFAULT).keys()
    assert translated("evidence.step", "step") == "step"
    with speaking("zh"):
        assert translated("evidence.step", "step") == "一步"
        assert translated("evidence.nothing of that name", "as it is") == "as it is"


def test_the_english_of_what_was_said_is_known():
    with speaking("zh"), remembering() as english:
        inner = say("machine.cores_run", need=4, cores=2)
        outer = say("doctor.machine_005", what=inner)
        nested = say("shelf.live", run="amber-fox", state=say("state.running"))
        assert english(nested) == "amber-fox is not over (running): stop it first, then delete it."
        assert english(outer) == say("machine.cores_run", "en", need=4, cores=2)
        assert english("as typed") == "as typed"
