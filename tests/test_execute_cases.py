"""Cases of the `judge` command: what they become, and what is wrong with them."""

import json

import pytest

from stages.common.cli import UserError
from stages.execute.__main__ import main as execute
from stages.execute.cases import relies_on_changes, task_of
from stages.execute.cases import test_names as names_of


def case(**more):
    return {"id": "a", "code": "def f(x): return x", "tests": ["assert f(1) == 1"]} | more


def test_a_function():
    row = task_of(
        case(inplace=True, setup="import math", cpu_seconds=2, memory_mb=99, reference="def f(x): return x"), 1
    )
    assert (row["kind"], row["entry_point"], row["inplace"], row["cpu_seconds"]) == ("function", "f", True, 2)
    assert row["tests"] == [{"visible": True, "code": "assert f(1) == 1", "stdin": None, "stdout": None}]
    assert row["memory_mb"] == 99 and row["setup"] == "import math" and row["reference"].startswith("def")


@pytest.mark.parametrize(
    ("tests", "entry"),
    [
        (["assert f(1) == 1", "assert len(f(2)) == 1"], "f"),
        (["assert f(1) == g(1)"], None),
        (["assert f(1) == 1", "assert g(1) == 1"], None),
        (["def h(x): return f(x)\nassert h(1) == 1"], "f"),
        (["from math import isclose\nclass C: pass\nassert isclose(f(C()), 1)"], "f"),
        (["x = [f(i) for i in range(3)]\nassert x == [0, 1, 2]"], "f"),
        (["assert f(1 =="], None),
    ],
)
def test_the_name_that_all_tests_call(tests, entry):
    assert task_of(case(tests=tests), 1)["entry_point"] == entry


def test_programs_and_files():
    pair = {"stdin": "1", "stdout": "2"}
    for given in ({"tests": [pair]}, {"tests": [pair], "mode": "stdio"}, {"tests": [pair], "exact": True}):
        row = task_of(case(**given), 1)
        assert (row["kind"], row["exact"]) == ("stdio", given.get("exact", False))
        assert row["tests"] == [{"visible": True, "code": None, **pair}]
    assert task_of(case(tests=[{"stdout": "2"}], tolerance=0.5), 1)["tolerance"] == 0.5
    row = task_of(
        case(test_code="from solution import f\ndef test_a(): pass\nclass TestB:\n    def test_c(self): pass\n"), 1
    )
    assert row["kind"] == "pytest" and [t["code"] for t in row["tests"]] == ["test_a", "TestB::test_c"]
    assert [t["code"] for t in task_of(case(test_code="x ="), 1)["tests"]] == [""]


def test_names_of_tests():
    source = (
        "import unittest\nasync def test_a(): pass\ndef helper(): pass\ndef test_a(): pass\nclass Helper:\n"
        "    def test_no(self): pass\n"
        "class Cases(unittest.TestCase):\n    def test_b(self): pass\n    def setUp(self): pass\n"
    )
    assert names_of(source) == ["test_a", "Cases::test_b"]


@pytest.mark.parametrize(
    ("test", "relies"),
    [
        ("xs = [1]\nf(xs)\nassert xs == []", True),
        ("xs = [1]\nfor _ in range(2):\n    f(xs)\nassert xs == []", True),
        ("def test():\n    xs = [1]\n    f(xs)\n    assert xs == []", True),
        ("xs = [1]\nassert f(xs) == 1", False),
        ("xs = [1]\nxs.sort()\nassert f(xs) == 1", False),
        ("import pytest\nx = 1\nwith pytest.raises(ValueError):\n    f(x)", False),
        ("x = 1\nprint(x)", False),
        ("f(1)", False),
        ("f(", False),
    ],
)
def test_tests_that_rely_on_changes(test, relies):
    assert relies_on_changes([test]) is relies


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([{"code": "", "tests": []}], "line 1: `id` is missing"),
        ([case(), {"id": "b", "tests": []}], "line 2: `code` is missing"),
        ([{"id": "b", "code": "", "tests": "assert 1"}], "line 1: `tests` is missing or no list"),
        ([{"id": "b", "code": "", "test_code": 1}], "`test_code` is missing or no str"),
        ([case(), case()], "an id occurs more than once"),
        ([case(tests=[])], "no tests"),
        ([[1]], "line 1: not a JSON object"),
    ],
)
def test_faults_are_named(tmp_path, lines, message):
    path = tmp_path / "cases.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(UserError) as error:
        execute(["judge", str(path)])
    assert message in str(error.value)


def test_no_file_no_json_no_cases(tmp_path, capsys):
    path = tmp_path / "cases.jsonl"
    with pytest.raises(UserError, match="no such file"):
        execute(["judge", str(path)])
    path.write_text("{\n")
    with pytest.raises(UserError, match="line 1: not JSON"):
        execute(["judge", str(path)])
    path.write_text("\n")
    assert execute(["judge", str(path), "--out", str(tmp_path / "out.jsonl")]) == 0
    assert capsys.readouterr().out == "" == (tmp_path / "out.jsonl").read_text()


def test_the_lines_that_come_out(tmp_path, capsys):
    lines = [
        case(id="right"),
        case(id="wrong", tests=["assert f(1) == 1", "assert f(2) == 3"]),
        case(id="stdio", code="print(input())", tests=[{"stdin": "a\u2028b", "stdout": "a"}]),
        case(id="surrogate", code="def f(x): raise ValueError('\\ud800\\x00')"),
    ]
    path, out = tmp_path / "cases.jsonl", tmp_path / "out.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    execute(["judge", str(path), "--out", str(out)])
    printed = capsys.readouterr().out
    assert printed == out.read_text() and printed.isascii()
    rows = {row["id"]: row for row in map(json.loads, printed.splitlines())}
    right = {"verdict": "passed", "reward": 1.0, "kinds": ["passed"], "message": None, "mode": "answer_blind"}
    assert rows["right"] == {"id": "right", **right}
    assert rows["wrong"]["verdict"] == "failed:wrong_answer" and rows["wrong"]["reward"] == 0.5
    assert rows["wrong"]["message"] == "got 2, expected 3" and rows["wrong"]["kinds"] == ["passed", "wrong_answer"]
    assert rows["stdio"]["mode"] == "stdio" and rows["stdio"]["message"].startswith("got a\u2028b")
    assert rows["surrogate"]["message"].startswith("ValueError: \\ud800\\x00")
