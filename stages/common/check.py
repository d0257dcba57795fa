"""Checks a configuration before anything runs, with errors that name the key and the fix.

python -m stages.common.check config.yaml workflow/configs/smoke.yaml    # print it whole, or say what is wrong
python -m stages.common.check --schema > workflow/schemas/config.schema.json
"""

import difflib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

from pydantic import BaseModel, ValidationError

from stages.common.cli import UserError
from stages.common.config import Config


def _nearest(error: dict) -> str:
    """What to say about one of pydantic's errors: where, what, and for an unknown key the nearest known one."""
    where = ".".join(str(part) for part in error["loc"]) or "config"
    if error["type"] == "extra_forbidden":
        model: object = Config
        for part in error["loc"][:-1]:
            if isinstance(model, type) and issubclass(model, BaseModel):
                model = model.model_fields[part].annotation
            else:  # dict[name, section]
                model = get_args(model)[1]
        near = difflib.get_close_matches(str(error["loc"][-1]), model.model_fields, n=1, cutoff=0.4)
        return f"{where}: unknown key" + (f"; did you mean {near[0]}?" if near else "")
    text = error["msg"].removeprefix("Value error, ")
    if error["type"] == "value_error":
        return text
    shown = f"{where}: {text}, got {error['input']!r}"
    if isinstance(error["input"], str) and error["type"].startswith(("float", "int")):
        shown += " (YAML reads 1e-6 as text; write 1.0e-6)"
    return shown


def check(raw: dict) -> Config:
    """The configuration as a model; UserError lists everything that is wrong with it."""
    try:
        return Config.model_validate(raw, strict=True)
    except ValidationError as error:
        lines = [f"  {_nearest(e)}" for e in error.errors()]
        raise UserError("the configuration does not hold:\n" + "\n".join(lines)) from None


def merged(*layers: Mapping) -> dict:
    """One configuration out of several, later ones on top, sections key by key."""
    whole: dict = {}
    for layer in layers:
        for key, value in layer.items():
            both = isinstance(value, Mapping) and isinstance(whole.get(key), Mapping)
            whole[key] = merged(whole[key], value) if both else value
    return whole


def schema() -> str:
    """The JSON schema of the configuration, as text."""
    return json.dumps(Config.model_json_schema(), indent=2) + "\n"


def main(argv: list[str]) -> int:
    """Print the JSON schema (``--schema``) or check YAML files given one after the other, later ones on top."""
    import yaml

    if argv == ["--schema"]:
        print(schema(), end="")
        return 0
    if not argv or argv[0].startswith("-"):
        print("usage: python -m stages.common.check --schema | CONFIG.yaml [OVERLAY.yaml ...]")
        return 0 if argv in (["-h"], ["--help"]) else 2
    layers = [yaml.safe_load(Path(path).read_text()) or {} for path in argv]
    print(check(merged(*layers)).model_dump_json(indent=2))
    return 0


if __name__ == "__main__":
    from stages.common.cli import run

    sys.exit(run(main))
