"""The gradient of one optimiser step, pack by pack, and log-probabilities without one.

What it does not cover: the optimiser and the order of steps (``train.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from stages.common.cli import UserError
from stages.update.batch import Row, Step, named, needs_forward
from stages.update.logprobs import Compute
from stages.update.loss import LossSettings, Rows, policy_loss
from stages.update.pack import Pack, dealt, idle_pack, packs
from stages.update.ranks import ALONE, Ranks

Known = dict[int, np.ndarray]  # row index -> log-probabilities of its completion
Advance = Callable[[int], None]  # told how many completion tokens were dealt with

MAXIMA = ("ratio_max", "is_ratio_max")


@dataclass
class Sums:
    """Metrics of a step: sums over rows and tokens (and maxima) per turn."""

    turns: dict[int, dict[str, float]] = field(default_factory=dict)

    def add(self, turns: Sequence[int], metrics: dict[str, Tensor]) -> None:
        """Add rows: `turns` (B,), each of `metrics` (B,)."""
        values = {name: value.double().tolist() for name, value in metrics.items()}
        for b, turn in enumerate(turns):
            into = self.turns.setdefault(turn, {"rows": 0.0})
            into["rows"] += 1
            for name, numbers in values.items():
                old = into.get(name, 0.0)
                into[name] = max(old, numbers[b]) if name in MAXIMA else old + numbers[b]

    @classmethod
    def of_all(cls, parts: Sequence[Sums]) -> Sums:
        """The sums of several ranks together."""
        whole = cls()
        for part in parts:
            for turn, numbers in part.turns.items():
                into = whole.turns.setdefault(turn, {})
                for name, value in numbers.items():
                    into[name] = max(into.get(name, 0.0), value) if name in MAXIMA else into.get(name, 0.0) + value
        return whole

    def overall(self) -> dict[str, float]:
        """All turns together."""
        whole: dict[str, float] = {}
        for _, numbers in sorted(self.turns.items()):
            for name, value in numbers.items():
                whole[name] = max(whole.get(name, 0.0), value) if name in MAXIMA else whole.get(name, 0.0) + value
        return whole


def _padded(pack: Pack, known: Sequence[np.ndarray], device: torch.device) -> Tensor:
    """(B, T) of one array per row of the pack, 0 where there is no token."""
    out = np.zeros(pack.mask.shape, dtype=np.float64 if known[0].dtype == np.float64 else np.float32)
    for b, values in enumerate(known):
        out[b, : len(values)] = values
    return torch.from_numpy(out).to(device)


def _bad(rows: Sequence[Row], pack: Pack, bad: Tensor, what: str) -> UserError | None:
    """An error with the nodes of the pack where `bad` (B,) holds, if it does anywhere."""
    if not bad.any():
        return None
    nodes = [rows[at].node_id for at, is_bad in zip(pack.rows, bad.tolist(), strict=True) if is_bad]
    return UserError(
        f"{what} of {named(nodes)} is NaN or infinite, so no step was taken; look at these nodes in the rollouts "
        "and credit tables, lower update.lr, or use float32"
    )


def _passes(rows: Sequence[Row], chosen: Sequence[int], budget: int, ranks: Ranks) -> Iterable[Pack | None]:
    return packs(rows, chosen, budget) if ranks.count == 1 else dealt(rows, chosen, budget, ranks.rank, ranks.count)


def _by_row(pack: Pack, values: Tensor) -> Known:
    numbers = values.detach().cpu().numpy()
    return {at: numbers[b][pack.mask[b]] for b, at in enumerate(pack.rows)}


def _unlikely(rows: Sequence[Row], pack: Pack, logp: Tensor, mask: Tensor) -> UserError | None:
    return _bad(rows, pack, ~logp.detach().masked_fill(~mask, 0.0).isfinite().all(1), "the log-probability")


@torch.no_grad()
def logprobs_of(
    model, rows: Sequence[Row], chosen: Iterable[int], compute: Compute, budget: int, ranks: Ranks = ALONE
) -> Known:
    """Log-probabilities of the completions of `chosen` under `model`, by row; of all ranks together."""
    known: Known = {}
    for pack in _passes(rows, list(chosen), budget, ranks):
        logp, _ = ranks.logprobs(model, pack or idle_pack(rows), compute)
        error = None
        if pack is not None:
            error = _unlikely(rows, pack, logp, torch.from_numpy(pack.mask).to(logp.device))
            known.update(_by_row(pack, logp))
        ranks.agree(error)
    return {at: values for part in ranks.gathered(known) for at, values in part.items()}


def add_gradient(
    model,
    rows: Sequence[Row],
    step: Step,
    settings: LossSettings,
    compute: Compute,
    budget: int,
    old: Known,
    ref: Known | None,
    advance: Advance = lambda _: None,
    ranks: Ranks = ALONE,
) -> Sums:
    """Add the gradient of `step` to the parameters; the metrics of the rows that had a forward pass on any rank.

    Rows missing from `old` are taken to be at the version's start: their log-probabilities are put into it.
    """
    sums, started_here = Sums(), {}
    chosen = [at for at in step.rows if needs_forward(rows[at], settings.beta)]
    for pack in _passes(rows, chosen, budget, ranks):
        logp, entropy = ranks.logprobs(model, pack or idle_pack(rows), compute)
        if pack is None:
            ranks.agree(None)
            (logp.sum() * 0.0).backward()
            continue
        device = logp.device
        mask = torch.from_numpy(pack.mask).to(device)
        started = all(at in old for at in pack.rows)
        part = Rows(
            logp=logp,
            mask=mask,
            advantage=torch.tensor([rows[at].advantage for at in pack.rows], dtype=logp.dtype, device=device),
            old=_padded(pack, [old[at] for at in pack.rows], device) if started else None,
            sampling=_padded(pack, [rows[at].sampling for at in pack.rows], device),
            ref=_padded(pack, [ref[at] for at in pack.rows], device) if ref is not None else None,
        )
        if not started:
            started_here.update(_by_row(pack, logp))
        loss, metrics = policy_loss(part, settings, step.whole)
        unlikely = _unlikely(rows, pack, logp, mask)
        ranks.agree(unlikely or _bad(rows, pack, ~metrics["loss"].isfinite(), "the loss"))
        loss.backward()
        metrics["entropy"] = entropy.masked_fill(~mask, 0.0).sum(1)
        sums.add([rows[at].turn for at in pack.rows], metrics)
        advance(int(pack.mask.sum()))
    for known in ranks.gathered(started_here):
        old.update(known)
    return Sums.of_all(ranks.gathered(sums))
