"""LiveCodeBench end to end: rows in its format, packed private tests, programs of both kinds scored."""

import base64
import json
import pickle
import zlib

from stages.common import tables
from stages.execute.__main__ import main as execute
from stages.tasks.__main__ import main as tasks


def packed(cases):
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(cases)))).decode()


def case(given, output, kind):
    return {"input": given, "output": output, "testtype": kind}


PROGRAM = {
    "question_id": "abc900_b",
    "question_content": "Read n, then n numbers. Print their sum and, on the next line, their mean.",
    "public_test_cases": json.dumps([case("3\n1 2 3\n", "6\n2.0\n", "stdin")]),
    "private_test_cases": packed([case("1\n7\n", "7\n7.0", "stdin"), case("3\n1 0 0\n", "1\n0.333333333\n", "stdin")]),
    "starter_code": "",
    "difficulty": "easy",
    "metadata": "{}",
}
METHOD = {
    "question_id": "3999",
    "question_content": "Return the indices of the two numbers that add up to the target, smallest first.",
    "public_test_cases": json.dumps([case("[2, 7, 11]\n9", "[0, 1]", "functional")]),
    "private_test_cases": packed([case("[3, 3]\n6", "[0, 1]", "functional"), case("[-1, 0, 1]\n0", "[0, 2]", "x")]),
    "starter_code": "class Solution:\n    def twoSum(self, nums: List[int], target: int) -> List[int]:\n        ",
    "difficulty": "medium",
    "metadata": json.dumps({"func_name": "twoSum"}),
}
TEXT = METHOD | {
    "question_id": "4001",
    "public_test_cases": json.dumps([case('"ab\\"é\\n"\n{"a": [1, null]}\ntrue', '"AB\\"É\\n"', "functional")]),
    "private_test_cases": "",
    "metadata": json.dumps({"func_name": "shout"}),
}

GOOD_PROGRAMS = [
    "n = int(input())\na = list(map(int, input().split()))\nprint(sum(a))\nprint(sum(a) / n)",
    "import sys\nif __name__ == '__main__':\n    d = sys.stdin.buffer.read().split()\n    a = [*map(int, d[1:])]\n"
    "    sys.stdout.write(f'{sum(a)}\\n{sum(a) / len(a):.10f}')",
    "def solve():\n    global total\n    total = sum(a)\n    return total\n"
    "a = [int(x) for x in open(0).readlines()[1].split()]\n"
    "print(solve(), total / len(a), sep='\\n')",
]
BAD_PROGRAMS = [
    "print(6)\nprint(2.0)",
    "n = int(input())\na = list(map(int, input().split()))\nprint(sum(a), sum(a) / n)",
    "import os\nprint(6, 2.0, sep='\\n', flush=True)\nos._exit(0)",
]
TWO_SUM = """class Solution:
    def twoSum(self, nums: List[int], target: int) -> List[int]:
        seen = defaultdict(int)
        for i, x in enumerate(nums):
            if target - x in seen:
                return {}
            seen[x] = i
"""
GOOD_METHODS = [
    TWO_SUM.format("[seen[target - x], i]"),
    TWO_SUM.format("(seen[target - x], i)"),  # a tuple counts as a list, as in the benchmark's own runner
    "import itertools\nclass Solution(object):\n    def twoSum(self, n, t):\n"
    "        return next([i, j] for i, j in itertools.combinations(range(len(n)), 2) if n[i] + n[j] == t)\n",
]
ALWAYS_EQUAL = "class L(list):\n    def __eq__(self, other): return True\n    __ne__ = lambda self, other: False\n"
BAD_METHODS = [
    TWO_SUM.format("[i, seen[target - x]]"),
    TWO_SUM.format("{seen[target - x], i}"),
    ALWAYS_EQUAL + "class Solution:\n    def twoSum(self, n, t): return L()\n",
    "class E:\n    __eq__ = lambda self, other: True\nclass Solution:\n    def twoSum(self, n, t): return E()\n",
    "def twoSum(nums, target): return [0, 1]\n",
    "import os\nclass Solution:\n    def twoSum(self, n, t): os._exit(0)\n",
]
GOOD_TEXT = ["class Solution:\n    def shout(self, s, d, b):\n        assert d == {'a': [1, None]} and b is True\n"
             "        return s.upper()\n"]  # fmt: skip


def test_both_kinds(tmp_path, capsys):
    file, candidates = tmp_path / "test.jsonl", tmp_path / "tasks.parquet"
    file.write_text("".join(json.dumps(row) + "\n" for row in (PROGRAM, METHOD, TEXT)))
    programs = {
        "abc900_b": (GOOD_PROGRAMS, BAD_PROGRAMS),
        "3999": (GOOD_METHODS, BAD_METHODS),
        "4001": (GOOD_TEXT, GOOD_METHODS[:1]),
    }
    answers = tmp_path / "answers.json"  # the form in which LiveCodeBench takes answers made elsewhere
    answers.write_text(
        json.dumps([{"question_id": name, "code_list": good + bad} for name, (good, bad) in programs.items()])
    )
    results, verdicts = tmp_path / "results.jsonl", tmp_path / "verdicts.parquet"
    outputs = ["--results", str(results), "--out", str(verdicts)]
    execute(
        ["score", "--benchmark", "livecodebench", "--tasks", str(file), "--json", "--k", "1,2", *outputs, str(answers)]
    )
    found = json.loads(capsys.readouterr().out)
    passed = [json.loads(line)["passed"] for line in results.read_text().splitlines()]
    assert passed == [ok for good, bad in programs.values() for ok in [True] * len(good) + [False] * len(bad)]
    assert found["per_task"] == {
        f"livecodebench/{name}": [len(good) + len(bad), len(good)] for name, (good, bad) in programs.items()
    }
    kinds = {(v["node_id"], v["test"]): v["kind"] for v in tables.read(verdicts, tables.VERDICTS).to_pylist()}
    assert [kinds["livecodebench/3999#8", n] for n in range(3)] == ["early_exit"] * 3
    assert kinds["livecodebench/3999#7", 0] == "missing_entry_point"
    assert kinds["livecodebench/3999#6", 0] == "unsupported_value"

    tasks(["import", "--source", str(file), "--out", str(candidates)])
    rows = tables.read(candidates, tables.TASKS).to_pylist()
    from stages.execute.modes import mode_of

    assert sorted(mode_of(row) for row in rows) == ["answer_blind", "answer_blind", "stdio"]
