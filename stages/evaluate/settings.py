"""What an evaluation was made with, written into its table's metadata, and how two evaluations differ in it.

Two pass rates can be compared when the same tasks were asked in the same words under the same settings. Generate and
execute write their settings into their tables; :func:`describe` gathers what decides a pass rate, with a digest of the
tasks and one of the first prompts. The seed may differ, and so may what only says how much fits.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel

from stages.common import runs, tables
from stages.common.cli import UserError
from stages.common.config import Execute, Generate

# Keys of config.yaml that do not decide a pass rate. group_size is the samples of turn 1, and 1 in later turns.
IGNORED = {"group_size", "tasks_per_version", "tokens_per_version", "shards", "infra_error_share", "sandbox"}
TASK = ["task_id", "kind", "prompt", "entry_point", "prelude", "setup", "tests", "inplace", "packages"]
TASK += ["exact", "tolerance"]


def _digest(rows: Iterable[object]) -> str:
    return hashlib.sha256(json.dumps(list(rows), sort_keys=True).encode()).hexdigest()[:16]


def _deciding(path: Path, model: type[BaseModel]) -> dict[str, object]:
    """The settings in a file's metadata that decide results; {} where it holds none."""
    untracked = {
        name for name, info in model.model_fields.items() if not (info.json_schema_extra or {}).get("tracked", True)
    }
    found = tables.made_by(path).get("settings", {})
    return {key: value for key, value in found.items() if key not in IGNORED | untracked}


def _common(paths: Sequence[Path], model: type[BaseModel]) -> dict[str, object]:
    """The settings that all files share; UserError where they were made under different ones."""
    first: dict[str, object] | None = None
    for path in paths:
        own = _deciding(path, model)
        if first is None:
            first = own
        for key in sorted(first.keys() | own.keys()):
            if first.get(key) != own.get(key):
                raise UserError(
                    f"{path}: made with {key} {own.get(key)}, but {paths[0]} with {first.get(key)}; "
                    "an evaluation is made under one setting, so make its turns again"
                )
    return first or {}


def describe(
    task_files: Sequence[Path], rollout_files: Sequence[Path], feedback_files: Sequence[Path], rows: Sequence[Mapping]
) -> dict[str, object]:
    """What the evaluation in `rows` (EVALS) was made with, as keyword arguments of ``tables.provenance``.

    `settings` holds ``iterations``, ``samples`` and the settings of generate and execute that decide a pass rate;
    `policies` the hashes of the policies sampled from (one, if all is well); `tasks` and `prompts` digests of what the
    evaluated tasks say and of the prompts of turn 1.
    """
    evaluated = {row["task_id"] for row in rows}
    asked, hashes = [], set()
    for path in rollout_files:
        columns = ["node_id", "parent_id", "task_id", "prompt", "policy_hash"]
        for node in tables.read(path, tables.ROLLOUTS, columns).to_pylist():
            if node["task_id"] in evaluated:
                hashes.add(node["policy_hash"])
                if node["parent_id"] is None:
                    asked.append((node["task_id"], node["prompt"]))
    if len(hashes) > 1:
        raise UserError(f"rollouts of several policies ({', '.join(sorted(hashes))}); give those of one version")
    told = tables.read(task_files, tables.TASKS, TASK).to_pylist()
    samples = max((row["sample"] for row in rows), default=0) + 1
    return {
        "settings": {
            "iterations": max(map(runs.turn_of, rollout_files)),
            "samples": samples,
            **_common(rollout_files, Generate),
            **_common(feedback_files, Execute),
        },
        "policies": sorted(hashes),
        "tasks": _digest(task for task in told if task["task_id"] in evaluated),
        "prompts": _digest(sorted(set(asked))),
    }


def differences(a: Mapping, b: Mapping, a_tasks: set[str], b_tasks: set[str]) -> tuple[dict[str, str], list[str]]:
    """How two evaluations differ, by what (`tasks`, `prompts`, or a setting's key), and what cannot be known.

    `a` and `b` are the metadata of the EVALS files (:func:`describe`), `a_tasks` and `b_tasks` the tasks in them.
    """
    found: dict[str, str] = {}
    unknown: list[str] = []
    for name, only in (("the first", a_tasks - b_tasks), ("the second", b_tasks - a_tasks)):
        if only:
            listed = ", ".join(sorted(only)[:5]) + (", ..." if len(only) > 5 else "")
            text = f"{len(only)} only in {name}: {listed}"
            found["tasks"] = f"{found['tasks']}; {text}" if "tasks" in found else text
    for name, text in (
        ("tasks", "same names, but statements or tests differ"),
        ("prompts", "the first prompts differ (chat template, instruction or what is said about a task)"),
    ):
        if name not in a or name not in b:
            unknown.append(name)
        elif a[name] != b[name] and "tasks" not in found:
            found[name] = text
    mine, other = a.get("settings", {}), b.get("settings", {})
    if not mine or not other:
        unknown.append("settings")
        return found, unknown
    for key in sorted(mine.keys() | other.keys()):
        if key not in mine or key not in other:
            unknown.append(key)
        elif mine[key] != other[key]:
            found[key] = f"{mine[key]} in the first, {other[key]} in the second"
    return found, unknown
