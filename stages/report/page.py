"""The page: a run's figures, trees and settings in one HTML file that needs no network.

`python -m stages.report page results/demo --out report.html`. The charts are drawn by Vega, whose code is put into the
page; the trees are unpacked and drawn by the page's own scripts. The same tables give the same page, byte for byte.
"""

import json
from importlib.metadata import version as package_version
from pathlib import Path
from typing import TYPE_CHECKING

from stages.common import runs
from stages.common.config import Report
from stages.report import figures, trees

if TYPE_CHECKING:
    import jinja2

TEMPLATES = Path(__file__).parent / "templates"
SCRIPTS = ("charts.js", "python.js", "diff.js", "tree.js", "explorer.js")


def script_json(data: object) -> str:
    """JSON that may stand inside a script element: nothing in it can end the element."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c").replace("&", "\\u0026")


def vega_script() -> str:
    """The code of Vega, Vega-Lite and Vega-Embed, of the version that Altair's charts are written for."""
    import altair
    import vl_convert

    version = "_".join(altair.SCHEMA_VERSION.split(".")[:2])
    return vl_convert.javascript_bundle(vl_version=version).replace("</script", "<\\/script")


def settings_by_stage(provenances: list[dict]) -> list[dict]:
    """What made the tables, by stage: each setting with every value that it had, and the other facts recorded.

    Gives `stage`, `tables`, and `values` (name, text) in the order of the settings.
    """
    stages: dict[str, dict] = {}
    for made in provenances:
        if not made.get("stage"):
            continue
        part = " (evaluation)" if made["table"].startswith("eval_") else ""
        stage = stages.setdefault(made["stage"] + part, {"tables": [], "values": {}})
        if made["table"] not in stage["tables"]:
            stage["tables"].append(made["table"])
        left_out = ("table", "files", "stage", "settings", "libraries", "version", "turn")
        facts = {key: value for key, value in made.items() if key not in left_out}
        for name, value in {**made.get("settings", {}), **facts}.items():
            text = value if isinstance(value, str) else json.dumps(value)
            seen = stage["values"].setdefault(name, [])
            if text not in seen:
                seen.append(text)
    return [
        {"stage": name, "tables": stage["tables"], "values": [(k, "; ".join(v)) for k, v in stage["values"].items()]}
        for name, stage in stages.items()
        if stage["values"]
    ]


def libraries(provenances: list[dict]) -> list[tuple[str, str]]:
    """The library versions that the tables' writers recorded; several where they differ."""
    seen: dict[str, set[str]] = {}
    for made in provenances:
        for name, version in made.get("libraries", {}).items():
            seen.setdefault(name, set()).add(str(version))
    return [(name, ", ".join(sorted(versions))) for name, versions in sorted(seen.items())]


def template(name: str) -> "jinja2.Template":
    """A template of the report; text put into it is escaped."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)


def specs_of(sections: list[figures.Section]) -> dict[str, dict]:
    """The charts of the sections' figures, by the names that the page gives them."""
    return {
        f"{figure.id}-{index}": spec
        for section in sections
        for figure in section.figures
        for index, (_, spec) in enumerate(figure.charts)
    }


def render(run: Path, settings: Report) -> str:
    """The page of the run in folder `run`; UserError where it is no run's folder."""
    run = Path(run)
    connection = runs.connect(run)
    ask = figures.Asker(connection, run)
    sections = figures.sections(ask)
    packed, all_trees = trees.pack(connection, run, settings.trees)
    made_by = runs.provenances(run)
    specs = specs_of(sections)
    return template("page.jinja").render(
        run=run.resolve().name,
        tiles=figures.tiles(ask),
        sections=sections,
        missing=[section.title.lower() for section in sections if not section.figures],
        trees={"shown": len(packed["trees"]), "all": all_trees},
        nodes=sum(len(tree["nodes"]) for tree in packed["trees"]),
        stages=settings_by_stage(made_by),
        policies=runs.policies(run),
        libraries=[*libraries(made_by), *((name, package_version(name)) for name in ("altair", "vl-convert-python"))],
        specs=script_json(specs),
        packed=trees.compressed(packed),
        style=(TEMPLATES / "page.css").read_text(),
        vega=vega_script() if specs else "",
        scripts=[(TEMPLATES / name).read_text() for name in SCRIPTS],
    )
