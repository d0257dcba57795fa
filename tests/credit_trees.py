"""Rollout trees for the tests of credit, written as the tables that the stage reads, and what should come out.

:func:`expected` is a recursion over plain objects in exact rational arithmetic. It shares nothing with the SQL: not the
sums, not the order of work, not the rounding.
"""

import math
import random
from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from stages.common import tables
from stages.common.config import Credit

EPSILON = 1e-4


@dataclass
class Node:
    """A node of a tree; `reward` is None where it could not be judged."""

    node_id: str
    group_id: str
    task_id: str
    turn: int
    reward: Fraction | None
    parent: "Node | None" = None
    children: list["Node"] = field(default_factory=list)

    @property
    def sample(self) -> int:
        return int(self.node_id.replace("/", ".").rsplit(".", 1)[1])

    @property
    def feedback_task(self) -> str:
        return self.task_id


def tree(task: str, written: list) -> list[Node]:
    """The nodes of a tree written as a list of roots, each a reward, or (reward, [children])."""

    def group(written: list, turn: int, parent: Node | None) -> list[Node]:
        group_id = parent.node_id if parent else f"0/{task}"
        nodes = []
        for sample, item in enumerate(written):
            reward, below = item if isinstance(item, tuple) else (item, [])
            reward = None if reward is None else Fraction(reward)
            name = f"{group_id}{'.' if parent else '/'}{sample}"
            node = Node(name, group_id, task, turn, reward, parent)
            if parent:
                parent.children.append(node)
            nodes += [node, *group(below, turn + 1, node)]
        return nodes

    return group(written, 1, None)


def random_tree(rng: random.Random, task: str, turns: int) -> list[Node]:
    """A tree as a run could leave it and worse: ragged groups, unjudged nodes with and without children, lone nodes."""
    total = rng.choice([1, 2, 3, 7, 10])

    def group(turn: int) -> list:
        written = []
        for _ in range(rng.randint(1, 6)):
            reward = None if rng.random() < 0.1 else Fraction(rng.randint(0, total), total)
            grows = turn < turns and reward != 1 and rng.random() < 0.7
            written.append((reward, group(turn + 1) if grows else []))
        return written

    return tree(task, group(1))


def rollout_row(node: Node) -> dict:
    return {
        "node_id": node.node_id,
        "parent_id": node.parent.node_id if node.parent else None,
        "group_id": node.group_id,
        "task_id": node.task_id,
        "sample": node.sample,
        "prompt": "the same prompt everywhere",
        "prompt_ids": [1, 2],
        "completion_ids": [3],
        "sampling_logprobs": [-0.5],
        "text": "",
        "code": None,
        "finish_reason": "stop",
        "seed": 0,
        "policy_hash": "",
    }


def feedback_row(node: Node) -> dict:
    return {
        "node_id": node.node_id,
        "task_id": node.task_id,
        "reward": None if node.reward is None else float(node.reward),
        "passed": 0,
        "total": 1,
        "hidden_passed": 0,
        "hidden_total": 1,
        "kind": "infra_error" if node.reward is None else "passed",
        "mode": "answer_blind",
        "feedback": "",
    }


def write_rows(folder: Path, table: tables.Table, turn: int, rows: list[dict], shard: int = 0) -> Path:
    """Write rows as they come, unsorted and unchecked but for their types."""
    path = folder / table.name / "version=0" / f"turn={turn}" / f"shard-{shard}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
    return path


def write_trees(folder: Path, nodes: list[Node], shards: int = 1, shuffle: random.Random | None = None) -> dict:
    """The rollouts and feedback files of `nodes`, as keyword arguments of ``assign``; rows in random order if asked."""
    files: dict[str, list[Path]] = {"rollouts": [], "feedback": []}
    for table, make in ((tables.ROLLOUTS, rollout_row), (tables.FEEDBACK, feedback_row)):
        for turn in range(1, max((node.turn for node in nodes), default=1) + 1):
            rows = [make(node) for node in nodes if node.turn == turn]
            if shuffle:
                shuffle.shuffle(rows)
            for shard in range(shards):
                files[table.name].append(write_rows(folder, table, turn, rows[shard::shards], shard))
        if shuffle:
            shuffle.shuffle(files[table.name])
    return files


