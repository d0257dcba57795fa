"""Sorting candidates by what the sandbox said of their references."""

import pytest

from stages.common.cli import UserError
from stages.tasks.admission import admit, split, table


def task(task_id, reference="code", difficulty="easy"):
    return {"task_id": task_id, "source": "s", "reference": reference, "difficulty": difficulty}


def node(task_id, passed, total=4, **change):
    reward = passed / total
    return {"node_id": task_id, "reward": reward, "passed": passed, "total": total, "kind": "passed"} | change


def verdict(task_id, test, kind="passed", message=None):
    return {"node_id": task_id, "test": test, "kind": kind, "message": message}


def test_full_reward_is_admitted_and_nothing_else():
    result = admit([task("a"), task("b"), task("c")], [node("a", 4), node("b", 3), node("c", 0)], [])
    assert [t["task_id"] for t in result.tasks] == ["a"]
    assert [(r["task_id"], r["reward"]) for r in result.rejected] == [("b", 0.75), ("c", 0.0)]


def test_the_reason_is_the_first_failing_test_in_order():
    verdicts = [
        verdict("a", 2, "timeout", "late"),
        verdict("a", 0),
        verdict("a", 1, "runtime_error", "KeyError:\n  'x'"),
    ]
    [row] = admit([task("a")], [node("a", 1, 3)], verdicts).rejected
    assert row["reason"] == "1 of 3 tests pass; test 1: runtime_error: KeyError: 'x'" and row["source"] == "s"


def test_without_verdicts_the_nodes_kind_is_the_reason():
    [row] = admit([task("a")], [node("a", 0, 3, kind="no_code")], []).rejected
    assert row["reason"] == "no_code: 0 of 3 tests pass"


def test_what_could_not_be_judged_is_rejected_with_its_reason():
    nodes = [node("a", 0, reward=None, kind="infra_error")]
    [row] = admit([task("a")], nodes, [verdict("a", 0, "infra_error", "bwrap: no")]).rejected
    assert row["reward"] is None and "infra_error: bwrap: no" in row["reason"]


def test_tasks_without_a_reference_are_admitted_and_counted():
    result = admit([task("a", None), task("b")], [node("b", 4), node("a", 0, kind="no_code")], [])
    assert [t["task_id"] for t in result.tasks] == ["a", "b"] and result.unchecked == 1
    assert admit([task("a", None)], [], []).unchecked == 1


@pytest.mark.parametrize(
    ("nodes", "verdicts", "message"),
    [
        ([node("a", 4)], [], "lacks the references of tasks: b"),
        ([node("a", 4), node("b", 4), node("z", 4)], [], "holds verdicts of unknown tasks: z"),
        ([node("a", 4), node("b", 4)], [verdict("y", 0)], "holds verdicts of unknown tasks: y"),
    ],
)
def test_tables_of_other_candidates_are_refused(nodes, verdicts, message):
    with pytest.raises(UserError) as error:
        admit([task("a"), task("b")], nodes, verdicts)
    assert message in str(error.value)


def test_split_takes_every_task_once():
    tasks = [task(f"a/{n}") for n in range(50)]
    train, heldout = split(tasks, 0.3)
    assert sorted(t["task_id"] for t in train + heldout) == sorted(t["task_id"] for t in tasks)
    assert train and heldout


@pytest.mark.parametrize(("share", "name"), [(0.0, "heldout"), (1.0, "train")])
def test_an_empty_split_is_an_error(share, name):
    with pytest.raises(UserError, match=f"the {name} split is empty: 3 tasks with tasks.heldout_share {share}"):
        split([task("a"), task("b"), task("c")], share)


def test_table_of_counts():
    text = table({"train": [task("a"), task("b", difficulty="hard")], "heldout": [task("c", difficulty=None)]})
    assert text.split("\n") == [
        "  train         2  easy 1  hard 1  none 0",
        "  heldout       1  easy 0  hard 0  none 1",
    ]
