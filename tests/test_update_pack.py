"""Prefix trees of rows: every token once, every row readable from the tree, the budget kept."""

import numpy as np
import pytest

from stages.update.batch import Row
from stages.update.pack import packs
from tests.update_helpers import random_rows


def row(name: str, group: str, prompt: list[int], completion: list[int]) -> Row:
    return Row(name, group, 1, 1.0, np.array(prompt), np.array(completion), np.zeros(len(completion), np.float32))


def test_a_small_tree_by_hand():
    rows = [row("a", "g", [5, 6], [7, 8]), row("b", "g", [5, 6], [7, 9]), row("c", "h", [5, 4], [7])]
    (pack,) = packs(rows, [0, 1, 2], 100)
    # group h comes first: its prompt sorts before
    assert pack.rows == (2, 0, 1)
    assert pack.tokens.tolist() == [5, 4, 7, 6, 7, 8, 9]
    assert pack.parents.tolist() == [-1, 0, 1, 0, 3, 4, 4]
    assert pack.positions.tolist() == [0, 1, 2, 1, 2, 3, 3]
    assert pack.context.tolist() == [1, 3, 4, 4]
    assert pack.target.tolist() == [7, 7, 8, 9]
    assert pack.place.tolist() == [[0, 0], [1, 2], [1, 3]]
    assert pack.mask.tolist() == [[True, False], [True, True], [True, True]]
    chains = [(a, b, before.tolist()) for a, b, before in pack.chains()]
    assert chains == [(0, 3, []), (3, 6, [0]), (6, 7, [0, 3, 4])]
    sees = pack.sees()
    assert np.flatnonzero(sees[6]).tolist() == [0, 3, 4, 6]
    assert np.flatnonzero(sees[2]).tolist() == [0, 1, 2]


@pytest.mark.parametrize("budget", [1, 20, 33, 60, 10_000])
@pytest.mark.parametrize("seed", range(5))
def test_rows_come_back_out(budget, seed):
    rows = random_rows(seed, groups=6)
    found = {}
    for pack in packs(rows, range(len(rows)), budget):
        if len(pack.rows) > 1:
            assert len(pack.tokens) <= budget
        sees = pack.sees()
        chains = np.zeros_like(sees)
        for start, end, before in pack.chains():
            chains[start:end, before] = True
            chains[start:end, start:end] = np.tri(end - start, dtype=bool)
        assert np.array_equal(chains, sees)
        assert len(list(pack.chains())) <= len(pack.rows)
        for b, at in enumerate(pack.rows):
            n = len(rows[at].completion)
            assert pack.mask[b].sum() == n
            places = pack.place[b, :n]
            assert pack.target[places].tolist() == rows[at].completion.tolist()
            path = np.flatnonzero(sees[pack.context[places[-1]]])
            whole = [*rows[at].prompt, *rows[at].completion]
            assert pack.tokens[path].tolist() == whole[:-1]
            assert pack.positions[path].tolist() == list(range(len(whole) - 1))
            assert at not in found
            found[at] = pack
    assert sorted(found) == list(range(len(rows)))


def test_shared_prompts_are_there_once():
    rows = [row(str(i), "g", list(range(100, 150)), [200 + i] * 5) for i in range(4)]
    (pack,) = packs(rows, range(4), 2048)
    assert len(pack.tokens) == 50 + 4 * 5


def test_equal_prompts_of_two_groups_share_their_tokens_and_stay_two_rows():
    rows = [row("a", "g", [3, 4], [5, 6]), row("b", "h", [3, 4], [5, 6])]
    (pack,) = packs(rows, [0, 1], 2048)
    assert len(pack.tokens) == 4 and pack.place.shape == (2, 2)


def test_only_chosen_rows_are_packed():
    rows = random_rows(1)
    got = [at for pack in packs(rows, [2, 5, 7], 64) for at in pack.rows]
    assert sorted(got) == [2, 5, 7]
