"""The one reader and writer of YAML: strict, safe, and able to say which line is wrong.

Scalars follow YAML 1.2's core schema, because that is what people mean: `no` is the word "no",
`1e-3` is a number. Duplicate keys, tags, anchors, deep nesting and large files are refused, so a
file from a stranger can neither run code nor fill the memory.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ringside.errors import PresetError, nearest
from ringside.words import say

T = TypeVar("T")

MAX_BYTES = 2**20
MAX_DEPTH = 12
MAX_NODES = 20_000
MAX_INT = 2**63 - 1

_NULL = re.compile(r"~|null|Null|NULL|")
_BOOL = re.compile(r"(true|True|TRUE)|false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_UNKNOWN_FIELD = re.compile(r"unknown field `(?P<field>[^`]*)`")
_BAD_CHOICE = "Invalid enum value "
_NOT_TEXT = re.compile(r"Expected `str`, got `(int|float|bool|null)`")
_AT_PATH = re.compile(r" - at `(?P<path>[^`]*)`$")

# What msgspec says of a value that is none of its type, and of a key that is not there.
_MSGSPEC = (
    (re.compile(r"Expected `(?P<wanted>[^`]*)`, got `(?P<got>[^`]*)`"), "yaml.expected"),
    (
        re.compile(r"Expected `(?P<wanted>[^`]*)` of length (?P<limit>[<>= \d]+)"),
        "yaml.expected_length",
    ),
    (re.compile(r"Expected `(?P<wanted>[^`]*)` (?P<limit>[<>=]+ [-\d.]+)"), "yaml.expected_limit"),
    (re.compile(r"Object missing required field `(?P<name>[^`]*)`"), "yaml.lacks"),
)

Path_ = tuple[str | int, ...]


class FaultError(PresetError):
    """A fault in the text of a file: `reason` without the place, and the line where it is known."""

    def __init__(self, sentence: str, *, reason: str, line: int | None = None) -> None:
        super().__init__(sentence)
        self.reason, self.line = reason, line


class Document:
    """A parsed file: `value` as plain Python objects, and the line of every key and item.

    `quoted` tells which scalars stand in quotes: a bare `no` is false for readers of YAML 1.1.
    """

    def __init__(
        self,
        value: Any,
        lines: dict[Path_, int],
        origin: str,
        quoted: frozenset[Path_] = frozenset(),
    ) -> None:
        self.value = value
        self.lines = lines
        self.origin = origin
        self.quoted = quoted

    def convert(self, kind: type[T]) -> T:
        """Convert to a msgspec type; raises PresetError with file, line, key and the mend."""
        try:
            return msgspec.convert(self.value, kind)
        except msgspec.ValidationError as error:
            raise self._fault(str(error), kind) from None

    def _fault(self, message: str, kind: type[Any]) -> FaultError:
        match = _AT_PATH.search(message)
        path = _parse_path(match["path"]) if match else ()
        reason = message[: match.start()] if match else message
        if unknown := _UNKNOWN_FIELD.search(reason):
            path = (*path, unknown["field"])
            hint = nearest(unknown["field"], _fields_at(kind, path[:-1]))
            reason = say("yaml.unknown_key", hint=hint)
        elif choices := reason.startswith(_BAD_CHOICE) and _choices_at(kind, path):
            value = reason.removeprefix(_BAD_CHOICE)
            reason = say("yaml.unknown_value", value=value, choices=", ".join(choices))
        elif _NOT_TEXT.fullmatch(reason):
            reason = say("yaml.in_quotes", reason=_told(reason))
        if not path:
            return fault(self.origin, _told(reason))
        line = self.lines.get(path) or self.lines.get(path[:-1])
        where = ".".join(map(str, path))
        return fault(self.origin, say("yaml.at_key", path=where, reason=_told(reason)), line)


def read_bytes(path: Path) -> bytes:
    """At most 1 MiB (and one byte more, so that the parser can refuse the rest)."""
    try:
        with path.open("rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise PresetError(say("yaml.unreadable", path=path, why=error.strerror)) from None


def fault(origin: str, reason: str, line: int | None = None) -> FaultError:
    if line is None:
        return FaultError(say("yaml.in_file", origin=origin, reason=reason), reason=reason)
    sentence = say("yaml.at_line", origin=origin, line=line, reason=reason)
    return FaultError(sentence, reason=reason, line=line)


def _told(reason: str) -> str:
    """What msgspec (0.21) says of a value, as far as its sentences are known."""
    for pattern, key in _MSGSPEC:
        if match := pattern.fullmatch(reason):
            return say(key, **match.groupdict())
    return reason


def load_text(data: bytes | str, *, origin: str) -> Document:
    """Parse YAML text; `origin` names it in messages."""
    import yaml

    text = _decode(data, origin)
    try:
        root = yaml.compose(text, Loader=_strict_loader(origin))
    except yaml.MarkedYAMLError as error:
        reason = say("yaml.of_library", words=_yaml_reason(error, text))
        raise fault(origin, reason, _line_of(error)) from None
    except yaml.YAMLError as error:
        reason = say("yaml.of_library", words=" ".join(str(error).split()))
        raise fault(origin, reason) from None
    if root is None:
        raise fault(origin, say("yaml.empty"))
    lines: dict[Path_, int] = {}
    value = _build(root, (), lines, origin)
    return Document(value, lines, origin, frozenset(_quoted(root, ())))


def dump(value: Any) -> str:
    """Plain YAML of nested dicts, strings always quoted, so that every reader sees the same."""
    import yaml

    class Quoting(yaml.SafeDumper):
        def ignore_aliases(self, _: Any) -> bool:
            return True

    def quoted(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')

    def key_plain(dumper: yaml.SafeDumper, mapping: dict[str, Any]) -> yaml.MappingNode:
        node = dumper.represent_mapping("tag:yaml.org,2002:map", mapping.items())
        for key, _ in node.value:
            key.style = None if key.value.isidentifier() else '"'
        return node

    Quoting.add_representer(str, quoted)
    Quoting.add_representer(dict, key_plain)
    text: str = yaml.dump(value, Dumper=Quoting, sort_keys=False, width=96, allow_unicode=True)
    return text


def _decode(data: bytes | str, origin: str) -> str:
    if len(data) > MAX_BYTES:
        raise fault(origin, say("yaml.too_large", limit=MAX_BYTES // 2**20))
    if isinstance(data, str):
        return data.removeprefix("\ufeff")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise fault(origin, say("yaml.utf_16"))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise fault(origin, say("yaml.no_text", byte=error.start)) from None


def _line_of(error: Any) -> int | None:
    mark = error.problem_mark or error.context_mark
    return mark.line + 1 if mark else None


def _yaml_reason(error: Any, text: str) -> str:
    mark = error.problem_mark
    if mark and "\t" in text.splitlines()[min(mark.line, len(text.splitlines()) - 1)]:
        return say("yaml.tab")
    return ", ".join(" ".join(part.split()) for part in (error.context, error.problem) if part)


def _strict_loader(origin: str) -> Any:
    """A loader that refuses what could run code or fill the memory, before it is composed."""
    import yaml

    class Strict(yaml.SafeLoader):
        depth = 0
        num_nodes = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            event: Any = self.peek_event()  # type: ignore[no-untyped-call]
            line = event.start_mark.line + 1
            if isinstance(event, yaml.AliasEvent) or event.anchor:
                raise fault(origin, say("yaml.anchor"), line)
            if event.tag:
                raise fault(origin, say("yaml.tag", tag=event.tag), line)
            if self.depth > MAX_DEPTH:
                raise fault(origin, say("yaml.too_deep", limit=MAX_DEPTH), line)
            self.num_nodes += 1
            if self.num_nodes > MAX_NODES:
                raise fault(origin, say("yaml.too_many", limit=MAX_NODES), line)
            self.depth += 1
            node = super().compose_node(parent, index)
            self.depth -= 1
            return node

    return Strict


def _build(node: Any, path: Path_, lines: dict[Path_, int], origin: str) -> Any:
    import yaml

    line = node.start_mark.line + 1
    lines.setdefault(path, line)
    if isinstance(node, yaml.ScalarNode):
        try:
            return node.value if node.style else _scalar(node.value)
        except (ValueError, OverflowError):
            reason = say("yaml.too_large_number", text=node.value[:20])
            raise fault(origin, reason, line) from None
    if isinstance(node, yaml.SequenceNode):
        return [_build(item, (*path, i), lines, origin) for i, item in enumerate(node.value)]
    return _build_mapping(node, path, lines, origin)


def _build_mapping(node: Any, path: Path_, lines: dict[Path_, int], origin: str) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        key = key_node.value
        if not isinstance(key, str):
            raise fault(origin, say("yaml.no_word"), line)
        if key in mapping:
            first = lines[(*path, key)]
            raise fault(origin, say("yaml.key_twice", name=key, first=first), line)
        lines[(*path, key)] = line
        mapping[key] = _build(value_node, (*path, key), lines, origin)
    return mapping


def _quoted(node: Any, path: Path_) -> Iterator[Path_]:
    """Where scalars stand in quotes or in a block."""
    import yaml

    if isinstance(node, yaml.ScalarNode):
        if node.style:
            yield path
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _quoted(item, (*path, index))
    else:
        for key, value in node.value:
            yield from _quoted(value, (*path, key.value))


def _scalar(text: str) -> Any:
    """Resolve a plain scalar by YAML 1.2's core schema (yaml.org/spec/1.2.2, 10.3.2)."""
    if _NULL.fullmatch(text):
        return None
    if match := _BOOL.fullmatch(text):
        return bool(match[1])
    if _INT.fullmatch(text):
        return _within(int(text, 0) if text[:2] in ("0o", "0x") else int(text), MAX_INT)
    if _FLOAT.fullmatch(text):
        return _within(float(text), math.nextafter(math.inf, 0))
    return text


