"""Programs that do nothing: all names of the reference, and no work; tests that such a program passes are found."""

import pytest

from stages.common import tables
from stages.common.verdicts import HOLLOW
from stages.execute.__main__ import main as execute
from stages.execute.hollow import hollow
from stages.tasks.__main__ import main as tasks
from stages.tasks.admission import admit
from tests.test_tasks_main import import_

REFERENCE = """import math

N = 3

@property
def f(x, *, y=N):
    \"\"\"Says.\"\"\"
    return math.pi

class A(list):
    z = 1

    def g(self):
        def inner():
            return 2
        return inner()

async def h():
    return 1
"""


def task(reference, kind="function"):
    return {"reference": reference, "kind": kind}


def test_every_function_is_emptied_and_all_else_stays():
    assert hollow(task(REFERENCE)).split("\n\n") == [
        "import math\nN = 3", "@property\ndef f(x, *, y=N):\n    pass", "class A(list):\n    z = 1",
        "    def g(self):\n        pass", "async def h():\n    pass\n",
    ]  # fmt: skip


@pytest.mark.parametrize("reference", [None, "x = 1\n", "def f(:\n"])
def test_without_functions_there_is_none(reference):
    assert hollow(task(reference)) is None


def test_a_program_that_reads_and_prints_is_left_with_nothing():
    assert hollow(task("print(input())", "stdio")) == "pass\n"


def test_tests_that_look_at_nothing_are_found_in_the_sandbox(tmp_path, capsys):
    rows = import_(tmp_path / "all.parquet")[:3]
    idle, other = rows[0], rows[1]
    idle["tests"] = [{**idle["tests"][0], "code": f"{idle['entry_point']}(1, 2) if False else 0"}]
    tables.write(tmp_path / "c.parquet", tables.TASKS, rows)
    files = ["--verdicts", str(tmp_path / "v.parquet"), "--feedback", str(tmp_path / "f.parquet")]
    assert execute(["references", "--hollow", "--tasks", str(tmp_path / "c.parquet"), *files, "--workers", "1"]) == 0
    rewards = {
        row["node_id"]: row["reward"] for row in tables.read(tmp_path / "f.parquet", tables.FEEDBACK).to_pylist()
    }
    assert rewards[idle["task_id"] + HOLLOW] == 1.0 and rewards[other["task_id"] + HOLLOW] < 1
    assert all(rewards[row["task_id"]] == 1.0 for row in rows) and len(rewards) == 6
    capsys.readouterr()
    out = ["--all", str(tmp_path / "a.parquet"), "--rejected", str(tmp_path / "r.parquet")]
    assert tasks(["admit", "--candidates", str(tmp_path / "c.parquet"), *files, *out]) == 0
    [rejected] = tables.read(tmp_path / "r.parquet", tables.REJECTED).to_pylist()
    assert rejected["task_id"] == idle["task_id"]
    assert rejected["reason"] == "a program that does nothing passes all 1 tests"


def test_one_that_could_not_be_judged_rejects_nothing():
    feedback = [{"node_id": "a", "reward": 1.0}, {"node_id": "a" + HOLLOW, "reward": None}]
    assert len(admit([{"task_id": "a", "reference": "code", "source": "s"}], feedback, []).tasks) == 1
