"""KodCode: `question`, `solution` and a pytest file, `test_code` or `test`, that does `from solution import ...`.

The test functions are the tests, the first one visible; a parametrised function counts as one. A file that imports
nothing from the solution gets that import for the names it uses: the pipeline that made the data ran both as one file.
Source: Xu et al. 2025 (arXiv 2503.02951).
"""

import ast

from stages.tasks.mutation import changes_arguments
from stages.tasks.records import Record, functions, new_test, parse, task

FIELDS = ("question", "solution")
USES = ("question_id", "conversation_id", "question", "solution", "test_code", "test", "gpt_difficulty")
PACKAGES = ("numpy", "scipy", "pandas")


def name(record: Record) -> str:
    """The task's id, `kodcode/<question id>`."""
    return f"kodcode/{record.get('question_id', 'conversation_id', kind=(str, int))}"


def difficulty(record: Record) -> str | None:
    """How often a model solved the task while the data set was made: easy, medium or hard."""
    return record.get("gpt_difficulty", default=None)


def _imported(tree: ast.AST) -> set[str]:
    """Top-level names of the modules that a file imports, inside functions too."""
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules.add(node.module.split(".")[0])
    return modules


def _yields(function: ast.FunctionDef) -> bool:
    """Whether calling the function gives a generator: pytest runs no such test."""
    todo = list(function.body)
    for node in todo:
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            todo += ast.iter_child_nodes(node)
    return False


def names_of_tests(tree: ast.Module) -> list[str]:
    """The names of a file's test functions as pytest finds them, in order; those of classes as Class::method."""
    found = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found += [node.name] if node.name.startswith("test") and not _yields(node) else []
        elif isinstance(node, ast.ClassDef):
            is_case = node.name.startswith("Test") or any("TestCase" in ast.unparse(base) for base in node.bases)
            methods = functions(node).values() if is_case else []
            found += [f"{node.name}::{m.name}" for m in methods if m.name.startswith("test") and not _yields(m)]
    return list(dict.fromkeys(found))


def _defined(tree: ast.Module) -> list[str]:
    names = [n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
    return names + [t.id for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)]


def _from_solution(tree: ast.Module) -> list[str]:
    return [
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "solution"
        for alias in node.names
    ]


def convert(record: Record) -> dict:
    """A KodCode row as a row of the TASKS table; nothing of it is run."""
    setup, reference = record.get("test_code", "test"), record.get("solution")
    tree, solution = parse(record, setup, "the test file"), parse(record, reference, "field 'solution'")
    names = names_of_tests(tree)
    if not names:
        raise record.fail("the test file holds no test function (def test_...)")
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    wanted = [n for n in _from_solution(tree) if n != "*"]
    if "solution" not in _imported(tree):
        taken = set(_defined(tree)) | _imported(tree)
        wanted = [n for n in _defined(solution) if n in used and n not in taken]
        if wanted:
            setup = f"from solution import {', '.join(wanted)}\n{setup}"
    elif not wanted:
        wanted = [n for n in _defined(solution) if n in used]
    imported = _imported(tree) | _imported(solution)
    prompt = record.get("question").strip()
    if prompt and wanted and not any(n in prompt for n in wanted):
        prompt += f"\n\nName it `{wanted[0]}`."
    bodies = [ast.unparse(n) for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name.startswith("test")]
    return task(
        record,
        task_id=name(record),
        source="kodcode",
        kind="pytest",
        prompt=prompt,
        entry_point=wanted[0] if wanted else None,
        setup=setup,
        tests=[new_test(code, visible=index == 0) for index, code in enumerate(names)],
        reference=reference,
        difficulty=difficulty(record),
        inplace=bool(wanted) and any(changes_arguments(solution, n, bodies) for n in wanted),
        packages=[package for package in PACKAGES if package in imported],
    )