def _within(number: float, limit: float) -> float:
    """The number, or OverflowError: `1e999` would be infinite and reach a learning rate."""
    if abs(number) > limit:
        raise OverflowError
    return number


def _parse_path(path: str) -> Path_:
    parts = re.findall(r"\.([^.\[\]]+)|\[(\d+)\]", path)
    return tuple(name or int(index) for name, index in parts)


def _fields_at(kind: type[Any], path: Path_) -> list[str]:
    """The field names of the struct that `path` leads to inside `kind`."""
    structs = (t for t in _types_at(kind, path) if isinstance(t, msgspec.inspect.StructType))
    return [field.encode_name for info in structs for field in info.fields]


def _choices_at(kind: type[Any], path: Path_) -> list[str]:
    """The values that are allowed where `path` leads to inside `kind`."""
    literals = (t for t in _types_at(kind, path) if isinstance(t, msgspec.inspect.LiteralType))
    return [str(value) for info in literals for value in info.values]


def _types_at(kind: type[Any], path: Path_) -> list[msgspec.inspect.Type]:
    """The types of the value that `path` leads to; several where a union leaves the choice."""
    types = _members(msgspec.inspect.type_info(kind))
    for part in path:
        types = [t for outer in types for inner in _inner(outer, part) for t in _members(inner)]
    return types


def _members(info: msgspec.inspect.Type) -> list[msgspec.inspect.Type]:
    return list(info.types) if isinstance(info, msgspec.inspect.UnionType) else [info]


def _inner(info: msgspec.inspect.Type, part: str | int) -> Iterator[msgspec.inspect.Type]:
    if isinstance(info, msgspec.inspect.StructType):
        yield from (field.type for field in info.fields if field.encode_name == part)
    elif isinstance(info, msgspec.inspect.CollectionType):
        yield info.item_type
