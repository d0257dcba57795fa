"""Kept nodes joined to rollouts, what is refused, and how rows are cut into steps."""

import numpy as np
import pytest

from stages.common.cli import UserError
from stages.update.batch import Row, count, informative, load_rows, needs_forward, plan
from tests.update_helpers import random_rows, write_tables

HASH = "0123456789abcdef"


def load(folder, rows, mask_truncated=False, **changes):
    credit, rollouts = write_tables(folder, rows, HASH, **changes)
    return load_rows(credit, [rollouts], HASH, mask_truncated)


def test_rows_come_back_as_written(tmp_path):
    rows = random_rows(1)
    got = load(tmp_path, rows)
    assert [r.node_id for r in got] == sorted(r.node_id for r in rows)
    for a, b in zip(got, sorted(rows, key=lambda r: r.node_id), strict=True):
        assert (a.group_id, a.turn, a.advantage) == (b.group_id, b.turn, b.advantage)
        assert a.prompt.tolist() == b.prompt.tolist() and a.completion.tolist() == b.completion.tolist()
        assert np.array_equal(a.sampling, b.sampling)


def test_only_kept_nodes_with_a_completion_are_trained(tmp_path):
    rows = random_rows(1)
    got = load(tmp_path, rows, kept={rows[0].node_id: False}, empty={rows[1].node_id})
    assert {r.node_id for r in got} == {r.node_id for r in rows[2:]}


def test_a_truncated_completion_stays_a_row_and_loses_its_tokens(tmp_path):
    rows = random_rows(1)
    got = load(tmp_path, rows, True, finish={rows[0].node_id: "length"})
    first = next(r for r in got if r.node_id == rows[0].node_id)
    assert first.tokens == 0 and not informative(first) and not needs_forward(first, 1.0)
    whole = count(got)
    assert whole.rows == len(rows) and whole.tokens == sum(len(r.completion) for r in rows[1:])
    assert count(load(tmp_path, rows, False, finish={rows[0].node_id: "length"})).tokens > whole.tokens


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_bad_sampling_logprobs_name_the_node(tmp_path, bad):
    rows = random_rows(1)
    rows[4].sampling[-1] = bad
    with pytest.raises(UserError, match=rows[4].node_id):
        load(tmp_path, rows)


def test_missing_sampling_logprobs_name_the_node(tmp_path):
    rows = random_rows(1)
    with pytest.raises(UserError, match=f"{rows[5].node_id} has .* sampling_logprobs"):
        load(tmp_path, rows, unscored={rows[5].node_id})


def test_rollouts_of_another_policy_are_refused(tmp_path):
    rows = random_rows(1)
    credit, rollouts = write_tables(tmp_path, rows, "another")
    with pytest.raises(UserError, match=f"another.*{HASH}"):
        load_rows(credit, [rollouts], HASH)


def test_a_kept_node_without_rollout_is_refused(tmp_path):
    rows = random_rows(1)
    credit, _ = write_tables(tmp_path / "all", rows, HASH)
    _, rollouts = write_tables(tmp_path / "part", rows[:-1], HASH)
    with pytest.raises(UserError, match=rows[-1].node_id):
        load_rows(credit, [rollouts], HASH)


def bare(group: str, name: str, advantage: float) -> Row:
    return Row(name, group, 1, advantage, np.array([1]), np.array([2, 3]), np.zeros(2, np.float32))


def test_rows_of_advantage_zero_count_and_need_no_forward_pass():
    row = bare("g", "a", 0.0)
    assert not needs_forward(row, 0.0) and needs_forward(row, 0.04)
    assert count([row, bare("g", "b", 1.0)]).tokens == 4


def test_no_informative_group_gives_no_step():
    rows = [bare(g, f"{g}{i}", 0.0) for g in "ab" for i in range(3)]
    assert plan(rows, 3, 2, np.random.default_rng(0)) == []
    assert plan([], 1, 1, np.random.default_rng(0)) == []


@pytest.mark.parametrize(("epochs", "minibatches"), [(1, 1), (2, 3), (1, 50)])
def test_every_epoch_takes_every_row_once_and_keeps_siblings_together(epochs, minibatches):
    rows = [bare(str(g), f"{g}/{i}", float(g % 3 > 0) * (i - 0.5)) for g in range(9) for i in range(2)]
    steps = plan(rows, epochs, minibatches, np.random.default_rng(1))
    per_epoch = min(minibatches, 6)  # 6 of 9 groups are informative
    assert len(steps) == epochs * per_epoch
    for epoch in range(epochs):
        of_epoch = [s for s in steps if s.epoch == epoch]
        assert sorted(at for s in of_epoch for at in s.rows) == list(range(18))
        for s in of_epoch:
            assert any(informative(rows[at]) for at in s.rows)
            groups = [rows[at].group_id for at in s.rows]
            assert all(groups.count(g) == 2 for g in groups)
            assert s.whole == count(rows[at] for at in s.rows)
    assert steps == plan(rows, epochs, minibatches, np.random.default_rng(1))