@dataclass
class Expected:
    """What one node's row must hold."""

    credit: Fraction | None
    mean: float | None
    std: float | None
    advantage: float
    reason: str | None


def _credit(node: Node, turns: int, settings: Credit) -> Fraction | None:
    below = [credit for child in node.children if (credit := _credit(child, turns, settings)) is not None]
    if node.reward is None or not below or settings.strategy == "own":
        return node.reward
    if settings.strategy == "mars":
        return max(node.reward, *below)
    divisor = turns - node.turn + 1 if settings.normalise == "per_turn" else 1
    return (node.reward + Fraction(str(settings.gamma)) * sum(below) / len(below)) / divisor


def variance(values: list[Fraction]) -> Fraction:
    """Sample variance, 0 for fewer than two values."""
    if len(values) < 2:
        return Fraction(0)
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _prune(groups: dict[str, list[Node]], value: dict[str, Fraction | None], settings: Credit) -> dict[str, str]:
    reasons: dict[str, str] = {}

    def judged(name: str) -> list[Node]:
        return [node for node in groups[name] if value[node.node_id] is not None]

    if settings.prune in ("inter", "inter+intra"):
        places = defaultdict(list)
        for name, nodes in groups.items():
            places[nodes[0].task_id, nodes[0].turn].append(name)
        for names in places.values():
            spread = {name: variance([value[node.node_id] for node in judged(name)]) for name in names}
            for name in sorted(names, key=lambda name: (-spread[name], name.encode()))[settings.inter_groups :]:
                reasons |= {node.node_id: "inter" for node in groups[name]}
    if settings.prune in ("intra", "inter+intra"):
        m = settings.intra_nodes
        for name, nodes in groups.items():
            if len(nodes) <= m or nodes[0].node_id in reasons:
                continue
            order = sorted(judged(name), key=lambda node: (-value[node.node_id], node.node_id.encode()))
            stay = order
            if len(order) > m:
                splits = [order[:k] + order[len(order) - (m - k) :] for k in range(m, -1, -1)]
                stay = max(splits, key=lambda split: variance([value[node.node_id] for node in split]))
            kept = {node.node_id for node in stay}
            reasons |= {node.node_id: "intra" for node in nodes if node.node_id not in kept}
    return reasons


def expected(nodes: list[Node], turns: int, settings: Credit) -> dict[str, Expected]:
    """The credit table by recursion: node_id to what its row must hold."""
    credit = {node.node_id: _credit(node, turns, settings) for node in nodes}
    groups: dict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        groups[node.group_id].append(node)
    rank = credit if settings.rank_by == "credit" else {node.node_id: node.reward for node in nodes}
    reasons = _prune(groups, rank, settings)

    def counts(node: Node) -> bool:
        return credit[node.node_id] is not None and (settings.stats_over == "all" or node.node_id not in reasons)

    batch = math.sqrt(variance([credit[node.node_id] for node in nodes if counts(node)]))
    rows = {}
    for members in groups.values():
        values = [credit[node.node_id] for node in members if counts(node)]
        mean = sum(values) / len(values) if values else None
        std = math.sqrt(variance(values)) if len(values) > 1 else None
        for node in members:
            own, reason = credit[node.node_id], reasons.get(node.node_id)
            advantage = 0.0
            if own is not None and reason is None and std:
                scale = {"group": std + EPSILON, "batch": batch + EPSILON, "none": 1.0}[settings.scale]
                advantage = float(own - mean) / scale
            rows[node.node_id] = Expected(own, None if mean is None else float(mean), std, advantage, reason)
    return rows
