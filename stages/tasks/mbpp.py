"""MBPP, its full and its sanitised form: `text` or `prompt`, `code`, `test_list`, `test_setup_code` or `test_imports`.

The order is solution, set-up code, tests: the set-up of tasks 367 and 927 builds trees of the solution's own class.
The first test is visible and names the function; `challenge_test_list` (11 tasks have one) is left out, as published
results leave it out. Source: Austin et al. 2021 (arXiv 2108.07732).
"""

import ast

from stages.tasks.mutation import changes_arguments
from stages.tasks.records import Record, new_test, parse, task

FIELDS = ("task_id", "code", "test_list")
USES = (*FIELDS, "text", "prompt", "test_setup_code", "test_imports")


def name(record: Record) -> str:
    """The task's id, `mbpp/<number>`."""
    return f"mbpp/{record.get('task_id', kind=(int, str))}"


def difficulty(record: Record) -> None:
    """MBPP grades nothing."""
    return None


def _text(value: str) -> str:
    return value.replace("\r\n", "\n").replace("\r", "\n")


def _defined(tree: ast.Module) -> list[str]:
    names = [n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    return names + [t.id for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)]


def entry_point(record: Record, code: ast.Module, first_test: ast.Module) -> str:
    """The name the first test calls and the solution defines."""
    defined = _defined(code)
    called = [n.func.id for n in ast.walk(first_test) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
    for candidate in called:
        if candidate in defined:
            return candidate
    raise record.fail(f"the first test calls none of the names that the solution defines ({', '.join(defined)})")


def convert(record: Record) -> dict:
    """An MBPP row as a row of the TASKS table; nothing of it is run."""
    codes = record.get("test_list", kind=list)
    if not codes or not all(isinstance(code, str) and code.strip() for code in codes):
        raise record.fail("field 'test_list' must hold at least one test, as text")
    codes = [_text(code).strip() for code in codes]
    reference = _text(record.get("code"))
    setup = [*record.get("test_imports", kind=list, default=[]), record.get("test_setup_code", default="")]
    solution = parse(record, reference, "field 'code'")
    entry = entry_point(record, solution, parse(record, codes[0], "test_list[0]"))
    return task(
        record,
        task_id=name(record),
        source="mbpp",
        prompt=_text(record.get("text", "prompt")).strip(),
        entry_point=entry,
        setup=_text("\n".join(part for part in setup if part)) or None,
        tests=[new_test(code, visible=index == 0) for index, code in enumerate(codes)],
        reference=reference,
        inplace=changes_arguments(solution, entry, codes),
    )
