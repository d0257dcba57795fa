"""The workflow as a user runs it: plans, lint, whole runs, and what re-runs.

The smoke run trains a tiny policy with every real part (vLLM, bubblewrap, DuckDB, PyTorch); it takes minutes.
"""

import json
import shutil
import zipfile

import duckdb
import pytest
import yaml

from tests.faults import fingerprints
from tests.workflow_runs import ROOT, SMOKE, snakemake

CONFIGS = sorted((ROOT / "workflow/configs").glob("*.yaml"))


def planned(folder, *more, config=SMOKE):
    """Job counts of a dry run."""
    done = snakemake(folder, "-n", *more, config=config)
    assert done.returncode == 0, done.stdout + done.stderr
    text = done.stdout + done.stderr
    if "Nothing to be done" in text:
        return {}
    table = text.split("Job stats:")[-1].split("total")[0].splitlines()
    return {
        line.split()[0]: int(line.split()[1]) for line in table if len(line.split()) == 2 and line.split()[1].isdigit()
    }


@pytest.mark.parametrize("config", [ROOT / "config.yaml", *CONFIGS], ids=lambda path: path.stem)
def test_every_config_plans(tmp_path, config):
    jobs = planned(tmp_path, config=config)
    if config.stem.startswith("compare"):
        arms = ("grpo", "own", "mers", "mars")
        assert all(jobs[f"{arm}_0_update_0"] == 1 and jobs[f"{arm}_0_generate"] >= 1 for arm in arms)
        assert jobs["compare_report"] == 1 and jobs["compare_ends"] == 3
        assert sum(count for name, count in jobs.items() if name.endswith("_tasks_import")) == 1
        return
    assert jobs["update_0"] == 1 and jobs["report"] == 1 and jobs["generate"] >= 1


