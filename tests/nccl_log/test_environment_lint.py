"""Variables that are set: what each does, and which of them are a handicap or forgotten."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import msgspec
import pytest

from ringside import environment_lint
from ringside.environment_lint import PREFIXES, in_words, lint, table
from ringside.words import DEFAULT, languages, remembering, speaking

FOLDER = Path(environment_lint.__file__).parent
ROWS = tomllib.loads((FOLDER / "variables.toml").read_text())
OTHERS = [language for language in languages() if language != DEFAULT]
CJK = re.compile(r"[\u4e00-\u9fff]")
KEPT = re.compile(
    r"`[^`]*`|[\w~]*/[\w./~-]*\w|--[\w-]+|[%=^]\w+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|\d+(?:\.\d+)?"
    r"|\b[A-Z]\w*[A-Z0-9]\w*",
    re.ASCII,
)
"""What is typed, names, figures, and terms that are the same in every language."""


@pytest.mark.parametrize(
    ("name", "value", "level"),
    [
        ("NCCL_P2P_DISABLE", "1", "handicap"),
        ("NCCL_P2P_DISABLE", "0", "setting"),
        ("NCCL_SHM_DISABLE", "1", "handicap"),
        ("NCCL_IB_DISABLE", "1", "handicap"),
        ("NCCL_P2P_LEVEL", "LOC", "handicap"),
        ("NCCL_P2P_LEVEL", "SYS", "leftover"),
        ("NCCL_ALGO", "Tree", "handicap"),
        ("NCCL_ALGO", "Ring", "handicap"),
        ("NCCL_PROTO", "LL128", "handicap"),
        ("NCCL_NET", "Socket", "handicap"),
        ("NCCL_NET", "IB", "setting"),
        ("NCCL_DEBUG", "info", "leftover"),
        ("NCCL_DEBUG", "WARN", "setting"),
        ("NCCL_MIN_NCHANNELS", "4", "leftover"),
        ("NCCL_SOCKET_IFNAME", "eth0", "setting"),
        ("NCCL_SOCKET_NTHREADS", "2", "setting"),
        ("NCCL_IB_PKEY", "1", "setting"),
        ("CUDA_LAUNCH_BLOCKING", "1", "handicap"),
        ("CUDA_LAUNCH_BLOCKING", "0", "setting"),
        ("CUDA_VISIBLE_DEVICES", "", "handicap"),
        ("CUDA_VISIBLE_DEVICES", "0,1", "setting"),
        ("TORCH_DISTRIBUTED_DEBUG", "DETAIL", "handicap"),
        ("TORCH_DISTRIBUTED_DEBUG", "OFF", "setting"),
        ("TORCH_NCCL_BLOCKING_WAIT", "1", "handicap"),
        ("TORCH_NCCL_TRACE_BUFFER_SIZE", "2000", "leftover"),
        ("OMP_NUM_THREADS", "1", "leftover"),
        ("OMP_NUM_THREADS", "8", "setting"),
        ("GLOO_SOCKET_IFNAME", "lo", "setting"),
        ("NCCL_NO_SUCH_VARIABLE_OF_ANYONE", "1", "unknown"),
    ],
)
def test_levels(name, value, level):
    (finding,) = lint({name: value})
    assert (finding.name, finding.value, finding.level) == (name, value, level)
    assert finding.about
    assert finding.sentence.startswith(f"{name}={value}: ")
    if level in ("handicap", "leftover"):
        assert finding.why


def test_older_names_lead_to_the_new_ones():
    (finding,) = lint({"NCCL_MIN_NCHANNELS": "4"})
    assert "NCCL_MIN_CTAS" in finding.why


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("NCCL_P2P_DISABEL", "NCCL_P2P_DISABLE"),
        ("NCCL_SOCKET_IFNAMES", "NCCL_SOCKET_IFNAME"),
        ("OMP_NUM_THREAD", "OMP_NUM_THREADS"),
        ("TORCH_DISTRIBUTED_DEBUGS", "TORCH_DISTRIBUTED_DEBUG"),
    ],
)
def test_a_misspelt_name_is_met_with_the_nearest(name, meant):
    (finding,) = lint({name: "1"})
    assert (finding.level, finding.nearest) == ("unknown", meant)
    assert f"Is {meant} meant?" in finding.sentence


def test_other_variables_are_left_alone_and_the_worst_comes_first():
    found = lint(
        {"HOME": "/root", "ZCCL_ALGO": "x", "NCCL_DEBUG": "INFO", "GLOO_SOCKET_IFNAME": "eth0",
         "NCCL_XYZZY_QUUX": "1", "NCCL_SHM_DISABLE": "1", "CUDA_LAUNCH_BLOCKING": "1"}
    )  # fmt: skip
    assert [finding.level for finding in found] == [
        "handicap", "handicap", "leftover", "unknown", "setting",
    ]  # fmt: skip
    assert lint({}) == ()


def test_every_row_has_a_source_and_a_sentence_that_ends():
    """A row that is misread would speak for another value, so the table is read strictly."""
    assert len(table()) > 250
    for name, row in table().items():
        assert row.sources, name
        assert all(source.startswith("http") or "measured" in source for source in row.sources)
        assert row.about.endswith("."), name
        assert all(rule.why.endswith(".") for rule in row.rules), name
        assert row.successor is None or row.successor in table()


def test_no_name_stands_twice_and_all_are_of_the_families():
    further = ROWS["known"]["names"].split()
    rows = [name for name in ROWS if name not in ("sources", "known")]
    assert len(set(further + rows)) == len(further + rows)
    others = {"PYTORCH_NO_CUDA_MEMORY_CACHING", "TORCHDYNAMO_DISABLE", "CUDACXX"}
    assert {name for name in rows + further if not name.startswith(PREFIXES)} == others


# The same sentences in other languages.


def rows_of(language):
    return tomllib.loads((FOLDER / f"variables.{language}.toml").read_text(encoding="utf-8"))


def kept(text):
    """`GPU memory` has a word of its own in Chinese, and there is no plural."""
    text = text.replace("GPU memory", "memory").replace("NVSwitches", "NVSwitch")
    return {re.sub(r"(?<=[A-Z0-9])s$", "", term) for term in KEPT.findall(text)}


@pytest.mark.parametrize("language", OTHERS)
def test_every_variable_is_told_in_every_language(language):
    own = rows_of(language)
    assert own.keys() == ROWS.keys() - {"sources"}
    for name, row in own.items():
        english = [ROWS[name]["about"], *(rule["why"] for rule in ROWS[name].get("rules", ()))]
        sentences = [row["about"], *row.get("why", ())]
        assert len(sentences) == len(english), name
        for text, meant in zip(sentences, english, strict=True):
            assert kept(meant) <= kept(text), name
            assert kept(text) - kept(meant) <= {"CPU"}, name


def test_the_chinese_is_chinese():
    for name, row in rows_of("zh").items():
        for text in (row["about"], *row.get("why", ())):
            assert CJK.search(text), name
            assert text.endswith("。"), name
            assert not re.search("[\u4e00-\u9fff][,;:!?.]|[,;!?][\u4e00-\u9fff]", text), name


def test_a_finding_is_data_in_english_and_told_in_the_language_that_is_spoken():
    environment = {
        "NCCL_P2P_LEVEL": "LOC", "NCCL_MIN_NCHANNELS": "4", "NCCL_IB_PKEY": "1",
        "NCCL_DEBUG": "WARN", "NCCL_P2P_DISABEL": "1",
    }  # fmt: skip
    english = lint(environment)
    with speaking("zh"):
        found = lint(environment)
        own = {one.name: in_words(one) for one in found}
    assert found == english
    assert not CJK.search(json.dumps(msgspec.to_builtins(found), ensure_ascii=False))
    words = rows_of("zh")
    assert own["NCCL_P2P_LEVEL"].about == words["NCCL_P2P_LEVEL"]["about"]
    assert own["NCCL_P2P_LEVEL"].why == words["NCCL_P2P_LEVEL"]["why"][0]
    assert own["NCCL_MIN_NCHANNELS"].why == "请改用 NCCL_MIN_CTAS。"
    assert own["NCCL_IB_PKEY"].about == words["known"]["about"]
    assert (own["NCCL_DEBUG"].about, own["NCCL_DEBUG"].why) == (words["NCCL_DEBUG"]["about"], None)
    assert own["NCCL_P2P_DISABEL"].why == "是不是想写 NCCL_P2P_DISABLE？"
    assert {one.name: (one.level, one.nearest) for one in own.values()} == {
        one.name: (one.level, one.nearest) for one in english
    }
    assert [in_words(one) for one in english] == list(english)


def test_the_english_of_a_told_variable_is_found_again():
    """A refusal that quotes it is told in Chinese and logged in English."""
    (finding,) = lint({"NCCL_ALGO": "Ring"})
    english = finding.sentence
    with speaking("zh"), remembering() as retold:
        sentence, about = finding.sentence, in_words(finding).about
        assert sentence.startswith("NCCL_ALGO=Ring：强制")
        assert retold(f"{sentence} {sentence}") == f"{english} {english}"
        assert retold(about) == finding.about
