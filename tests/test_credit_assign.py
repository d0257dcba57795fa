"""Credit, pruning and advantages: the worked example by hand, properties, and a recursion over random trees."""

import itertools
import math
import random
from fractions import Fraction

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.credit import make, recursion
from stages.common import tables
from stages.common.cli import UserError
from stages.common.config import Credit
from stages.credit.assign import assign, summarise
from tests.credit_trees import expected, random_tree, tree, variance, write_trees

EXAMPLE = [1, (Fraction(1, 2), [1, 1, Fraction(1, 2), 0]), (0, [0, 0, 0, 0]), (0, [1, 1, 1, 1])]
THIRD, TENTH, SEVEN = Fraction(1, 3), Fraction(1, 10), Fraction(7, 10)


def run(folder, nodes, turns=2, threads=1, shards=1, shuffle=None, **settings):
    """The credit table of `nodes` as a dictionary from node_id to row, in the table's order."""
    files = write_trees(folder, nodes, shards, shuffle)
    return {
        row["node_id"]: row
        for row in assign(**files, turns=turns, settings=Credit(**settings), threads=threads).to_pylist()
    }


def column(rows, name, nodes):
    return [rows[node][name] for node in nodes]


ROOTS = ["0/t/0", "0/t/1", "0/t/2", "0/t/3"]


@pytest.mark.parametrize(
    ("settings", "credit", "advantage"),
    [
        ({"strategy": "own"}, [1, 0.5, 0, 0], [1.305, 0.261, -0.783, -0.783]),
        ({"strategy": "mars"}, [1, 1, 0, 1], [0.5, 0.5, -1.5, 0.5]),
        ({"strategy": "mers"}, [1, 0.53125, 0, 0.45], [1.232, 0.088, -1.209, -0.111]),
        ({"strategy": "mers", "normalise": "none"}, [1, 1.0625, 0, 0.9], [0.520, 0.646, -1.486, 0.320]),
    ],
)
def test_the_worked_example(tmp_path, settings, credit, advantage):
    rows = run(tmp_path, tree("t", EXAMPLE), **settings)
    assert column(rows, "credit", ROOTS) == pytest.approx(credit, abs=1e-12)
    assert column(rows, "advantage", ROOTS) == pytest.approx(advantage, abs=5e-4)
    assert column(rows, "reward", ROOTS) == [1, 0.5, 0, 0]
    assert all(row["kept"] and row["prune_reason"] is None for row in rows.values())
    assert [rows[f"0/t/2.{i}"]["advantage"] for i in range(4)] == [0.0] * 4
    below = [rows[f"0/t/1.{i}"]["credit"] for i in range(4)]
    assert below == [1, 1, 0.5, 0], "the last turn keeps its rewards"


def test_a_chain_of_three_turns_brings_credit_home(tmp_path):
    chain = tree("t", [(0, [(0, [1])])])
    mers = run(tmp_path / "mers", chain, turns=3, strategy="mers")
    assert column(mers, "credit", ["0/t/0.0.0", "0/t/0.0", "0/t/0"]) == pytest.approx([1, 0.45, 0.135], abs=1e-15)
    mars = run(tmp_path / "mars", chain, turns=3)
    assert column(mars, "credit", ["0/t/0.0.0", "0/t/0.0", "0/t/0"]) == [1, 1, 1]
    assert column(mars, "advantage", mars) == [0.0, 0.0, 0.0]


def test_mars_of_a_worse_child_leaves_the_parent_alone(tmp_path):
    rows = run(tmp_path, tree("t", [(Fraction(3, 4), [Fraction(1, 4)]), 0]))
    assert rows["0/t/0"]["credit"] == 0.75


def test_mers_divides_only_nodes_with_judged_children(tmp_path):
    rows = run(tmp_path, tree("t", [(0.5, [1]), 0.5, (0.5, [None, None])]), turns=3, strategy="mers")
    assert column(rows, "credit", ROOTS[:3]) == pytest.approx([1.4 / 3, 0.5, 0.5], abs=1e-15)


def test_reward_never_leaks_into_another_branch_or_task(tmp_path):
    def credit(folder, other):
        nodes = tree("a", [(0, [0.5, 0]), (0, [other, other])]) + tree("b", [(0, [other])])
        return run(folder, nodes, strategy="mers")

    low, high = credit(tmp_path / "low", 0), credit(tmp_path / "high", 1)
    assert low["0/a/0"]["credit"] == high["0/a/0"]["credit"] == pytest.approx(0.1125)
    assert low["0/a/1"]["credit"] < high["0/a/1"]["credit"]
    assert column(low, "advantage", ["0/a/0.0", "0/a/0.1"]) == column(high, "advantage", ["0/a/0.0", "0/a/0.1"])


