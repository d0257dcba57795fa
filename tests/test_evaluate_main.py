"""The evaluate stage's command line: tables written with what they were made with, comparisons, refusals."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from stages.common import tables
from stages.common.cli import UserError
from stages.common.config import Execute, Generate
from stages.evaluate.__main__ import main
from tests.synthetic_run import small_run
from tests.test_evaluate_passes import judged, node
from tests.test_generate_stage import make_task

ROOT = Path(__file__).parent.parent
LEVELS = {"a": "easy", "b": "easy", "c": "hard", "d": "hard"}


def write_run(folder, solved_at, version=0, policy="h", prompt="", generate={}, execute={}, tasks={}, iterations=3):
    """Chains of a run as generate and execute would leave them; `solved_at`: per task the turn that solved it."""
    files = {"rollouts": [], "feedback": []}
    made = {
        "rollouts": tables.provenance("generate", Generate(**generate).model_dump(), seed=0),
        "feedback": tables.provenance("execute", Execute(**execute).model_dump()),
    }
    for turn in range(1, iterations + 1):
        rows = []
        for task, at in solved_at.items():
            if at is None or turn <= at:
                name = f"{version}/{task}/0" + ".0" * (turn - 1)
                one = node(name, name[:-2] if turn > 1 else None, task) | {"policy_hash": policy, "prompt": prompt}
                rows.append((one, judged(one, 2 if turn == at else 1, 1 if turn == at else 0)))
        for table, kept in ((tables.ROLLOUTS, [n for n, _ in rows]), (tables.FEEDBACK, [f for _, f in rows])):
            path = folder / f"eval_{table.name}/version={version}/turn={turn}/part-0.parquet"
            tables.write(path, table, kept, made[table.name])
            files[table.name].append(str(path))
    split = folder / "tasks/split=heldout/part-0.parquet"
    rows = [make_task(task, f"Do {task}.") | {"difficulty": LEVELS.get(task)} | tasks for task in solved_at]
    tables.write(split, tables.TASKS, rows)
    out = folder / f"evals/benchmark=heldout/version={version}/part-0.parquet"
    flags = ["--rollouts", *files["rollouts"], "--feedback", *files["feedback"], "--out", str(out)]
    return ["passes", "--tasks", str(split), *flags], out


SOLVED = {"a": 1, "b": 2, "c": None, "d": 3}
BETTER = {"a": None, "b": 1, "c": 1, "d": 3}


@pytest.fixture
def runs(tmp_path, capsys):
    """A run `one` evaluated at versions 0 and 2."""
    for version, solved_at in ((0, SOLVED), (2, BETTER)):
        main(write_run(tmp_path / "one", solved_at, version, policy=f"h{version}")[0])
    capsys.readouterr()
    return tmp_path


def test_passes_writes_the_table_and_what_it_was_made_with(tmp_path, capsys):
    arguments, out = write_run(tmp_path, SOLVED, generate={"temperature": 0.3, "shards": 4, "max_num_seqs": 7})
    main(arguments)
    rows = tables.read(out, tables.EVALS).to_pylist()
    assert [(row["task_id"], row["solved_at"], row["attempts"]) for row in rows] == [
        ("a", 1, 1),
        ("b", 2, 2),
        ("c", None, 3),
        ("d", 3, 3),
    ]
    made = tables.made_by(out)
    assert made["stage"] == "evaluate" and made["policies"] == ["h"]
    settings = made["settings"]
    assert (settings["iterations"], settings["samples"], settings["temperature"]) == (3, 1, 0.3)
    assert settings["feedback_from"] == "visible"
    assert not {"shards", "max_num_seqs", "group_size", "infra_error_share"} & settings.keys()
    shown = capsys.readouterr().out
    assert "4 tasks, 4 chains (1 per task)" in shown
    for line in ("1 │  25.0%", "2 │  50.0%", "3 │  75.0%"):
        assert line in shown
    assert "1 (33%)" in shown, "wrong to right in turn 2"


def test_passes_gives_its_numbers_as_json(tmp_path, capsys):
    arguments, _ = write_run(tmp_path, SOLVED)
    main([*arguments, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert [row["pass@1"] for row in found["pass_at"]] == [0.25, 0.5, 0.75]
    assert found["solved_at"] == {"1": 1, "2": 1, "3": 1}
    assert found["by_difficulty"]["hard"] == {"tasks": 2, "pass@1": [0.0, 0.0, 0.5]}
    assert [row["wrong_to_right"] for row in found["turns"]] == [0, 1, 1]


def test_no_nodes_are_written_before_duckdb_is_loaded(tmp_path):
    arguments, out = write_run(tmp_path, {}, iterations=2)
    code = (
        "import sys; from stages.evaluate.__main__ import main; main(sys.argv[1:]); "
        "assert 'duckdb' not in sys.modules, 'imported for nothing'"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert tables.read(out, tables.EVALS).num_rows == 0
    assert "0 tasks, 0 chains" in done.stdout


def test_turns_made_under_different_settings_are_refused(tmp_path):
    arguments, out = write_run(tmp_path, SOLVED)
    later = tmp_path / "eval_rollouts/version=0/turn=2/part-0.parquet"
    rows = tables.read(later, tables.ROLLOUTS)
    tables.write(later, tables.ROLLOUTS, rows, tables.provenance("generate", Generate(temperature=0.1).model_dump()))
    with pytest.raises(UserError, match=r"turn=2/part-0\.parquet: made with temperature 0\.1"):
        main(arguments)
    assert not out.exists()


def test_rollouts_of_two_policies_are_refused(tmp_path):
    arguments, _ = write_run(tmp_path, SOLVED)
    later = tmp_path / "eval_rollouts/version=0/turn=2/part-0.parquet"
    rows = [row | {"policy_hash": "other"} for row in tables.read(later, tables.ROLLOUTS).to_pylist()]
    tables.write(later, tables.ROLLOUTS, rows, tables.made_by(later))
    with pytest.raises(UserError, match="rollouts of several policies"):
        main(arguments)


def test_compare_prints_numbers_counted_by_hand(runs, capsys):
    main(["compare", f"{runs}/one@0", f"{runs}/one@2", "--json"])
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert captured.err == ""
    assert (found["resamples"], found["seed"], list(found["benchmarks"])) == (10_000, 0, ["heldout"])
    first, _, third = found["benchmarks"]["heldout"]["iterations"]
    assert (first["overall"]["first"], first["overall"]["second"], first["overall"]["difference"]) == (0.25, 0.5, 0.25)
    assert (first["won"], first["lost"], first["p"]) == (["b", "c"], ["a"], 1.0)
    assert (third["won"], third["lost"]) == (["c"], ["a"])
    assert third["overall"]["low"] < 0 < third["overall"]["high"]
    hard = found["benchmarks"]["heldout"]["by_difficulty"]["hard"]
    assert (hard["tasks"], hard["first"], hard["second"]) == (2, 0.5, 1.0)

    main(["compare", f"{runs}/one@0", f"{runs}/one@2", "--iteration", "1"])
    shown = capsys.readouterr().out
    assert "+25.0" in shown and "2 / 1" in shown
    assert "Won within 1 attempts: b, c" in shown and "Lost within 1 attempts: a" in shown


def test_files_folders_and_runs_name_the_same_evaluation(runs, capsys):
    shown = []
    evals = runs / "one/evals"
    for first, second in (
        (f"{runs}/one@0", f"{runs}/one@2"),
        (f"{evals}@0", f"{evals}@2"),
        (f"{evals}/benchmark=heldout@0", f"{evals}/benchmark=heldout/version=2"),
        (f"{evals}/benchmark=heldout/version=0/part-0.parquet", f"{evals}/benchmark=heldout/version=2/part-0.parquet"),
    ):
        main(["compare", first, second, "--json"])
        found = json.loads(capsys.readouterr().out)["benchmarks"]["heldout"]
        shown.append({key: value for key, value in found.items() if key not in ("first", "second")})
    assert shown[0] == shown[1] == shown[2] == shown[3]


def test_what_cannot_be_found_is_said(runs, capsys):
    def refused(match, *sources):
        with pytest.raises(UserError, match=match):
            main(["compare", *sources])

    refused("holds versions 0, 2; name one", f"{runs}/one", f"{runs}/one@2")
    refused("no evaluations here; there are versions 0, 2", f"{runs}/one@1", f"{runs}/one@2")
    refused("no such file or folder", f"{runs}/two@0", f"{runs}/one@2")
    refused("not the evals table", f"{runs}/one/tasks/split=heldout/part-0.parquet", f"{runs}/one@2")
    refused("no benchmark humaneval; there are heldout", f"{runs}/one@0", f"{runs}/one@2", "--benchmark", "humaneval")
    refused("1 to 3 attempts", f"{runs}/one@0", f"{runs}/one@2", "--iteration", "4")
    refused("at least 1", f"{runs}/one@0", f"{runs}/one@2", "--resamples", "0")


@pytest.mark.parametrize(
    ("changed", "says", "despite"),
    [
        ({"generate": {"temperature": 0.5}}, "temperature: 0.8 in the first, 0.5 in the second", "temperature"),
        ({"execute": {"feedback_from": "all"}}, "feedback_from: visible in the first, all in", "feedback_from"),
        ({"iterations": 2}, "iterations: 3 in the first, 2 in the second", "iterations"),
        ({"prompt": "other words"}, "prompts: the first prompts differ", "prompts"),
        ({"tasks": {"setup": "x = 1"}}, "tasks: same names, but statements or tests differ", None),
        ({"solved_at": {**BETTER, "e": 1}}, "tasks: 1 only in the second: e", None),
        ({"solved_at": {"a": 1, "z": 1}}, "tasks: 3 only in the first: b, c, d; 1 only in the second: z", None),
    ],
)
def test_evaluations_that_differ_are_refused_and_the_difference_named(runs, capsys, changed, says, despite):
    main(write_run(runs / "two", **{"solved_at": BETTER, "version": 2, **changed})[0])
    sources = [f"{runs}/one@0", f"{runs}/two@2"]
    with pytest.raises(UserError, match="cannot be compared on heldout") as error:
        main(["compare", *sources])
    assert says in str(error.value)
    assert len(str(error.value).splitlines()) == 3, "nothing else is said to differ"
    if despite is None:
        with pytest.raises(UserError, match="tasks"):
            main(["compare", *sources, "--despite", "tasks"])
    else:
        main(["compare", *sources, "--despite", despite])
        assert f"accepted although they differ: {despite}" in capsys.readouterr().err


def test_the_seed_and_what_only_fits_memory_may_differ(runs, capsys):
    main(write_run(runs / "two", BETTER, 2, policy="x", generate={"max_num_seqs": 3, "shards": 2})[0])
    capsys.readouterr()
    main(["compare", f"{runs}/one@0", f"{runs}/two@2"])
    assert capsys.readouterr().err == ""


def test_evaluations_that_do_not_say_how_they_were_made_are_compared_with_a_note(tmp_path, capsys):
    small_run(tmp_path / "small")
    main(["compare", f"{tmp_path}/small@0", f"{tmp_path}/small@2", "--benchmark", "heldout", "--json"])
    captured = capsys.readouterr()
    last = json.loads(captured.out)["benchmarks"]["heldout"]["iterations"][-1]
    assert (last["won"], last["lost"]) == (["h3", "h5"], ["h4"])
    assert (last["overall"]["first"], last["overall"]["second"], last["p"]) == (0.6, 0.8, 1.0)
    assert "not known whether they differ in tasks, prompts" in captured.err


def test_different_benchmarks_are_not_compared(runs, capsys):
    other = runs / "one/evals/benchmark=mbpp/version=2/part-0.parquet"
    rows = tables.read(runs / "one/evals/benchmark=heldout/version=2/part-0.parquet", tables.EVALS)
    tables.write(other, tables.EVALS, rows)
    with pytest.raises(UserError, match="mbpp: in one of the two only"):
        main(["compare", f"{runs}/one@0", f"{runs}/one@2"])
    with pytest.raises(UserError, match=r"is of benchmark heldout, .* of mbpp"):
        main(["compare", f"{runs}/one@0", str(other)])
    main(["compare", f"{runs}/one@0", f"{runs}/one@2", "--benchmark", "heldout"])


def test_help_is_complete(capsys):
    for command, words in (
        ("passes", ["--tasks", "--json"]),
        ("compare", ["--despite", "--iteration", "results/demo@2"]),
    ):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        shown = capsys.readouterr().out
        assert all(word in shown for word in words)
