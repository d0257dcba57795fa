"""The policy losses, as pure functions of log-probabilities: no model, no files, no state.

What it does not cover: where log-probabilities come from (``logprobs.py``), which rows form a step (``batch.py``).

Shapes: B rows (completions), T token positions. Per row i and token t

    d = logp - old                     w = exp(d)                          importance_level "token"
                                       w = exp(mean over the row of d)     importance_level "sequence", (B, 1)
    rho = exp(old - sampling)          the trainer against the engine that sampled; per token, or exp of the row's sum
    l = f(w, A) * rho + beta * kl      f by loss, below
    loss = sum over i, t of mask * l * weight_i

======== ============================================================ ============================== ===============
loss     f(w, A)                                                       weight_i                       source
======== ============================================================ ============================== ===============
grpo     -min(w1 A, clip(w, 1 - eps, 1 + eps_high) A),                 1 / (rows * tokens of row i)   2402.03300 eq. 3
         w1 = min(w, delta) where delta is set
bnpo     the same                                                      1 / tokens                     TRL's name
dapo     the same                                                      1 / tokens                     2503.14476 eq. 8
dr_grpo  the same                                                      1 / (rows * max_len)           2503.20783
gspo     the same, w per sequence                                      as grpo                        2507.18071 eq. 5
luspo    the same                                                      1 / rows                       TRL's name
cispo    -min(w, eps_high).detach() A logp                             as dapo                        2506.13585 eq. 4
sapo     -(4 / tau) sigmoid(tau (w - 1)) A, tau 1.0, 1.05 where A <= 0 as grpo                        2511.20347
======== ============================================================ ============================== ===============

``rows`` and ``tokens`` count the whole optimiser step, over every forward pass and rank: one sum is divided by one
global denominator (:class:`Denominator`), so the gradient does not depend on how a step is cut. bnpo equals dapo for
that reason. kl is the k3 estimate ``exp(ref - logp) - (ref - logp) - 1``, times w (differentiable) where
``kl_bias_correction`` is on; rho never touches it. Advantages may be (B,) or, for a credit per token, (B, T).
Masked positions may hold anything, NaN included: they are replaced before any arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

SAPO_TAU = (1.0, 1.05)  # temperatures for positive and for other advantages


@dataclass(frozen=True)
class LossSettings:
    """The loss' part of the update's settings, with the same names; `max_len` is dr_grpo's constant, in tokens."""

    loss: str = "dapo"
    eps: float = 0.2
    eps_high: float | None = None
    delta: float | None = None
    importance_level: str = "token"
    beta: float = 0.0
    kl_bias_correction: bool = True
    is_correction: str = "none"
    is_max: float = 2.0
    is_min: float = 0.0
    max_len: int | None = None

    def __post_init__(self) -> None:
        if self.loss == "cispo" and self.eps_high is None:
            raise ValueError("cispo needs eps_high, its upper bound on the ratio itself (5.0 is usual)")
        if self.loss == "dr_grpo" and self.max_len is None:
            raise ValueError("dr_grpo needs max_len, the longest completion in tokens")


@dataclass(frozen=True)
class Denominator:
    """What one optimiser step counts, over all its forward passes and ranks."""

    rows: int
    tokens: int


@dataclass(frozen=True)
class Rows:
    """Rows of one forward pass.

    `logp` (B, T) has the gradient; `mask` (B, T) bool; `advantage` (B,) or (B, T); `old`, `sampling`, `ref` (B, T) or
    None: without `old` the ratio is taken to the values of `logp` themselves (a version of one optimiser step),
    without `sampling` there is no correction, `ref` is needed where beta > 0.
    """

    logp: Tensor
    mask: Tensor
    advantage: Tensor
    old: Tensor | None = None
    sampling: Tensor | None = None
    ref: Tensor | None = None


def row_weights(mask: Tensor, settings: LossSettings, whole: Denominator) -> Tensor:
    """weight_i of the table above, (B, 1); a row or a step without tokens divides by 1 and so counts nothing."""
    tokens = mask.sum(1, keepdim=True).clamp(min=1).double()
    rows = max(whole.rows, 1)
    if settings.loss in ("grpo", "gspo", "sapo"):
        return 1.0 / (rows * tokens)
    if settings.loss == "luspo":
        return tokens.new_full(tokens.shape, 1.0 / rows)
    if settings.loss == "dr_grpo":
        return tokens.new_full(tokens.shape, 1.0 / (rows * settings.max_len))
    return tokens.new_full(tokens.shape, 1.0 / max(whole.tokens, 1))


def importance(logp: Tensor, old: Tensor, mask: Tensor, settings: LossSettings) -> Tensor:
    """w, (B, T) per token or (B, 1) per sequence; inputs hold numbers at masked positions."""
    d = logp - old
    if settings.importance_level == "sequence" or settings.loss == "gspo":
        d = (d * mask).sum(1, keepdim=True) / mask.sum(1, keepdim=True).clamp(min=1)
    return d.exp()


