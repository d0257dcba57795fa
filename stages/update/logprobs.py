"""Log-probabilities of a pack's completions, without ever holding [tokens, vocabulary] logits.

log_softmax(logits / temperature) at the sampled ids, for completion positions alone, `chunk` positions at a time; the
backward pass makes each chunk's logits again. What it does not cover: the loss (``loss.py``).
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from stages.update.attention import blocks, dense
from stages.update.pack import Pack


@dataclass(frozen=True)
class Compute:
    """How forward passes are run.

    Sampling temperature, positions per chunk, `torch.dtype` of the arithmetic, attention by ``blocks`` (the model is
    loaded with the attention of ``attention.py``) or ``dense`` (any sdpa model).
    """

    temperature: float
    chunk: int
    dtype: torch.dtype = torch.float32
    attention: str = "blocks"


class ChunkedLogprobs(torch.autograd.Function):
    """(logp (M,), entropy (M,), no gradient) of `target` (M,) under softmax(hidden (M, H) @ weight (V, H).T / T).

    The products are made in the dtype of `hidden`; what they are summed into is float32 at least.
    """

    @staticmethod
    def forward(ctx, hidden, weight, target, temperature, chunk):  # noqa: D102
        exact = torch.promote_types(hidden.dtype, torch.float32)
        logp, lse, entropy = (torch.empty(len(target), dtype=exact, device=hidden.device) for _ in range(3))
        cast = weight.to(hidden.dtype)
        # made once: fresh memory of this size costs as much as what is computed in it
        space = hidden.new_empty(2, min(chunk, len(target)), len(weight), dtype=exact)
        for a in range(0, len(target), chunk):
            b = slice(a, a + chunk)
            logits, e = space[:, : len(target[b])]
            _logits(hidden[b], cast, temperature, logits)
            top = logits.amax(1, keepdim=True)
            torch.sub(logits, top, out=e).exp_()
            total = e.sum(1)
            lse[b] = top[:, 0] + total.log()
            logp[b] = logits.gather(1, target[b, None])[:, 0] - lse[b]
            entropy[b] = lse[b] - torch.linalg.vecdot(e, logits) / total
        ctx.save_for_backward(hidden, weight, target, lse)
        ctx.temperature, ctx.chunk = temperature, chunk
        ctx.mark_non_differentiable(entropy)
        return logp, entropy

    @staticmethod
    def backward(ctx, grad, _):  # noqa: D102
        hidden, weight, target, lse = ctx.saved_tensors
        grad_hidden = torch.zeros_like(hidden)
        grad_weight = torch.zeros_like(weight) if ctx.needs_input_grad[1] else None
        cast = weight.to(hidden.dtype)
        moved = grad.nonzero()[:, 0]  # clipped and masked tokens have no gradient: no logits for them
        scaled = grad / ctx.temperature
        space = hidden.new_empty(min(ctx.chunk, len(moved)), len(weight), dtype=lse.dtype)
        for at in moved.split(ctx.chunk):
            part = hidden[at]
            d = _logits(part, cast, ctx.temperature, space[: len(at)])
            d.sub_(lse[at, None]).exp_().mul_(-scaled[at, None])
            d.scatter_add_(1, target[at, None], scaled[at, None])
            d = d.to(hidden.dtype)
            grad_hidden[at] = d @ cast
            if grad_weight is not None and grad_weight.dtype == d.dtype:
                grad_weight.addmm_(d.T, part)
            elif grad_weight is not None:
                grad_weight += d.T @ part
        return grad_hidden, grad_weight, None, None, None


def _logits(hidden: Tensor, weight: Tensor, temperature: float, out: Tensor) -> Tensor:
    """(m, V) logits over the temperature, put into `out`, which is float32 at least."""
    if hidden.dtype == out.dtype:
        torch.mm(hidden, weight.T, out=out)
    else:
        out.copy_(hidden @ weight.T)
    return out if temperature == 1 else out.div_(temperature)


def _on(device: torch.device, array: np.ndarray) -> Tensor:
    return torch.from_numpy(array).to(device)


def hidden_states(model, pack: Pack, compute: Compute) -> Tensor:
    """(N, H) outputs of the model's body, before its head."""
    device = model.device
    mixed = compute.dtype == torch.bfloat16
    dtype = compute.dtype if mixed else model.dtype
    if compute.attention == "blocks":
        seen = {"tree": blocks(pack, device, dtype)}
    else:
        seen = {"attention_mask": dense(pack, device, dtype)}
    with torch.autocast(device.type, torch.bfloat16) if mixed else nullcontext():
        out = model.get_decoder()(
            input_ids=_on(device, pack.tokens)[None],
            position_ids=_on(device, pack.positions)[None],
            use_cache=False,
            **seen,
        )
    return out.last_hidden_state[0]


def pack_logprobs(model, pack: Pack, compute: Compute) -> tuple[Tensor, Tensor]:
    """(logp, entropy) of the pack's completions, (B, T) each, float32 at least; entropy has no gradient."""
    hidden = hidden_states(model, pack, compute)
    device = hidden.device
    weight = model.get_output_embeddings().weight
    if compute.dtype == torch.bfloat16:
        hidden = hidden.bfloat16()  # the last norm gives float32
    logp, entropy = ChunkedLogprobs.apply(
        hidden.index_select(0, _on(device, pack.context)),
        weight,
        _on(device, pack.target),
        compute.temperature,
        compute.chunk,
    )
    place = _on(device, pack.place).flatten()
    shape = pack.place.shape
    return logp.index_select(0, place).view(shape), entropy.index_select(0, place).view(shape)