def test_two_parents_with_identical_child_prompts_stay_two_groups(tmp_path):
    rows = run(tmp_path, tree("t", [(0, [1, 0]), (0, [1, 1])]))
    assert rows["0/t/0.0"]["group_mean"] == 0.5
    assert rows["0/t/1.0"]["group_mean"] == 1.0
    assert rows["0/t/0.0"]["advantage"] == pytest.approx(0.5 / (math.sqrt(0.5) + 1e-4))
    assert rows["0/t/1.0"]["advantage"] == 0.0


def test_a_group_of_equal_credits_has_exactly_no_advantage(tmp_path):
    values = (0, 1, TENTH, THIRD, SEVEN)
    for size, scale in itertools.product((2, 3, 7, 11), ("group", "batch", "none")):
        nodes = [node for i, value in enumerate(values) for node in tree(f"t{i}", [value] * size)]
        nodes += tree("spread", [0, 1])  # so that the batch has a deviation
        rows = run(tmp_path / f"{size}{scale}", nodes, scale=scale)
        for i, value in enumerate(values):
            row = rows[f"0/t{i}/0"]
            assert (row["group_mean"], row["group_std"], row["advantage"]) == (float(value), 0.0, 0.0)
        assert rows["0/spread/1"]["advantage"] > 0


def test_credits_equal_but_for_rounding_count_as_equal(tmp_path):
    # (0 + .9 * mean) / 2 of children whose means are 1/2, reached over thirds and sevenths.
    fractions = [[Fraction(1, 3), Fraction(2, 3)], [Fraction(k, 7) for k in (1, 6, 2, 5, 3, 4)], [TENTH, TENTH * 9]]
    rows = run(tmp_path, tree("t", [(0, children) for children in fractions]), strategy="mers", scale="none")
    assert column(rows, "advantage", ROOTS[:3]) == [0.0] * 3
    assert rows["0/t/0"]["group_std"] == 0.0


def test_a_node_alone_has_no_deviation_and_no_advantage(tmp_path):
    for scale in ("group", "batch", "none"):
        rows = run(tmp_path / scale, tree("a", [1]) + tree("b", [1, None, None]) + tree("c", [0, 1]), scale=scale)
        assert (rows["0/a/0"]["group_std"], rows["0/a/0"]["advantage"]) == (None, 0.0)
        assert (rows["0/b/0"]["group_mean"], rows["0/b/0"]["group_std"], rows["0/b/0"]["advantage"]) == (1.0, None, 0.0)
        assert rows["0/c/1"]["advantage"] > 0


def test_unjudged_nodes_are_left_out_and_a_failing_test_is_not(tmp_path):
    rows = run(tmp_path, tree("t", [1, 0, None, 0.5]))
    assert rows["0/t/2"]["credit"] is None and rows["0/t/2"]["advantage"] == 0.0
    assert rows["0/t/2"]["kept"]
    assert rows["0/t/0"]["group_mean"] == 0.5
    assert rows["0/t/0"]["advantage"] == pytest.approx(0.5 / 0.5001)
    assert rows["0/t/1"]["credit"] == 0.0 and rows["0/t/1"]["advantage"] == pytest.approx(-0.5 / 0.5001)


def test_unjudged_children_do_not_count(tmp_path):
    children = [1, None, 0, None]
    assert run(tmp_path / "1", tree("t", [(0.5, children)]), strategy="mers")["0/t/0"]["credit"] == pytest.approx(0.475)
    assert run(tmp_path / "2", tree("t", [(0.5, [None, 1])]))["0/t/0"]["credit"] == 1.0
    # an unjudged node in between: its children form a group of their own, and nothing passes through it
    rows = run(tmp_path / "3", tree("t", [(0.5, [(None, [1, 0]), 0.25])]), turns=3)
    assert rows["0/t/0.0"]["credit"] is None
    assert rows["0/t/0"]["credit"] == 0.5
    assert rows["0/t/0.0.0"]["advantage"] > 0


