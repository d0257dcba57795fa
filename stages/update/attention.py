"""Attention over a prefix tree of tokens, for transformers' models.

Each token sees its ancestors and itself. ``blocks`` computes no more than that: the tokens that one row added to the
tree are a chain, so they see a list of earlier tokens whole and each other causally; one fused attention call per
chain. ``dense`` hands a mask over all pairs of tokens to one call; it suits GPUs, where many small calls cost more.
What it does not cover: sliding windows, attention sinks, soft-capped scores.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from stages.update.pack import Pack

NAME = "prefix_tree"


@dataclass(frozen=True)
class Tree:
    """The chains of a pack: `keys` (K,) lists the tokens seen, chain after chain.

    Per chain: `queries` its tokens, `spans` the tokens it sees, and `masks` (queries, spans), additive, or None where
    it is causal.
    """

    keys: Tensor
    queries: list[int]
    spans: list[int]
    masks: list[Tensor | None]


def _least(sees: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.zeros(sees.shape, dtype=dtype, device=sees.device).masked_fill_(~sees, torch.finfo(dtype).min)


def blocks(pack: Pack, device: torch.device, dtype: torch.dtype) -> Tree:
    """What the attention of `pack` computes, chain by chain."""
    keys, queries, spans, masks = [], [], [], []
    for start, end, ancestors in pack.chains():
        own, before = end - start, len(ancestors)
        keys += [torch.from_numpy(ancestors), torch.arange(start, end)]
        queries.append(own)
        spans.append(before + own)
        sees = torch.ones(own, before + own, dtype=torch.bool).tril_(before)
        masks.append(_least(sees, dtype).to(device) if before else None)
    return Tree(torch.cat(keys).to(device), queries, spans, masks)


def dense(pack: Pack, device: torch.device, dtype: torch.dtype) -> Tensor:
    """(1, 1, N, N): 0 where token i sees token j, the least number elsewhere; what transformers takes as it is."""
    return _least(torch.from_numpy(pack.sees()), dtype).to(device)[None, None]


def tree_attention(module, query, key, value, attention_mask, scaling=None, tree: Tree | None = None, **kwargs):
    """transformers' attention function: query (1, H, N, D), key and value (1, H or fewer, N, D) to (1, N, H, D)."""
    if tree is None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **kwargs)
    keys = key[0].transpose(0, 1).index_select(0, tree.keys).split(tree.spans)
    values = value[0].transpose(0, 1).index_select(0, tree.keys).split(tree.spans)
    parts = []
    for q, k, v, mask in zip(query.split(tree.queries, 2), keys, values, tree.masks, strict=True):
        k, v = k.transpose(0, 1)[None], v.transpose(0, 1)[None]
        gqa = q.shape[1] != k.shape[1]
        out = scaled_dot_product_attention(q, k, v, mask, is_causal=mask is None, scale=scaling, enable_gqa=gqa)
        parts.append(out.transpose(1, 2))
    return torch.cat(parts, 1), None


AttentionInterface.register(NAME, tree_attention)
