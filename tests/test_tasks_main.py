"""The command line: both commands on real files, and what is wrong is said without a traceback."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stages.common import tables
from stages.common.cli import UserError, flags_for
from stages.common.config import Tasks
from stages.tasks.__main__ import main

ROOT = Path(__file__).resolve().parents[1]


def import_(path, *flags):
    assert main(["import", "--out", str(path), *flags]) == 0
    return tables.read(path, tables.TASKS).to_pylist()


def judged(folder: Path, rows: list[dict], rewards: dict[str, float] = {}) -> list[str]:
    """The execute stage's tables for references: full marks, but for `rewards`; as flags of admit."""
    feedback, verdicts = [], []
    for row in rows:
        reward = rewards.get(row["task_id"], 1.0)
        total = len(row["tests"])
        counts = {"passed": round(reward * total), "total": total, "hidden_passed": 0, "hidden_total": 0}
        node = {"node_id": row["task_id"], "task_id": row["task_id"], "reward": reward, "mode": "answer_blind"}
        kind = "passed" if reward == 1 else "wrong_answer"
        feedback.append(node | counts | {"kind": kind, "feedback": ""})
        quoted = {"call": None, "got": None, "expected": None}
        verdicts.append({"node_id": row["task_id"], "test": 0, "visible": True, "kind": kind, "message": "no"} | quoted)
    tables.write(folder / "feedback.parquet", tables.FEEDBACK, feedback)
    tables.write(folder / "verdicts.parquet", tables.VERDICTS, verdicts)
    return ["--feedback", str(folder / "feedback.parquet"), "--verdicts", str(folder / "verdicts.parquet")]


def admit(folder, *flags):
    return main(["admit", "--candidates", str(folder / "c.parquet"), "--rejected", str(folder / "r.parquet"), *flags])


def outputs(folder):
    return ["--train", str(folder / "train.parquet"), "--heldout", str(folder / "heldout.parquet")]


def test_import_then_admit(tmp_path, capsys):
    rows = import_(tmp_path / "c.parquet")
    assert (
        "starter: 215 candidates (205 function, 10 stdio), 1296 tests, 430 of them visible" in capsys.readouterr().out
    )
    flags = judged(tmp_path, rows, {"starter/add-one": 0.5})
    assert admit(tmp_path, *flags, *outputs(tmp_path), "--heldout-share", "0.25") == 0
    train, heldout, rejected = (
        tables.read(tmp_path / f"{name}.parquet", table).to_pylist()
        for name, table in (("train", tables.TASKS), ("heldout", tables.TASKS), ("r", tables.REJECTED))
    )
    assert len(train) + len(heldout) == len(rows) - 1 and 35 < len(heldout) < 75
    assert [(row["task_id"], row["reward"]) for row in rejected] == [("starter/add-one", 0.5)]
    assert rejected[0]["reason"] == "3 of 6 tests pass; test 0: wrong_answer: no"
    text = capsys.readouterr().out
    assert "215 candidates: 214 admitted, 1 rejected" in text and "rejected starter/add-one: 3 of 6" in text
    assert tables.made_by(tmp_path / "train.parquet")["settings"] == {"heldout_share": 0.25}


def test_admit_all(tmp_path, capsys):
    rows = import_(tmp_path / "c.parquet", "--limit", "9")
    assert admit(tmp_path, *judged(tmp_path, rows), "--all", str(tmp_path / "all.parquet")) == 0
    assert tables.read(tmp_path / "all.parquet", tables.TASKS).to_pylist() == rows
    assert tables.read(tmp_path / "r.parquet", tables.REJECTED).num_rows == 0


def test_the_same_import_gives_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        import_(tmp_path / name, "--source", "generated", "--limit", "50", "--seed", "3")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_every_setting_of_the_section_is_a_flag(tmp_path):
    settings = Tasks(source="starter", limit=5, difficulty=["easy", "hard"], heldout_share=0.5)
    rows = import_(tmp_path / "a", *flags_for(settings), "--seed", "1")
    assert len(rows) == 5 and {row["difficulty"] for row in rows} <= {"easy", "hard"}
    assert tables.made_by(tmp_path / "a")["settings"] == settings.model_dump()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--difficulty", "trivial"], "the data set has easy"),
        (["--limit", "0"], "--limit"),
        (["--heldout-share", "2"], "--heldout-share"),
        (["--source", "nowhere.jsonl"], "nowhere.jsonl: no such file"),
    ],
)
def test_import_leaves_nothing_behind_when_it_fails(tmp_path, flags, message):
    with pytest.raises(UserError) as error:
        main(["import", "--out", str(tmp_path / "c.parquet"), *flags])
    assert message in str(error.value) and not list(tmp_path.iterdir())


def test_a_bad_row_is_named(tmp_path):
    good = {"task_id": "a/1", "prompt": "f", "entry_point": "f", "tests": [{"code": "assert f() == 1"}]}
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(good) + "\n" + json.dumps(good | {"task_id": "a/2", "tests": []}) + "\n")
    with pytest.raises(UserError, match=r"rows\.jsonl, line 2: task a/2 has no tests"):
        main(["import", "--out", str(tmp_path / "c.parquet"), "--source", str(path)])


@pytest.mark.parametrize("flags", [[], ["--all", "a", "--train", "b", "--heldout", "c"], ["--train", "b"]])
def test_outputs_of_admit_go_together(tmp_path, flags):
    judging = ["--feedback", "f", "--verdicts", "v"]
    with pytest.raises(UserError, match="give --train and --heldout, or --all alone"):
        admit(tmp_path, *judging, *flags)


def test_an_empty_split_writes_no_tasks(tmp_path):
    rows = import_(tmp_path / "c.parquet", "--limit", "4")
    flags = judged(tmp_path, rows)
    with pytest.raises(UserError, match=r"the heldout split is empty: 4 tasks with tasks\.heldout_share 0\.0"):
        admit(tmp_path, *flags, *outputs(tmp_path), "--heldout-share", "0")
    assert not (tmp_path / "train.parquet").exists() and not (tmp_path / "heldout.parquet").exists()


def test_when_nothing_is_admitted_the_reasons_stay(tmp_path):
    rows = import_(tmp_path / "c.parquet", "--limit", "3")
    flags = judged(tmp_path, rows, {row["task_id"]: 0.0 for row in rows})
    with pytest.raises(UserError, match="none of its 3 tasks is admitted"):
        admit(tmp_path, *flags, *outputs(tmp_path))
    assert tables.read(tmp_path / "r.parquet", tables.REJECTED).num_rows == 3


def test_as_a_program(tmp_path):
    """Help is quick and imports nothing heavy; an error is one line and exit code 2."""
    start = time.process_time()
    command = [sys.executable, "-X", "importtime", "-m", "stages.tasks"]
    shown = subprocess.run([*command, "import", "--help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "--heldout-share" in shown.stdout and "--source" in shown.stdout
    assert not any(f"| {name}\n" in shown.stderr.replace("   ", "") for name in ("torch", "vllm", "transformers"))
    assert time.process_time() - start < 5
    flags = ["import", "--out", str(tmp_path / "c"), "--source", "nowhere.jsonl"]
    failed = subprocess.run([*command[:1], *command[3:], *flags], cwd=ROOT, capture_output=True, text=True)
    assert failed.returncode == 2 and failed.stderr == "error: nowhere.jsonl: no such file (tasks.source)\n"
