"""The page against truths: every number recounted in plain Python from the nodes that were written down."""

import math
import re
from collections import Counter, defaultdict
from statistics import fmean

import duckdb
import pytest

from stages.common import tables
from stages.common.cli import UserError
from stages.common.config import Report
from stages.report import page
from stages.report.__main__ import main
from tests import synthetic_run as synthetic
from tests.report_page import Page


def rendered(run, **settings):
    text = page.render(run, Report(**settings))
    return text, Page(text)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    run = tmp_path_factory.mktemp("results") / "small"
    nodes = synthetic.small_run(run)
    return run, nodes, *rendered(run)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    run = tmp_path_factory.mktemp("results") / "large"
    nodes = synthetic.large_run(run, versions=3, tasks=12, group=4, turns=3)
    return run, nodes, *rendered(run)


@pytest.fixture(params=["small", "large"])
def case(request):
    return request.getfixturevalue(request.param)


def grouped(nodes, *names):
    found = defaultdict(list)
    for node in nodes:
        found[tuple(getattr(node, name) for name in names)].append(node)
    return dict(sorted(found.items()))


def test_rewards_by_version_and_turn(case):
    _, nodes, _, shown = case
    turns = []
    for (version, turn), group in grouped(nodes, "version", "turn").items():
        rewards = [node.reward for node in group if node.reward is not None]
        solved = sum(reward == 1 for reward in rewards)
        row = [version, turn, len(group), len(group) - len(rewards), solved, solved / len(rewards), fmean(rewards)]
        turns.append(row)
    assert shown.figures["turns"].values == [pytest.approx(row) for row in turns]


def test_errors_of_mean_rewards_are_clustered_by_task(case):
    _, nodes, _, shown = case
    rows = []
    for (version, turn), group in grouped(nodes, "version", "turn").items():
        judged = [node for node in group if node.reward is not None]
        mean = fmean(node.reward for node in judged)
        tasks = grouped(judged, "task_id")
        apart = sum(sum(node.reward - mean for node in task) ** 2 for task in tasks.values())
        many = len(tasks)
        error = 1.96 * math.sqrt(many / (many - 1) * apart) / len(judged) if many > 1 else None
        rows.append([version, turn, many, len(judged), mean, error])
    assert [row[:5] for row in shown.figures["rewards"].values] == [pytest.approx(row[:5]) for row in rows]
    assert shown.figures["rewards"].column("half width") == [
        None if row[5] is None else pytest.approx(row[5]) for row in rows
    ]


def test_tasks_solved_within_a_tree(case):
    _, nodes, _, shown = case
    rows = []
    for version, turn in grouped(nodes, "version", "turn"):
        tasks = grouped([node for node in nodes if node.version == version], "task_id").values()
        solved = sum(any(node.turn <= turn and node.reward == 1 for node in task) for task in tasks)
        rows.append([version, turn, len(tasks), solved, pytest.approx(solved / len(tasks))])
    assert shown.figures["solved"].values == rows


@pytest.mark.parametrize(("column", "width"), [("credit", 0.1), ("advantage", 0.25)])
def test_distributions(case, column, width):
    _, nodes, _, shown = case
    bins = Counter()
    for node in nodes:
        if node.credit is not None:
            place = math.floor(getattr(node, column) / width + 0.5 + 1e-9)
            bins[node.version, node.turn, node.prune_reason is None, place] += 1
    found = {
        (version, turn, kept, round(middle / width)): count
        for version, turn, kept, middle, count in shown.figures[column].values
    }
    assert found == bins
    assert sum(found.values()) == sum(node.credit is not None for node in nodes)
    # The charts, one for each turn, hold the same counts.
    for index, turn in enumerate(sorted({node.turn for node in nodes})):
        values = data_of(shown.specs[f"{column}-{index}"])
        drawn = {(v["version"], v["turn"], v["kept"], round(v["bin"] / width)): v["nodes"] for v in values}
        assert drawn == {key: count for key, count in bins.items() if key[1] == turn}


def test_kept_and_pruned(case):
    _, nodes, _, shown = case
    rows = []
    for (version, turn), group in grouped(nodes, "version", "turn").items():
        fate = Counter(node.prune_reason for node in group)
        signal = sum(node.prune_reason is None and node.advantage != 0 for node in group)
        rows.append([version, turn, len(group), fate[None], fate["inter"], fate["intra"], signal])
    assert shown.figures["kept"].values == rows
    drawn = Counter()
    for value in data_of(shown.specs["kept-0"]):
        drawn[value["version"], value["turn"]] += value["nodes"]
    assert drawn == {(row[0], row[1]): row[2] for row in rows}


