"""The one reader and writer of YAML: strict, safe, and able to say which line is wrong.

Scalars follow YAML 1.2's core schema, because that is what people mean: `no` is the word "no",
`1e-3` is a number. Duplicate keys, tags, anchors, deep nesting and large files are refused, so a
file from a stranger can neither run code nor fill the memory.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ringside.errors import PresetError, nearest

T = TypeVar("T")

MAX_BYTES = 256 * 1024
MAX_DEPTH = 12

_NULL = re.compile(r"~|null|Null|NULL|")
_BOOL = re.compile(r"(true|True|TRUE)|false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_UNKNOWN_FIELD = re.compile(r"unknown field `(?P<field>[^`]*)`")
_AT_PATH = re.compile(r" - at `(?P<path>[^`]*)`$")

Path_ = tuple[str | int, ...]


class Document:
    """A parsed file: `value` as plain Python objects, and the line of every key and item."""

    def __init__(self, value: Any, lines: dict[Path_, int], origin: str) -> None:
        self.value = value
        self.lines = lines
        self.origin = origin

    def convert(self, kind: type[T]) -> T:
        """Convert to a msgspec type; raises PresetError with file, line, key and the mend."""
        try:
            return msgspec.convert(self.value, kind)
        except msgspec.ValidationError as error:
            raise PresetError(self._explain(str(error), kind)) from None

    def _explain(self, message: str, kind: type[Any]) -> str:
        match = _AT_PATH.search(message)
        path = _parse_path(match["path"]) if match else ()
        reason = message[: match.start()] if match else message
        unknown = _UNKNOWN_FIELD.search(reason)
        if unknown:
            path = (*path, unknown["field"])
            reason = f"unknown key. {nearest(unknown['field'], _fields_at(kind, path[:-1]))}"
        where = ".".join(str(part) for part in path) or "the file"
        line = self.lines.get(path) or self.lines.get(path[:-1])
        at = f", line {line}" if line else ""
        return f"{self.origin}{at}: {where}: {reason}"


def read_bytes(path: Path) -> bytes:
    """At most 256 KiB (and one byte more, so that the parser can refuse the rest)."""
    try:
        with path.open("rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise PresetError(f"{path} cannot be read: {error.strerror}.") from None


def load_text(data: bytes | str, *, origin: str) -> Document:
    """Parse YAML text; `origin` names it in messages."""
    import yaml

    text = _decode(data, origin)
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        raise PresetError(f"{origin}{_at(error)}: {_yaml_reason(error, text)}.") from None
    except yaml.YAMLError as error:
        raise PresetError(f"{origin}: {error}.".replace("\n", " ")) from None
    except RecursionError:
        raise PresetError(f"{origin}: nested deeper than {MAX_DEPTH} levels.") from None
    if root is None:
        raise PresetError(f"{origin}: the file is empty.")
    _refuse_aliases(text, origin)
    lines: dict[Path_, int] = {}
    return Document(_build(root, (), lines, origin), lines, origin)


def dump(value: Any) -> str:
    """Plain YAML of nested dicts, strings always quoted, so that every reader sees the same."""
    import yaml

    class Quoting(yaml.SafeDumper):
        pass

    def quoted(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')

    def key_plain(dumper: yaml.SafeDumper, mapping: dict[str, Any]) -> yaml.MappingNode:
        node = dumper.represent_mapping("tag:yaml.org,2002:map", mapping.items())
        for key, _ in node.value:
            key.style = None
        return node

    Quoting.add_representer(str, quoted)
    Quoting.add_representer(dict, key_plain)
    text: str = yaml.dump(value, Dumper=Quoting, sort_keys=False, width=96, allow_unicode=True)
    return text


def _decode(data: bytes | str, origin: str) -> str:
    if len(data) > MAX_BYTES:
        raise PresetError(f"{origin}: larger than {MAX_BYTES // 1024} KiB; no preset needs that.")
    if isinstance(data, str):
        return data.removeprefix("\ufeff")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise PresetError(f"{origin}: the file is UTF-16; save it as UTF-8.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PresetError(f"{origin}: not UTF-8 text (byte {error.start}).") from None


def _at(error: Any) -> str:
    mark = error.problem_mark or error.context_mark
    return f", line {mark.line + 1}" if mark else ""


def _yaml_reason(error: Any, text: str) -> str:
    mark = error.problem_mark
    if mark and "\t" in text.splitlines()[min(mark.line, len(text.splitlines()) - 1)]:
        return "a tab stands where YAML wants spaces; replace it by spaces"
    return str(error.problem or error.context).replace("\n", " ")


def _refuse_aliases(text: str, origin: str) -> None:
    import yaml

    for token in yaml.scan(text, Loader=yaml.SafeLoader):
        if isinstance(token, yaml.AnchorToken | yaml.AliasToken):
            line = token.start_mark.line + 1
            raise PresetError(f"{origin}, line {line}: anchors and aliases are not used in presets.")


def _build(node: Any, path: Path_, lines: dict[Path_, int], origin: str) -> Any:
    import yaml

    line = node.start_mark.line + 1
    lines.setdefault(path, line)
    if len(path) > MAX_DEPTH:
        raise PresetError(f"{origin}, line {line}: nested deeper than {MAX_DEPTH} levels.")
    if isinstance(node, yaml.ScalarNode):
        _refuse_tag(node, "str", origin)
        return node.value if node.style else _scalar(node.value)
    if isinstance(node, yaml.SequenceNode):
        _refuse_tag(node, "seq", origin)
        return [_build(item, (*path, i), lines, origin) for i, item in enumerate(node.value)]
    _refuse_tag(node, "map", origin)
    return _build_mapping(node, path, lines, origin)


def _build_mapping(node: Any, path: Path_, lines: dict[Path_, int], origin: str) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        key = str(key_node.value)
        if key in mapping:
            first = lines[(*path, key)]
            raise PresetError(f"{origin}, line {line}: key {key!r} stands already in line {first}.")
        lines[(*path, key)] = line
        mapping[key] = _build(value_node, (*path, key), lines, origin)
    return mapping


def _refuse_tag(node: Any, plain: str, origin: str) -> None:
    """Refuse explicit tags. The composer resolves untagged scalars to types of YAML 1.1 itself."""
    implicit = {"null", "bool", "int", "float", "timestamp", "merge", "value", plain}
    tag = node.tag.removeprefix("tag:yaml.org,2002:")
    if tag not in implicit:
        line = node.start_mark.line + 1
        raise PresetError(f"{origin}, line {line}: the tag {node.tag!r} is not allowed.")


def _scalar(text: str) -> Any:
    """Resolve a plain scalar by YAML 1.2's core schema (yaml.org/spec/1.2.2, 10.3.2)."""
    if _NULL.fullmatch(text):
        return None
    if match := _BOOL.fullmatch(text):
        return bool(match[1])
    if _INT.fullmatch(text):
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text


def _parse_path(path: str) -> Path_:
    parts = re.findall(r"\.([^.\[\]]+)|\[(\d+)\]", path)
    return tuple(name or int(index) for name, index in parts)


def _fields_at(kind: type[Any], path: Path_) -> list[str]:
    """The field names of the struct that `path` leads to inside `kind`."""
    info = msgspec.inspect.type_info(kind)
    for part in path:
        if isinstance(info, msgspec.inspect.UnionType):
            info = next(t for t in info.types if isinstance(t, msgspec.inspect.StructType))
        if not isinstance(info, msgspec.inspect.StructType):
            return []
        info = next(field.type for field in info.fields if field.encode_name == part)
    if isinstance(info, msgspec.inspect.UnionType):
        info = next(t for t in info.types if isinstance(t, msgspec.inspect.StructType))
    return [f.encode_name for f in info.fields] if isinstance(info, msgspec.inspect.StructType) else []
