"""Reads what a colleague sends: one of our preset files, or an Accelerate configuration.

    find_kind → refuse_credentials → modernise (old keys → today's) → translate (→ a preset)

Nothing of the file is executed, and no path or address in it is followed. What cannot be used is
said in `Import.refused`; a file that is no YAML or too large is refused in the same way.
"""

from __future__ import annotations

import re
from typing import Any, Literal

import msgspec

from ringside import yaml_text
from ringside.errors import PresetError
from ringside.importing import keys
from ringside.importing.credentials import refuse_credentials
from ringside.importing.current import modernise
from ringside.importing.outcome import Action, Change, Import, Ledger, leaves, shown
from ringside.importing.translating import translate
from ringside.presets import NAME_PATTERN, PresetFile, parse_preset
from ringside.spec import FORMAT
from ringside.words import say

__all__ = ["Action", "Change", "Import", "import_text", "leaves", "name_from"]

_ORDER = ("distributed_type", "mixed_precision", "num_processes", "fsdp_config")
_PARTS = ("about", "accelerate", "training", "environment")


def import_text(data: bytes, *, origin: str, name: str | None = None) -> Import:
    """Read the bytes of one file; `origin` is its name for messages and, cleaned, the preset's.

    PresetError only for a `name` that is none; all else about the file is in the result.
    """
    if name is not None and not NAME_PATTERN.fullmatch(name):
        raise PresetError(say("yaml.bad_name", name=name))
    name = name or name_from(origin)
    try:
        document = yaml_text.load_text(data, origin=origin)
        kind = _kind_of(document.value)
        refuse_credentials(data.decode("utf-8-sig"), document.value)
        if kind == "preset":
            preset = parse_preset(data, name=name, origin="file", path=origin)
            return Import(name=name, kind=kind, preset=preset, text=data)
        return _accelerate(document, name)
    except PresetError as error:
        sentence = str(error)
        if not sentence.startswith(origin):
            sentence = f"{origin}: {sentence}"
        return Import(name=name, refused=sentence)


def name_from(text: str) -> str:
    """A name for a preset from a file's: `Accelerate Config.yaml` is accelerate_config."""
    stem = re.sub(r"\.(ya?ml|json|txt)$", "", text.rpartition("/")[2], flags=re.IGNORECASE)
    name = re.sub(r"[^a-z0-9_-]+", "_", stem.lower()).strip("_-")[:64]
    return name or "imported"


def _kind_of(value: Any) -> Literal["preset", "accelerate"]:
    """What the file is; PresetError for one that is neither."""
    if not isinstance(value, dict):
        raise PresetError(say("importing.refused_list"))
    if "distributed_type" not in value and any(part in value for part in _PARTS):
        return "preset"
    if value.get("compute_environment") == "AMAZON_SAGEMAKER" or keys.SAGEMAKER & value.keys():
        raise PresetError(say("importing.refused_sagemaker"))
    for writer, telling in keys.OTHER_FILES:
        if len(telling & value.keys()) >= 2 and "distributed_type" not in value:
            raise PresetError(say("importing.refused_other", writer=writer))
    if not keys.TOP_LEVEL & value.keys():
        listed = ", ".join(shown(key) for key in list(value)[:3]) or "–"
        raise PresetError(say("importing.refused_unknown", keys=listed))
    return "accelerate"


def _accelerate(document: yaml_text.Document, name: str) -> Import:
    ledger = Ledger(document)
    values = modernise(document.value, ledger)
    parts = translate(values, ledger)
    tree = {
        "format": FORMAT,
        "about": {
            "title": name.replace("_", " ").replace("-", " ")[:80].capitalize(),
            "why": f"Imported from {shown(document.origin)}, an Accelerate configuration.",
            "when": "The file did not say.",
            "devices": parts["devices"],
        },
        "accelerate": {
            key: parts["accelerate"][key] for key in _ORDER if key in parts["accelerate"]
        },
        "training": parts["training"],
        "environment": {},
    }
    yaml_text.Document(tree, {}, document.origin).convert(PresetFile)
    text = _header(document.origin, ledger) + yaml_text.dump(tree)
    preset = parse_preset(text, name=name, origin="file", path=document.origin)
    return Import(
        name=name,
        kind="accelerate",
        preset=msgspec.structs.replace(preset, path=""),
        text=text.encode(),
        changes=tuple(sorted(ledger.changes, key=lambda change: change.line or 0)),
        warnings=tuple(ledger.warnings),
    )


def _header(origin: str, ledger: Ledger) -> str:
    """Comments of the new file, in English as all files are: which keys are not as they were."""
    lines = [f"# Imported from {shown(origin)}, an Accelerate configuration."]
    for action in ("translated", "stripped", "dropped"):
        named = [change.key for change in ledger.changes if change.action == action]
        if named:
            lines.append(f"# {action}: {', '.join(dict.fromkeys(named))}")
    return "\n".join(lines) + "\n"
