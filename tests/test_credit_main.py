"""The credit stage's command line: what it writes, and what it says about input that does not fit."""

import json
import random
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from stages.common import tables
from stages.common.cli import UserError
from stages.common.config import Credit
from stages.credit.__main__ import main
from tests.credit_trees import Node, feedback_row, rollout_row, tree, write_rows, write_trees
from tests.test_credit_assign import EXAMPLE

ROOT = Path(__file__).parent.parent


def arguments(files, out, turns=2):
    paths = [text for name in ("rollouts", "feedback") for text in (f"--{name}", *map(str, files[name]))]
    return [*paths, "--turns", str(turns), "--out", str(out)]


def test_a_run_writes_table_provenance_and_timings(tmp_path, capsys):
    files = write_trees(tmp_path, tree("t", EXAMPLE), shards=2, shuffle=random.Random(0))
    out, timings = tmp_path / "new" / "credit.parquet", tmp_path / "timings" / "credit.json"
    flags = ["--strategy", "mers", "--gamma", "0.5", "--prune", "intra", "--intra-nodes", "3", "--threads", "1"]
    assert main([*arguments(files, out), "--timings", str(timings), *flags]) == 0
    rows = tables.read(out, tables.CREDIT).to_pylist()
    assert len(rows) == 16 and sum(row["kept"] for row in rows) == 12
    assert rows[1]["node_id"] == "0/t/1" and rows[1]["credit"] == pytest.approx((0.5 + 0.5 * 0.625) / 2)
    made_by = tables.made_by(out)
    assert made_by["stage"] == "credit" and made_by["turns"] == 2
    assert Credit(**made_by["settings"]) == Credit(strategy="mers", gamma=0.5, prune="intra", intra_nodes=3)
    phases = json.loads(timings.read_text())
    assert [phase["phase"] for phase in phases] == ["read", "check", "credit", "prune", "advantages", "write"]
    assert phases[-1]["count"] == 16
    assert "16 nodes, 12 kept, 0 unjudged; 4 groups, 2 with an advantage" in capsys.readouterr().out
    assert [path.name for path in out.parent.iterdir()] == ["credit.parquet"]


def test_no_rows_are_written_before_duckdb_is_loaded(tmp_path):
    files = write_trees(tmp_path, [])
    code = (
        "import sys; from stages.credit.__main__ import main; main(sys.argv[1:]); "
        "assert 'duckdb' not in sys.modules, 'imported for nothing'"
    )
    out = tmp_path / "credit.parquet"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments(files, out)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert tables.read(out, tables.CREDIT).num_rows == 0
    assert "nothing to learn from" in done.stdout


