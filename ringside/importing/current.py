"""From the keys of an older Accelerate to today's, as its own reader would, and with a note.

`fp16: true` and `dynamo_backend` are those that Accelerate still converts itself; keys of
`fsdp_config` and `dynamo_config` stood without their prefix until 0.12.
"""

from __future__ import annotations

from typing import Any

from ringside.errors import PresetError
from ringside.importing import keys
from ringside.importing.outcome import Ledger, shown
from ringside.importing.values import flag_of
from ringside.words import say


def modernise(values: dict[str, Any], ledger: Ledger) -> dict[str, Any]:
    """The same configuration in today's keys; what two keys say twice is noted."""
    now = dict(values)
    _fp16(now, ledger)
    _dynamo(now, ledger)
    now["fsdp_config"] = _prefixed(now, "fsdp_config", "fsdp_", keys.FSDP_FORMER, ledger)
    now["dynamo_config"] = _prefixed(now, "dynamo_config", "dynamo_", {}, ledger)
    now["parallelism_config"] = _prefixed(now, "parallelism_config", keys.PARALLELISM, {}, ledger)
    return now


def _fp16(now: dict[str, Any], ledger: Ledger) -> None:
    if "fp16" not in now:
        return
    wanted = flag_of("fp16", now.pop("fp16") or False)
    if "mixed_precision" in now:
        ledger.note("fp16", "dropped", say("importing.counts", name="mixed_precision"))
    else:
        ledger.rename("fp16", "mixed_precision")
        now["mixed_precision"] = "fp16" if wanted else "no"


def _dynamo(now: dict[str, Any], ledger: Ledger) -> None:
    if "dynamo_backend" not in now:
        return
    backend = now.pop("dynamo_backend")
    block = now.get("dynamo_config") or {}
    if isinstance(block, dict) and not {"dynamo_backend", "backend"} & block.keys():
        ledger.rename("dynamo_backend", "dynamo_config.dynamo_backend")
        now["dynamo_config"] = {**block, "dynamo_backend": backend}
    else:
        ledger.note("dynamo_backend", "dropped", say("importing.counts", name="dynamo_config"))


def _prefixed(
    now: dict[str, Any], block: str, prefix: str, former: dict[str, str], ledger: Ledger
) -> dict[str, Any]:
    """The block with every key under its full, present name; {} for one that is empty."""
    content = now.get(block)
    if content is None or content in ({}, "", []):
        if block in now:
            ledger.note(block, "dropped", say("importing.empty"))
        return {}
    if not isinstance(content, dict):
        raise PresetError(say("importing.refused_block", name=block, value=shown(content)))
    found: dict[str, Any] = {}
    # Keys that need no new name first: they count where an old one says the same.
    for name in sorted(content, key=lambda name: name in former or not name.startswith(prefix)):
        full = name if name.startswith(prefix) else prefix + name
        full = former.get(full, full)
        old, new = f"{block}.{name}", f"{block}.{full}"
        if full in found:
            ledger.note(old, "dropped", say("importing.counts", name=full))
            continue
        if full != name:
            ledger.rename(old, new)
        found[full] = content[name]
    return found
