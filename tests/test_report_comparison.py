"""The page of a comparison against truths: tokens counted from the nodes, pass rates and differences by hand."""

import json
from statistics import fmean

import pytest

from stages.common.cli import UserError
from stages.evaluate.__main__ import main as evaluate
from stages.report import comparison
from stages.report.__main__ import main
from tests.report_page import Page
from tests.synthetic_comparison import small_comparison


def spent(nodes, version):
    return sum(node.completion_tokens for node in nodes if node.version == version)


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    root = tmp_path_factory.mktemp("results")
    return root, *small_comparison(root)


@pytest.fixture(scope="module")
def found(compared):
    root, arms, _ = compared
    ends = [",".join(f"{run}@2" for run in runs) for runs in arms.values()]
    return root, ends


def test_tokens_are_those_of_the_nodes(compared):
    _, arms, nodes = compared
    rows = {(row["arm"], row["version"]): row for row in comparison.tokens(arms)}
    for arm, runs in arms.items():
        for version in (0, 1):
            each = [spent(nodes[run], version) for run in runs]
            assert rows[arm, version]["sampled_tokens"] == round(fmean(each))
    base = spent(nodes[arms["grpo"][1]], 0)
    assert rows["mars", 0]["apart"] == pytest.approx(spent(nodes[arms["mars"][1]], 0) / base - 1)
    assert rows["mars", 0]["apart"] < -0.3 and not rows["mars", 0]["matched"]
    assert rows["mars", 1]["apart"] == 0 and rows["mars", 1]["matched"]
    assert (rows["grpo", 0]["steps"], rows["grpo", 0]["trained_tokens"], rows["grpo", 1]["steps"]) == (2, 400, 0)


def test_two_seeds_count_as_more_chains(found, capsys):
    _, (first, second) = found
    evaluate(["compare", first, second, "--benchmark", "heldout", "--json"])
    last = json.loads(capsys.readouterr().out)["benchmarks"]["heldout"]["iterations"][-1]
    assert (last["won"], last["lost"], last["p"]) == (["h3", "h5"], ["h4"], 1.0)
    assert last["overall"]["first"] == 0.6 and last["overall"]["second"] == 0.8


def test_the_page_says_what_the_tables_say(compared, found, tmp_path, capsys):
    _, arms, _ = compared
    _, ends = found
    evaluate(["compare", *ends, "--benchmark", "heldout", "--json"])
    differences = tmp_path / "mars.json"
    differences.write_text(capsys.readouterr().out)
    given = [text for arm, runs in arms.items() for text in ("--arm", arm, *map(str, runs))]
    out = tmp_path / "study" / "report.html"
    main(["compare", *given, "--compared", str(differences), "--out", str(out), "--json", str(tmp_path / "all.json")])
    text = out.read_text()
    shown = Page(text + '<script type="text/plain" id="packed">H4sIAAAAAAAC/6uuBQBDv6ajAgAAAA==</script>')
    rows = shown.figures["differences"]
    assert (
        rows.column("iteration") == [1, 2, 3] and rows.column("won") == [1, 1, 2] and rows.column("lost") == [0, 0, 1]
    )
    assert rows.column("points") == pytest.approx([20.0, 20.0, 20.0])
    levels = shown.figures["levels"]
    assert list(zip(levels.column("difficulty"), levels.column("points"), strict=True)) == [
        ("easy", pytest.approx(100 / 3)),
        ("hard", 0.0),
    ]
    curves = shown.figures["curves"]
    place = curves.columns.index("pass at 1")
    assert [row[place] for row in curves.values if row[:4] == ["grpo", "heldout", 3, 2]] == [0.6]
    assert [row[place] for row in curves.values if row[:4] == ["mars", "heldout", 3, 2]] == [0.8]
    tiles = {label: (value, note) for label, value, note in shown.tiles}
    assert tiles["mars against grpo"][0] == "+20.0 points"
    assert "more than 2% apart: mars version 0" in tiles["sampled tokens differ by at most"][1]
    assert [link for link in shown.links if not link.startswith("#")] == ["data:,"]
    saved = json.loads((tmp_path / "all.json").read_text())
    assert [row["points"] for row in saved["differences"]] == pytest.approx([20.0, 20.0, 20.0])


def test_what_cannot_be_compared(compared, tmp_path):
    _, arms, _ = compared
    with pytest.raises(UserError, match="as many runs each"):
        comparison.collect({"grpo": arms["grpo"], "mars": arms["mars"][:1]}, [])
    (tmp_path / "mars.json").write_text("[]")
    with pytest.raises(UserError, match=r"mars.json: not what"):
        comparison.compared([tmp_path / "mars.json"])
    with pytest.raises(UserError, match="runs' folders"):
        main(["compare", "--arm", "grpo", "--arm", "mars", "--out", str(tmp_path / "x.html")])
