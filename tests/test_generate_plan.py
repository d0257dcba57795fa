"""Which prompts a turn samples from."""

import pytest

from stages.common.cli import UserError
from stages.common.config import Generate
from stages.common.ids import node_id, root_group, seed_for
from stages.generate.plan import children, draw_tasks, first_tasks, roots


def make_task(name):
    tests = [
        {"visible": True, "code": f"assert {name}(1) == 2", "stdin": None, "stdout": None},
        {"visible": False, "code": f"assert {name}(41) == 42", "stdin": None, "stdout": None},
    ]
    return {"task_id": name, "kind": "function", "prompt": f"Write {name}(n).", "entry_point": name, "tests": tests}


TASKS = [make_task(f"t{i}") for i in range(10)]


def make_node(name, parent=None, task="t0", code="def t0(n): return n\n"):
    return {"node_id": name, "parent_id": parent, "task_id": task, "text": f"I think.\n{code}", "code": code}


def judged(name, reward):
    return {"node_id": name, "reward": reward, "feedback": f"feedback on {name}"}


def test_every_task_is_drawn_once_before_any_comes_again():
    drawn = [task["task_id"] for version in range(5) for task in draw_tasks(TASKS, version, 2, seed=3)]
    assert sorted(drawn) == sorted(t["task_id"] for t in TASKS)


def test_a_version_never_holds_a_task_twice_and_seeds_differ():
    orders = set()
    for seed in range(5):
        for version in range(8):
            ids = [task["task_id"] for task in draw_tasks(TASKS, version, 7, seed)]
            assert len(ids) == len(set(ids)) > 0
        orders.add(tuple(t["task_id"] for t in draw_tasks(TASKS, 0, 7, seed)))
    assert len(orders) > 1


def test_rows_in_another_order_draw_the_same():
    assert draw_tasks(TASKS, 1, 3, 0) == draw_tasks(TASKS[::-1], 1, 3, 0)


def test_a_limit_keeps_its_choice_when_tasks_are_added():
    few, many = first_tasks(TASKS[:9], 4), first_tasks(TASKS, 4)
    assert len({t["task_id"] for t in few} & {t["task_id"] for t in many}) >= 3
    assert first_tasks(TASKS, None) == first_tasks(TASKS, 100)


def test_roots_show_visible_tests_only():
    [prompt] = roots([TASKS[1]], 4, Generate(instruction="Be brief."))
    assert prompt.group_id == "4/t1" and prompt.parent_id is None
    assert [m["role"] for m in prompt.messages] == ["system", "user"]
    assert "assert t1(1) == 2" in prompt.messages[1]["content"] and "42" not in prompt.messages[1]["content"]


def test_only_failed_and_judged_nodes_are_prompted_again():
    nodes = [make_node(f"0/t0/{i}") for i in range(4)]
    rows = [judged("0/t0/0", 1.0), judged("0/t0/1", 0.5), judged("0/t0/2", None), judged("0/t0/3", 0.0)]
    prompts = children([(nodes, rows)], TASKS, Generate())
    assert [p.parent_id for p in prompts] == ["0/t0/1", "0/t0/3"]
    assert [p.group_id for p in prompts] == ["0/t0/1", "0/t0/3"]


def test_a_retry_shows_the_attempt_and_its_feedback():
    prompts = children([([make_node("0/t0/0")], [judged("0/t0/0", 0.0)])], TASKS, Generate())
    user, attempt, again = prompts[0].messages
    assert attempt == {"role": "assistant", "content": "```python\ndef t0(n): return n\n```"}
    assert again["content"].startswith("feedback on 0/t0/0") and user["role"] == "user"
    whole = children([([make_node("0/t0/0")], [judged("0/t0/0", 0.0)])], TASKS, Generate(attempt="text"))
    assert whole[0].messages[1]["content"].startswith("I think.")


@pytest.mark.parametrize(("history", "attempts"), [("latest", 1), ("whole", 2)])
def test_history(history, attempts):
    turns = [
        ([make_node("0/t0/0")], [judged("0/t0/0", 0.0)]),
        ([make_node("0/t0/0.1", "0/t0/0")], [judged("0/t0/0.1", 0.5)]),
    ]
    [prompt] = children(turns, TASKS, Generate(history=history))
    assert sum(m["role"] == "assistant" for m in prompt.messages) == attempts
    assert prompt.messages[-1]["content"].startswith("feedback on 0/t0/0.1")


def test_thinking_of_an_earlier_attempt_is_stripped_or_kept():
    node = make_node("0/t0/0") | {"text": "<think>hm</think>Sorry.", "code": None}
    turn = ([node], [judged("0/t0/0", 0.0)])
    assert children([turn], TASKS, Generate())[0].messages[1]["content"] == "Sorry."
    assert "hm" in children([turn], TASKS, Generate(thinking="keep"))[0].messages[1]["content"]


def test_a_node_without_feedback_is_named():
    with pytest.raises(UserError, match=r"0/t0/0.*execute"):
        children([([make_node("0/t0/0")], [])], TASKS, Generate())


def test_names_and_seeds():
    assert node_id(root_group(0, "HumanEval/3"), 2, True) == "0/HumanEval/3/2"
    assert node_id("0/HumanEval/3/2", 1, False) == "0/HumanEval/3/2.1"
    seeds = {seed_for(0, node_id(root_group(v, t), s, True)) for v in range(9) for t in "abc" for s in range(9)}
    assert len(seeds) == 9 * 3 * 9 and all(0 <= seed < 2**63 for seed in seeds)
    assert seed_for(1, "a") == seed_for(1, "a") != seed_for("1a")
