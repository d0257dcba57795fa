"""Which prompts a turn samples from: tasks for turn 1, failed nodes and their feedback for later turns.

Pure functions of tables; they know nothing of tokenizers or engines.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stages.common.cli import UserError
from stages.common.config import Generate
from stages.common.ids import root_group, seed_for
from stages.common.prompts import conversation, fenced
from stages.generate.extract import without_thinking


@dataclass(frozen=True)
class Prompt:
    """One prompt: G nodes are sampled from it and make one group."""

    group_id: str
    parent_id: str | None
    task: Mapping
    messages: list[dict]


def draw_tasks(tasks: Sequence[Mapping], version: int, count: int | None, seed: int) -> list[Mapping]:
    """The tasks of a policy version: `count` (None: all) from an endless series of seeded shuffles, cut in order.

    No task comes twice before all were used; a count above the number of tasks is cut to it.
    """
    tasks = sorted(tasks, key=lambda task: task["task_id"])
    if count is None or count >= len(tasks):
        return tasks
    chosen: dict[str, Mapping] = {}
    for place in range(version * count, (version + 1) * count):
        lap, at = divmod(place, len(tasks))
        order = list(range(len(tasks)))
        random.Random(seed_for(seed, "tasks", lap)).shuffle(order)
        task = tasks[order[at]]
        chosen[task["task_id"]] = task
    return list(chosen.values())


def first_tasks(tasks: Sequence[Mapping], limit: int | None) -> list[Mapping]:
    """At most `limit` tasks, chosen by hash of their ids, so that more tasks in the file change few of them."""
    ordered = sorted(tasks, key=lambda task: seed_for("limit", task["task_id"]))
    return ordered if limit is None else ordered[:limit]


def roots(tasks: Sequence[Mapping], version: int, settings: Generate) -> list[Prompt]:
    """One prompt per task."""
    return [
        Prompt(root_group(version, task["task_id"]), None, task, conversation(task, [], settings.instruction))
        for task in tasks
    ]


def _reply(node: Mapping, settings: Generate) -> str:
    """An earlier attempt as a later prompt shows it."""
    if settings.attempt == "code" and node["code"] is not None:
        return fenced(node["code"])
    text = node["text"] if settings.thinking == "keep" else without_thinking(node["text"])
    return text.strip()


def children(
    turns: Sequence[tuple[Sequence[Mapping], Sequence[Mapping]]], tasks: Sequence[Mapping], settings: Generate
) -> list[Prompt]:
    """One prompt per failed node of the last of `turns`, each turn given as (rollouts, feedback) rows, oldest first.

    A node fails when its reward is below 1. A node without a reward (it could not be judged) is not prompted again.
    Raises UserError for a node without feedback or of an unknown task.
    """
    by_task = {task["task_id"]: task for task in tasks}
    nodes = {node["node_id"]: node for rollouts, _ in turns for node in rollouts}
    feedback = {row["node_id"]: row for _, rows in turns for row in rows}
    prompts = []
    for node in turns[-1][0]:
        if node["task_id"] not in by_task:
            raise UserError(f"node {node['node_id']}: task {node['task_id']} is not in the task table")
        if node["node_id"] not in feedback:
            raise UserError(f"node {node['node_id']}: no row in the feedback table; run the execute stage for its turn")
        reward = feedback[node["node_id"]]["reward"]
        if reward is None or reward >= 1:
            continue
        chain = [node]
        while settings.history == "whole" and chain[0]["parent_id"]:
            chain.insert(0, nodes[chain[0]["parent_id"]])
        task = by_task[node["task_id"]]
        attempts = [(_reply(n, settings), feedback[n["node_id"]]["feedback"]) for n in chain]
        messages = conversation(task, attempts, settings.instruction)
        prompts.append(Prompt(node["node_id"], node["node_id"], task, messages))
    return prompts
