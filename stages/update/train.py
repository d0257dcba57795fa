"""One version's optimiser steps: old log-probabilities, steps in order, early stop, metrics.

What it does not cover: files (``state.py``), a single step's gradient (``step.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from stages.common.cli import UserError
from stages.common.config import Update
from stages.common.timing import Timings
from stages.update.batch import Row, Step, count, named, needs_forward
from stages.update.logprobs import Compute
from stages.update.loss import Denominator, LossSettings
from stages.update.optim import clip, lr_at, set_lr, trained
from stages.update.ranks import ALONE, Ranks
from stages.update.step import Advance, Known, Sums, add_gradient, logprobs_of


@dataclass
class Progress:
    """How far a version has come; with the weights and the optimiser's state, all that its next step needs.

    `done` optimiser steps of this version; `position` counts those of all versions; `old` and `ref` are
    log-probabilities at the version's start and of the reference, by row; `table` holds the rows of UPDATES.
    """

    position: int
    done: int = 0
    stopped: bool = False
    old: Known = field(default_factory=dict)
    ref: Known | None = None
    table: list[dict[str, object]] = field(default_factory=list)


@dataclass
class Trainer:
    """What is trained and how. `reference` gives the reference policy's model, or is None where none is needed."""

    model: torch.nn.Module
    optimiser: torch.optim.Optimizer
    settings: Update
    loss: LossSettings
    compute: Compute
    reference: Callable[[], torch.nn.Module] | None = None
    ranks: Ranks = ALONE


def measures(numbers: Mapping[str, float], whole: Denominator, beta: float) -> dict[str, object]:
    """The columns that UPDATES has for a whole step and for each turn; means are over tokens with a forward pass."""
    tokens = max(numbers.get("tokens", 0.0), 1.0)

    def mean(name: str) -> float:
        return numbers.get(name, 0.0) / tokens

    return {
        "rows": whole.rows,
        "tokens": whole.tokens,
        "forward_tokens": int(numbers.get("tokens", 0)),
        "loss": numbers.get("loss", 0.0),
        "kl": mean("kl") if beta else None,
        "kl_start": mean("kl_old"),
        "entropy": mean("entropy"),
        "ratio_mean": mean("ratio"),
        "ratio_max": numbers.get("ratio_max", 0.0),
        "clip_low": mean("clip_low"),
        "clip_high": mean("clip_high"),
        "is_ratio_mean": mean("is_ratio"),
        "is_ratio_max": numbers.get("is_ratio_max", 0.0),
        "is_used_mean": mean("is_used"),
        "is_clipped": mean("is_clipped"),
        "logp_diff": mean("logp_diff"),
    }


def table_row(
    rows: Sequence[Row], step: Step, number: int, sums: Sums, grad_norm: float, lr: float, beta: float
) -> dict[str, object]:
    """The row of UPDATES for a step that was taken."""
    by_turn = []
    for turn in sorted({rows[at].turn for at in step.rows}):
        whole = count(rows[at] for at in step.rows if rows[at].turn == turn)
        by_turn.append({"turn": turn, **measures(sums.turns.get(turn, {}), whole, beta)})
    return {
        "step": number,
        "epoch": step.epoch,
        **measures(sums.overall(), step.whole, beta),
        "grad_norm": grad_norm,
        "lr": lr,
        "by_turn": by_turn,
    }


def forward_tokens(rows: Sequence[Row], steps: Sequence[Step], beta: float) -> int:
    """Completion tokens that `steps` run forward and backward."""
    return sum(rows[at].tokens for step in steps for at in step.rows if needs_forward(rows[at], beta))


def _start(trainer: Trainer, rows: Sequence[Row], steps: Sequence[Step], progress: Progress, timings: Timings) -> None:
    """Log-probabilities at the version's start, where the first step's own forward pass does not give them."""
    settings, beta = trainer.settings, trainer.loss.beta
    active = [at for at in sorted({at for step in steps for at in step.rows}) if needs_forward(rows[at], beta)]
    later = [at for at in active if at not in steps[0].rows]

    def run(model: torch.nn.Module, chosen: list[int]) -> Known:
        with timings.phase("log-probabilities", "tokens") as phase:
            phase.count = sum(rows[at].tokens for at in chosen)
            return logprobs_of(model, rows, chosen, trainer.compute, settings.tokens_per_batch, trainer.ranks)

    if later:
        progress.old = run(trainer.model, later)
    if beta and trainer.reference is None:  # the reference is the version's start itself
        progress.old = {**run(trainer.model, [at for at in active if at not in progress.old]), **progress.old}
        progress.ref = progress.old
    elif beta:
        progress.ref = run(trainer.reference(), active)


def _gradient(trainer: Trainer, rows: Sequence[Row], step: Step, progress: Progress, advance: Advance) -> Sums:
    budget = trainer.settings.tokens_per_batch
    known = progress.old, progress.ref
    return add_gradient(
        trainer.model, rows, step, trainer.loss, trainer.compute, budget, *known, advance, trainer.ranks
    )


def _culprits(trainer: Trainer, rows: Sequence[Row], step: Step, progress: Progress) -> list[str]:
    """The nodes whose own gradient is not finite; run only after a step's gradient was not."""
    bad = []
    for at in step.rows:
        trainer.optimiser.zero_grad()
        _gradient(trainer, rows, Step(step.epoch, (at,), step.whole), progress, lambda _: None)
        norm = clip(trained(trainer.model).values(), trainer.settings.max_grad_norm)
        if not norm < float("inf"):
            bad.append(rows[at].node_id)
    return bad or [rows[at].node_id for at in step.rows]


def train_version(
    trainer: Trainer,
    rows: Sequence[Row],
    steps: Sequence[Step],
    progress: Progress,
    timings: Timings,
    advance: Advance = lambda _: None,
    after_step: Callable[[Progress], None] = lambda _: None,
) -> Progress:
    """Take the steps of a version that are not done yet; weights, optimiser and `progress` are changed in place.

    `advance` hears of completion tokens dealt with; `after_step` is called after each step but the last. UserError
    names the nodes involved where anything is NaN or infinite; the step is then not taken.
    """
    settings = trainer.settings
    if not progress.done:
        _start(trainer, rows, steps, progress, timings)
    parameters = list(trained(trainer.model).values())
    for number in range(progress.done, len(steps)):
        if progress.stopped:
            break
        step = steps[number]
        trainer.optimiser.zero_grad()
        with timings.phase("forward and backward", "tokens") as phase:
            sums = _gradient(trainer, rows, step, progress, advance)
            whole = sums.overall()
            phase.count = int(whole["tokens"])
        if settings.target_kl is not None and whole["kl_old"] / whole["tokens"] > settings.target_kl:
            progress.stopped = True
            break
        with timings.phase("optimiser"):
            norm = clip(parameters, settings.max_grad_norm)
            if not norm < float("inf"):
                nodes = _culprits(trainer, rows, step, progress)
                raise UserError(
                    f"the gradient of {named(nodes)} is NaN or infinite, so step {number} was not taken; look at these "
                    "nodes in the rollouts and credit tables, lower update.lr, or use float32"
                )
            lr = lr_at(progress.position, settings)
            set_lr(trainer.optimiser, lr)
            trainer.optimiser.step()
        progress.table.append(table_row(rows, step, number, sums, norm, lr, trainer.loss.beta))
        progress.done += 1
        progress.position += 1
        if progress.done < len(steps):
            after_step(progress)
    trainer.optimiser.zero_grad()
    return progress
