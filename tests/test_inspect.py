"""Ready questions to a run whose answers are known, and the check of credits on tables with planted faults."""

import pytest

from stages.common import runs, tables
from stages.common.cli import UserError
from stages.common.config import Credit
from stages.inspect import questions
from stages.inspect.__main__ import main
from tests import synthetic_run as synthetic


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results") / "small"
    synthetic.small_run(folder)
    return folder


def ask(run, name, **values):
    return questions.ask(runs.connect(run), run, name, **values)


def test_summary(run):
    rows = ask(run, "summary").dicts()
    names = ("version", "turn", "nodes", "unjudged", "solved", "kept", "tokens")
    assert [tuple(row[name] for name in names) for row in rows] == [
        *((0, 1, 12, 1, 3, 10, 138), (0, 2, 32, 1, 8, 23, 665), (1, 1, 8, 0, 7, 8, 92), (1, 2, 4, 0, 3, 4, 86))
    ]
    assert rows[0]["mean_reward"] == pytest.approx(4 / 11)


def test_failures_group_messages(tmp_path):
    nodes = synthetic.grow(0, "one", ["1/2 wrong_answer", "0/2 crash", "0/2 crash"])
    synthetic.write_trees(tmp_path, nodes, 1)
    rows = ask(tmp_path, "failures").rows
    assert [row[1] for row in rows] == ["crash"] * 4 + ["wrong_answer"]
    # The builder's messages name the node, so that each is a line of its own.
    assert (0, "wrong_answer", "AssertionError: test 1 of 0/one/0", 1, 1, "0/one/0") in rows


def test_failures_show_the_line_that_names_the_error(tmp_path):
    message = "Traceback:\n  line 2, in f\n  return g(x)\nNameError: name 'g' is not defined\n"
    rows = [
        {"node_id": "a", "test": 0, "visible": True, "kind": "runtime_error", "message": message},
        {"node_id": "b", "test": 0, "visible": True, "kind": "missing_entry_point", "message": "no f\nat all"},
        {"node_id": "c", "test": 0, "visible": True, "kind": "timeout", "message": None},
    ]
    rows = [{**row, "call": None, "got": None, "expected": None} for row in rows]
    tables.write(tmp_path / "verdicts/version=0/turn=1/shard-0.parquet", tables.VERDICTS, rows)
    assert {row[2] for row in ask(tmp_path, "failures").rows} == {"NameError: name 'g' is not defined", "no f", ""}


def test_slowest_comes_first(run, tmp_path):
    nodes = synthetic.grow(0, "one", ["2/2", "2/2"])
    synthetic.write_trees(tmp_path, nodes, 1)
    times = [
        {"node_id": node.node_id, "test": test, "cpu_ms": 1.0, "wall_ms": wall, "retried": False}
        for node, walls in zip(nodes, ((3.0, 9.0), (7.0, None)), strict=True)
        for test, wall in enumerate(walls)
    ]
    tables.write(tmp_path / "test_times/version=0/turn=1/shard-0.parquet", tables.TEST_TIMES, times)
    found = [(row["node_id"], row["test"]) for row in ask(tmp_path, "slowest").dicts()]
    assert found == [("0/one/0", 1), ("0/one/1", 0), ("0/one/0", 0), ("0/one/1", 1)]


def test_tokens_also_of_the_evaluation(run):
    def shown(**values):
        return [
            tuple(row[name] for name in ("version", "turn", "nodes", "tokens", "longest", "cut", "overflow", "no_code"))
            for row in ask(run, "tokens", **values).dicts()
        ]

    assert shown()[:2] == [(0, 1, 12, 138, 13, 1, 0, 1), (0, 2, 32, 665, 23, 1, 1, 2)]
    assert shown(evaluation=True)[-1] == (2, 3, 2, 60, 30, 0, 0, 0)


def test_cheats_are_named(tmp_path):
    codes = [
        "def f(x):\n    return {0: 0}.get(x)\n",
        "import os\ndef f(x):\n    os._exit(0)\n",
        "import sys\ndef f(x):\n    return sys._getframe(1).f_locals\n",
        "class E:\n    def __eq__(self, o):\n        return True\n",
        "def f(x):\n    return x  # an exit( in a comment counts, a rexit( does not\n",
        "def rexit():\n    return rexit()\n",
    ]
    nodes = synthetic.grow(0, "one", ["1/2 wrong_answer"] + ["2/2"] * 5)
    synthetic.write_trees(tmp_path, nodes, 1)
    path = tmp_path / "rollouts/version=0/turn=1/shard-0.parquet"
    rows = [
        {**row, "code": code} for row, code in zip(tables.read(path, tables.ROLLOUTS).to_pylist(), codes, strict=True)
    ]
    tables.write(path, tables.ROLLOUTS, rows)
    found = {row["node_id"]: row["sign"] for row in ask(tmp_path, "cheats").dicts()}
    assert found == {
        "0/one/0": "passes only what it was shown",
        "0/one/1": "ends the program",
        "0/one/2": "looks around",
        "0/one/3": "changes equality",
        "0/one/4": "ends the program",
    }


def credit_run(folder, nodes, **settings):
    synthetic.write_trees(folder, nodes, 2)
    synthetic.write_credit(folder, nodes, Credit(**settings).model_dump())
    return folder


