"""The token budget of a version: how near sampling comes to it, whatever lengths the completions have."""

from hypothesis import given
from hypothesis import strategies as st

from stages.generate.budget import wave


def sampled(lengths, most, budget):
    """Tokens and groups after waves over groups that take `lengths` tokens of at most `most` each."""
    spent = done = 0
    while done < len(lengths):
        count = wave([most] * (len(lengths) - done), budget - spent, spent / done if done else None)
        if not count:
            break
        spent += sum(lengths[done : done + count])
        done += count
    return spent, done


def test_without_a_budget_all_are_opened():
    assert wave([5, 5, 5], None, None) == 3 and wave([], None, None) == 0 and wave([], 10, 2.0) == 0


def test_groups_without_room_cost_nothing():
    assert wave([0, 0, 9], 0, None) == 2


@given(st.lists(st.integers(1, 100), min_size=1, max_size=60), st.integers(1, 4000))
def test_the_sum_is_never_a_group_above_nor_below(lengths, budget):
    spent, done = sampled(lengths, 100, budget)
    assert spent <= budget + 100
    if done < len(lengths):
        mean = spent / done if done else 100
        assert spent >= budget - mean / 2 - 1


@given(st.lists(st.integers(20, 40), min_size=80, max_size=99))
def test_lengths_that_are_alike_end_within_half_the_longest(lengths):
    spent, _ = sampled(lengths, 100, 1500)
    assert abs(spent - 1500) <= 30
