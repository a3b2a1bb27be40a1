"""Files from strangers: refused in one sentence with the line, never executed, never slow."""

from __future__ import annotations

import json
import time
from typing import Literal

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ringside.errors import PresetError
from ringside.yaml_text import MAX_BYTES, MAX_DEPTH, MAX_NODES, dump, load_text


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    learning_rate: float = 0.1
    comm_hook: Literal["no", "fp16"] = "no"
    names: tuple[str, ...] = ()


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    title: str = ""
    inner: Inner | None = None
    table: dict[str, str] = {}


def load(text: bytes | str) -> object:
    return load_text(text, origin="x.yaml").value


def refusal(text: bytes | str, kind: type | None = None) -> str:
    """The sentence with which the text is refused; one line and no Python in it."""
    with pytest.raises(PresetError) as caught:
        load_text(text, origin="x.yaml").convert(kind or object)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert "Traceback" not in sentence
    return sentence


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("off", "off"),
        ("yes", "yes"),
        ("1e-3", 0.001),
        ("1.5E+2", 150.0),
        (".5", 0.5),
        ("-7", -7),
        ("0o17", 15),
        ("0x1F", 31),
        ("010", 10),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("2026-01-02", "2026-01-02"),
        ("true", True),
        ("FALSE", False),
        ("~", None),
        ("null", None),
        ('"1e-3"', "1e-3"),
        ("'true'", "true"),
        ("9223372036854775807", 2**63 - 1),
    ],
)
def test_scalars_are_what_people_mean(text, value):
    """YAML 1.1 would turn `no` into False, `1e-3` into text and 12:30 into 750."""
    loaded = load(f"key: {text}")["key"]
    assert loaded == value
    assert type(loaded) is type(value)


@pytest.mark.parametrize("text", ["1e999", "-1e400", "9" * 30, "9" * 5000])
def test_a_number_that_no_computer_word_holds_is_refused_with_its_line(text):
    """`1e999` would become an infinite learning rate."""
    assert refusal(f"a: 1\nb: {text}").startswith("x.yaml, line 2: the number ")


@pytest.mark.parametrize("prefix", [b"\xef\xbb\xbf", b""])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_files_of_windows_editors_are_read(prefix, end):
    text = prefix + end.join([b"a: 1", b"b:", b"  c: \xc3\xa4", b""])
    assert load(text) == {"a": 1, "b": {"c": "ä"}}


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_refused(codec):
    sentence = refusal("a: 1".encode(codec))
    assert sentence.startswith("x.yaml")
    if codec == "utf-16":
        assert "save it as UTF-8" in sentence


def test_bytes_that_are_no_text_are_refused():
    assert "not UTF-8" in refusal(b"a: \xff\xff")


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_refused(text):
    assert refusal(text) == "x.yaml: the file is empty."


def test_a_tab_is_named_with_its_line():
    sentence = refusal("a: 1\nb:\n\tc: 2\n")
    assert sentence.startswith("x.yaml, line 3:")
    assert "tab" in sentence


def test_a_duplicate_key_names_both_lines():
    sentence = refusal("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\n")
    assert "line 5" in sentence
    assert "line 3" in sentence
    assert "'c'" in sentence


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: [1, 2\nb: 3\n", 2),
        ("a: 1\n b: 2\n", 2),
        ("a: 1\n---\nb: 2\n", 2),
        ('a: "open\n', 2),
        ("a: 1\n? [x, y]\n: 2\n", 2),
    ],
)
def test_broken_text_is_refused_with_its_line(text, line):
    assert refusal(text).startswith(f"x.yaml, line {line}: ")


@pytest.mark.parametrize(
    "tag",
    [
        "!!python/object/apply:os.system",
        "!!python/object/new:os.system",
        "!!python/name:os.system",
        "!!int",
        "!!str",
        "!local",
        "!",
    ],
)
def test_tags_are_refused_and_nothing_is_executed(tag, tmp_path):
    marker = tmp_path / "marker"
    sentence = refusal(f"a: 1\nb: {tag} ['touch {marker}']\n")
    assert sentence.startswith("x.yaml, line 2: the tag ")
    assert not marker.exists()


