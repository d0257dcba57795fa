"""Loading a policy's weights for training, and a proof that its forward pass is the one this stage knows.

What it does not cover: LoRA (``lora.py``), spreading a model over ranks (``ranks.py``).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from stages.common.cli import UserError
from stages.common.config import Update
from stages.update.attention import NAME
from stages.update.batch import Row
from stages.update.logprobs import Compute, pack_logprobs
from stages.update.pack import packs

CPU = torch.device("cpu")
TOLERANCE = 1e-3  # of the proof; float32 agrees to about 1e-6, another attention or head is off by far more


def load(folder: Path, settings: Update, trained: bool = True, device: torch.device = CPU):
    """The model of `folder` in float32 on `device`, without dropout; UserError if it is broken."""
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    try:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation=NAME)
    except (OSError, ValueError, RuntimeError) as error:
        raise UserError(f"{folder}: transformers cannot load this policy ({error}); make it again") from error
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        if hasattr(module, "attention_dropout"):
            module.attention_dropout = 0.0
    model.to(device)
    model.train(trained)
    if trained and settings.gradient_checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model


def prove(model, rows: list[Row]) -> None:
    """UserError unless packed, chunked log-probabilities equal the model's own on a few tokens; checks `rows` too.

    It catches a head that is more than a matrix (soft-capped or scaled logits) and attention that does not take a
    pack's mask.
    """
    vocabulary = model.get_output_embeddings().weight.shape[0]
    for row in rows:
        highest = int(max(row.prompt.max(), row.completion.max()))
        if highest >= vocabulary:
            raise UserError(f"rollouts: node {row.node_id} has token {highest}, and the policy knows {vocabulary}")
    window = getattr(model.config, "sliding_window", None)
    if window and "sliding_attention" in (getattr(model.config, "layer_types", None) or []):
        long = [row.node_id for row in rows if len(row.prompt) + len(row.completion) > window]
        if long:
            raise UserError(f"{long[0]} is longer than the policy's sliding window of {window}, which is not supported")
    ids = np.arange(8) * 7 % vocabulary
    ends = (ids[3:6], ids[4:8])
    two = [Row(str(i), "g", 1, 1.0, ids[:3], end, np.zeros(len(end), np.float32)) for i, end in enumerate(ends)]
    with torch.no_grad():
        (pack,) = packs(two, [0, 1], 64)
        got, _ = pack_logprobs(model, pack, Compute(1.0, 4))
        for b, at in enumerate(pack.rows):
            row = two[at]
            whole = torch.from_numpy(np.concatenate([row.prompt, row.completion])).to(model.device)
            logits = model(input_ids=whole[None], use_cache=False).logits[0, len(row.prompt) - 1 : -1].float()
            want = torch.log_softmax(logits, -1).gather(1, whole[len(row.prompt) :, None])[:, 0]
            if not (want - got[b, : len(want)]).abs().max() < TOLERANCE and want.isfinite().all():
                raise UserError(
                    f"{type(model).__name__}: its log-probabilities are not those of a plain causal model with a "
                    "linear head, so this stage would train it wrongly; use another model"
                )