def test_lint_is_clean(tmp_path):
    done = snakemake(tmp_path, "--lint")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_wrong_config_is_refused_before_anything_runs(tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_text("generate:\n  gropu_size: 4\n")
    done = snakemake(tmp_path, config=bad)
    text = done.stdout + done.stderr
    assert done.returncode != 0 and "generate.gropu_size" in text and "did you mean group_size" in text
    assert not (tmp_path / "results").exists()


@pytest.mark.slow
def test_a_smoke_run_trains_a_policy_on_trees(smoke):
    run = smoke / "results/smoke"
    at = lambda sql: duckdb.sql(sql.replace("RUN", str(run))).fetchall()
    turns = at("select turn, count(*), avg(reward) from 'RUN/feedback/**/*.parquet' group by all order by all")
    assert [turn for turn, _, _ in turns] == [1, 2]
    assert turns[0][1] == 12 * 4 and turns[1][1] % 4 == 0 and turns[1][1] > 0
    assert 0 < turns[0][2] < 1, "the tiny policy must solve some and not others"
    parents = at("select distinct parent_id from 'RUN/rollouts/version=0/turn=2/*.parquet' order by all")
    assert parents == at("select node_id from 'RUN/feedback/version=0/turn=1/*.parquet' where reward < 1 order by all")
    [(informative, tokens)] = at(
        "select (select count(*) from 'RUN/credit/**/*.parquet' where advantage <> 0),"
        " (select sum(tokens) from 'RUN/updates/**/*.parquet')"
    )
    assert informative > 0 and tokens > 0
    _, hashes = fingerprints(run)
    assert len(set(hashes.values())) == 2
    assert (run / "report.html").stat().st_size > 10_000
    from transformers import AutoModelForCausalLM

    before, after = (AutoModelForCausalLM.from_pretrained(run / f"policies/version={v}") for v in (0, 1))
    assert any((a != b).any() for a, b in zip(before.parameters(), after.parameters(), strict=True))


@pytest.mark.slow
def test_a_second_run_has_nothing_to_do(smoke):
    done = snakemake(smoke)
    assert done.returncode == 0 and "Nothing to be done" in done.stdout + done.stderr


def test_an_edited_data_set_is_imported_again(tmp_path):
    data, overlay, target = tmp_path / "mine.jsonl", tmp_path / "own.yaml", "results/own/import/candidates.parquet"
    task = {"task_id": "a", "prompt": "Add one.", "entry_point": "f", "reference": "def f(x): return x + 1\n"}
    data.write_text(json.dumps({**task, "tests": [{"code": "assert f(1) == 2", "visible": True}]}) + "\n")
    overlay.write_text(yaml.safe_dump({"run": "own", "tasks": {"source": str(data)}}))
    done = snakemake(tmp_path, "--", target, config=overlay)
    assert done.returncode == 0, done.stdout + done.stderr
    assert planned(tmp_path, "--", target, config=overlay) == {}
    data.write_text(data.read_text().replace("Add one.", "Add one to x."))
    assert planned(tmp_path, "--", target, config=overlay) == {"tasks_import": 1}


@pytest.mark.slow
def test_a_run_can_be_moved_by_itself(smoke, tmp_path):
    moved = tmp_path / "deeper" / "down"
    shutil.copytree(smoke, moved, symlinks=True)
    assert planned(moved) == {}


@pytest.mark.slow
def test_snakemakes_own_report_holds_the_page(smoke, tmp_path):
    done = snakemake(smoke, "--report", str(tmp_path / "report.zip"))
    assert done.returncode == 0, done.stdout + done.stderr
    with zipfile.ZipFile(tmp_path / "report.zip") as archive:
        texts = [archive.read(name).decode() for name in archive.namelist() if name.endswith("report.html")]
    assert any("whole rollout trees of the run smoke" in text for text in texts), "the caption"
    assert any('"Run"' in text for text in texts), "the category"


@pytest.mark.slow
def test_a_change_re_runs_its_own_stage_and_what_follows(smoke, tmp_path):
    def after(text):
        overlay = tmp_path / "overlay.yaml"
        overlay.write_text(SMOKE.read_text().replace("lr: 1.0e-4", text))
        return planned(smoke, config=overlay)

    assert after("lr: 1.0e-4\n  tokens_per_batch: 999") == {}
    jobs = after("lr: 2.0e-4")
    assert jobs["update_0"] == 1 and "generate" not in jobs and "execute" not in jobs and "credit" not in jobs
    assert jobs["eval_generate"] == 2, "only the new last version is evaluated again"
    overlay = tmp_path / "longer.yaml"
    overlay.write_text(SMOKE.read_text().replace("versions: 1", "versions: 2"))
    jobs = planned(smoke, config=overlay)
    assert jobs["update_1"] == 1 and "update_0" not in jobs and jobs["generate"] == 2


@pytest.mark.slow
def test_a_comparison_samples_alike_and_says_so(smoke, tmp_path):
    overlay = yaml.safe_load((ROOT / "workflow/configs/compare-smoke.yaml").read_text())
    overlay["policy"]["init"] = str(smoke / "results/smoke/policies/version=0")  # the same policy, made already
    overlay["evaluate"]["iterations"] = 1  # smoke has the second
    del overlay["compare"]["arms"]["mers"]  # as mars, but for its SQL, which tests/test_credit_assign.py runs
    (tmp_path / "compare.yaml").write_text(yaml.safe_dump(overlay, sort_keys=False))
    done = snakemake(tmp_path, config=tmp_path / "compare.yaml")
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    found = json.loads((tmp_path / "results/compare-smoke/compare.json").read_text())
    arms = ["grpo", "own", "mars"]
    assert [row["arm"] for row in found["tokens"]] == arms
    assert all(row["matched"] and row["steps"] == 1 for row in found["tokens"]), found["tokens"]
    for arm in arms:
        table = f"{tmp_path}/results/compare-smoke-{arm}-0/rollouts/**/*.parquet"
        [(tokens,)] = duckdb.sql(f"select sum(len(completion_ids)) from '{table}'").fetchall()
        assert abs(tokens / 5000 - 1) < 0.02, (arm, tokens)
    hashes = {
        json.loads((tmp_path / f"results/compare-smoke-{arm}-0/policies/version=0/manifest.json").read_text())["hash"]
        for arm in arms
    }
    assert len(hashes) == 1, "all start from the same version 0"
    assert {row["arm"] for row in found["differences"]} == set(arms[1:])
    page = (tmp_path / "results/compare-smoke/report.html").read_text()
    assert "mars against grpo" in page and "every version, every seed" in page
