"""Charts as files: drawn from the run's rows, in the page's colours."""

import re

import pytest

from stages.common.cli import UserError
from stages.report import picture
from stages.report.__main__ import main
from tests.synthetic_run import small_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results") / "small"
    small_run(folder)
    return folder


@pytest.mark.parametrize(("name", "words"), [("evals", ["policy version", "pass@1"]), ("phases", ["seconds"])])
def test_svg(run, tmp_path, name, words):
    main(["figure", str(run), name, "--out", str(tmp_path / "one.svg")])
    text = (tmp_path / "one.svg").read_text()
    assert text.startswith("<svg") and all(word in text for word in words)
    assert "role:" not in text and "NaN" not in text


def test_colours_are_the_pages(run, tmp_path):
    palette = picture.colours()
    assert {"signal", "quiet", "line-1", "line-5", "heat-low"} <= palette.keys()
    picture.draw(run, "kept", tmp_path / "kept.svg")
    used = set(re.findall(r'fill="(#[0-9a-f]{6})"', (tmp_path / "kept.svg").read_text()))
    assert palette["signal"] in used


def test_png(run, tmp_path):
    picture.draw(run, "rewards", tmp_path / "one.png")
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")


def test_what_cannot_be_drawn(run, tmp_path):
    with pytest.raises(UserError, match=r"no chart turns; there are .*evals-0"):
        picture.draw(run, "turns", tmp_path / "x.svg")
    with pytest.raises(UserError, match=r"\.svg or a \.png"):
        picture.draw(run, "evals", tmp_path / "x.pdf")
    assert list(tmp_path.iterdir()) == []