def test_kinds_and_what_feedback_made_of_failures(case):
    _, nodes, _, shown = case
    kinds = Counter((node.version, node.turn, node.kind) for node in nodes)
    assert {tuple(row[:3]): row[3] for row in shown.figures["kinds"].values} == kinds
    repairs = Counter((node.version, node.parent.kind, node.kind) for node in nodes if node.parent)
    assert {tuple(row[:3]): row[3] for row in shown.figures["repairs"].values} == repairs
    for name, counts in (("kinds-0", kinds), ("repairs-0", repairs)):
        assert sum(value["nodes"] for value in data_of(shown.specs[name])) == sum(counts.values())


def data_of(spec):
    """The rows that a chart is drawn from."""
    (rows,) = spec["datasets"].values()
    return rows


def test_tokens(case):
    _, nodes, _, shown = case
    figure = shown.figures["sampled"]
    training = [row for row in figure.values if row[0] == "training"]
    for row, ((version, turn), group) in zip(training, grouped(nodes, "version", "turn").items(), strict=True):
        sampled = sum(node.completion_tokens for node in group)
        prompts = sum(node.prompt_tokens for node in group if node.sample == 0)
        assert row[:6] == ["training", version, turn, len(group), sampled, prompts]
        assert row[6] == pytest.approx(sampled / len(group))


def test_pass_at_1_of_the_small_run(small):
    figure = small[3].figures["evals"]
    assert figure.column("pass at 1") == [0.2, 0.4, 0.6, 0.4, 0.6, 0.8, 0.5, 0.75, 0.75]
    texts = [row[figure.columns.index("pass at 1")] for row in figure.texts]
    assert texts == ["20.0%", "40.0%", "60.0%", "40.0%", "60.0%", "80.0%", "50.0%", "75.0%", "75.0%"]
    drawn = [value["pass_at_1"] for name in ("evals-0", "evals-1") for value in data_of(small[3].specs[name])]
    assert drawn == figure.column("pass at 1")


def test_pass_at_1_by_difficulty(small):
    # version 0: h1 right at attempt 1, h2 at 2, h3 never (easy); h4 at 3, h5 never (hard)
    rows = [row for row in small[3].figures["difficulty"].values if row[:2] == ["heldout", 0]]
    assert [row[2:] for row in rows] == [
        *(["easy", 1, 3, 1 / 3], ["easy", 2, 3, 2 / 3], ["easy", 3, 3, 2 / 3]),
        *(["hard", 1, 2, 0.0], ["hard", 2, 2, 0.0], ["hard", 3, 2, 0.5]),
    ]
    drawn = {(v["version"], v["difficulty"]): v["pass_at_1"] for v in data_of(small[3].specs["difficulty-0"])}
    assert drawn == {(0, "easy"): 2 / 3, (0, "hard"): 0.5, (2, "easy"): 1.0, (2, "hard"): 0.5}


def test_evaluation_turn_by_turn(small):
    first = [row[2:] for row in small[3].figures["first_success"].values if row[:2] == ["heldout", 0]]
    assert first == [[1, 1, 0.2], [2, 1, 0.2], [3, 1, 0.2], [None, 2, 0.4]]
    turns = [row[2:7] for row in small[3].figures["eval_turns"].values if row[:2] == ["heldout", 0]]
    assert turns == [[1, 5, 1, 0, 0], [2, 4, 1, 1, 0], [3, 3, 1, 1, 0]]


def test_time_and_steps_of_the_small_run(small):
    phases = small[3].figures["phases"]
    assert list(zip(phases.column("stage"), phases.column("phase"), phases.column("seconds"), strict=True)) == [
        *(("execute", "run", 4.0), ("generate", "import vllm", 25.0), ("generate", "first call", 8.0)),
        *(("generate", "engine start", 7.0), ("generate", "sample", 5.0), ("update", "train", 50.0)),
        ("update", "load", 1.0),
    ]
    assert phases.column("per second") == [6.0, None, None, None, 120.0, 100.0, None]
    work = Counter()
    for value in data_of(small[3].specs["phases-0"]):
        work[value["work"]] += value["seconds"]
    assert work == {"engine overhead": 40.0, "sampling, training": 55.0, "other work": 5.0}
    assert small[3].figures["steps"].column("loss") == [0.5, 0.25]
    assert small[3].figures["updates"].column("tokens") == [400]


def test_tiles_of_the_small_run(small):
    assert small[3].tiles == [
        ("heldout: pass@1 after 3 attempts", "60.0% → 80.0%", "version 0 → 2, 5 tasks, +20.0 points"),
        ("humaneval: pass@1 after 3 attempts", "75.0%", "version 0, 2 tasks"),
        ("mean reward of first attempts", "0.364 → 0.938", "version 0 → 1"),
        ("tasks solved: at first → with feedback", "100.0% → 100.0%", "turn 1 → 2 of version 1, 2 tasks"),
        ("nodes", "56", "4 tasks, 110 tests run"),
        ("tokens sampled in training", "981", "400 trained on"),
        ("time, all stages", "1 min 40 s", "40% engine overhead"),
    ]


