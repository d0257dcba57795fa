"""AdamW, the learning rate over all versions, and the optimiser's state by parameter name.

What it does not cover: files (``state.py``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from stages.common.cli import UserError
from stages.common.config import Update
from stages.update.ranks import spread, whole


def lr_at(position: int, settings: Update) -> float:
    """Learning rate of optimiser step `position`, counted from 0 over all versions.

    Linear warm-up to `lr`, reached at step `warmup_steps`, then constant, or falling to 0 at `schedule_steps`.
    """
    if position < settings.warmup_steps:
        return settings.lr * (position + 1) / (settings.warmup_steps + 1)
    if settings.schedule == "constant":
        return settings.lr
    span = max(settings.schedule_steps - settings.warmup_steps, 1)
    done = min((position - settings.warmup_steps) / span, 1.0)
    return settings.lr * (1 - done if settings.schedule == "linear" else (1 + math.cos(math.pi * done)) / 2)


def trained(model: nn.Module) -> dict[str, Tensor]:
    """The parameters that are trained, by name; tied ones once."""
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


def make_optimiser(model: nn.Module, settings: Update) -> torch.optim.AdamW:
    """AdamW over the trained parameters; norms and biases are not decayed."""
    matrices = [p for p in trained(model).values() if p.dim() > 1]
    vectors = [p for p in trained(model).values() if p.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": settings.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    groups = [group for group in groups if group["params"]]
    return torch.optim.AdamW(groups, lr=settings.lr, betas=(settings.beta1, settings.beta2), fused=True)


def set_lr(optimiser: torch.optim.Optimizer, lr: float) -> None:
    """Use `lr` for the next step."""
    for group in optimiser.param_groups:
        group["lr"] = lr


def clip(parameters: Iterable[Tensor], limit: float) -> float:
    """Scale the gradients down to a global norm of `limit`, over all ranks; the norm before that."""
    parameters = [p for p in parameters if p.grad is not None]
    norm = whole(torch.nn.utils.get_total_norm([p.grad for p in parameters]))
    torch.nn.utils.clip_grads_with_norm_(parameters, limit, norm)
    return float(norm)


def export_weights(model: nn.Module, keep: bool = True) -> dict[str, Tensor]:
    """The trained parameters, whole and on the CPU; every rank calls it, those that do not `keep` get nothing."""
    weights = {}
    for name, parameter in trained(model).items():
        value = whole(parameter.detach())
        if keep:
            weights[name] = value.cpu().contiguous()
    return weights


def import_weights(model: nn.Module, weights: dict[str, Tensor]) -> None:
    """Put back what :func:`export_weights` gave."""
    with torch.no_grad():
        for name, parameter in trained(model).items():
            parameter.copy_(spread(weights[name], parameter))


def export_state(model: nn.Module, optimiser: torch.optim.Optimizer, keep: bool = True) -> dict[str, Tensor]:
    """The optimiser's tensors as ``<parameter>/<exp_avg|exp_avg_sq|step>``; empty before the first step.

    Whole and on the CPU; every rank calls it, those that do not `keep` get nothing.
    """
    tensors = {}
    for name, parameter in trained(model).items():
        for key, value in optimiser.state.get(parameter, {}).items():
            value = whole(value.detach())
            if keep:
                tensors[f"{name}/{key}"] = value.cpu().contiguous()
    return tensors


def import_state(model: nn.Module, optimiser: torch.optim.Optimizer, tensors: dict[str, Tensor], where: str) -> None:
    """Put back what :func:`export_state` gave; UserError where it belongs to other parameters."""
    if not tensors:
        return
    parameters = trained(model)
    names = {key.rsplit("/", 1)[0] for key in tensors}
    if names != set(parameters):
        odd = sorted(names ^ set(parameters))[:3]
        raise UserError(
            f"{where}: the optimiser's state is of other parameters ({', '.join(odd)}, ...); was LoRA switched on or "
            "off between versions? Start a new run, or remove the policies from this version on"
        )
    for name, parameter in parameters.items():
        moments = {key: tensors[f"{name}/{key}"] for key in ("exp_avg", "exp_avg_sq")}
        if any(moment.shape != parameter.shape for moment in moments.values()):
            raise UserError(
                f"{where}: {name} has another shape in the optimiser's state; remove the policies from here on"
            )
        moved = {key: spread(moment, parameter) for key, moment in moments.items()}
        optimiser.state[parameter] = {"step": tensors[f"{name}/step"].clone(), **moved}