def test_advantages_of_two_groups_each_sum_to_zero(tmp_path):
    rows = run(tmp_path, tree("a", [1, 1, 0.5, 1]) + tree("b", [0, 0, 0.25, 0, 1]), strategy="mers")
    for task in "ab":
        members = [row for row in rows.values() if row["task_id"] == task]
        assert sum(row["credit"] - row["group_mean"] for row in members) == pytest.approx(0, abs=1e-12)
        assert sum(row["advantage"] for row in members) == pytest.approx(0, abs=1e-9)


def test_scale_agrees_with_trl(tmp_path):
    """Golden numbers: groups [1,1,1,1] and [0,0,1,.5] through TRL 1.16 with scale_rewards group and batch."""
    nodes = tree("a", [1, 1, 1, 1]) + tree("b", [0, 0, 1, 0.5])
    group = run(tmp_path / "group", nodes)
    assert column(group, "advantage", group) == pytest.approx(
        [0, 0, 0, 0, -0.783186, -0.783186, 1.305310, 0.261062], abs=1e-6
    )
    batch = run(tmp_path / "batch", nodes, scale="batch")
    assert column(batch, "advantage", batch) == pytest.approx(
        [0, 0, 0, 0, -0.818487, -0.818487, 1.364144, 0.272829], abs=1e-6
    )
    none = run(tmp_path / "none", nodes, scale="none")
    assert column(none, "advantage", none) == [0, 0, 0, 0, -0.375, -0.375, 0.625, 0.125]


def test_inter_keeps_the_groups_of_highest_deviation_per_task_and_turn(tmp_path):
    children = [[0, 0, 0], [1, 0, 0.5], [1, 1, 1], [0.5, 0.5, 0.25]]
    nodes = tree("a", [(0, group) for group in children]) + tree("b", [(0, [0.5, 0.25, 0.25]), (0, [0, 0, 0])])
    rows = run(tmp_path, nodes, prune="inter", inter_groups=1)
    kept = {row["group_id"] for row in rows.values() if row["kept"]}
    assert kept == {"0/a", "0/b", "0/a/1", "0/b/0"}
    gone = rows["0/a/3.2"]
    assert (gone["prune_reason"], gone["advantage"], gone["group_mean"], gone["group_std"]) == (
        "inter",
        0.0,
        None,
        None,
    )
    assert rows["0/a/1"]["credit"] == 1.0, "pruning comes after the credit"
    everything = run(tmp_path / "all", nodes, prune="inter", inter_groups=1, stats_over="all")
    assert everything["0/a/3.2"]["group_mean"] == pytest.approx(1.25 / 3)
    assert everything["0/a/3.2"]["advantage"] == 0.0


def test_ties_between_groups_go_to_the_smaller_name(tmp_path):
    nodes = tree("a", [(0, [1, 1, 0]), (0, [0, 0, 1]), (0, [THIRD, THIRD, THIRD])])
    rows = run(tmp_path, nodes, prune="inter", inter_groups=1)
    assert {row["group_id"] for row in rows.values() if row["kept"]} == {"0/a", "0/a/0"}


def test_a_group_under_a_pruned_node_still_trains(tmp_path):
    nodes = tree("t", [(0.5, [1, 0]), 1, 0, 0.25])
    rows = run(tmp_path, nodes, prune="intra", intra_nodes=2, strategy="own")
    assert not rows["0/t/0"]["kept"] and rows["0/t/0"]["prune_reason"] == "intra"
    assert rows["0/t/0.0"]["kept"] and rows["0/t/0.0"]["advantage"] > 0


@pytest.mark.parametrize(
    ("rewards", "m", "kept"),
    [
        ([0.1, 1, 0.9, 0, 0.5, 0.4], 2, [1, 3]),
        ([0.1, 1, 0.9, 0, 0.5, 0.4], 4, [0, 1, 2, 3]),
        ([0, 0, 0, 1, 0, 0], 3, [0, 1, 3]),  # k = 1, 2 and 3 vary alike (one 1, two 0): the larger k, so smaller names
        ([1, 1, 0, 0, 1, 0], 3, [0, 1, 5]),  # two of each kind vary alike: the split with more of the high ones
        ([1, 1, 1, 1], 2, [0, 1]),  # all alike: the smaller names
        ([1, None, 0, None, 0.5], 3, [0, 2, 4]),  # those that could not be judged go first
        ([1, None, 0, None, 0.5], 4, [0, 2, 4]),
        ([1, None, 0], 3, [0, 1, 2]),  # not more than m: nothing to prune
        ([None, None, None], 2, []),
    ],
)
def test_intra_keeps_the_split_of_highest_variance(tmp_path, rewards, m, kept):
    nodes = tree("t", [None if reward is None else Fraction(str(reward)) for reward in rewards])
    rows = run(tmp_path, nodes, prune="intra", intra_nodes=m)
    assert [i for i in range(len(rewards)) if rows[f"0/t/{i}"]["kept"]] == kept