def test_every_number_can_be_had_from_the_sql_beside_it(case, monkeypatch):
    run, _, _, shown = case
    monkeypatch.chdir(run)
    asked = [figure for name, figure in shown.figures.items() if not name.startswith("settings-")]
    assert len(asked) in (15, 16)  # evaluation trees are in the small run only
    for figure in asked:
        cursor = duckdb.connect().execute(figure.sql)
        assert [column[0].replace("_", " ") for column in cursor.description] == figure.columns
        assert [list(row) for row in cursor.fetchall()] == figure.values != []


def test_settings_are_those_recorded_in_the_tables(small):
    words = " ".join(" ".join(small[3].words).split())
    assert "generate rollouts group_size 4 temperature 0.8 seed 7" in words
    assert "credit credit prune inter+intra strategy mars" in words
    assert "generate (evaluation) eval_rollouts group_size 4" in words


def test_settings_that_changed_are_all_shown():
    made = [
        {"table": "credit", "stage": "credit", "settings": {"gamma": 0.9}, "version": 0, "libraries": {"duckdb": "2"}},
        {"table": "credit", "stage": "credit", "settings": {"gamma": 0.5}, "version": 1, "libraries": {"duckdb": "3"}},
        {"table": "evals", "files": 1},
    ]
    assert page.settings_by_stage(made) == [
        {"stage": "credit", "tables": ["credit"], "values": [("gamma", "0.9; 0.5")]}
    ]
    assert page.libraries(made) == [("duckdb", "2, 3")]


def test_text_of_a_run_cannot_become_part_of_the_page(small):
    text = small[2]
    assert "<img src=x" not in text
    assert text.count("</script>") == text.count("<script")
    code = {
        small[3].trees["texts"][row[small[3].trees["fields"].index("code")]]
        for row in small[3].trees["trees"][0]["nodes"][:1]
    }
    assert any(synthetic.HOSTILE in one for one in code)


def test_the_page_needs_nothing_from_elsewhere(small):
    assert [link for link in small[3].links if not link.startswith("#")] == ["data:,"]
    assert "default-src 'none'" in small[2]
    style = re.search(r"<style>(.*?)</style>", small[2], re.S)[1]
    assert "url(" not in style and "@import" not in style


def test_the_same_tables_give_the_same_page(small):
    assert rendered(small[0])[0] == small[2]


def test_a_run_that_is_not_finished(tmp_path):
    synthetic.small_run(tmp_path / "half", finished=False)
    text, shown = rendered(tmp_path / "half")
    assert "This run is not finished; still to come: update." in text
    assert set(shown.figures) >= {"turns", "rewards", "kept", "repairs", "phases"}
    assert not {"evals", "steps"} & set(shown.figures)
    assert shown.figures["turns"].column("nodes") == [12, 32]
    assert shown.tiles[0][0] == "mean reward of first attempts"


def test_a_run_that_has_only_begun(tmp_path):
    row = synthetic.task_row("one", "Write f.")
    tables.write(tmp_path / "run/tasks/split=train/part-0.parquet", tables.TASKS, [row])
    text, shown = rendered(tmp_path / "run")
    assert shown.figures.keys() == {"settings-0"}
    assert shown.tiles == [] and shown.trees["trees"] == []
    assert "still to come: learning, credit and pruning, failures, update, time and tokens" in text


def test_sampled_but_not_yet_judged(tmp_path):
    run = tmp_path / "run"
    nodes = synthetic.small_nodes((0,))
    synthetic.write_trees(run, nodes, 2)
    for name in ("feedback", "verdicts", "test_times"):
        (run / f"{name}/version=0/turn=2/shard-0.parquet").unlink()
    _, shown = rendered(run)
    assert shown.figures["turns"].column("nodes") == [12]
    assert shown.figures["sampled"].column("nodes") == [12, 32]
    fields = shown.trees["fields"]
    late = [row for tree in shown.trees["trees"] for row in tree["nodes"] if row[fields.index("turn")] == 2]
    assert len(late) == 32 and {row[fields.index("kind")] for row in late} == {None}


def test_trees_may_be_limited(small):
    text, shown = rendered(small[0], trees=3)
    assert len(shown.trees["trees"]) == 3
    assert "3 of 15 trees, those first in which feedback led to a solution" in " ".join(text.split())


def test_the_command_writes_the_page(small, tmp_path, capsys):
    assert main(["page", str(small[0]), "--out", str(tmp_path / "deep/report.html"), "--trees", "none"]) == 0
    assert (tmp_path / "deep/report.html").read_text() == rendered(small[0], trees=None)[0]
    assert "report.html: 1." in capsys.readouterr().out
    with pytest.raises(UserError, match="no such folder"):
        main(["page", str(tmp_path / "nothing"), "--out", str(tmp_path / "x.html")])
    with pytest.raises(UserError, match="--trees"):
        main(["page", str(small[0]), "--out", str(tmp_path / "x.html"), "--trees", "-1"])
    assert not (tmp_path / "x.html").exists()
