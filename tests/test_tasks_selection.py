"""Choosing tasks by hash: stable, independent of the split, with messages that list what there is."""

import pytest

from stages.common.cli import UserError
from stages.tasks import bigcodebench, livecodebench, own
from stages.tasks.records import Record
from stages.tasks.selection import chosen, in_order, is_heldout, released, share, worded

LEVELS = ["easy", "hard", None]


def records(count):
    return [
        Record(f"data.jsonl, line {n + 1}", {"task_id": f"a/{n}", "difficulty": LEVELS[n % 3]}) for n in range(count)
    ]


def ids(rows):
    return [record.fields["task_id"] for record in rows]


def test_all_are_kept_without_a_limit():
    assert ids(chosen(records(30), own, [], None)) == [f"a/{n}" for n in range(30)]


def test_limit_depends_on_ids_alone():
    few = ids(chosen(records(30), own, [], 7))
    assert len(few) == 7 and few == ids(chosen(records(30)[::-1], own, [], 7))
    assert set(few) <= set(ids(chosen(records(30), own, [], 8)))
    assert few != [f"a/{n}" for n in range(7)]


def test_tasks_added_later_only_push_out():
    before, after = ids(chosen(records(100), own, [], 20)), ids(chosen(records(130), own, [], 20))
    assert set(after) - set(before) <= {f"a/{n}" for n in range(100, 130)}


def test_difficulty():
    assert ids(chosen(records(7), own, ["easy"], None)) == ["a/0", "a/3", "a/6"]
    assert ids(chosen(records(7), own, ["none", "hard"], None)) == ["a/1", "a/2", "a/4", "a/5"]


@pytest.mark.parametrize("wanted", [["medium"], ["easy", "medium"], ["Easy"]])
def test_a_difficulty_that_does_not_occur_lists_those_there_are(wanted):
    with pytest.raises(UserError) as error:
        chosen(records(7), own, wanted, None)
    assert wanted[-1] in str(error.value) and "the data set has easy (3), hard (2), none (2)" in str(error.value)


def test_an_id_that_occurs_twice_names_both_rows():
    rows = [*records(3), Record("other.jsonl, line 9", {"task_id": "a/1"})]
    with pytest.raises(UserError, match=r"other\.jsonl, line 9: task_id 'a/1' occurs twice; .* data\.jsonl, line 2"):
        chosen(rows, own, [], None)


def test_rows_are_read_one_by_one():
    """With a limit, only that many rows are alive at a time."""
    alive, most = set(), 0

    class Row(dict):
        def __init__(self, n):
            super().__init__(task_id=f"a/{n}")
            alive.add(n)
            self.n = n

        def __del__(self):
            alive.discard(self.n)

    def rows():
        nonlocal most
        for n in range(1000):
            most = max(most, len(alive))
            yield Record(f"row {n}", Row(n))

    assert len(chosen(rows(), own, [], 10)) == 10 and most < 20


def test_the_share_held_out_is_about_right_and_stable():
    names = [f"a/{n}" for n in range(5000)]
    part = {name for name in names if is_heldout(name, 0.2)}
    assert 900 < len(part) < 1100
    assert part <= {name for name in names if is_heldout(name, 0.3)}
    assert not any(is_heldout(name, 0.0) for name in names)


def test_limit_and_split_are_independent():
    """Of the tasks that a limit keeps, the usual share is held out."""
    kept = ids(chosen(records(4000), own, [], 1000))
    assert 150 < sum(is_heldout(name, 0.2) for name in kept) < 250


def test_golden_hashes():
    """Another hash would move tasks of users' runs from one split to the other."""
    assert share("heldout", "starter/add-one") == pytest.approx(0.8268160363479478, abs=1e-15)


def test_order_of_difficulties():
    assert in_order(["zen", "hard", None, "easy", "hard"]) == ["easy", "hard", "none", "zen"]


@pytest.mark.parametrize(
    ("first", "last", "kept"),
    [(None, None, "abc"), ("2024-10-01", None, "bc"), (None, "2024-10-01", "ab"), ("2024-09-30", "2024-12-31", "ab")],
)
def test_release_window_includes_both_days(first, last, kept):
    days = {"a": "2024-09-30T00:00:00", "b": "2024-10-01", "c": "2025-01-05"}
    rows = [Record(f"row {name}", {"question_id": name, "contest_date": day}) for name, day in days.items()]
    assert [row.fields["question_id"] for row in released(rows, livecodebench, first, last)] == list(kept)


def test_a_release_window_needs_release_days():
    with pytest.raises(UserError, match="format own does not say"):
        list(released(records(1), own, "2024-01-01", None))
    with pytest.raises(UserError, match="line 1: field 'contest_date' is missing"):
        list(released(records(1), livecodebench, "2024-01-01", None))


def test_wording_of_bigcodebench():
    row = Record("row 1", {"instruct_prompt": "in words", "complete_prompt": "def f():"})
    assert [r.fields for r in worded([row], bigcodebench, "complete")] == [{"complete_prompt": "def f():"}]
    assert next(iter(worded([row], bigcodebench, "instruct"))).fields["instruct_prompt"] == "in words"
    with pytest.raises(UserError, match="one wording only"):
        list(worded(records(1), own, "complete"))
