"""An Accelerate configuration in today's keys as the parts of a preset.

Every key of the file gets its line in the ledger; what cannot be run here is a PresetError.
"""

from __future__ import annotations

from typing import Any

from ringside.errors import PresetError
from ringside.importing import keys
from ringside.importing.outcome import Ledger, shown
from ringside.importing.sharding import nearest_of, set_aside, shard
from ringside.importing.values import count_of, flag_of, precision_of, word_of
from ringside.words import say

Tree = dict[str, Any]


def translate(values: Tree, ledger: Ledger) -> Tree:
    """`accelerate`, `training` and `devices` of the preset; `values` are in today's keys."""
    kind, on_cpu = _kind(values, ledger)
    accelerate: Tree = {"distributed_type": kind}
    training: Tree = {}
    _precision(values, accelerate, on_cpu, ledger)
    _sharding(values, accelerate, training, ledger)
    _processes(values, accelerate, ledger)
    _compilation(values, accelerate, training, ledger)
    _accumulation(values, training, ledger)
    _parallelism(values, ledger)
    _rest(values, ledger)
    return {
        "accelerate": accelerate,
        "training": training,
        "devices": _devices(accelerate, on_cpu),
    }


def _kind(values: Tree, ledger: Ledger) -> tuple[str, bool]:
    """Which of NO, MULTI_GPU and FSDP, and whether it is meant for the CPU."""
    key = "distributed_type"
    if key not in values:
        raise PresetError(say("importing.refused_no_type"))
    value = values.pop(key)
    text = "NO" if value in (None, False) else str(value).strip().upper()
    text = "NO" if text == "OFF" else text
    if text in keys.ENGINES:
        hint = keys.NEAREST.get(text)
        sentence = say("importing.refused_engine", value=text, what=keys.ENGINES[text])
        raise PresetError(
            f"{sentence} {say('importing.nearest', preset=hint)}" if hint else sentence
        )
    if text not in ("NO", "MULTI_GPU", "MULTI_CPU", "FSDP"):
        known = frozenset({"NO", "MULTI_GPU", "MULTI_CPU", "FSDP"})
        choices = ", ".join(sorted(known))
        is_ddp = text in ("DDP", "GPU", "MULTI-GPU", "MULTIGPU")
        hint = say("importing.did_you_mean", name="MULTI_GPU") if is_ddp else ""
        raise PresetError(
            say("importing.refused_value", name=key, value=shown(value), choices=choices) + hint
        )
    if text == "MULTI_CPU":
        ledger.note(key, "translated", say("importing.multi_cpu"))
    elif text == "NO" and (not isinstance(value, str) or ledger.is_bare(key)):
        ledger.note(key, "mapped", say("importing.bare_no", value=shown(value)))
    elif text == value:
        ledger.keep(key)
    else:
        ledger.note(key, "mapped", say("importing.means", value=shown(value), new=text))
    on_cpu = _use_cpu(values, ledger) or text == "MULTI_CPU"
    return ("MULTI_GPU" if text == "MULTI_CPU" else text), on_cpu


def _use_cpu(values: Tree, ledger: Ledger) -> bool:
    key = "use_cpu"
    if values.get(key) is None:
        return False
    value = values.pop(key)
    if flag_of(key, value):
        ledger.note(key, "translated", say("importing.use_cpu"))
        return True
    ledger.keep(key)
    return False


def _precision(values: Tree, accelerate: Tree, on_cpu: bool, ledger: Ledger) -> None:
    key = "mixed_precision"
    if key not in values:
        return
    found = precision_of(values.pop(key), ledger)
    if found == "fp16" and on_cpu:
        ledger.warn(say("importing.fp16_on_cpu"))
        found = "no"
    accelerate[key] = found


def _sharding(values: Tree, accelerate: Tree, training: Tree, ledger: Ledger) -> None:
    config = values.pop("fsdp_config")
    if accelerate["distributed_type"] != "FSDP":
        set_aside(config, ledger)
        return
    if not config:
        ledger.warn(say("importing.no_fsdp_config"))
        accelerate["fsdp_config"] = {}
        return
    settings = shard(config, ledger)
    if settings is None:
        accelerate["distributed_type"] = "MULTI_GPU"
        ledger.warn(say("importing.no_shard"))
        return
    accelerate["fsdp_config"] = settings
    if accelerate.get("mixed_precision", "no") != "no":
        # Accelerate's policy of a 16-bit precision reduces in it too (utils/fsdp_utils.py, 1.15).
        training["reduce_dtype"] = accelerate["mixed_precision"]


