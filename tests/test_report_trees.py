"""The pack of trees: everything that is known of each node, in as few characters as may be."""

import base64
import gzip
import json

import pytest

from stages.common import runs
from stages.report import trees
from tests import synthetic_run as synthetic


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    run = tmp_path_factory.mktemp("results") / "small"
    nodes = synthetic.small_run(run)
    return run, nodes


def unpack(run, limit=None):
    pack, total = trees.pack(runs.connect(run), run, limit)
    return json.loads(gzip.decompress(base64.b64decode(trees.compressed(pack)))), total


def test_every_node_is_there_with_all_that_is_known(small):
    run, nodes = small
    pack, total = unpack(run)
    texts = pack["texts"]
    assert total == len(pack["trees"]) == 15
    found = {}
    for tree in pack["trees"]:
        if tree["part"] == "training":
            rows = [dict(zip(pack["fields"], row, strict=True)) for row in tree["nodes"]]
            for row in rows:
                parent = None if row["parent"] is None else rows[row["parent"]]["id"]
                found[row["id"]] = (tree["version"], tree["task"], {**row, "parent": parent})
    assert set(found) == {node.node_id for node in nodes}
    for node in nodes:
        version, task, row = found[node.node_id]
        assert (version, task) == (node.version, node.task_id)
        told = synthetic.rollout_row(node) | synthetic.feedback_row(node) | synthetic.credit_row(node)
        same = ("turn", "sample", "reward", "passed", "total", "hidden_passed", "hidden_total", "mode", "credit")
        same += ("advantage", "group_mean", "group_std", "kept", "prune_reason", "finish_reason")
        assert {name: row[name] for name in same} == {name: told[name] for name in same} | {"turn": node.turn} | {
            "sample": node.sample
        }
        assert row["tokens"] == node.completion_tokens
        assert row["parent"] == told["parent_id"]
        for name in ("kind", "prompt", "text", "code", "feedback"):
            assert (None if row[name] is None else texts[row[name]]) == told[name], name
        verdicts = [] if node.kind == "context_overflow" else synthetic.verdict_rows(node)
        names = ("kind", "message", "call", "got", "expected")
        assert [[v[0], v[1], *(None if p is None else texts[p] for p in v[2:])] for v in row["verdicts"]] == [
            [v["test"], v["visible"], *(v[name] for name in names)] for v in verdicts
        ]


def test_tasks_come_with_statement_tests_and_reference(small):
    pack, _ = unpack(small[0])
    task = pack["tasks"]["worked"]
    row = synthetic.task_row("worked", f"Write f for worked. {synthetic.HOSTILE}")
    assert pack["texts"][task["prompt"]] == row["prompt"]
    assert [pack["texts"][place] for place in task["tests"]] == [test["code"] for test in row["tests"]]
    assert pack["texts"][task["reference"]] == row["reference"]


def test_siblings_share_their_prompt(small):
    pack, _ = unpack(small[0])
    assert len(pack["texts"]) == len(set(pack["texts"]))
    place = pack["fields"].index("prompt")
    for tree in pack["trees"]:
        roots = [row[place] for row in tree["nodes"] if row[0] is None]
        assert len(set(roots)) == 1


def test_parents_stand_before_children_and_siblings_by_number(tmp_path):
    node = synthetic.grow(0, "wide", [("0/2 crash", ["2/2"] * 12)] + ["0/2 crash"] * 11)
    synthetic.write_trees(tmp_path / "run", synthetic.walk(node), 2)
    pack, _ = unpack(tmp_path / "run")
    fields = pack["fields"]
    rows = [dict(zip(fields, row, strict=True)) for row in pack["trees"][0]["nodes"]]
    assert [(row["turn"], row["sample"]) for row in rows] == [(t, s) for t in (1, 2) for s in range(12)]
    assert {row["parent"] for row in rows if row["turn"] == 2} == {0}


def test_nodes_without_verdict_or_credit_are_shown_as_such(tmp_path):
    nodes = synthetic.walk(synthetic.grow(0, "new", ["1/2 crash"]))
    run = tmp_path / "run"
    synthetic.write_trees(run, nodes, 1)
    (run / "verdicts/version=0/turn=1/shard-0.parquet").unlink()
    pack, _ = unpack(run)
    row = dict(zip(pack["fields"], pack["trees"][0]["nodes"][0], strict=True))
    assert (row["credit"], row["kept"], row["verdicts"], row["reward"]) == (None, None, [], 0.5)


def tree(part, version, task, solved_in, roots_solved, nodes=4):
    return {
        "part": part,
        "version": version,
        "task_id": task,
        "solved_in": solved_in,
        "roots_solved": roots_solved,
        "roots": 4,
        "nodes": nodes,
    }


def test_trees_with_most_to_tell_are_taken_evenly():
    everything = [
        tree("training", 0, "all", 1, 4),
        tree("training", 0, "big", None, 0, 20),
        tree("training", 0, "mixed", 1, 2),
        tree("training", 0, "rescued", 2, 0),
        tree("training", 1, "all", 1, 4),
        tree("evaluation", 0, "chain", None, 0),
    ]

    def names(limit):
        return [(t["part"], t["version"], t["task_id"]) for t in trees.choose(everything, limit)]

    assert names(None) == names(6) == names(99) == [(t["part"], t["version"], t["task_id"]) for t in everything]
    assert names(0) == []
    assert names(1) == [("training", 0, "rescued")]
    three = [("training", 0, "rescued"), ("training", 1, "all"), ("evaluation", 0, "chain")]
    assert names(3) == three
    assert set(names(4)) - set(three) == {("training", 0, "mixed")}
    assert set(names(5)) - set(names(4)) == {("training", 0, "big")}


def test_a_limit_leaves_whole_trees(small):
    pack, total = unpack(small[0], 2)
    assert total == 15
    names = [(tree["part"], tree["version"], tree["task"]) for tree in pack["trees"]]
    assert names == [("training", 0, "pruned"), ("training", 1, "worked")]
    assert [len(tree["nodes"]) for tree in pack["trees"]] == [20, 8]
    assert set(pack["tasks"]) == {"pruned", "worked"}


def test_a_long_text_is_cut_and_says_so():
    texts = trees.Texts()
    place = texts.place("x" * (trees.LONGEST_TEXT + 1234))
    assert texts.texts[place] == "x" * trees.LONGEST_TEXT + "\n[1,234 more characters are in the tables]"


def test_the_same_tables_give_the_same_bytes(small):
    packs = [trees.compressed(trees.pack(runs.connect(small[0]), small[0], None)[0]) for _ in range(2)]
    assert packs[0] == packs[1]