def correction(old: Tensor, sampling: Tensor, mask: Tensor, settings: LossSettings) -> tuple[Tensor, Tensor, Tensor]:
    """rho raw, rho as used, and where the two differ (bool): (B, T) each, or (B, 1) per sequence. No gradient."""
    e = ((old - sampling) * mask).detach()
    if settings.is_correction.startswith("sequence"):
        e = e.sum(1, keepdim=True)
    raw = e.exp()
    outside = (raw > settings.is_max) | (raw < settings.is_min)
    if settings.is_correction == "none":
        return raw, raw.new_ones(raw.shape), outside & False
    if settings.is_correction.endswith("truncate"):
        return raw, raw.clamp(settings.is_min, settings.is_max), outside
    return raw, raw.masked_fill(outside, 0.0), outside


def surrogate(w: Tensor, logp: Tensor, advantage: Tensor, settings: LossSettings) -> tuple[Tensor, Tensor, Tensor]:
    """f(w, A) of the table above (B, T), and where the clip holds the ratio back: below (bool), above (bool)."""
    import torch

    high = settings.eps if settings.eps_high is None else settings.eps_high
    never = (w > w).expand(logp.shape)
    if settings.loss == "cispo":
        bounded = w.clamp(max=high).detach()
        return -bounded * advantage * logp, never, (w > high) & (advantage > 0)
    if settings.loss == "sapo":
        tau = torch.where(advantage > 0, *(advantage.new_tensor(value) for value in SAPO_TAU))
        return (-(4 / tau) * torch.sigmoid(tau * (w - 1)) * advantage).expand(logp.shape), never, never
    free = w if settings.delta is None else w.clamp(max=settings.delta)
    value = -torch.min(free * advantage, w.clamp(1 - settings.eps, 1 + high) * advantage)
    below = (w < 1 - settings.eps) & (advantage < 0)
    above = (w > 1 + high) & (advantage > 0)
    return value.expand(logp.shape), below.expand(logp.shape), above.expand(logp.shape)


def k3(logp: Tensor, ref: Tensor) -> Tensor:
    """The k3 estimate of KL(policy || ref) per token: exp(ref - logp) - (ref - logp) - 1, never negative."""
    return (ref - logp).exp() - (ref - logp) - 1


def policy_loss(rows: Rows, settings: LossSettings, whole: Denominator) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss of `rows` as their part of the step `whole`: (loss, metrics).

    The sum of the losses of a step's parts is the step's loss. Metrics are detached row sums (B,), so that they add
    up over parts, ranks and turns: `loss`, `tokens`, and per token `ratio` (w), `clip_low`, `clip_high`, `kl` (k3 to
    `ref`), `kl_old` (k3 to `old`), `is_ratio` (rho before truncation), `is_used` (after), `is_clipped`, `logp_diff`
    (|old - sampling|); `ratio_max` and `is_ratio_max` are row maxima, 0 for a row without tokens.
    """
    mask = rows.mask.bool()
    dtype = rows.logp.dtype

    def clean(values: Tensor | None) -> Tensor | None:
        return None if values is None else values.to(dtype).masked_fill(~mask, 0.0)

    logp, sampling, ref = clean(rows.logp), clean(rows.sampling), clean(rows.ref)
    old = logp.detach() if rows.old is None else clean(rows.old)
    advantage = rows.advantage.to(dtype)
    advantage = advantage[:, None] if advantage.dim() == 1 else clean(advantage)

    w = importance(logp, old, mask, settings)
    per_token, below, above = surrogate(w, logp, advantage, settings)
    zeros = logp.new_zeros(logp.shape)
    raw, rho, diff, held_back = zeros + 1, zeros + 1, zeros, mask & False
    if sampling is not None:
        raw, rho, held_back = correction(old, sampling, mask, settings)
        diff = (old - sampling).abs()
        per_token = per_token * rho
    kl = zeros
    if settings.beta:
        if ref is None:
            raise ValueError("beta > 0 needs the reference policy's log-probabilities")
        kl = k3(logp, ref)
        per_token = per_token + settings.beta * (kl * w if settings.kl_bias_correction else kl)
    weighted = per_token.masked_fill(~mask, 0.0) * row_weights(mask, settings, whole).to(dtype)
    loss = weighted.sum()

    def total(values: Tensor) -> Tensor:
        return (values.detach().to(dtype).expand(mask.shape) * mask).sum(1)

    def largest(values: Tensor) -> Tensor:
        return (values.detach().expand(mask.shape) * mask).amax(1)

    metrics = {
        "loss": weighted.detach().sum(1),
        "tokens": mask.sum(1).to(dtype),
        "ratio": total(w),
        "ratio_max": largest(w),
        "clip_low": total(below),
        "clip_high": total(above),
        "kl": total(kl),
        "kl_old": total(k3(logp, old)),
        "is_ratio": total(raw),
        "is_ratio_max": largest(raw),
        "is_used": total(rho),
        "is_clipped": total(held_back),
        "logp_diff": total(diff),
    }
    return loss, metrics
