"""Which tasks of a data set a run takes, and which of them are held out.

Both are decided by hashes of the task ids alone: adding tasks to a data set, or another seed, moves no task from one
split to the other. The two hashes are independent of each other. Rows are chosen before they are converted, one by
one, so that a thousand tasks of a large hub data set cost no more memory than they need.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from types import ModuleType

from stages.common.cli import UserError
from stages.common.ids import seed_for
from stages.tasks.records import LEVELS, Record


def share(purpose: str, task_id: str) -> float:
    """A number in [0, 1] that depends on the purpose and the task's id only."""
    return seed_for(purpose, task_id) / 2**63


def is_heldout(task_id: str, heldout_share: float) -> bool:
    """Whether a task is held out for evaluation, by the hash of its id."""
    return share("heldout", task_id) < heldout_share


def in_order(difficulties: Iterable[str | None]) -> list[str]:
    """The different difficulties, easy to hard first, others by name; `none` stands for tasks without one."""
    names = {name or "none" for name in difficulties}
    return [name for name in LEVELS if name in names] + sorted(names - set(LEVELS))


def released(records: Iterable[Record], module: ModuleType, first: str | None, last: str | None) -> Iterator[Record]:
    """The records released from day `first` to day `last` (YYYY-MM-DD, both included; None is open).

    Raises UserError for a format that knows no such day, and for a row without one.
    """
    if (first or last) and not hasattr(module, "released"):
        name = module.__name__.rpartition(".")[2]
        raise UserError(f"tasks.released_from, released_until: format {name} does not say when a task was released")
    for record in records:
        if not (first or last) or (first or "") <= module.released(record)[:10] <= (last or "9999"):
            yield record


def worded(records: Iterable[Record], module: ModuleType, wording: str) -> Iterator[Record]:
    """The records, asked for in the `wording` that is wanted: a data set with both asks in words unless told."""
    if wording == "complete" and "instruct_prompt" not in module.USES:
        name = module.__name__.rpartition(".")[2]
        raise UserError(f"tasks.wording: complete: format {name} has one wording only; leave the key out")
    for record in records:
        fields = {key: value for key, value in record.fields.items() if key != "instruct_prompt"}
        yield Record(record.where, fields) if wording == "complete" else record


def chosen(records: Iterable[Record], module: ModuleType, difficulty: Sequence[str], limit: int | None) -> list[Record]:
    """The records whose difficulty is wanted (any, where `difficulty` is empty); of those at most `limit`.

    `limit` keeps the lowest hashes of the ids. Raises UserError for an id that occurs twice, and, listing the
    difficulties there are, where none is left or a wanted one does not occur.
    """
    from tqdm import tqdm

    seen: dict[str, str] = {}
    levels: Counter[str] = Counter()

    def wanted() -> Iterator[Record]:
        for record in tqdm(records, "reading tasks", unit=" rows", delay=2):
            task_id, level = module.name(record), module.difficulty(record) or "none"
            if task_id in seen:
                raise record.fail(f"task_id {task_id!r} occurs twice; the other is {seen[task_id]}")
            seen[task_id] = record.where
            levels[level] += 1
            if not difficulty or level in difficulty:
                yield record

    def by_hash(record: Record) -> tuple[float, str]:
        task_id = module.name(record)
        return share("limit", task_id), task_id

    kept = list(wanted()) if limit is None else heapq.nsmallest(limit, wanted(), key=by_hash)
    odd = [level for level in difficulty if level not in levels]
    if odd or not kept:
        listed = ", ".join(f"{name} ({levels[name]})" for name in in_order(levels)) or "no rows at all"
        text = f"no task has difficulty {' or '.join(odd)}" if odd else "no tasks"
        raise UserError(f"tasks.difficulty: {text}; the data set has {listed}")
    return kept
