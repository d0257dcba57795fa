"""One row of a data set with the place where it stands, and the tasks made of such rows.

A `Record` reads fields and complains with file, row and key; :func:`task` completes a row of the TASKS table and
checks that its tests can be run. Nothing here executes code of a data set.
"""

import ast
import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from stages.common.cli import UserError
from stages.common.tables import TASKS

KINDS = ("function", "pytest", "stdio", "unittest")
LEVELS = ("easy", "medium", "hard")  # order in which difficulties are listed; a data set may use other words


@dataclass(frozen=True)
class Record:
    """A row as its file holds it; `where` is "file, row n" for messages (rows count from 1)."""

    where: str
    fields: Mapping[str, object]

    def fail(self, text: str) -> UserError:
        """A UserError about this row."""
        return UserError(f"{self.where}: {text}")

    def has(self, *names: str) -> bool:
        """Whether all these fields are there and not NULL."""
        return all(self.fields.get(name) is not None for name in names)

    def get(self, *names: str, kind: type | tuple[type, ...] = str, default: object = ...) -> object:
        """The first of the fields `names` that is there and not NULL, which must be of type `kind`.

        Raises UserError where none is there and no default is given, or where the type is another one.
        """
        for name in names:
            value = self.fields.get(name)
            if value is None:
                continue
            if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
                wanted = " or ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))
                raise self.fail(f"field {name!r} holds {type(value).__name__}, not {wanted}")
            return value
        if default is not ...:
            return default
        near = difflib.get_close_matches(names[0], map(str, self.fields), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(map(str, self.fields)) or 'no fields'}"
        raise self.fail(f"field {' or '.join(map(repr, names))} is missing{hint}")


def parse(record: Record, code: str, what: str) -> ast.Module:
    """The syntax tree of `code`; UserError names `what` and the line where it is not Python."""
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError) as error:
        raise record.fail(f"{what} is not Python: {error}") from None


def new_test(
    code: str | None = None, visible: bool = False, stdin: str | None = None, stdout: str | None = None
) -> dict:
    """One test of a task, all columns present."""
    return {"visible": visible, "code": code, "stdin": stdin, "stdout": stdout}


def functions(tree: ast.AST) -> dict[str, ast.FunctionDef]:
    """Functions at the top of a module or class, by name."""
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def _check_test(record: Record, row: dict, index: int, names: set[str]) -> None:
    one, where = row["tests"][index], f"tests[{index}]"
    if row["kind"] == "stdio":
        if one["stdin"] is None or one["stdout"] is None:
            raise record.fail(f"{where}: a stdio test needs 'stdin' and 'stdout'")
    elif not (one["code"] or "").strip():
        raise record.fail(f"{where}: a {row['kind']} test needs 'code'")
    elif row["kind"] == "function":
        parse(record, one["code"], f"{where}.code")
    elif row["kind"] == "pytest" and one["code"] not in names:
        raise record.fail(f"{where}.code: no test function {one['code']!r} in 'setup'")


def task(record: Record, **given: object) -> dict:
    """A row of the TASKS table from the columns given, the others empty; UserError where it could not be run."""
    row: dict[str, object] = dict.fromkeys(TASKS.schema.names)
    row |= {"inplace": False, "exact": False, "packages": [], "kind": "function"} | given
    if not row["prompt"].strip():
        raise record.fail("field 'prompt' is empty")
    if row["kind"] not in KINDS:
        near = difflib.get_close_matches(str(row["kind"]), KINDS, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise record.fail(f"unknown kind {row['kind']!r}, known are {', '.join(KINDS)}{hint}")
    if not row["tests"]:
        raise record.fail(f"task {row['task_id']} has no tests")
    if row["kind"] == "function" and not str(row["entry_point"] or "").isidentifier():
        raise record.fail("field 'entry_point' must name the function or class that the tests call")
    if row["kind"] in ("pytest", "unittest") and not row["setup"]:
        raise record.fail(f"field 'setup' must hold the test file of a {row['kind']} task")
    if row["kind"] != "stdio" and (row["exact"] or row["tolerance"] is not None):
        raise record.fail("'exact' and 'tolerance' say how output is compared, so they are for stdio tasks only")
    if row["tolerance"] is not None and not (0 <= row["tolerance"] < 1 and not row["exact"]):
        raise record.fail("field 'tolerance' must be at least 0 and below 1, and not beside 'exact'")
    for part in ("prelude", "setup"):
        if row[part]:
            parse(record, row[part], f"field {part!r}")
    names: set[str] = set()
    if row["kind"] == "pytest":
        tree = ast.parse(row["setup"])
        names = set(functions(tree))
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                names |= {f"{node.name}::{name}" for name in functions(node)}
    for index in range(len(row["tests"])):
        _check_test(record, row, index, names)
    return row
