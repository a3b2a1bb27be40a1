"""Sentences of files, told again in another language: the whole of them, or as they are."""

from __future__ import annotations

import re
import string

import pytest

from ringside.launch.blame import place, waiting_sentence
from ringside.marks import ACTIVITIES, PHASES, Mark
from ringside.words import languages, say, speaking, templates
from ringside.words.retelling import RETOLD, retold

SECTIONS = ("ended", "rank_error", "place", "noted", "refused")
VALUES = {
    "where": "at step 41", "there": "in the exchange after step 42",
    "who": "Rank 1", "others": "ranks 0 and 2", "names": "0, 1", "last": "3", "rank": 1,
    "other": 2, "sentence": "The disk is full. Free some space in the runs folder.",
    "processes": "2 processes (pid 12, 13)",
    "why": "The machine was restarted while it ran", "pids": "12, 13", "signal": "SIGKILL",
}  # fmt: skip
ENGLISH = re.compile(r"(?<![\w./`-])[A-Za-z]{3,}(?![\w./_-])")
NAMES = {
    "rank", "pid", "SIGKILL", "SystemExit", "BatchNorm", "GPU", "trace", "NCCL", "Ringside", "timm",
    "Hub", "ResNet", "decoder", "gpu", "cpu", "freeze", "backbone", "FSDP", "shell", "PowerSGD",
    "ddp", "weights", "accuracy",
}  # fmt: skip


def sentences() -> dict[str, tuple[str, str]]:
    """By key the English of every template and what it has to become, with the values above."""
    found = {}
    for key, template in templates("en").items():
        if key.partition(".")[0] in SECTIONS:
            names = [name for _, name, _, _ in string.Formatter().parse(template) if name]
            values = {name: VALUES.get(name, 7) for name in names}
            if key == "ended.exchange":
                values["where"] = "after step 42"
            chinese = {
                name: retold(value, "zh") if name in RETOLD else value
                for name, value in values.items()
            }
            found[key] = (say(key, "en", **values), say(key, "zh", **chinese))
    return found


@pytest.mark.parametrize("key", sentences())
def test_every_sentence_about_an_end_is_found_again(key):
    english, chinese = sentences()[key]
    assert retold(english, "zh") == chinese
    words = re.sub("`.*?`", "", chinese)
    assert not set(ENGLISH.findall(words)) - NAMES, chinese


def test_values_that_are_sentences_are_told_again_too():
    text = "Rank 1: The disk is full. Free some space in the runs folder."
    assert retold(text, "zh") == "rank 1：磁盘已满。请在运行文件夹所在的磁盘上腾出空间。"
    assert retold("Rank 1: KeyError: 'red'", "zh") == "rank 1：KeyError: 'red'"


@pytest.mark.parametrize(
    "text",
    [
        "Something else went wrong.", "", "KeyError: 'red'", "{", "Rank", "a, b and c", "." * 600,
        "ValueError: mode must be str, not int.", "AssertionError: batch is empty.",
    ],
)  # fmt: skip
def test_what_matches_nothing_stays_as_it_is(text):
    """What a library says is matched with nothing, however like one of ours it reads."""
    assert retold(text, "zh") == text
    assert retold(f"Rank 1: {text}" if text else text, "zh").endswith(text)


def test_a_person_s_own_word_stays_though_the_catalogue_has_it():
    folder = say("noted.fresh_head", "en", source="environment", reason="fits nothing")
    assert "environment" in retold(folder, "zh")


def test_english_stays_english():
    with speaking("en"):
        assert retold("Completed.") == "Completed."
    with speaking("zh"):
        assert retold("Completed.") == "已完成。"


def marks():
    for phase in PHASES:
        for activity in ACTIVITIES:
            yield Mark(
                rank=0, pid=1, phase=phase, activity=activity, epoch=2, step=41, batch=1, t=1
            )


@pytest.mark.parametrize("mark", marks(), ids=lambda mark: f"{mark.phase}-{mark.activity}")
@pytest.mark.parametrize("language", languages())
def test_who_waited_reads_the_same_said_or_told_again(mark, language):
    """Once from a file, and once by a page that has the marks themselves."""
    behind = Mark(rank=1, pid=1, phase="train", activity="data", epoch=1, step=2, batch=1, t=1.0)
    english = waiting_sentence((mark, behind), 9.0)
    with speaking(language):
        assert retold(english) == waiting_sentence((mark, behind), 9.0)
        assert place(mark) in retold(english)
