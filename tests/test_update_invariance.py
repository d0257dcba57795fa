"""A step's gradient does not depend on how it is cut: micro-batches, packs, chunks of logits, recomputed activations.

Against one plain forward pass per row with full logits. Ranks are in test_update_ranks.py.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch

from stages.update.batch import Step, count
from stages.update.logprobs import Compute
from stages.update.loss import LossSettings, Rows, policy_loss
from stages.update.step import add_gradient
from tests.update_helpers import plain_logprobs, random_rows, tiny

TEMPERATURE = 0.7
LOSSES = {
    "dapo": LossSettings(is_correction="token_truncate"),
    "grpo": LossSettings("grpo", eps_high=0.28, is_correction="sequence_mask", is_max=1e3),
    "dr_grpo": LossSettings("dr_grpo", max_len=16, delta=1.5),
    "gspo": LossSettings("gspo", beta=0.05),
    "cispo": LossSettings("cispo", eps_high=1.2, beta=0.05, kl_bias_correction=False),
}
MICRO = [1, 2, 5, 1000]
PACKED, UNPACKED = 10_000, 1


@pytest.fixture(scope="module")
def rows():
    return random_rows(11, groups=4, siblings=3)


@pytest.fixture(scope="module")
def known(rows):
    """Log-probabilities at the start and of the reference, some way off the policy's, so that clips are reached."""
    model, g = tiny(), np.random.default_rng(3)
    with torch.no_grad():
        now = [plain_logprobs(model, row, TEMPERATURE).numpy() for row in rows]
    away = lambda: {at: values + g.normal(0, 0.3, len(values)).astype(np.float32) for at, values in enumerate(now)}
    return away(), away()


def flat(model):
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def padded(parts):
    return torch.nn.utils.rnn.pad_sequence([torch.as_tensor(part) for part in parts], batch_first=True)


@pytest.fixture(scope="module")
def plain(rows, known):
    """By loss, the gradient of one pass over all rows."""
    gradients = {}
    for name, settings in LOSSES.items():
        model = tiny(dtype=torch.float64)
        logp = padded([plain_logprobs(model, row, TEMPERATURE) for row in rows])
        mask = padded([torch.ones(len(row.completion), dtype=torch.bool) for row in rows])
        old, ref = (padded([values[at] for at in range(len(rows))]) for values in known)
        advantage = torch.tensor([row.advantage for row in rows], dtype=torch.float64)
        whole = Rows(logp, mask, advantage, old, padded([row.sampling for row in rows]), ref)
        policy_loss(whole, settings, count(rows))[0].backward()
        gradients[name] = flat(model)
    return gradients


def gradient(rows, known, settings, micro, budget=PACKED, chunk=512, recompute=False, attention="blocks"):
    model = tiny(dtype=torch.float64)
    model.train()
    if recompute:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    order = np.random.default_rng(micro).permutation(len(rows))
    for at in range(0, len(rows), micro):
        step = Step(0, tuple(order[at : at + micro].tolist()), count(rows))
        old, ref = (dict(values) for values in known)
        compute = Compute(TEMPERATURE, chunk, attention=attention)
        add_gradient(model, rows, step, settings, compute, budget, old, ref if settings.beta else None)
    return flat(model)


def close(got, want):
    assert want.abs().max() > 0.1
    assert (got - want).abs().max() < 1e-6


@pytest.mark.parametrize("recompute", [False, True], ids=["kept", "recomputed"])
@pytest.mark.parametrize("chunk", [1, 7, 512])
@pytest.mark.parametrize("budget", [UNPACKED, 40, PACKED], ids=["unpacked", "cut", "packed"])
@pytest.mark.parametrize("micro", MICRO)
def test_the_cut_does_not_change_the_gradient(rows, known, plain, micro, budget, chunk, recompute):
    got = gradient(rows, known, LOSSES["dapo"], micro, budget, chunk, recompute)
    close(got, plain["dapo"])


@pytest.mark.parametrize("attention", ["blocks", "dense"])
@pytest.mark.parametrize("micro", MICRO)
@pytest.mark.parametrize("loss", LOSSES)
def test_neither_for_any_loss(rows, known, plain, loss, micro, attention):
    got = gradient(rows, known, LOSSES[loss], micro, attention=attention)
    close(got, plain[loss])


@pytest.mark.parametrize("loss", ["dapo", "gspo"])
def test_numerical_gradient_of_a_whole_step(rows, known, loss):
    """The change of the loss along a random direction in weight space."""
    settings = replace(LOSSES[loss], is_correction="none")
    model = tiny(dtype=torch.float64)
    step = Step(0, tuple(range(len(rows))), count(rows))

    def value():
        model.zero_grad()
        old, ref = (dict(values) for values in known)
        sums = add_gradient(model, rows, step, settings, Compute(TEMPERATURE, 8), 64, old, ref)
        return sums.overall()["loss"]

    value()
    g = torch.Generator().manual_seed(0)
    direction = [torch.randn(p.shape, generator=g, dtype=torch.float64) for p in model.parameters()]
    want = sum((p.grad * d).sum() for p, d in zip(model.parameters(), direction, strict=True)).item()
    h, ends = 1e-5, []
    for sign in (1, -2):
        with torch.no_grad():
            for p, d in zip(model.parameters(), direction, strict=True):
                p += sign * h * d
        ends.append(value())
    assert (ends[0] - ends[1]) / (2 * h) == pytest.approx(want, rel=1e-2)  # norms are float32
    assert abs(want) > 0.1