def _processes(values: Tree, accelerate: Tree, ledger: Ledger) -> None:
    """The number for one machine, and what contradicts it."""
    key, kind = "num_processes", accelerate["distributed_type"]
    machines = count_of("num_machines", values.get("num_machines")) or 1
    if machines > 1:
        ledger.warn(say("importing.several_machines", n=machines))
    if key not in values:
        return
    value = values.pop(key)
    count = count_of(key, value)
    if count is None:
        ledger.note(key, "dropped", say("importing.as_many", value=shown(value)))
    elif kind == "NO":
        if count == 1:
            ledger.keep(key)
            return
        ledger.note(key, "dropped", say("importing.one_process"))
        ledger.warn(say("importing.no_with_many", n=count))
    elif machines > 1 and count % machines == 0:
        accelerate[key] = count // machines
        note = say("importing.on_each", value=count, machines=machines, n=count // machines)
        ledger.note(key, "translated", note)
    else:
        accelerate[key] = count
        same = isinstance(value, int)
        note = "" if same else say("importing.means", value=shown(value), new=count)
        ledger.note(key, "kept" if same else "mapped", note)
    if kind != "NO" and accelerate.get(key) == 1:
        ledger.warn(say("importing.many_with_one", kind=kind))
    _gpu_ids(values, accelerate, ledger)


def _gpu_ids(values: Tree, accelerate: Tree, ledger: Ledger) -> None:
    """The ids themselves stay behind; that they contradict the number is said."""
    ids, count = values.get("gpu_ids"), accelerate.get("num_processes")
    if ids in (None, "", "all") or isinstance(ids, list | dict) or count is None:
        return
    named = [part.strip() for part in str(ids).split(",") if part.strip()]
    if len(set(named)) != count:
        ledger.warn(say("importing.ids_disagree", ids=shown(ids), n=count))


def _compilation(values: Tree, accelerate: Tree, training: Tree, ledger: Ledger) -> None:
    block, config = "dynamo_config", values.pop("dynamo_config")
    if not config:
        return
    compiles = _backend(config, ledger)
    if compiles and accelerate["distributed_type"] == "FSDP":
        ledger.warn(say("importing.compile_fsdp"))
        compiles = False
    if compiles:
        training["compile"] = True
    _compile_mode(config, training, compiles, ledger)
    for name, value in config.items():
        at = f"{block}.{name}"
        if name in keys.DYNAMO:
            ledger.rest(at, value, "dropped", say("importing.dynamo_idle"))
        else:
            note = say("importing.nested_unknown", nearest=nearest_of(name, keys.DYNAMO))
            ledger.rest(at, value, "dropped", note)
            ledger.warn(say("importing.unknown_warning", name=shown(at)))


def _backend(config: Tree, ledger: Ledger) -> bool:
    """Whether the model is to be compiled: with Inductor, the only way Ringside compiles."""
    if config.get("dynamo_backend") is None:
        return False
    key, value = "dynamo_config.dynamo_backend", config.pop("dynamo_backend")
    backend = str(value).strip().upper()
    if backend == "INDUCTOR":
        ledger.note(key, "translated", say("importing.compiles"))
        return True
    if backend in ("NO", "FALSE", "OFF"):
        ledger.note(key, "translated", say("importing.compiles_not"))
    else:
        ledger.note(key, "dropped", say("importing.backend", value=shown(value)))
        ledger.warn(say("importing.backend", value=shown(value)))
    return False


def _compile_mode(config: Tree, training: Tree, compiles: bool, ledger: Ledger) -> None:
    name = "dynamo_mode"
    if config.get(name) is None:
        return
    key, value = f"dynamo_config.{name}", config.pop(name)
    if compiles and value in ("default", "reduce-overhead"):
        training["compile_mode"] = value
        ledger.note(key, "translated", say("importing.compile_mode"))
    else:
        ledger.rest(key, value, "dropped", say("importing.dynamo_idle"))


def _accumulation(values: Tree, training: Tree, ledger: Ledger) -> None:
    key = "gradient_accumulation_steps"
    if key not in values:
        return
    count = count_of(key, values.pop(key))
    if count is None:
        ledger.note(key, "dropped", say("importing.empty"))
        return
    if count > 1:
        training["accumulation_steps"] = count
    ledger.note(key, "translated", say("importing.accumulation", n=count))


def _parallelism(values: Tree, ledger: Ledger) -> None:
    """Tensor, context, sequence parallelism and replicas of shards are other engines' work."""
    block, config = "parallelism_config", values.pop("parallelism_config")
    for name, value in config.items():
        sized = name.endswith("_size") and not name.endswith("dp_shard_size")
        if sized and (count_of(name, value) or 1) > 1:
            raise PresetError(say("importing.refused_parallelism", name=name, value=shown(value)))
    if config:
        ledger.rest(block, config, "dropped", say("importing.parallelism_one"))


def _rest(values: Tree, ledger: Ledger) -> None:
    """What is left: the place it runs in, facts of a machine, idle and unknown keys."""
    for key, value in values.items():
        if key == "compute_environment":
            word_of(key, value if value is not None else "LOCAL_MACHINE", ("LOCAL_MACHINE",))
            ledger.keep(key)
        elif key in keys.MACHINE:
            ledger.rest(key, value, "stripped", say("importing.machine_fact"))
        elif key in keys.IDLE:
            ledger.rest(key, value, "dropped", _why_idle(key, value, ledger))
        elif value is None and key in keys.READ:
            ledger.note(key, "dropped", say("importing.empty"))
        else:
            hint = nearest_of(key, keys.TOP_LEVEL)
            ledger.rest(key, value, "dropped", say("importing.unknown", nearest=hint))
            ledger.warn(say("importing.unknown_top", name=shown(key), nearest=hint))


def _why_idle(key: str, value: Any, ledger: Ledger) -> str:
    if key == "use_mps_device" and value not in (None, False, "no"):
        ledger.warn(say("importing.mps"))
    if key == "use_xpu" and value not in (None, False, "no"):
        raise PresetError(say("importing.refused_engine", value=key, what="Intel XPU"))
    if key in ("deepspeed_config", "megatron_lm_config"):
        kind = "DEEPSPEED" if key.startswith("deep") else "MEGATRON_LM"
        return say("importing.needs_type", value=kind)
    return say("importing.idle")


def _devices(accelerate: Tree, on_cpu: bool) -> list[str]:
    if on_cpu:
        return ["cpu"]
    offloads = (accelerate.get("fsdp_config") or {}).get("fsdp_offload_params", False)
    needs_gpu = accelerate.get("mixed_precision") == "fp16" or offloads
    return ["cuda"] if needs_gpu else ["cuda", "cpu"]
