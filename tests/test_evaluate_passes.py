"""Chains and pass rates, against counts by hand."""

import re
from itertools import combinations

import duckdb
import pytest
from scipy.stats import binomtest

from stages.common import tables
from stages.common.cli import UserError
from stages.evaluate.passes import SQL, chains, count, pass_at, pass_rates, summary, wilson
from tests.test_generate_stage import feedback_row, make_task


def node(name, parent=None, task="a", sample=0):
    return {
        "node_id": name,
        "parent_id": parent,
        "group_id": parent or f"0/{task}",
        "task_id": task,
        "sample": sample,
        "prompt": "",
        "prompt_ids": [],
        "completion_ids": [],
        "sampling_logprobs": [],
        "text": "",
        "code": None,
        "finish_reason": "stop",
        "seed": 0,
        "policy_hash": "h",
    }


def judged(node, hidden, visible=1, kind="wrong_answer"):
    """Two hidden tests and one visible."""
    passed = hidden + visible
    row = feedback_row(node, passed / 3) | {"passed": passed, "total": 3, "hidden_passed": hidden, "hidden_total": 2}
    return row | {"kind": "passed" if passed == 3 else kind}


def write(folder, turns):
    """`turns`: per turn a list of (node, feedback)."""
    rollouts, feedback = [], []
    for turn, rows in enumerate(turns, 1):
        rollouts.append(folder / f"rollouts/turn={turn}/part-0.parquet")
        feedback.append(folder / f"feedback/turn={turn}/part-0.parquet")
        tables.write(rollouts[-1], tables.ROLLOUTS, [n for n, _ in rows])
        tables.write(feedback[-1], tables.FEEDBACK, [f for _, f in rows if f is not None])
    tasks = folder / "tasks.parquet"
    tables.write(tasks, tables.TASKS, [make_task("a", "A") | {"difficulty": "easy"}, make_task("b", "B")])
    return [tasks], rollouts, feedback


def test_a_chain_is_solved_at_its_first_right_attempt(tmp_path):
    a, b = node("0/a/0"), node("0/b/0", task="b")
    a1, b1 = node("0/a/0.0", "0/a/0"), node("0/b/0.0", "0/b/0", "b")
    b2 = node("0/b/0.0.0", "0/b/0.0", "b")
    turns = [
        [(a, judged(a, 0)), (b, judged(b, 1, kind="timeout"))],
        [(a1, judged(a1, 2)), (b1, judged(b1, 1))],
        [(b2, judged(b2, 1, 0, "crash"))],
    ]
    rows = chains(*write(tmp_path, turns)).to_pylist()
    assert [(r["task_id"], r["attempts"], r["solved_at"]) for r in rows] == [("a", 2, 2), ("b", 3, None)]
    assert rows[0]["difficulty"] == "easy" and rows[0]["last_kind"] == "passed"
    assert (rows[1]["first_kind"], rows[1]["last_kind"]) == ("timeout", "crash")
    assert pass_rates(rows, 3) == [0.0, 0.5, 0.5]


def test_hidden_tests_decide_and_visible_ones_do_not(tmp_path):
    a = node("0/a/0")
    [row] = chains(*write(tmp_path, [[(a, judged(a, hidden=2, visible=0))]])).to_pylist()
    assert row["solved_at"] == 1


def test_what_could_not_be_judged_is_not_solved(tmp_path):
    a = node("0/a/0")
    lost = judged(a, 0) | {"reward": None, "hidden_passed": 0, "hidden_total": 0, "passed": 0, "total": 0}
    [row] = chains(*write(tmp_path, [[(a, lost)]])).to_pylist()
    assert row["solved_at"] is None


def test_only_tasks_of_the_benchmark_are_counted(tmp_path):
    a, x = node("0/a/0"), node("0/x/0", task="x")
    rows = chains(*write(tmp_path, [[(a, judged(a, 2)), (x, judged(x, 2))]])).to_pylist()
    assert [r["task_id"] for r in rows] == ["a"]


def test_a_node_without_feedback_is_named(tmp_path):
    a, b = node("0/a/0"), node("0/b/0", task="b")
    with pytest.raises(UserError, match="0/b/0"):
        chains(*write(tmp_path, [[(a, judged(a, 2)), (b, None)]]))


