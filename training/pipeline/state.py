"""Weights and optimizer state of all stages as those of one model, and back.

Names are timm's everywhere, so a checkpoint of a pipeline is like any other: every strategy can
load it, and a pipeline of any length can go on from every other strategy's.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_optimizer_state_dict,
    set_optimizer_state_dict,
)

from training.control import Control


def whole_weights(model: nn.Module, control: Control) -> dict[str, torch.Tensor]:
    """All stages' weights and buffers on the CPU of rank 0, elsewhere this stage's. Collective."""
    mine = {name: tensor.cpu() for name, tensor in model.state_dict().items()}
    shares = control.collect(mine)
    if shares is None:
        return mine
    return {name: tensor for share in shares for name, tensor in share.items()}


def whole_optimizer_state(
    model: nn.Module, optimizer: torch.optim.Optimizer, control: Control
) -> dict[str, Any]:
    """State by parameter name and groups of all stages on rank 0, elsewhere this stage's.

    The stages' groups are alike but for their parameters. A collective.
    """
    mine = get_optimizer_state_dict(model, optimizer, options=StateDictOptions(cpu_offload=True))
    shares = control.collect(mine)
    if shares is None:
        return dict(mine)
    groups = [
        {**parts[0], "params": [name for part in parts for name in part["params"]]}
        for parts in zip(*(share["param_groups"] for share in shares), strict=True)
    ]
    state = {name: value for share in shares for name, value in share["state"].items()}
    return {"state": state, "param_groups": groups}


def load_own(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    weights: dict[str, Any],
    state: dict[str, Any],
) -> None:
    """Load this stage's share of whole weights (strictly) and of a whole optimizer state."""
    names = set(model.state_dict())
    model.load_state_dict({name: value for name, value in weights.items() if name in names})
    own: dict[str, Any] = {
        "state": {name: value for name, value in state["state"].items() if name in names},
        "param_groups": [
            {**group, "params": [name for name in group["params"] if name in names]}
            for group in state["param_groups"]
        ],
    }
    set_optimizer_state_dict(model, optimizer, own, options=StateDictOptions())
