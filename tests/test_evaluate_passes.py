"""Chains and pass rates, against counts by hand."""

from itertools import combinations

import pytest

from stages.common import tables
from stages.common.cli import UserError
from stages.evaluate.passes import chains, pass_at, pass_rates
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
