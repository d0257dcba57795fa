"""One chart of a run's page as an SVG or PNG file, for a paper, a README or a slide.

`python -m stages.report figure results/demo rewards --out rewards.svg`. Colours are those of the page's light theme.
"""

import re
from pathlib import Path

from stages.common import runs
from stages.common.cli import UserError
from stages.common.files import atomic_file
from stages.report import figures, page

WIDTH = 640  # of the plot; on the page a chart is as wide as its place


def colours() -> dict[str, str]:
    """The light theme's colours, by the names that the style sheet gives them."""
    style = (page.TEMPLATES / "page.css").read_text()
    return dict(re.findall(r"--([a-z0-9-]+): light-dark\((#[0-9a-f]+)", style))


def painted(value: object, palette: dict[str, str]) -> object:
    """A specification with colours for every ``role:name``."""
    if isinstance(value, str):
        return palette[value[5:]] if value.startswith("role:") else value
    if isinstance(value, list):
        return [painted(one, palette) for one in value]
    return {key: painted(one, palette) for key, one in value.items()} if isinstance(value, dict) else value


def draw(run: Path, name: str, out: Path) -> None:
    """Write chart `name` (a figure's id, as in the page's address, or id-1 for its second chart) of a run to `out`."""
    import altair
    import vl_convert

    if out.suffix not in (".svg", ".png"):
        raise UserError(f"{out}: write an .svg or a .png file")
    connection = runs.connect(run)
    charts = page.specs_of(figures.sections(figures.Asker(connection, run)))
    spec = charts.get(name, charts.get(f"{name}-0"))
    if spec is None:
        raise UserError(f"{run}: no chart {name}; there are {', '.join(sorted(charts))}")
    palette = colours()
    spec = painted(spec, palette) | {"width": WIDTH, "background": "white"}
    spec["config"] = {
        "font": "sans-serif",
        "view": {"stroke": None},
        "range": {
            "category": [palette[f"line-{n}"] for n in range(1, 6)],
            "heatmap": [palette["heat-low"], palette["heat-high"]],
        },
        "axis": {"gridColor": palette["line"], "labelColor": palette["muted"], "titleColor": palette["muted"]},
        "axisX": {"grid": False},
    }
    version = "_".join(altair.SCHEMA_VERSION.split(".")[:2])
    with atomic_file(out) as aside:
        if out.suffix == ".svg":
            aside.write_text(vl_convert.vegalite_to_svg(spec, vl_version=version))
        else:
            aside.write_bytes(vl_convert.vegalite_to_png(spec, vl_version=version, scale=2))