@pytest.mark.parametrize("n", range(1, 7))
def test_pass_at_is_the_share_of_samples_of_k_that_hold_a_right_one(n):
    for correct in range(n + 1):
        for k in range(1, n + 1):
            picks = list(combinations(range(n), k))
            share = sum(any(i < correct for i in pick) for pick in picks) / len(picks)
            assert pass_at(n, correct, k) == pytest.approx(share, abs=1e-12)


def test_several_chains_per_task_weigh_tasks_alike():
    rows = [{"task_id": "a", "solved_at": at} for at in (1, 2, None, None)] + [{"task_id": "b", "solved_at": 1}]
    assert pass_rates(rows, 2) == [(0.25 + 1) / 2, (0.5 + 1) / 2]


def test_a_small_tree_counts_by_its_best_node(tmp_path):
    a = node("0/a/0")
    retries = [node(f"0/a/0.{i}", "0/a/0", sample=i) for i in range(3)]
    last = [node("0/a/0.0.0", "0/a/0.0"), node("0/a/0.2.0", "0/a/0.2")]
    turns = [
        [(a, judged(a, 0))],
        [(n, judged(n, 1)) for n in retries],
        [(last[0], judged(last[0], 2)), (last[1], judged(last[1], 0))],
    ]
    [row] = chains(*write(tmp_path, turns)).to_pylist()
    assert (row["sample"], row["attempts"], row["solved_at"]) == (0, 6, 3)


def test_chains_of_a_task_are_told_apart_by_their_roots(tmp_path):
    roots = [node(f"0/a/{i}", sample=i) for i in range(3)]
    retry = node("0/a/1.0", "0/a/1")
    turns = [[(n, judged(n, 2 if i == 2 else 0)) for i, n in enumerate(roots)], [(retry, judged(retry, 2))]]
    rows = chains(*write(tmp_path, turns)).to_pylist()
    assert [(row["sample"], row["attempts"], row["solved_at"]) for row in rows] == [(0, 1, None), (1, 2, 2), (2, 1, 1)]


def test_a_task_without_hidden_tests_is_scored_on_all(tmp_path):
    a, b = node("0/a/0"), node("0/b/0", task="b")
    whole = judged(a, 2) | {"hidden_total": 0, "hidden_passed": 0}
    part = judged(b, 1) | {"hidden_total": 0, "hidden_passed": 0}
    rows = chains(*write(tmp_path, [[(a, whole), (b, part)]])).to_pylist()
    assert [row["solved_at"] for row in rows] == [1, None]


def test_what_became_of_attempts_is_counted_by_turn(tmp_path):
    a, b = node("0/a/0"), node("0/b/0", task="b")
    c, d = node("0/a/1", sample=1), node("0/b/1", task="b", sample=1)
    a1, b1, c1 = node("0/a/0.0", "0/a/0"), node("0/b/0.0", "0/b/0", "b"), node("0/a/1.0", "0/a/1")
    b["finish_reason"] = d["finish_reason"] = "length"
    c1["finish_reason"] = "context_overflow"
    unjudged = {"reward": None, "passed": 0, "hidden_passed": 0}
    turns = [
        [
            (a, judged(a, 2, visible=0)),  # right by the hidden tests, but a visible one failed: tried again
            (b, judged(b, 1)),
            (c, judged(c, 0, 0, "no_code")),
            (d, judged(d, 0) | unjudged | {"kind": "infra_error"}),
        ],
        [
            (a1, judged(a1, 1)),
            (b1, judged(b1, 2)),
            (c1, judged(c1, 0) | unjudged | {"kind": "context_overflow"}),
        ],
    ]
    counts = count(*write(tmp_path, turns))
    names = ("turn", "attempts", "right", "after_wrong", "wrong_to_right", "after_right", "right_to_wrong")
    assert [[row[name] for name in names] for row in counts.turns] == [[1, 4, 1, 0, 0, 0, 0], [2, 3, 1, 2, 1, 1, 1]]
    names = ("truncated", "no_code", "overflow", "unjudged")
    assert [[row[name] for name in names] for row in counts.turns] == [[2, 1, 0, 1], [0, 0, 1, 0]]
    assert [row["solved_at"] for row in counts.rows.to_pylist()] == [1, None, 2, None]