def test_help_names_every_setting(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    assert all(f"--{name.replace('_', '-')}" in text for name in Credit.model_fields)


def broken(change):
    """Rollout rows and feedback rows by turn of a small tree, after `change` has spoilt them."""
    nodes = tree("t", [1, (0, [1, 0])])
    rows = {turn: [rollout_row(node) for node in nodes if node.turn == turn] for turn in (1, 2)}
    judged = {turn: [feedback_row(node) for node in nodes if node.turn == turn] for turn in (1, 2)}
    change(rows, judged)
    return rows, judged


def other(name, group, task="t", parent=None):
    node = Node(name, group, task, 1, Fraction(1))
    return {**rollout_row(node), "parent_id": parent}, feedback_row(node)


def add(turn, name, group, task="t", parent=None):
    def change(rows, judged):
        row, verdict = other(name, group, task, parent)
        rows[turn].append(row)
        judged[turn].append(verdict)

    return change


PROBLEMS = {
    "a missing parent": (
        lambda rows, judged: (rows[1].pop(), judged[1].pop()),
        "node 0/t/1.0 of turn 2 has a parent, 0/t/1, that is not among the rollouts",
    ),
    "no feedback": (lambda rows, judged: judged[2].pop(0), "node 0/t/1.0 of turn 2 has no feedback"),
    "no node": (lambda rows, judged: rows[2].pop(0), "node 0/t/1.0 has feedback, of turn 2, but is not among the"),
    "node twice": (lambda rows, judged: rows[1].append(rows[1][0]), "node 0/t/0 occurs more than once"),
    "feedback twice": (lambda rows, judged: judged[1].append(judged[1][0]), "node 0/t/0 occurs more than once"),
    "a turn that feedback says otherwise": (
        lambda rows, judged: judged[1].append(judged[2].pop()),
        "node 0/t/1.1 is of turn 2 in the rollouts and of turn 1 in the feedback",
    ),
    "a task that feedback says otherwise": (
        lambda rows, judged: judged[1][0].update(task_id="u"),
        "node 0/t/0 is of task t in the rollouts and of task u in the feedback",
    ),
    "a root in turn 2": (add(2, "0/u/0", "0/u", "u"), "node 0/u/0 of turn 2 has no parent"),
    "a child in turn 1": (add(1, "0/t/1.2", "0/t/1", parent="0/t/1"), "node 0/t/1.2 of turn 1 has a parent, 0/t/1"),
    "a brother as parent": (
        add(2, "0/t/1.0.0", "0/t/1.0", parent="0/t/1.0"),
        "node 0/t/1.0.0 of turn 2 has a parent, 0/t/1.0, of turn 2",
    ),
    "a group that is not the parent's": (
        add(2, "0/t/1.2", "elsewhere", parent="0/t/1"),
        "node 0/t/1.2 is in group elsewhere, not in that of its parent 0/t/1",
    ),
    "a root in a node's group": (
        add(1, "0/t/7", "0/t/1"),
        "node 0/t/7 is a root in group 0/t/1, which is the name of a",
    ),
    "a parent of another task": (
        add(2, "0/u/1.0", "0/t/0", "u", parent="0/t/0"),
        "node 0/u/1.0 is of task u and its parent of task t",
    ),
    "a group of two tasks": (add(1, "0/u/0", "0/t", "u"), "group 0/t holds nodes of tasks t and u"),
    "a reward above 1": (
        lambda rows, judged: judged[1][0].update(reward=1.5),
        "node 0/t/0 has a reward outside 0 to 1",
    ),
    "a reward that is no number": (
        lambda rows, judged: judged[1][0].update(reward=float("nan")),
        "node 0/t/0 has a reward outside 0 to 1: nan",
    ),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_does_not_fit_is_named(tmp_path, name):
    change, message = PROBLEMS[name]
    rows, judged = broken(change)
    files = {
        "rollouts": [write_rows(tmp_path, tables.ROLLOUTS, turn, rows[turn]) for turn in (1, 2)],
        "feedback": [write_rows(tmp_path, tables.FEEDBACK, turn, judged[turn]) for turn in (1, 2)],
    }
    with pytest.raises(UserError) as error:
        main(arguments(files, tmp_path / "out" / "credit.parquet"))
    assert message in str(error.value)
    assert list((tmp_path / "out").iterdir()) == [], "nothing is written"


def test_the_small_tree_itself_is_fine(tmp_path):
    rows, judged = broken(lambda rows, judged: None)
    files = {
        "rollouts": [write_rows(tmp_path, tables.ROLLOUTS, turn, rows[turn]) for turn in (1, 2)],
        "feedback": [write_rows(tmp_path, tables.FEEDBACK, turn, judged[turn]) for turn in (1, 2)],
    }
    assert main(arguments(files, tmp_path / "credit.parquet")) == 0


def test_more_turns_than_allowed(tmp_path):
    files = write_trees(tmp_path, tree("t", EXAMPLE))
    with pytest.raises(UserError, match=r"node 0/t/1\.0 is of turn 2, outside 1 to 1(.|\n)*and 7 more"):
        main(arguments(files, tmp_path / "credit.parquet", turns=1))


def test_files_that_do_not_fit(tmp_path):
    files = write_trees(tmp_path, tree("t", [1, 0]))
    out = tmp_path / "credit.parquet"

    def refused(match, **changed):
        with pytest.raises(UserError, match=match):
            main(arguments({**files, **changed}, out))
        assert not out.exists()

    refused("no such file", rollouts=[tmp_path / "turn=1" / "gone.parquet"])
    refused("not the rollouts table", rollouts=files["feedback"])
    flat = tmp_path / "flat.parquet"
    shutil.copy(files["rollouts"][0], flat)
    refused(r"flat\.parquet: the turn is read from the folder", rollouts=[flat])
    second = tmp_path / "rollouts" / "version=1" / "turn=1" / "shard-0.parquet"
    second.parent.mkdir(parents=True)
    shutil.copy(files["rollouts"][0], second)
    refused("files of version=0 and version=1", rollouts=[*files["rollouts"], second])
    cut = tmp_path / "cut" / "turn=1" / "shard-0.parquet"
    cut.parent.mkdir(parents=True)
    cut.write_bytes(files["rollouts"][0].read_bytes()[:-40])
    refused("not a readable Parquet file", rollouts=[cut])
    empty = write_trees(tmp_path / "empty", [])
    refused("the rollouts have no rows", rollouts=empty["rollouts"])


@pytest.mark.parametrize(
    ("flags", "match"),
    [(["--turns", "0"], "--turns"), (["--threads", "0"], "--threads"), (["--gamma", "2"], "--gamma")],
)
def test_settings_out_of_range(tmp_path, flags, match):
    files = write_trees(tmp_path, tree("t", [1, 0]))
    with pytest.raises(UserError, match=match):
        main([*arguments(files, tmp_path / "credit.parquet"), *flags])


def test_a_refusal_ends_in_one_line_and_status_2(tmp_path):
    files = write_trees(tmp_path, tree("t", EXAMPLE))
    command = [sys.executable, "-m", "stages.credit", *arguments(files, tmp_path / "credit.parquet", turns=1)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith("error: the rollouts and feedback do not fit together")
    assert "Traceback" not in done.stderr
