"""What every stage's command line does alike: flags from settings, clear errors, dying with its parent."""

import argparse
import ctypes
import os
import signal
import sys
import types
import typing
import warnings
from collections.abc import Callable

from pydantic import BaseModel, ValidationError

EXIT_USER_ERROR = 2


class UserError(Exception):
    """Something the user can mend; the message names the file, key or row and the fix, and is printed alone."""


def die_with_parent() -> None:
    """Ask Linux to end this process when the one that started it ends, so that a killed run leaves nobody writing."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


def run(main: Callable[[list[str]], int | None], argv: list[str] | None = None) -> typing.NoReturn:
    """Call a stage's `main` with the command line and exit: 0, 2 after a UserError, 130 after Ctrl-C."""
    if os.environ.get("SNAKEMAKE_JOB"):  # alone in a shell, a stage may be sent to the background
        die_with_parent()
    warnings.filterwarnings("ignore", category=SyntaxWarning, module="<")  # of programs and tests that are looked at
    if not sys.stderr.isatty():
        os.environ.setdefault("TQDM_MININTERVAL", "10")  # a log needs no line per row
    try:
        sys.exit(main(sys.argv[1:] if argv is None else argv) or 0)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(EXIT_USER_ERROR)
    except KeyboardInterrupt:
        print("interrupted: nothing half-written is left; run again to go on", file=sys.stderr)
        sys.exit(130)
    except OSError as error:
        if error.errno not in (28, 122):  # no space left, quota exceeded
            raise
        print(f"error: {error}; free some space and run again", file=sys.stderr)
        sys.exit(EXIT_USER_ERROR)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _inner(annotation: object) -> tuple[object, bool]:
    """The type inside `X | None` and whether None is allowed."""
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        inner = [a for a in typing.get_args(annotation) if a is not type(None)]
        return inner[0], len(inner) < len(typing.get_args(annotation))
    return annotation, False


def add_settings(parser: argparse.ArgumentParser, model: type[BaseModel]) -> None:
    """One flag per field of `model`, with its default and description; read back with :func:`settings_from`."""
    group = parser.add_argument_group("settings", "the keys of this stage's section in config.yaml")
    for name, info in model.model_fields.items():
        annotation, _ = _inner(info.annotation)
        text = f"{info.description or ''} (default: {info.get_default(call_default_factory=True)})".replace("%", "%%")
        if annotation is bool:
            group.add_argument(_flag(name), action=argparse.BooleanOptionalAction, default=None, help=text)
        elif typing.get_origin(annotation) is list:
            group.add_argument(_flag(name), nargs="*", default=None, help=text)
        elif typing.get_origin(annotation) is typing.Literal:
            group.add_argument(_flag(name), choices=[str(a) for a in typing.get_args(annotation)], help=text)
        else:
            group.add_argument(_flag(name), metavar=name.rsplit("_")[-1].upper(), help=text)


def settings_from(args: argparse.Namespace, model: type[BaseModel]) -> BaseModel:
    """The settings given as flags, the others at their defaults; UserError names the flag that is wrong."""
    given = {name: getattr(args, name) for name in model.model_fields if getattr(args, name) is not None}
    given = {
        name: None if value == "none" and _inner(model.model_fields[name].annotation)[1] else value
        for name, value in given.items()
    }
    try:
        return model.model_validate(given, strict=False)
    except ValidationError as error:
        first = error.errors()[0]
        where = _flag(str(first["loc"][0])) if first["loc"] else "settings"
        raise UserError(f"{where}: {first['msg']}") from None


def flags_for(settings: BaseModel, tracked: bool | None = None) -> list[str]:
    """The command line that gives `settings` back, in the order of the fields; used by the workflow's rules.

    `tracked` picks the fields that decide what is computed (True) or those that only say how much fits (False).
    """
    flags: list[str] = []
    for name, info in type(settings).model_fields.items():
        if tracked is not None and tracked != (info.json_schema_extra or {}).get("tracked", True):
            continue
        value = getattr(settings, name)
        if isinstance(value, bool):
            flags.append(_flag(name) if value else _flag("no_" + name))
        elif isinstance(value, list):
            flags += [_flag(name), *map(str, value)]
        else:
            flags += [_flag(name), "none" if value is None else str(value)]
    return flags