def check(folder):
    return {row[0]: row[1:] for row in questions.credit_check(runs.connect(folder), folder).rows}


def test_credits_that_hold(run, tmp_path):
    assert check(run) == {}
    nodes = synthetic.walk(synthetic.grow(0, "worked", synthetic.WORKED))
    assert check(credit_run(tmp_path / "mars", nodes)) == {}


@pytest.mark.parametrize(
    ("settings", "credits"),
    [
        ({"strategy": "own"}, [1, 0.5, 0, 0]),
        ({"strategy": "mers"}, [1, 0.53125, 0, 0.45]),
        ({"strategy": "mers", "normalise": "none"}, [1, 1.0625, 0, 0.9]),
    ],
)
def test_other_strategies_are_checked_by_their_own_formula(tmp_path, settings, credits):
    nodes = synthetic.walk(synthetic.grow(0, "worked", synthetic.WORKED))
    for node in nodes:
        node.credit = credits[node.sample] if node.turn == 1 else node.reward
        node.advantage = 0.0
    found = check(credit_run(tmp_path / "right", nodes, scale="none", **settings))
    assert found == {}
    found = check(credit_run(tmp_path / "wrong", nodes, scale="none", strategy="mars"))
    assert found["credit is not mars"][0] >= 2


@pytest.mark.parametrize(
    ("name", "changed", "problem"),
    [
        ("0/worked/0", {"credit": 0.25}, "credit is not mars"),
        ("0/worked/0", {"credit": None}, "a judged node has no credit"),
        ("0/worked/2", {"advantage": -1.4}, "advantage is not (credit - mean) / (std + 1e-4)"),
        ("0/worked/2.0", {"advantage": 0.1}, "a group without spread has an advantage"),
        ("0/pruned/1", {"advantage": 0.1}, "a pruned node has an advantage"),
        ("0/pruned/1", {"kept": True}, "kept and prune_reason disagree"),
        ("0/unjudged/0", {"credit": 1.0}, "an unjudged node has credit"),
        ("0/unjudged/0", {"advantage": 1.0}, "an unjudged node has an advantage"),
        ("0/worked/3", {"reward": 1.0}, "reward is not the one in feedback"),
    ],
)
def test_a_planted_fault_is_found(tmp_path, name, changed, problem):
    nodes = synthetic.small_nodes((0,))
    folder = credit_run(tmp_path / "run", nodes)
    path = folder / "credit/version=0/part-0.parquet"
    rows = [row | changed if row["node_id"] == name else row for row in tables.read(path, tables.CREDIT).to_pylist()]
    tables.write(path, tables.CREDIT, rows, tables.made_by(path))
    found = check(folder)
    assert found[problem] == (1, name)
    assert main([str(folder), "credit-check"]) == 1


def test_a_check_without_known_settings_says_so(tmp_path):
    nodes = synthetic.small_nodes((0,))
    synthetic.write_trees(tmp_path, nodes, 2)
    with pytest.raises(UserError, match="nothing to check"):
        check(tmp_path)
    tables.write(tmp_path / "credit/version=0/part-0.parquet", tables.CREDIT, [])
    with pytest.raises(UserError, match="do not say how they were made"):
        check(tmp_path)


def test_tree_and_node_in_the_terminal(run, capsys):
    assert main([str(run), "tree", "worked", "--version", "0"]) == 0
    printed = capsys.readouterr().out
    assert "worked, version 0: 16 nodes" in printed and "version 1" not in printed
    assert "├── 1  1/2  wrong answer  credit 1.000, advantage +0.500" in printed
    assert "│   └── 1.3  0/2  timeout  credit 0.000, advantage -1.305" in printed
    assert main([str(run), "node", "0/pruned/0.1"]) == 0
    printed = capsys.readouterr().out
    assert "inter" in printed and "0 of 2 tests passed. Feedback on 0/pruned/0.1" in printed
    assert "</script>" in printed  # as it is
    assert main([str(run), "tree", "h3", "--evaluation", "--version", "0"]) == 0
    assert "0  1/2  wrong answer\n" in capsys.readouterr().out.replace(" \n", "\n")


def test_names_that_are_not_there(run):
    with pytest.raises(UserError, match="no task of version 7 is called 'worked'"):
        main([str(run), "tree", "worked", "--version", "7"])
    with pytest.raises(UserError, match='no node is called "it\'s"'):
        main([str(run), "node", "it's"])


@pytest.mark.parametrize("name", [question.name for question in questions.QUESTIONS])
def test_every_question_prints_sql_that_runs_by_hand(run, name, capsys, monkeypatch):
    import duckdb

    argument = {"tree": ["worked"], "node": ["0/worked/0"]}.get(name, [])
    assert main([str(run), name, *argument, "--sql"]) == 0
    sql = capsys.readouterr().out
    monkeypatch.chdir(run)
    rows = duckdb.connect().execute(sql).fetchall()
    assert bool(rows) == (name != "credit-check")


def test_limit(run, capsys):
    main([str(run), "slowest", "--limit", "3"])
    assert "3 of 110 rows; --limit shows more" in capsys.readouterr().out
