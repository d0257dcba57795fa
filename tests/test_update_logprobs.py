"""Packed, chunked log-probabilities against an ordinary forward pass, values and gradients."""

import numpy as np
import pytest
import torch

from stages.update.logprobs import ChunkedLogprobs, Compute, pack_logprobs
from stages.update.pack import packs
from tests.update_helpers import plain_logprobs, random_rows, tiny


def gradients(model, value):
    model.zero_grad()
    value.backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def packed_value(model, rows, budget, compute, weights):
    total = 0.0
    for pack in packs(rows, range(len(rows)), budget):
        logp, _ = pack_logprobs(model, pack, compute)
        for b, at in enumerate(pack.rows):
            total = total + (logp[b, : len(weights[at])] * weights[at]).sum()
    return total


@pytest.mark.parametrize(("kind", "temperature"), [("llama", 0.6), ("qwen3", 1.3)])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("budget", [1, 40, 10_000])
@pytest.mark.parametrize("attention", ["blocks", "dense"])
def test_packs_equal_a_plain_forward_pass(kind, tied, budget, temperature, attention):
    model = tiny(kind, tied, dtype=torch.float64)
    rows = random_rows(3)
    g = torch.Generator().manual_seed(1)
    weights = [torch.randn(len(row.completion), generator=g, dtype=torch.float64) for row in rows]
    plain = sum((plain_logprobs(model, row, temperature) * w).sum() for row, w in zip(rows, weights, strict=True))
    want = gradients(model, plain)
    value = packed_value(model, rows, budget, Compute(temperature, 7, attention=attention), weights)
    got = gradients(model, value)
    # transformers' RMSNorm and rotary tables are float32 in any model, hence no closer
    assert value.item() == pytest.approx(plain.item(), rel=1e-6)
    assert (got - want).abs().max() < 1e-6 * want.abs().max()


@pytest.mark.parametrize("kind", ["llama", "qwen3"])
@pytest.mark.parametrize("attention", ["blocks", "dense"])
def test_float32_agrees_to_1e_6(kind, attention):
    model, rows = tiny(kind), random_rows(5)
    weights = [torch.full((len(row.completion),), 1 / 100) for row in rows]
    plain = sum((plain_logprobs(model, row) * w).sum() for row, w in zip(rows, weights, strict=True))
    want = gradients(model, plain)
    got = gradients(model, packed_value(model, rows, 64, Compute(1.0, 16, attention=attention), weights))
    assert (got - want).abs().max() < 1e-6 * max(1, want.abs().max())


@pytest.mark.parametrize("chunk", [1, 3, 64])
@pytest.mark.parametrize("frozen_head", [False, True])
def test_chunks_equal_full_logits(chunk, frozen_head):
    g = torch.Generator().manual_seed(0)
    hidden = torch.randn(10, 6, generator=g, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(17, 6, generator=g, dtype=torch.float64, requires_grad=not frozen_head)
    target = torch.randint(0, 17, (10,), generator=g)
    upstream = torch.randn(10, generator=g, dtype=torch.float64)
    upstream[3:5] = 0
    inputs = [hidden] if frozen_head else [hidden, weight]
    full = torch.log_softmax(hidden @ weight.T / 0.7, -1)
    want = torch.autograd.grad((full.gather(1, target[:, None])[:, 0] * upstream).sum(), inputs)
    logp, entropy = ChunkedLogprobs.apply(hidden, weight, target, 0.7, chunk)
    got = torch.autograd.grad((logp * upstream).sum(), inputs)
    assert all(torch.allclose(a, b, atol=1e-12) for a, b in zip(got, want, strict=True))
    assert torch.allclose(entropy, -(full.exp() * full).sum(1), atol=1e-12)
    assert not entropy.requires_grad


def test_numerical_gradient_of_the_chunks():
    g = torch.Generator().manual_seed(2)
    hidden = torch.randn(4, 3, generator=g, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(5, 3, generator=g, dtype=torch.float64, requires_grad=True)
    target = torch.tensor([0, 4, 4, 2])
    assert torch.autograd.gradcheck(lambda h, w: ChunkedLogprobs.apply(h, w, target, 1.3, 3)[0], (hidden, weight))


def test_full_logits_never_exist():
    """With a vocabulary of 50,000 no tensor of the step comes near [tokens, vocabulary]."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Largest(TorchDispatchMode):
        size = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            if isinstance(out, torch.Tensor):
                Largest.size = max(Largest.size, out.numel())
            return out

    hidden = torch.randn(400, 8, requires_grad=True)
    weight = torch.randn(50_000, 8, requires_grad=True)
    with Largest():
        logp, _ = ChunkedLogprobs.apply(hidden, weight, torch.zeros(400, dtype=torch.long), 1.0, 16)
        logp.sum().backward()
    assert Largest.size == 2 * 16 * 50_000  # logits and their exponentials


def test_a_prompt_has_no_logits_and_nothing_depends_on_the_pack():
    model, rows = tiny(), random_rows(8)
    alone = {}
    for pack in packs(rows, range(len(rows)), 1):
        assert len(pack.context) <= len(rows[pack.rows[0]].completion)
        alone[pack.rows[0]] = pack_logprobs(model, pack, Compute(0.8, 512))[0][0].detach()
    (together,) = packs(rows, range(len(rows)), 10_000)
    logp, _ = pack_logprobs(model, together, Compute(0.8, 512))
    for b, at in enumerate(together.rows):
        n = len(rows[at].completion)
        assert np.allclose(logp[b, :n].detach(), alone[at][:n], atol=1e-5)
