"""Faults at seeded moments: which moments there are."""

import re

from tests import faults
from tests.workflow_runs import ROOT

NOT_IN_SMOKE = {"benchmark_import", "benchmark_admit", "tasks_taken", "compare_ends", "compare_report"}
IN_CI = [
    ("generate turn 2", "kill -9 of all"),
    ("update", "Ctrl-C"),
    ("credit", "kill -9 of snakemake alone"),
    ("execute", "disk full"),
    ("tasks_references", "truncated Parquet"),
    ("policy_init", "policy without manifest"),
]


def test_moments_cover_every_stage_and_fault():
    drawn = faults.moments(100, 0)
    assert drawn == faults.moments(200, 0)[:100] != faults.moments(100, 1)
    assert {stage for stage, _ in drawn} == set(faults.STAGES) and {fault for _, fault in drawn} == set(faults.FAULTS)
    assert set(IN_CI) <= set(drawn)
    rules = "".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
    names = {rule for rule, _, _ in faults.STAGES.values()} - {"update_0"}
    assert names == set(re.findall(r"^ *rule (\w+):", rules, re.MULTILINE)) - NOT_IN_SMOKE