def test_intra_finds_the_best_of_all_subsets(tmp_path):
    rng = random.Random(5)
    for case in range(25):
        m = rng.randint(2, 5)
        rewards = [Fraction(rng.randint(0, 12), 12) for _ in range(rng.randint(m + 1, 8))]
        rows = run(tmp_path / str(case), tree("t", rewards), prune="intra", intra_nodes=m)
        kept = [rewards[i] for i in range(len(rewards)) if rows[f"0/t/{i}"]["kept"]]
        assert len(kept) == m
        assert variance(kept) == max(variance(list(split)) for split in itertools.combinations(rewards, m))


def test_statistics_are_over_the_kept_nodes_unless_told(tmp_path):
    nodes = tree("t", [1, 0.5, 0.5, 0.25, 0])
    kept = run(tmp_path / "kept", nodes, prune="intra", intra_nodes=2)
    assert kept["0/t/0"]["group_mean"] == 0.5
    assert kept["0/t/0"]["advantage"] == pytest.approx(0.5 / (math.sqrt(0.5) + 1e-4))
    whole = run(tmp_path / "all", nodes, prune="intra", intra_nodes=2, stats_over="all")
    assert whole["0/t/0"]["group_mean"] == pytest.approx(0.45)
    assert kept["0/t/1"]["advantage"] == whole["0/t/1"]["advantage"] == 0.0


def test_ranking_by_reward_and_by_credit_differ(tmp_path):
    nodes = tree("t", [(0, [1]), 0.5, 0.75, 0.25])
    by_credit = run(tmp_path / "credit", nodes, prune="intra", intra_nodes=2)
    by_reward = run(tmp_path / "reward", nodes, prune="intra", intra_nodes=2, rank_by="reward")
    assert [row["node_id"] for row in by_credit.values() if not row["kept"]] == ["0/t/1", "0/t/2"]
    assert [row["node_id"] for row in by_reward.values() if not row["kept"]] == ["0/t/1", "0/t/3"]


SWITCHES = list(
    itertools.product(
        [("own", "per_turn"), ("mars", "per_turn"), ("mers", "per_turn"), ("mers", "none")],
        ["none", "inter", "intra", "inter+intra"],
        ["credit", "reward"],
        ["kept", "all"],
        ["group", "batch", "none"],
    )
)


@pytest.mark.parametrize("strategy", ["own", "mars", "mers"])
def test_an_independent_recursion_agrees_on_random_trees(tmp_path, strategy):
    """Every combination of switches on 6 trees of its own: 1,152 trees in all."""
    for number, switches in enumerate(SWITCHES):
        (name, normalise), prune, rank_by, stats_over, scale = switches
        if name != strategy:
            continue
        rng = random.Random(number)
        turns = rng.randint(1, 4)
        settings = Credit(
            strategy=name,
            gamma=rng.choice([0.9, 0.5, 0.0, 1.0]),
            normalise=normalise,
            prune=prune,
            rank_by=rank_by,
            inter_groups=rng.randint(1, 3),
            intra_nodes=rng.randint(2, 4),
            stats_over=stats_over,
            scale=scale,
        )
        nodes = [node for i in range(6) for node in random_tree(rng, f"task-{i}", turns)]
        files = write_trees(tmp_path / str(number), nodes, shards=rng.randint(1, 3), shuffle=rng)
        rows = assign(**files, turns=turns, settings=settings, threads=2).to_pylist()
        want = expected(nodes, turns, settings)
        assert [row["node_id"] for row in rows] == sorted(want, key=str.encode)
        for row in rows:
            right = want[row["node_id"]]
            assert row["prune_reason"] == right.reason, (switches, row)
            assert row["kept"] == (right.reason is None)
            for column_name, value in (("credit", right.credit), ("group_mean", right.mean), ("group_std", right.std)):
                if value is None:
                    assert row[column_name] is None, (switches, row)
                else:
                    assert row[column_name] == pytest.approx(float(value), abs=1e-12), (switches, row)
            assert row["advantage"] == pytest.approx(right.advantage, abs=1e-8), (switches, row)
            if right.reason or right.credit is None or not right.std:
                assert row["advantage"] == 0.0, (switches, row)


