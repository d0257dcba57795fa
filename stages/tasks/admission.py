"""Which candidates become tasks: those whose reference scored 1.0 in the sandbox, split by hash of their ids.

Reads the execute stage's tables for the references (there a node's id is the task's id). Where these also hold programs
that do nothing (id + HOLLOW), a task that such a program solves is rejected too: it would pay for anything. A task
without a reference (LiveCodeBench has none) cannot be checked this way; it is admitted, and counted apart.
"""

from collections import Counter
from dataclasses import dataclass, field

from stages.common.cli import UserError
from stages.common.verdicts import HOLLOW, PASSED
from stages.tasks.selection import in_order, is_heldout


@dataclass
class Admission:
    """Rows of the TASKS table that are in, rows of the REJECTED table, and how many came without a reference."""

    tasks: list[dict] = field(default_factory=list)
    rejected: list[dict] = field(default_factory=list)
    unchecked: int = 0


def _reason(node: dict, verdicts: list[dict]) -> str:
    """What went wrong, in one line: tests passed, and kind and message of the first test that did not."""
    failed = next((v for v in verdicts if v["kind"] != PASSED), None)
    if failed is None:
        return f"{node['kind']}: {node['passed']} of {node['total']} tests pass"
    message = " ".join((failed["message"] or "").split())
    text = f"test {failed['test']}: {failed['kind']}" + (f": {message}" if message else "")
    return f"{node['passed']} of {node['total']} tests pass; {text}"


def admit(candidates: list[dict], feedback: list[dict], verdicts: list[dict]) -> Admission:
    """Sort candidates (TASKS rows) by the FEEDBACK and VERDICTS rows of their references.

    Raises UserError where the tables are not of these candidates.
    """
    nodes = {row["node_id"]: row for row in feedback}
    of_node: dict[str, list[dict]] = {}
    for row in sorted(verdicts, key=lambda row: (row["node_id"], row["test"])):
        of_node.setdefault(row["node_id"], []).append(row)
    ids = {task["task_id"] for task in candidates}
    strange = sorted({node.removesuffix(HOLLOW) for node in nodes.keys() | of_node.keys()} - ids)
    missing = sorted(t["task_id"] for t in candidates if t["reference"] is not None and t["task_id"] not in nodes)
    for text, names in (("holds verdicts of unknown tasks", strange), ("lacks the references of tasks", missing)):
        if names:
            shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
            raise UserError(f"the feedback table {text}: {shown}; run the references of these candidates again")
    result = Admission()
    for task in candidates:
        node = nodes.get(task["task_id"])
        if task["reference"] is None:
            result.unchecked += 1
            result.tasks.append(task)
            continue
        idle = nodes.get(task["task_id"] + HOLLOW)
        if node["reward"] != 1.0:
            reason = _reason(node, of_node.get(task["task_id"], []))
        elif idle is not None and idle["reward"] == 1.0:
            reason = f"a program that does nothing passes all {idle['total']} tests"
        else:
            result.tasks.append(task)
            continue
        row = {"task_id": task["task_id"], "source": task["source"], "reward": node["reward"], "reason": reason}
        result.rejected.append(row)
    return result


def split(tasks: list[dict], heldout_share: float) -> tuple[list[dict], list[dict]]:
    """Train and held-out tasks by hash of the task id; UserError where one of them would be empty."""
    heldout = [task for task in tasks if is_heldout(task["task_id"], heldout_share)]
    train = [task for task in tasks if not is_heldout(task["task_id"], heldout_share)]
    for rows, name, way in ((train, "train", "lower"), (heldout, "heldout", "raise")):
        if not rows:
            raise UserError(
                f"the {name} split is empty: {len(tasks)} tasks with tasks.heldout_share {heldout_share}; {way} it, or "
                "take more tasks (tasks.limit, tasks.difficulty)"
            )
    return train, heldout


def table(parts: dict[str, list[dict]]) -> str:
    """Counts by difficulty, one line per split, as text."""
    levels = in_order([task["difficulty"] for tasks in parts.values() for task in tasks])
    lines = []
    for name, tasks in parts.items():
        counts = Counter(task["difficulty"] or "none" for task in tasks)
        lines.append(f"  {name:8} {len(tasks):6}" + "".join(f"  {level} {counts[level]}" for level in levels))
    return "\n".join(lines)
