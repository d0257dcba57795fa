"""The closing tables of a run whose numbers were counted by hand."""

import json

import pytest
from scipy.stats import binomtest

from stages.common.cli import UserError
from stages.report import summary
from stages.report.__main__ import main
from tests.synthetic_run import small_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results") / "small"
    small_run(folder)
    return folder


@pytest.fixture(scope="module")
def found(run):
    return summary.collect(run)


def columns(rows, *names):
    return [tuple(row[name] for name in names) for row in rows]


def test_turns_count_nodes_and_leave_unjudged_ones_out_of_means(found):
    assert columns(found.turns, "version", "turn", "nodes", "unjudged", "solved") == [
        (0, 1, 12, 1, 3),
        (0, 2, 32, 1, 8),
        (1, 1, 8, 0, 7),
        (1, 2, 4, 0, 3),
    ]
    assert [row["mean_reward"] for row in found.turns] == pytest.approx([4 / 11, 12 / 31, 7.5 / 8, 3 / 4])
    assert [row["solved_share"] for row in found.turns] == pytest.approx([3 / 11, 8 / 31, 7 / 8, 3 / 4])


def test_pass_at_1_by_iteration(found):
    assert columns(found.evals, "benchmark", "version", "iteration", "tasks", "chains", "pass_at_1") == [
        ("heldout", 0, 1, 5, 5, 0.2),
        ("heldout", 0, 2, 5, 5, 0.4),
        ("heldout", 0, 3, 5, 5, 0.6),
        ("heldout", 2, 1, 5, 5, 0.4),
        ("heldout", 2, 2, 5, 5, 0.6),
        ("heldout", 2, 3, 5, 5, 0.8),
        ("humaneval", 0, 1, 2, 4, 0.5),
        ("humaneval", 0, 2, 2, 4, 0.75),
        ("humaneval", 0, 3, 2, 4, 0.75),
    ]


def test_intervals_are_wilson_intervals(found):
    for row in found.evals[:6]:
        interval = binomtest(round(row["pass_at_1"] * 5), 5).proportion_ci(0.95, "wilson")
        assert (row["low"], row["high"]) == pytest.approx((interval.low, interval.high), abs=2e-5)


def test_kept_and_pruned(found):
    names = ("version", "turn", "nodes", "kept", "pruned_inter", "pruned_intra", "with_signal")
    assert columns(found.kept, *names) == [
        (0, 1, 12, 10, 0, 2, 6),
        (0, 2, 32, 23, 8, 1, 8),
        (1, 1, 8, 8, 0, 0, 0),
        (1, 2, 4, 4, 0, 0, 4),
    ]


def test_tokens_and_cut_completions(found):
    names = ("part", "version", "turn", "nodes", "sampled_tokens", "prompt_tokens")
    # Eight prompts of 35 tokens in turn 2 of version 0; 8 * (20+21+22+23) completion tokens, less the overflow's 23.
    assert columns(found.sampled, *names)[:4] == [
        ("training", 0, 1, 12, 138, 60),
        ("training", 0, 2, 32, 665, 280),
        ("training", 1, 1, 8, 92, 40),
        ("training", 1, 2, 4, 86, 35),
    ]
    assert columns(found.sampled, *names)[4:] == [
        ("evaluation", 0, 1, 5, 50, 100),
        ("evaluation", 0, 2, 4, 80, 140),
        ("evaluation", 0, 3, 3, 90, 105),
        ("evaluation", 2, 1, 5, 50, 100),
        ("evaluation", 2, 2, 3, 60, 105),
        ("evaluation", 2, 3, 2, 60, 70),
    ]
    turn = found.sampled[1]
    assert (turn["cut_share"], turn["no_code_share"], turn["overflow_share"]) == pytest.approx((1 / 32,) * 3)


def test_updates(found):
    (row,) = found.updates
    assert (row["steps"], row["rows"], row["tokens"]) == (2, 16, 400)
    assert (row["loss"], row["kl"], row["grad_norm"], row["ratio_max"], row["clipped"]) == (
        0.375,
        None,
        2.5,
        2.25,
        0.125,
    )
    assert found.passed_on == [1]


def test_time_by_phase_with_engine_overhead_apart(found):
    names = ("stage", "phase", "engine_overhead", "times", "seconds", "count")
    assert columns(found.phases, *names) == [
        ("execute", "run", False, 1, 4.0, 24),
        ("generate", "import vllm", True, 2, 25.0, 0),
        ("generate", "first call", True, 1, 8.0, 0),
        ("generate", "engine start", True, 1, 7.0, 0),
        ("generate", "sample", False, 2, 5.0, 600),
        ("update", "train", False, 1, 50.0, 5000),
        ("update", "load", False, 1, 1.0, 0),
    ]
    assert (found.total_seconds, found.engine_overhead_seconds) == (100.0, 40.0)
    assert (found.sampling.per_second, found.training.per_second) == (120.0, 100.0)


def test_printed_tables_hold_the_numbers(run, capsys):
    assert main(["summary", str(run)]) == 0
    printed = capsys.readouterr().out
    for cells in (
        ["0", "1", "12 (1 unjudged)", "3 (27.3%)", "0.364", "138"],
        ["heldout", "2", "5", "40.0%", "60.0%", "80.0%"],
        ["0", "2", "32", "23", "8", "1", "8"],
        ["generate", "sample", "5.0 s", "5.0%", "600 tokens", "120.0 tokens/s"],
        ["* engine overhead", "", "40.0 s", "40.0%", "", ""],
        ["total", "", "1 min 40 s", "100.0%", "", ""],
    ):
        assert any([cell.strip() for cell in line.split("│")[1:-1]] == cells for line in printed.splitlines()), cells
    assert "version 1 was passed on unchanged" in printed


def test_json_holds_the_same(run, found, capsys):
    assert main(["summary", str(run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(found.as_json()))


def test_a_run_that_is_not_finished(tmp_path, capsys):
    small_run(tmp_path / "half", finished=False)
    assert main(["summary", str(tmp_path / "half")]) == 0
    printed = capsys.readouterr().out
    assert "not there yet: evaluation, updates" in printed
    assert "Rollouts" in printed and "pass@1" not in printed


def test_a_folder_that_is_no_run(tmp_path):
    with pytest.raises(UserError, match="no such folder"):
        summary.collect(tmp_path / "nothing")
    with pytest.raises(UserError, match="holds none of a run's tables"):
        summary.collect(tmp_path)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.0 s"), (0.04, "40 ms"), (99.9, "99.9 s"), (100, "1 min 40 s"), (5999, "99 min 59 s"), (6000, "1 h 40 min")],
)
def test_durations(seconds, text):
    assert summary.duration(seconds) == text
