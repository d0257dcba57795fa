"""Which rows a version trains on: the kept nodes of the credit table, joined to their rollouts, cut into steps.

Light: numpy and pyarrow, no torch. Rows whose advantage is exactly 0 have no gradient without a KL term; they are
counted in the denominators and get no forward pass. What it does not cover: credit and pruning (the credit stage).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stages.common import tables
from stages.common.cli import UserError
from stages.update.loss import Denominator

CREDIT_COLUMNS = ["node_id", "group_id", "turn", "advantage", "kept"]
ROLLOUT_COLUMNS = ["node_id", "prompt_ids", "completion_ids", "sampling_logprobs", "finish_reason", "policy_hash"]
SHOWN = 3  # node ids named in a message


@dataclass(frozen=True)
class Row:
    """One kept node. `prompt` and `completion` are token ids, `sampling` the engine's log-probabilities of the latter.

    `counted` is False where the completion was cut off and truncated completions are masked.
    """

    node_id: str
    group_id: str
    turn: int
    advantage: float
    prompt: np.ndarray
    completion: np.ndarray
    sampling: np.ndarray
    counted: bool = True

    @property
    def tokens(self) -> int:
        """Completion tokens that the loss counts."""
        return len(self.completion) if self.counted else 0


@dataclass(frozen=True)
class Step:
    """One optimiser step: its `rows` (indices into the version's rows), and what it counts in all."""

    epoch: int
    rows: tuple[int, ...]
    whole: Denominator


def named(node_ids: Iterable[str]) -> str:
    """The first few node ids, and how many more there are."""
    ids = list(node_ids)
    more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
    return ", ".join(ids[:SHOWN]) + more


def _check_sampling(node_id: str, completion: np.ndarray, sampling: np.ndarray) -> None:
    if len(sampling) != len(completion):
        raise UserError(
            f"rollouts: node {node_id} has {len(completion)} completion tokens and {len(sampling)} sampling_logprobs; "
            "generate it again with an engine that returns one log-probability per token"
        )
    if not np.isfinite(sampling).all():
        at = int(np.flatnonzero(~np.isfinite(sampling))[0])
        raise UserError(
            f"rollouts: node {node_id} has sampling_logprobs[{at}] = {sampling[at]}; the engine met NaN or infinite "
            "logits; generate it again (dtype float32 if this comes back)"
        )


def load_rows(credit: Path, rollouts: list[Path], policy_hash: str, mask_truncated: bool = False) -> list[Row]:
    """The kept nodes, sorted by node id; nodes without a completion (context_overflow) are left out.

    UserError: a kept node without a rollout, rollouts of another policy, sampling log-probabilities that are missing,
    NaN or infinite.
    """
    facts = tables.read(credit, tables.CREDIT, CREDIT_COLUMNS)
    kept = [row for row in facts.to_pylist() if row["kept"]]
    if not kept:
        return []
    data = tables.read(rollouts, tables.ROLLOUTS, ROLLOUT_COLUMNS)
    ids = data["node_id"].to_pylist()
    hashes = data["policy_hash"].to_pylist()
    others = [node for node, was in zip(ids, hashes, strict=True) if was != policy_hash]
    if others:
        was = next(value for value in hashes if value != policy_hash)
        raise UserError(
            f"rollouts: {named(others)} were sampled from policy {was}, and the policy to update is {policy_hash}; "
            "generate this version's rollouts again"
        )
    place = {node: at for at, node in enumerate(ids)}
    absent = [row["node_id"] for row in kept if row["node_id"] not in place]
    if absent:
        raise UserError(f"{credit}: {named(absent)} have no rollout; give the rollouts of every turn of the version")
    rows = []
    for fact in kept:
        at = place[fact["node_id"]]
        completion = np.asarray(data["completion_ids"][at].values.to_numpy(), dtype=np.int64)
        if not len(completion):
            continue
        sampling = np.asarray(data["sampling_logprobs"][at].values.to_numpy(zero_copy_only=False), dtype=np.float32)
        _check_sampling(fact["node_id"], completion, sampling)
        prompt = np.asarray(data["prompt_ids"][at].values.to_numpy(), dtype=np.int64)
        if not len(prompt):
            raise UserError(f"rollouts: node {fact['node_id']} has an empty prompt; generate it again")
        if not np.isfinite(fact["advantage"]):
            raise UserError(f"{credit}: node {fact['node_id']} has advantage {fact['advantage']}; make the table again")
        counted = not (mask_truncated and data["finish_reason"][at].as_py() == "length")
        names = (fact["node_id"], fact["group_id"], fact["turn"], float(fact["advantage"]))
        rows.append(Row(*names, prompt, completion, sampling, counted))
    return rows


def informative(row: Row) -> bool:
    """Whether a row moves the policy by its advantage."""
    return row.advantage != 0 and row.tokens > 0


def needs_forward(row: Row, beta: float) -> bool:
    """Whether a row has a gradient at all: by its advantage, or by the KL term."""
    return row.tokens > 0 and (row.advantage != 0 or beta > 0)


def count(rows: Iterable[Row]) -> Denominator:
    """The denominators of a step that is made of `rows`; a masked completion is still a row."""
    rows = list(rows)
    return Denominator(len(rows), sum(row.tokens for row in rows))


def plan(rows: list[Row], epochs: int, minibatches: int, rng: np.random.Generator) -> list[Step]:
    """The optimiser steps of a version; none where no row is informative.

    Siblings stay in one step, as they share their prompt. Groups are shuffled once per epoch and dealt out so that
    every step gets its share of the informative ones; there are never more steps than informative groups.
    """
    groups: dict[str, list[int]] = {}
    for at, row in enumerate(rows):
        groups.setdefault(row.group_id, []).append(at)
    members = list(groups.values())
    useful = [any(informative(rows[at]) for at in group) for group in members]
    per_epoch = min(minibatches, sum(useful))
    steps = []
    for epoch in range(epochs if per_epoch else 0):
        order = rng.permutation(len(members))
        ranked = [i for i in order if useful[i]] + [i for i in order if not useful[i]]
        for part in range(per_epoch):
            chosen = sorted(at for i in ranked[part::per_epoch] for at in members[i])
            steps.append(Step(epoch, tuple(chosen), count(rows[at] for at in chosen)))
    return steps
