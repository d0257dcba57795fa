"""LoRA adapters through peft: attach, save, and a merged copy that the engine loads as any other policy.

A policy trained so holds its merged weights at the top (hence its hash changes with the adapter), the adapter in
``adapter/`` for ``peft.PeftModel.from_pretrained(base, folder / "adapter")``, and the weights it is an adapter to in
``trainer/base/``: hard links to those of the first version, as merging and unmerging again would round. What it does
not cover: adapters on anything but linear layers, quantised bases.
"""

from __future__ import annotations

from pathlib import Path

import torch

from stages.common.cli import UserError
from stages.common.config import Update
from stages.common.ids import seed_for
from stages.common.policy import TRAINER

ADAPTER = "adapter"
BASE = f"{TRAINER}/base"
TENSORS = "adapter_model.safetensors"


def base_folder(policy: Path) -> Path:
    """Where the weights that adapters are added to are: the policy itself until it has an adapter."""
    base = Path(policy) / BASE
    return base if base.exists() else Path(policy)


def attach(model, policy: Path, settings: Update, seed: int):
    """`model` with adapters on every linear layer but the head, as in the policy's folder, or new ones of no effect.

    UserError where the folder's adapter has another rank or alpha than the settings.
    """
    from peft import LoraConfig, get_peft_model, set_peft_model_state_dict
    from safetensors.torch import load_file

    config = LoraConfig(
        r=settings.lora_rank,
        lora_alpha=settings.lora_alpha,
        lora_dropout=0.0,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    folder = Path(policy) / ADAPTER
    if folder.exists():
        was = LoraConfig.from_pretrained(str(folder))
        if (was.r, was.lora_alpha) != (config.r, config.lora_alpha):
            raise UserError(
                f"{folder}: is of rank {was.r} and alpha {was.lora_alpha}, and the settings say rank {config.r} and "
                f"alpha {config.lora_alpha}; keep them through a run, or start a new run from this policy"
            )
    torch.manual_seed(seed_for(seed, "lora"))
    adapted = get_peft_model(model, config)
    if folder.exists():
        wrong = set_peft_model_state_dict(adapted, load_file(folder / TENSORS))
        if wrong.unexpected_keys:
            raise UserError(f"{folder}: is an adapter to another model ({wrong.unexpected_keys[0]}, ...)")
    return adapted


def save(adapted, aside: Path):
    """Write ``adapter/`` and return the merged model; `adapted` is of no use afterwards."""
    from peft import get_peft_model_state_dict
    from safetensors.torch import save_file

    folder = aside / ADAPTER
    folder.mkdir()
    tensors = get_peft_model_state_dict(adapted, save_embedding_layers=False)
    save_file({name: value.detach().cpu().contiguous() for name, value in tensors.items()}, folder / TENSORS)
    config = adapted.peft_config["default"]
    config.base_model_name_or_path = f"../{BASE}"  # not where the policy happened to lie
    config.inference_mode = True
    config.save_pretrained(str(folder))
    return adapted.merge_and_unload()