def test_the_summary_holds_numbers_counted_by_hand(tmp_path):
    """Task a: 3 chains, one solved at 1 and one at 2. Task b: 3 chains, one solved at 2."""
    roots = [node(f"0/{task}/{i}", task=task, sample=i) for task in "ab" for i in range(3)]
    right = {"0/a/0", "0/a/1.0", "0/b/2.0"}
    retries = [node(f"{root['node_id']}.0", root["node_id"], root["task_id"]) for root in roots[1:]]
    turns = [[(n, judged(n, 2 if n["node_id"] in right else 1)) for n in nodes] for nodes in (roots, retries)]
    found = summary(count(*write(tmp_path, turns)), 3)
    assert (found["tasks"], found["chains"]) == (2, 6)
    assert found["solved_at"] == {1: 1, 2: 2, 3: 0}
    first, second, third = found["pass_at"]
    assert [first[f"pass@{n}"] for n in (1, 2, 3)] == pytest.approx([1 / 6, 1 / 3, 0.5])
    assert [second[f"pass@{n}"] for n in (1, 2, 3)] == pytest.approx([0.5, (1 + 2 / 3) / 2, 1.0])
    assert {**third, "iteration": 2} == second
    low, high = second["interval"]
    assert (low, high) == pytest.approx((0.0945, 0.9055), abs=1e-4)
    assert list(found["by_difficulty"]) == ["easy", ""]
    assert found["by_difficulty"]["easy"] == {"tasks": 1, "pass@1": pytest.approx([1 / 3, 2 / 3, 2 / 3])}


def test_wilson_agrees_with_scipy():
    for right, n in ((0, 5), (3, 7), (40, 164), (164, 164)):
        interval = binomtest(right, n).proportion_ci(method="wilson")
        assert wilson(right / n, n) == pytest.approx((interval.low, interval.high), abs=1e-4)


def test_input_that_would_be_counted_wrongly_is_refused(tmp_path):
    a, a1, a2 = node("0/a/0"), node("0/a/0.0", "0/a/0"), node("0/a/0.0.0", "0/a/0.0")
    turns = [[(n, judged(n, 0))] for n in (a, a1, a2)]
    tasks, rollouts, feedback = write(tmp_path, turns)

    def refused(match, *files):
        with pytest.raises(UserError, match=match):
            chains(*files)

    refused(r"node 0/a/0\.0\.0: its parent 0/a/0\.0 is not a node of the turn before", tasks, rollouts[::2], feedback)
    refused("node 0/a/0 occurs more than once in the rollouts", tasks, [*rollouts, rollouts[0]], feedback)
    refused("node 0/a/0 occurs more than once in the feedback", tasks, rollouts, [*feedback, feedback[0]])
    refused("task a occurs more than once", tasks * 2, rollouts, feedback)
    refused("the turn is read from the folder", tasks, tasks, feedback)
    moved = tmp_path / "rollouts/version=1/turn=1/part-0.parquet"
    moved.parent.mkdir(parents=True)
    rollouts[0].rename(moved)
    other = tmp_path / "rollouts/version=0/turn=1/part-0.parquet"
    other.parent.mkdir(parents=True)
    other.write_bytes(moved.read_bytes())
    refused("files of version=0 and version=1", tasks, [moved, other], feedback)


def test_no_nodes_give_no_chains(tmp_path):
    counts = count(*write(tmp_path, [[]]))
    assert counts.rows.num_rows == 0 and counts.rows.schema.equals(tables.EVALS.schema)
    found = summary(counts, 2)
    assert found["pass_at"][1] == {"iteration": 2, "interval": None, "pass@1": None}


def test_the_sql_runs_by_hand_as_it_says(tmp_path, monkeypatch):
    a, a1 = node("0/a/0"), node("0/a/0.0", "0/a/0")
    files = write(tmp_path, [[(a, judged(a, 0))], [(a1, judged(a1, 2))]])
    for name in ("rollouts", "feedback"):
        (tmp_path / f"eval_{name}").mkdir()
        (tmp_path / name).rename(tmp_path / f"eval_{name}" / "version=0")
    (tmp_path / "tasks" / "split=heldout").mkdir(parents=True)
    files[0][0].rename(tmp_path / "tasks" / "split=heldout" / "part-0.parquet")
    monkeypatch.chdir(tmp_path)
    text = (SQL / "attempts.sql").read_text()
    with duckdb.connect() as connection:
        for line in re.findall(r"^--   (create view .*;)$", text, re.MULTILINE):
            connection.execute(line)
        connection.execute(text)
        rows = connection.execute((SQL / "passes.sql").read_text()).fetchall()
        assert connection.execute((SQL / "turns.sql").read_text()).fetchone()[:3] == (1, 1, 0)
    assert rows == [("a", 0, "easy", 2, 2, "wrong_answer", "passed")]
