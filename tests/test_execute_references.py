"""Reference solutions, imported and judged: each scores 1.0, and a function without an answer is not solved."""

import json
from pathlib import Path

import pytest

from stages.common import tables
from stages.execute.__main__ import main as execute
from stages.tasks.__main__ import main as tasks

DATA = Path(__file__).parents[2] / "shared" / "data"


def shared(name):
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{name} is not beside the checkout (../shared/data)")
    return path


def judge(folder, *settings):
    """Feedback rows of the candidates' references."""
    out = ["--verdicts", str(folder / "v.parquet"), "--feedback", str(folder / "f.parquet")]
    execute(["references", "--tasks", str(folder / "candidates.parquet"), *out, "--workers", "2", *settings])
    return tables.read(folder / "f.parquet", tables.FEEDBACK).to_pylist()


def imported(folder, source):
    tasks(["import", "--source", str(source), "--out", str(folder / "candidates.parquet")])
    return tables.read(folder / "candidates.parquet", tables.TASKS).to_pylist()


def failures(rows):
    return {row["node_id"]: (row["kind"], row["feedback"][:200]) for row in rows if row["reward"] != 1}


def test_starter(tmp_path):
    assert len(imported(tmp_path, "starter")) >= 160
    assert failures(judge(tmp_path)) == {}


def test_humaneval_is_right_answer_blind_and_a_function_that_returns_none_is_not(tmp_path):
    imported(tmp_path, "humaneval")
    judged = judge(tmp_path, "--hollow")
    references = [row for row in judged if row["node_id"] == row["task_id"]]
    assert len(references) == 164 and failures(references) == {}
    assert {row["mode"] for row in judged} == {"answer_blind"}
    assert len(judged) == 328 and sum(row["reward"] == 1 for row in judged) == 164


@pytest.mark.slow
def test_mbpp_is_right_and_answer_blind(tmp_path):
    imported(tmp_path, shared("mbpp.jsonl"))
    judged = judge(tmp_path)
    assert len(judged) == 974 and failures(judged) == {}
    assert {row["mode"] for row in judged} == {"answer_blind"}


def test_kodcode(tmp_path):
    rows = imported(tmp_path, shared("kodcode_demo.jsonl"))
    every = judge(tmp_path, "--hollow", "--packages", "numpy", "scipy")
    judged = [row for row in every if row["node_id"] == row["task_id"]]
    paid = {row["task_id"].rpartition("_")[0] for row in every if row not in judged and row["reward"] == 1}
    assert paid == {"kodcode/Algorithm_00000041", "kodcode/Algorithm_00000051"}, "tests that bring their own solution"
    wrong = failures(judged)
    assert len(judged) == len(rows) and len(judged) - len(wrong) >= 226, wrong
    assert sum(row["mode"] == "answer_blind" for row in judged) >= 0.8 * len(judged)


def test_recorded_attempts_get_their_recorded_verdicts(tmp_path):
    trials = [json.loads(line) for line in shared("kodcode_trials.jsonl").read_text().splitlines()]
    cases = [{"id": str(i), "code": t["solution_code"], "test_code": t["test_code"]} for i, t in enumerate(trials)]
    (tmp_path / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases))
    out = tmp_path / "out.jsonl"
    settings = ["--workers", "2", "--cpu-seconds", "2", "--packages", "numpy", "scipy"]
    execute(["judge", str(tmp_path / "cases.jsonl"), "--out", str(out), *settings])
    verdicts = {row["id"]: row["verdict"] for row in map(json.loads, out.read_text().splitlines())}
    recorded = {str(i): t["test_result"] == "Pass" for i, t in enumerate(trials)}
    assert {i: verdict == "passed" for i, verdict in verdicts.items()} == recorded
