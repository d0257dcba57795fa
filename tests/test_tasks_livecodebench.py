"""LiveCodeBench: both kinds of task, packed private tests, and pickles that are more than a string."""

import base64
import json
import os
import pickle
import zlib

import pytest

from stages.common.cli import UserError
from stages.tasks import livecodebench
from stages.tasks.records import Record

STDIN = {
    "question_id": "abc1_a",
    "question_content": "Print twice the number.\n",
    "difficulty": "easy",
    "starter_code": "",
    "metadata": "{}",
    "public_test_cases": json.dumps([{"input": "2\n", "output": "4\n", "testtype": "stdin"}]),
}
PRIVATE = [{"input": "5\n", "output": "10\n", "testtype": "stdin"}, {"input": "0\n", "output": "0\n"}]
FUNCTION = STDIN | {
    "question_id": "3000",
    "starter_code": "class Solution:\n    def pair(self, nums: List[int], k: int) -> List[int]:\n        ",
    "metadata": json.dumps({"func_name": "pair"}),
    "public_test_cases": json.dumps([{"input": "[1, 2]\n3", "output": "[1, 3]", "testtype": "functional"}]),
    "private_test_cases": json.dumps([{"input": '["a"]\nnull', "output": "true", "testtype": "functional"}]),
}


def packed(value: object, protocol: int = 4) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(value, protocol))).decode()


def convert(row, **change):
    return livecodebench.convert(Record("lcb.jsonl, line 1", row | change))


def test_programs():
    row = convert(STDIN, private_test_cases=packed(json.dumps(PRIVATE)))
    assert row["kind"] == "stdio" and row["task_id"] == "livecodebench/abc1_a" and row["difficulty"] == "easy"
    assert [(t["visible"], t["stdin"], t["stdout"]) for t in row["tests"]] == [
        (True, "2\n", "4\n"),
        (False, "5\n", "10\n"),
        (False, "0\n", "0\n"),
    ]
    assert row["prompt"] == "Print twice the number." and row["reference"] is None and row["entry_point"] is None


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("text", ["[]", "ü€😀" * 100, "x" * 100_000])
def test_pickled_strings_of_every_protocol(protocol, text):
    assert livecodebench.pickled_string(pickle.dumps(text, protocol)) == text


def test_functions():
    row = convert(FUNCTION)
    assert row["kind"] == "function" and row["entry_point"] == "Solution"
    assert [(t["visible"], t["code"]) for t in row["tests"]] == [
        (True, "assert as_list(Solution().pair([1, 2], 3)) == [1, 3]"),
        (False, "assert Solution().pair(['a'], None) == True"),
    ]
    assert "class Solution" in row["prompt"]
    solution = "class Solution:\n    def pair(self, a: List[int], k):\n        return (a[0], k) if k else len(a) == 1\n"
    for test in row["tests"]:  # a tuple counts as a list, as in the benchmark's own runner; List comes from the prelude
        namespace: dict = {}
        for code in (row["prelude"] + solution, row["setup"], test["code"]):
            exec(code, namespace)


class Evil:
    def __reduce__(self):
        return (os.system, ("touch /tmp/should-not-exist",))


@pytest.mark.parametrize("value", [Evil(), [1], {"a": 1}, ("a", "b"), 7, None, b"bytes", ["[]"]])
def test_a_pickle_of_anything_else_is_refused_and_not_built(value):
    with pytest.raises(UserError, match=r"lcb\.jsonl, line 1: field 'private_test_cases': the pickle holds"):
        convert(STDIN, private_test_cases=packed(value))
    assert not os.path.exists("/tmp/should-not-exist")


def test_a_bomb_is_refused(monkeypatch):
    monkeypatch.setattr(livecodebench, "MAX_BYTES", 1000)
    with pytest.raises(UserError, match="more than 1000 bytes when unpacked"):
        convert(STDIN, private_test_cases=packed("x" * 100_000))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"private_test_cases": "???"}, "neither JSON nor base64 of zlib"),
        ({"private_test_cases": base64.b64encode(b"abc").decode()}, "neither JSON nor base64 of zlib"),
        ({"private_test_cases": packed("x" * 5000)[:40]}, "field 'private_test_cases': "),
        ({"public_test_cases": "[{]"}, "field 'public_test_cases': "),
        ({"public_test_cases": '[{"input": 1, "output": "2"}]'}, "must be a JSON list of objects"),
        ({"public_test_cases": "[]"}, "has no tests"),
        ({"metadata": "{"}, "field 'metadata'"),
        ({"question_content": None}, "field 'question_content' is missing"),
    ],
)
def test_faults_are_named(change, message):
    with pytest.raises(UserError) as error:
        convert(STDIN, **change)
    assert str(error.value).startswith("lcb.jsonl, line 1: ") and message in str(error.value)


def test_function_arguments_must_be_json():
    cases = json.dumps([{"input": "[1,", "output": "1"}])
    with pytest.raises(UserError, match="a test case of pair is not JSON"):
        convert(FUNCTION, public_test_cases=cases)
