"""The keys of Accelerate's configurations, from 0.11 to 1.15: today's, former and foreign ones.

Taken from `commands/config/config_args.py`, `commands/config/cluster.py`, `commands/launch.py` and
`utils/launch.py` of Accelerate 1.15.0; former keys from the releases that wrote them.
"""

from __future__ import annotations

SHARDING_STRATEGIES = (
    "FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "HYBRID_SHARD_ZERO2",
)  # fmt: skip
"""In the order in which torch counts them, from 1."""

WRAP_POLICIES = ("TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP", "NO_WRAP")
STATE_DICT_TYPES = ("FULL_STATE_DICT", "LOCAL_STATE_DICT", "SHARDED_STATE_DICT")

ENGINES = {
    "DEEPSPEED": "DeepSpeed", "MEGATRON_LM": "Megatron-LM", "XLA": "XLA (TPU)", "TPU": "Google TPU",
    "MULTI_XPU": "Intel XPU", "MULTI_NPU": "Ascend NPU", "MULTI_MLU": "Cambricon MLU",
    "MULTI_SDAA": "SDAA", "MULTI_MUSA": "Moore Threads MUSA", "MULTI_HPU": "Gaudi HPU",
    "MULTI_NEURON": "AWS Neuron", "MPS": "Apple MPS", "XPU": "Intel XPU", "NPU": "Ascend NPU",
    "DATA_PARALLEL": "SageMaker", "MODEL_PARALLEL": "SageMaker",
}  # fmt: skip
"""What `distributed_type` may ask for and Ringside does not run, in words."""

NEAREST = {"DEEPSPEED": "fsdp", "MEGATRON_LM": "model_parallel"}
"""The built-in preset that comes closest to an engine."""

MACHINE = frozenset({
    "machine_rank", "num_machines", "main_process_ip", "main_process_port", "gpu_ids",
    "rdzv_backend", "same_network", "rdzv_conf", "tpu_name", "tpu_zone", "tpu_use_cluster",
    "tpu_use_sudo", "tpu_vm", "tpu_env", "tpu_cluster", "command_file", "commands",
    "mpirun_config", "downcast_bf16", "deepspeed_hostfile", "env",
})  # fmt: skip
"""Facts of one machine or cluster: addresses, ports, ranks, devices, paths, commands."""

IDLE = frozenset({
    "main_training_function", "debug", "enable_cpu_affinity", "num_cpu_threads_per_process",
    "deepspeed_config", "megatron_lm_config", "fp8_config", "ipex_config", "mpirun_ccl",
    "use_mps_device", "use_xpu", "tpu_metadata",
})  # fmt: skip
"""Known keys without an effect on a run of Ringside."""

SAGEMAKER = frozenset({
    "ec2_instance_type", "iam_role_name", "sagemaker_inputs_file", "sagemaker_metrics_file",
    "base_job_name", "image_uri", "py_version", "pytorch_version", "transformers_version",
})  # fmt: skip

READ = (
    "compute_environment", "distributed_type", "mixed_precision", "num_processes", "use_cpu",
    "fsdp_config", "dynamo_config", "parallelism_config", "gradient_accumulation_steps",
)  # fmt: skip
"""Top-level keys that mean something here; the last one stands in no file that Accelerate takes."""

FORMER = {"fp16": "mixed_precision", "dynamo_backend": "dynamo_config"}

FSDP_FORMER = {
    "fsdp_backward_prefetch_policy": "fsdp_backward_prefetch",
    "fsdp_transformer_cls_to_wrap": "fsdp_transformer_layer_cls_to_wrap",
    "fsdp_transformer_cls_names_to_wrap": "fsdp_transformer_layer_cls_to_wrap",
    "fsdp_cpu_offload": "fsdp_offload_params",
}
FSDP = frozenset({
    "fsdp_version", "fsdp_sharding_strategy", "fsdp_reshard_after_forward", "fsdp_offload_params",
    "fsdp_auto_wrap_policy", "fsdp_transformer_layer_cls_to_wrap", "fsdp_min_num_params",
    "fsdp_backward_prefetch", "fsdp_forward_prefetch", "fsdp_use_orig_params",
    "fsdp_sync_module_states", "fsdp_cpu_ram_efficient_loading", "fsdp_state_dict_type",
    "fsdp_activation_checkpointing", "fsdp_activation_checkpointing_offload",
    "fsdp_ignored_modules", "fsdp_limit_all_gathers",
})  # fmt: skip
DYNAMO = frozenset({
    "dynamo_backend", "dynamo_mode", "dynamo_use_fullgraph", "dynamo_use_dynamic",
    "dynamo_use_regional_compilation",
})  # fmt: skip
PARALLELISM = "parallelism_config_"

TOP_LEVEL = MACHINE | IDLE | frozenset(READ) | frozenset(FORMER)

OTHER_FILES = (
    ("timm (args.yaml)", {"aa", "amp", "amp_dtype", "aug_splits", "bce_loss", "checkpoint_hist",
                          "dist_bn", "model_ema", "grad_accum_steps", "train_split"}),
    ("DeepSpeed", {"zero_optimization", "train_batch_size", "train_micro_batch_size_per_gpu",
                   "zero_allow_untested_optimizer", "wall_clock_breakdown"}),
    ("Ultralytics", {"imgsz", "mosaic", "close_mosaic", "hsv_h", "box", "dfl", "task", "mode"}),
    ("transformers' Trainer", {"per_device_train_batch_size", "output_dir", "num_train_epochs",
                               "model_name_or_path", "per_device_eval_batch_size"}),
)  # fmt: skip
"""Files that are sent by mistake: who writes them, and keys of which two tell."""
