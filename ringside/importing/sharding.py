"""`fsdp_config`, of either version, as FSDP 2 settings; NO_SHARD is DDP.

What FSDP 2 does by itself or has no setting for is left out with its reason (Accelerate 1.15:
`FullyShardedDataParallelPlugin.__post_init__` sets the same aside, with a warning or silently).
"""

from __future__ import annotations

import difflib
import re
from typing import Any

from ringside.importing import keys
from ringside.importing.outcome import Ledger, shown
from ringside.importing.values import flag_of, word_of
from ringside.spec import FsdpConfig
from ringside.words import say

_BLOCK = "fsdp_config"
_USUAL = FsdpConfig().fsdp_transformer_layer_cls_to_wrap
# No class of timm is named so (tests/canaries); language models write these files mostly.
_OF_LANGUAGE_MODELS = re.compile(
    r"(De|En)coderLayer$|^(Llama|GPT|Bert|Roberta|T5|Mistral|Mixtral|Falcon|Bloom|OPT|Pythia)|"
    r"^Qwen\w*Vision"
)
_BY_ITSELF = ("fsdp_use_orig_params", "fsdp_sync_module_states", "fsdp_limit_all_gathers")
_OFF_ONLY = (
    "fsdp_forward_prefetch",
    "fsdp_activation_checkpointing",
    "fsdp_activation_checkpointing_offload",
)


def shard(config: dict[str, Any], ledger: Ledger) -> dict[str, Any] | None:
    """The settings of `FsdpConfig` that the block gives; None for NO_SHARD. Empties `config`."""
    settings: dict[str, Any] = {}
    version = _version(config, ledger)
    strategy, reshards = _resharding(config, version, ledger)
    if strategy == "NO_SHARD":
        if config:
            ledger.rest(_BLOCK, config, "dropped", say("importing.no_shard"))
        return None
    if reshards is not None:
        settings["fsdp_reshard_after_forward"] = reshards
    _flags(config, settings, ledger)
    _wrapping(config, settings, ledger)
    _checkpoints(config, settings, ledger)
    _left_out(config, ledger)
    return settings


def set_aside(config: dict[str, Any], ledger: Ledger) -> None:
    """A block that its distributed_type does not read."""
    if config:
        ledger.rest(_BLOCK, config, "dropped", say("importing.needs_type", value="FSDP"))


def _version(config: dict[str, Any], ledger: Ledger) -> int:
    key = f"{_BLOCK}.fsdp_version"
    if config.get("fsdp_version") is None:
        return 1
    version = int(word_of(key, config.pop("fsdp_version"), ("1", "2")))
    if version == 2:
        ledger.keep(key)
    else:
        ledger.note(key, "translated", say("importing.version_1"))
    return version


def _resharding(
    config: dict[str, Any], version: int, ledger: Ledger
) -> tuple[str | None, bool | None]:
    """(strategy word, whether weights are freed after the forward pass); None: not said."""
    old, new = "fsdp_sharding_strategy", "fsdp_reshard_after_forward"
    said = {name: config.pop(name) for name in (old, new) if config.get(name) is not None}
    found = {name: _strategy(f"{_BLOCK}.{name}", value) for name, value in said.items()}
    if not found:
        return None, None
    # Version 1 reads the strategy and version 2 the other, whatever else stands there.
    first = (old, new) if version == 1 else (new, old)
    counts = next(name for name in first if name in found)
    for name, value in said.items():
        key = f"{_BLOCK}.{name}"
        if name != counts:
            ledger.note(key, "dropped", say("importing.counts", name=counts))
            if _reshards(found[name]) != _reshards(found[counts]):
                value = shown(said[counts])
                ledger.warn(say("importing.disagree", first=counts, second=name, value=value))
        elif name == new and isinstance(value, bool):
            ledger.keep(key)
        else:
            _note_strategy(key, value, found[name], ledger)
    if counts == new and version == 1 and found[new] != "FULL_SHARD":
        # `accelerate launch` sets FSDP_SHARDING_STRATEGY to FULL_SHARD by default, and that counts.
        ledger.warn(say("importing.unread_in_1", name=new, other=old))
    if counts == old and version == 2:
        ledger.warn(say("importing.obsolete_in_2", name=old, new=new))
    return found[counts], _reshards(found[counts])


def _strategy(key: str, value: Any) -> str:
    text = str(value).strip().lower()
    if key.endswith("reshard_after_forward") and text in ("true", "false", "yes", "no"):
        return "FULL_SHARD" if flag_of(key, value) else "SHARD_GRAD_OP"
    return word_of(key, value, keys.SHARDING_STRATEGIES, counted=True)


def _reshards(strategy: str) -> bool:
    return strategy in ("FULL_SHARD", "HYBRID_SHARD")


def _note_strategy(key: str, value: Any, strategy: str, ledger: Ledger) -> None:
    if strategy == "NO_SHARD":
        ledger.note(key, "translated", say("importing.no_shard"))
        return
    new = "true" if _reshards(strategy) else "false"
    word = strategy if shown(value) == strategy else f"{shown(value)} ({strategy})"
    note = say("importing.resharding", value=word, new=new)
    if strategy.startswith("HYBRID"):
        note += " " + say("importing.hybrid")
    ledger.note(key, "translated", note)


