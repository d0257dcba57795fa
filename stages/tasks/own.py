"""Tasks in the project's own format: the columns of the TASKS table, one JSON object a line or Parquet rows.

Needed are `task_id`, `prompt` and `tests`, a list of `{"code", "visible"}` or `{"stdin", "stdout", "visible"}`; a test
is hidden unless it says `"visible": true`. The starter tasks (data/starter.jsonl) are in this format, see
docs/data.md.
"""

import difflib

from stages.common.tables import TASKS, TEST
from stages.tasks.records import Record, new_test, task

FIELDS = ("task_id", "prompt", "tests")
USES = ()  # every field: one that is not known is an error
_COLUMNS = {field.name: field for field in TASKS.schema}
_TEST_COLUMNS = [field.name for field in TEST]
_NUMBER = (int, float)
_KINDS = {"inplace": bool, "exact": bool, "packages": list, "tolerance": _NUMBER, "cpu_seconds": _NUMBER}
_KINDS["memory_mb"] = int  # the others hold text


def _unknown(record: Record, names: object, known: list[str], where: str) -> None:
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(known)}"
            raise record.fail(f"unknown field {name!r}{where}{hint}")


def _tests(record: Record) -> list[dict]:
    rows = []
    for index, raw in enumerate(record.get("tests", kind=list)):
        if not isinstance(raw, dict):
            raise record.fail(f"tests[{index}] is not an object with 'code', or with 'stdin' and 'stdout'")
        _unknown(record, raw, _TEST_COLUMNS, f" in tests[{index}]")
        one = Record(f"{record.where}, tests[{index}]", raw)
        text = {name: one.get(name, default=None) for name in ("code", "stdin", "stdout")}
        rows.append(new_test(visible=one.get("visible", kind=bool, default=False), **text))
    return rows


def name(record: Record) -> str:
    """The task's id."""
    return record.get("task_id")


def difficulty(record: Record) -> str | None:
    """The difficulty as given."""
    return record.get("difficulty", default=None)


def convert(record: Record) -> dict:
    """A row in the project's own format as a row of the TASKS table."""
    _unknown(record, record.fields, list(_COLUMNS), "")
    tests = _tests(record)
    stdio = bool(tests) and all(one["stdin"] is not None for one in tests)
    row = {"kind": "stdio" if stdio else "function"}
    for column in _COLUMNS:
        if column not in ("tests", "source") and record.has(column):
            row[column] = record.get(column, kind=_KINDS.get(column, str))
    row |= {"task_id": name(record), "prompt": record.get("prompt")}
    if not all(isinstance(package, str) for package in row.get("packages", [])):
        raise record.fail("field 'packages' must be a list of names")
    return task(record, source=record.get("source", default=name(record).split("/")[0]), tests=tests, **row)
