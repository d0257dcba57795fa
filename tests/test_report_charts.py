"""The charts' specifications: each compiles and draws the marks that its rows call for."""

import re

import pytest
import vl_convert

from stages.report import charts


def drawn(spec):
    """The SVG of a specification, with the page's colour roles and fitted width filled in."""
    whole = {**spec, "width": 400}
    text = vl_convert.vegalite_to_svg(whole, vl_version="6.4")
    return text


def marks(text, kind):
    """Labels of the marks of one kind, as Vega writes them for screen readers."""
    return re.findall(rf'aria-label="([^"]*)" role="graphics-symbol" aria-roledescription="{kind}(?: mark)?"', text)


def test_lines_by_version_have_points_and_intervals():
    rows = [
        {"version": v, "iteration": k, "p": 0.1 * v + 0.2 * k, "low": 0.05 * v, "high": 0.9}
        for v in (0, 2)
        for k in (1, 2)
    ]
    text = drawn(charts.by_version(rows, "p", "iteration", "pass@1", "low", "high"))
    assert len(marks(text, "point")) == 4
    assert len(marks(text, "rule")) == 4
    assert len(marks(text, "line")) == 2
    text = drawn(charts.by_version(rows, "p", "iteration", "pass@1"))
    assert (len(marks(text, "point")), len(marks(text, "rule"))) == (4, 0)


def test_one_version_is_drawn_as_points():
    rows = [{"version": 0, "turn": 1, "m": 0.5, "low": None, "high": None}]
    text = drawn(charts.by_version(rows, "m", "turn", "mean", "low", "high"))
    (point,) = marks(text, "point")
    assert "0.5" in point


BINS = [
    {"version": 0, "turn": 1, "kept": True, "bin": 0.0, "nodes": 3},
    {"version": 1, "turn": 1, "kept": True, "bin": 0.0, "nodes": 4},
    {"version": 1, "turn": 1, "kept": False, "bin": 1.0, "nodes": 5},
]


def with_version(spec, version):
    return {**spec, "params": [{**p, "value": version} if p["name"] == "version" else p for p in spec["params"]]}


@pytest.mark.parametrize(("version", "nodes"), [(None, [5, 7]), (0, [3]), (1, [4, 5])])
def test_a_distribution_follows_the_chosen_version(version, nodes):
    spec = charts.distribution(BINS, 0.1, "credit", 0.0, 1.0)
    found = marks(drawn(with_version(spec, version)), "bar")
    assert sorted(int(re.search(r"nodes: (\d+)", label)[1]) for label in found) == nodes


def test_fates_add_up_to_the_turns_nodes():
    row = {"version": 0, "turn": 1, "nodes": 12, "kept": 9, "with_signal": 4, "pruned_inter": 1, "pruned_intra": 2}
    spec = charts.fates([row])
    values = {value["fate"]: value["nodes"] for rows in spec["datasets"].values() for value in rows}
    assert values == {"kept, advantage not 0": 4, "kept, advantage 0": 5, "pruned: inter": 1, "pruned: intra": 2}
    assert len(marks(drawn(spec), "bar")) == 4


KINDS = [
    {"version": 0, "turn": 1, "kind": "passed", "nodes": 1},
    {"version": 0, "turn": 1, "kind": "crash", "nodes": 3},
    {"version": 1, "turn": 1, "kind": "passed", "nodes": 2},
]


def test_kinds_are_shares_of_their_turn():
    spec = charts.kinds(KINDS, ["passed", "crash"])
    shares = sorted(re.search(r"share: ([\d.]+%)", label)[1] for label in marks(drawn(spec), "bar"))
    assert shares == ["50.0%", "50.0%"]
    shares = sorted(re.search(r"share: ([\d.]+%)", label)[1] for label in marks(drawn(with_version(spec, 0)), "bar"))
    assert shares == ["25.0%", "75.0%"]


def test_repairs_show_each_count_once():
    rows = [
        {"version": 0, "parent_kind": "crash", "child_kind": "passed", "nodes": 3},
        {"version": 1, "parent_kind": "crash", "child_kind": "passed", "nodes": 4},
        {"version": 1, "parent_kind": "crash", "child_kind": "crash", "nodes": 1200},
    ]
    text = drawn(charts.repairs(rows, ["passed", "crash"]))
    assert len(marks(text, "rect")) == len(marks(text, "text")) == 2
    assert {"7", "1,200"} <= set(re.findall(r">([\d,]+)</text>", text))


def test_times_put_engine_overhead_apart():
    rows = [
        {"stage": "generate", "phase": "import vllm", "engine_overhead": True, "seconds": 15.0, "unit": ""},
        {"stage": "generate", "phase": "sample", "engine_overhead": False, "seconds": 60.0, "unit": "tokens"},
        {"stage": "execute", "phase": "run", "engine_overhead": False, "seconds": 9.0, "unit": "tests"},
    ]
    labels = marks(drawn(charts.times(rows)), "bar")
    assert sorted(re.search(r"seconds: ([\d.]+)", label)[1] for label in labels) == ["15", "60", "9"]
    assert [charts.work_of(row) for row in rows] == ["engine overhead", "sampling, training", "other work"]


@pytest.mark.parametrize("losses", [[0.5], [0.5, 0.5], [0.0, 0.0], [-0.1, 0.2, None, 0.3]])
def test_steps_may_be_constant_or_partly_unknown(losses):
    rows = [{"step_of_run": i, "version": 0, "step": i, "loss": loss} for i, loss in enumerate(losses, 1)]
    text = drawn(charts.steps(rows, "loss", "loss"))
    assert len(marks(text, "point")) == sum(loss is not None for loss in losses)


def test_specifications_name_nothing_outside_the_page():
    assert "$schema" not in charts.fates([])
    assert "http" not in str(charts.kinds(KINDS, ["passed", "crash"]))