def _shuffled_copy(files, folder, seed):
    """The same tables with their rows in another order, in two files a turn."""
    rng = random.Random(seed)
    copy = {}
    for name, paths in files.items():
        copy[name] = []
        for path in paths:
            whole = pq.read_table(path, partitioning=None)
            order = list(range(whole.num_rows))
            rng.shuffle(order)
            for shard in range(2):
                target = folder / name / "version=0" / path.parent.name / f"shard-{shard}.parquet"
                target.parent.mkdir(parents=True, exist_ok=True)
                pq.write_table(whole.take(pa.array(order[shard::2])), target)
                copy[name].insert(0, target)
    return copy


def test_threads_and_row_order_do_not_change_a_byte(tmp_path):
    """On enough nodes that DuckDB does use its threads (its row groups hold 122,880)."""
    files = make(400_000, tmp_path / "trees")
    settings = Credit(strategy="mers", prune="inter+intra", scale="batch")
    outputs = []
    for number, (given, threads) in enumerate(
        [(files, 1), (files, 8), (_shuffled_copy(files, tmp_path / "copy", 1), 8)]
    ):
        path = tmp_path / f"{number}.parquet"
        table = assign(**given, turns=3, settings=settings, threads=threads)
        tables.write(path, tables.CREDIT, table, tables.provenance("credit"))
        outputs.append(path.read_bytes())
    assert outputs[0] == outputs[1] == outputs[2]
    assert summarise(table).nodes == 400_000


def test_the_benchmark_compares_like_with_like(tmp_path):
    files = make(5_000, tmp_path)
    rollouts = tables.read(files["rollouts"], tables.ROLLOUTS).to_pylist()
    rewards = {row["node_id"]: row["reward"] for row in tables.read(files["feedback"], tables.FEEDBACK).to_pylist()}
    plain = recursion([(r["node_id"], r["parent_id"], r["group_id"], rewards[r["node_id"]]) for r in rollouts])
    rows = assign(**files, turns=3, settings=Credit()).to_pylist()
    assert len(rows) == len(plain) == 5_000
    for row in rows:
        assert row["advantage"] == pytest.approx(plain[row["node_id"]], abs=1e-9)


def test_no_rows_give_no_rows(tmp_path):
    files = write_trees(tmp_path, [])
    table = assign(**files, turns=2, settings=Credit())
    assert table.num_rows == 0 and table.schema.equals(tables.CREDIT.schema)
    assert str(summarise(table)).startswith("0 nodes")


def test_a_turn_without_rows_is_fine(tmp_path):
    files = write_trees(tmp_path, tree("t", [1, 1, 0]))
    later = write_trees(tmp_path / "later", [], shards=1)
    for name in ("rollouts", "feedback"):
        target = tmp_path / name / "version=0" / "turn=2" / "shard-0.parquet"
        target.parent.mkdir()
        later[name][0].rename(target)
        files[name].append(target)
    assert assign(**files, turns=2, settings=Credit()).num_rows == 3


def test_a_version_without_anything_to_learn_says_so(tmp_path):
    files = write_trees(tmp_path, tree("a", [1, 1]) + tree("b", [0, (0, [0, 0])]))
    table = assign(**files, turns=2, settings=Credit())
    assert set(table["advantage"].to_pylist()) == {0.0}
    assert "nothing to learn from" in str(summarise(table))


def test_paths_with_glob_characters_are_read_as_they_are(tmp_path):
    nodes = tree("t", [1, 0])
    run(tmp_path / "run", tree("other", [1, 0]))
    assert set(run(tmp_path / "run[*?]", nodes)) == {"0/t/0", "0/t/1"}


def test_inputs_are_unchanged(tmp_path):
    files = write_trees(tmp_path, tree("t", EXAMPLE))
    before = {path: path.read_bytes() for paths in files.values() for path in paths}
    assign(**files, turns=2, settings=Credit())
    assert {path: path.read_bytes() for path in before} == before
    assert sorted(p for p in tmp_path.rglob("*") if p.is_file()) == sorted(before), "nothing is left behind"


def test_a_negative_reward_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"node 0/t/1 has a reward outside 0 to 1: -0\.5"):
        run(tmp_path, tree("t", [1, -0.5]))