def test_an_unsafe_loader_would_have_executed_that_text(tmp_path):
    """The text above is a real attack, so the test before can fail."""
    marker = tmp_path / "marker"
    yaml.unsafe_load(f"b: !!python/object/apply:os.system ['touch {marker}']\n")
    assert marker.exists()


def test_a_billion_laughs_are_answered_at_once():
    text = "a: &a [x, x, x, x, x, x, x, x, x]\n"
    for name, before in zip("bcdefghi", "abcdefgh", strict=True):
        text += f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    begin = time.perf_counter()
    assert refusal(text).startswith("x.yaml, line 1: anchors")
    assert time.perf_counter() - begin < 1.0


def test_an_alias_is_refused_with_its_line():
    assert refusal("a: 1\nb: *a\n").startswith("x.yaml, line 2: anchors and aliases")


@pytest.mark.parametrize("piece", ["[", "{a: ", "- "])
def test_deep_nesting_is_answered_at_once(piece):
    begin = time.perf_counter()
    assert f"nested deeper than {MAX_DEPTH} levels" in refusal(piece * 50_000)
    assert time.perf_counter() - begin < 2.0


def test_depth_is_allowed_up_to_the_limit():
    value = 1
    for _ in range(MAX_DEPTH):
        value = {"a": value}
    assert load(dump(value)) == value
    assert "nested deeper" in refusal(dump({"a": value}))


def test_many_values_are_refused_before_they_are_built():
    assert f"line {MAX_NODES}: more than {MAX_NODES} values" in refusal("- 1\n" * 2 * MAX_NODES)
    assert len(load("- 1\n" * (MAX_NODES - 1))) == MAX_NODES - 1


def test_a_large_file_is_refused_unread():
    assert "larger than 1 MiB" in refusal(b"#" * (MAX_BYTES + 1))
    assert load(b"a: 1 #" + b"x" * (MAX_BYTES - 6)) == {"a": 1}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("title: t\ninner:\n  learning_rte: 1\n", ["line 3", "inner", "'learning_rate'"]),
        ("titlle: t\n", ["line 1", "titlle", "unknown key", "'title'"]),
        ("title: t\ninner:\n  learning_rate: fast\n", ["line 3", "inner.learning_rate", "float"]),
        ("title: t\ninner:\n  comm_hook: off\n", ["line 3", "'off'", "no", "fp16"]),
        ("title: t\ninner:\n  names: [a, 1]\n", ["line 3", "inner.names.1", "quotes"]),
        ("title: t\n\ntable: {A: 4}\n", ["line 3", "table", "quotes"]),
        ("[1]\n", ["x.yaml:", "object"]),
    ],
)
def test_a_wrong_value_is_named_with_line_and_path(text, parts):
    sentence = refusal(text, Outer)
    assert [part for part in parts if part not in sentence] == []


def test_the_mend_that_a_refusal_offers_is_accepted():
    good = "title: t\ninner:\n  learning_rate: 1e-3\n  comm_hook: no\n  names: [a]\n"
    assert load_text(good, origin="x").convert(Outer) == Outer("t", Inner(0.001, "no", ("a",)))


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(1 - 2**63, 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(min_size=1), PLAIN, max_size=5))
def test_what_is_written_reads_back_everywhere(value):
    """The same value for PyYAML, which Accelerate uses, and for Ringside's own reader."""
    text = dump(value)
    assert yaml.safe_load(text) == value
    if value:
        assert json.dumps(load(text)) == json.dumps(value)


def test_a_value_used_twice_is_written_twice():
    """Anchors would be refused by the reader."""
    shared = {"a": [1]}
    text = dump({"x": shared, "y": shared})
    assert load(text) == {"x": shared, "y": shared}