def _flags(config: dict[str, Any], settings: dict[str, Any], ledger: Ledger) -> None:
    name = "fsdp_offload_params"
    if config.get(name) is not None:
        key, value = f"{_BLOCK}.{name}", config.pop(name)
        settings[name] = flag_of(key, value)
        _note_flag(key, value, settings[name], ledger)
    name = "fsdp_cpu_ram_efficient_loading"
    if config.get(name) is not None:
        key, value = f"{_BLOCK}.{name}", config.pop(name)
        if flag_of(key, value):
            ledger.note(key, "translated", say("importing.efficient_loading"))
        else:
            _note_flag(key, value, False, ledger)


def _note_flag(key: str, value: Any, meaning: bool, ledger: Ledger) -> None:
    if value is meaning:
        ledger.keep(key)
    else:
        note = say("importing.means", value=shown(value), new=str(meaning).lower())
        ledger.note(key, "mapped", note)


def _wrapping(config: dict[str, Any], settings: dict[str, Any], ledger: Ledger) -> None:
    """Which blocks are sharded for themselves. Sizes cannot be said here, so blocks are."""
    policy_name, size_name = "fsdp_auto_wrap_policy", "fsdp_min_num_params"
    policy_key, size_key = f"{_BLOCK}.{policy_name}", f"{_BLOCK}.{size_name}"
    policy = word_of(policy_key, config.get(policy_name) or "NO_WRAP", keys.WRAP_POLICIES)
    by_size = policy == "SIZE_BASED_WRAP" and config.get(size_name) is not None
    if config.get(size_name) is not None:
        config.pop(size_name)
        if by_size:
            ledger.note(size_key, "translated", say("importing.by_size"))
        else:
            ledger.note(size_key, "dropped", say("importing.size_unread"))
    if not config.get(policy_name):
        ledger.warn(say("importing.no_policy", blocks=_USUAL))
    elif config.pop(policy_name) and by_size:
        ledger.note(policy_key, "translated", say("importing.by_size"))
    else:
        settings[policy_name] = policy
        ledger.keep(policy_key)
    _blocks(config, settings, ledger)


def _blocks(config: dict[str, Any], settings: dict[str, Any], ledger: Ledger) -> None:
    name = "fsdp_transformer_layer_cls_to_wrap"
    if config.get(name) in (None, "", []):
        return
    key, value = f"{_BLOCK}.{name}", config.pop(name)
    parts = value if isinstance(value, list) else str(value).split(",")
    names = [str(part).strip() for part in parts if str(part).strip()]
    here = [one for one in names if not _OF_LANGUAGE_MODELS.search(one)]
    blocks = ",".join(here) or _USUAL
    if blocks == value:
        ledger.keep(key)
    elif here == names:
        ledger.note(key, "mapped", say("importing.means", value=shown(value), new=blocks))
    else:
        note = say("importing.language_model", value=shown(value), new=blocks)
        ledger.note(key, "translated", note)
    settings[name] = blocks


def _checkpoints(config: dict[str, Any], settings: dict[str, Any], ledger: Ledger) -> None:
    name = "fsdp_state_dict_type"
    if config.get(name) is None:
        return
    key, value = f"{_BLOCK}.{name}", config.pop(name)
    found = word_of(key, value, keys.STATE_DICT_TYPES, counted=True)
    settings[name] = "SHARDED_STATE_DICT" if found == "LOCAL_STATE_DICT" else found
    if found == "LOCAL_STATE_DICT":
        ledger.note(key, "translated", say("importing.local_state"))
    elif found == value:
        ledger.keep(key)
    else:
        ledger.note(key, "mapped", say("importing.means", value=shown(value), new=found))


def _left_out(config: dict[str, Any], ledger: Ledger) -> None:
    """What no setting of FSDP 2 stands for, and what no version of Accelerate knows."""
    for name, value in config.items():
        key = f"{_BLOCK}.{name}"
        if value in (None, "", [], {}):
            ledger.note(key, "dropped", say("importing.empty"))
        elif name == "fsdp_backward_prefetch":
            ledger.note(key, "dropped", say("importing.prefetch", value=shown(value)))
        elif name in _BY_ITSELF:
            ledger.note(key, "dropped", say("importing.by_itself"))
        elif name in _OFF_ONLY:
            ledger.note(key, "dropped", say("importing.off_only"))
            if flag_of(key, value):
                ledger.warn(say("importing.off_only_wanted", name=name))
        elif name in keys.FSDP:
            ledger.note(key, "dropped", say("importing.no_setting"))
            ledger.warn(say("importing.off_only_wanted", name=name))
        else:
            note = say("importing.nested_unknown", nearest=nearest_of(name, keys.FSDP))
            ledger.rest(key, value, "dropped", note)
            ledger.warn(say("importing.unknown_warning", name=shown(key)))
    config.clear()


def nearest_of(name: str, known: frozenset[str]) -> str:
    """A question with the nearest name for a misspelt key; empty where nothing is near."""
    found = difflib.get_close_matches(name[:80].lower(), sorted(known), n=1, cutoff=0.7)
    return say("importing.did_you_mean", name=found[0]) if found else ""
