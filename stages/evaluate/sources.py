"""The evaluations that a command line names: an EVALS file, a folder of them, or a run's folder, with ``@VERSION``.

``results/demo@2`` is version 2 of a run; ``results/demo/evals/benchmark=heldout/version=2`` the same for one benchmark;
``results/a@2,results/b@2`` runs that differ in their seeds, whose chains are put together.
"""

import re
from collections import defaultdict
from pathlib import Path

from stages.common import tables
from stages.common.cli import UserError
from stages.evaluate.compare import Evaluation
from stages.evaluate.settings import differences


def _part(path: Path, key: str) -> str:
    return next((part.removeprefix(f"{key}=") for part in path.parts if part.startswith(f"{key}=")), "")


def find(source: str) -> dict[str, list[Path]]:
    """The files that `source` names, by benchmark ("" where the path has none); UserError unless of one version."""
    path, version = Path(source), None
    if not path.exists() and (found := re.fullmatch(r"(.+)@(\d+)", source)):
        path, version = Path(found[1]), found[2]
    if not path.exists():
        raise UserError(f"{source}: no such file or folder; give a run's folder such as results/demo@2, or its evals")
    if path.is_file():
        return {_part(path, "benchmark"): [path]}
    inside = path / "evals" if (path / "evals").is_dir() else path
    files = sorted(file for file in inside.rglob("*.parquet") if not file.name.startswith("."))
    versions = sorted({_part(file, "version") for file in files}, key=lambda text: (len(text), text))
    if version is None and len(versions) > 1:
        raise UserError(
            f"{source}: holds versions {', '.join(versions)}; name one, for instance {source}@{versions[-1]}"
        )
    chosen = [file for file in files if version is None or _part(file, "version") == version]
    if not chosen:
        had = f"; there are versions {', '.join(versions)}" if versions else ""
        raise UserError(f"{source}: no evaluations here{had}; they are written by `python -m stages.evaluate passes`")
    found = defaultdict(list)
    for file in chosen:
        found[_part(file, "benchmark")].append(file)
    return dict(found)


def find_all(sources: str) -> dict[str, list[list[Path]]]:
    """The files of several sources with commas in between, by benchmark, one list per source.

    UserError where one has a benchmark that another has not.
    """
    each = {source: find(source) for source in sources.split(",")}
    first, known = next(iter(each.items()))
    for source, found in each.items():
        if found.keys() != known.keys():
            only = ", ".join(sorted(found.keys() ^ known.keys()))
            raise UserError(f"{first} and {source}: {only} is in one of them only; evaluate them alike")
    return {benchmark: [found[benchmark] for found in each.values()] for benchmark in known}


def load_all(label: str, sources: list[list[Path]]) -> Evaluation:
    """Several evaluations of the same tasks as one with the chains of all; UserError unless made alike."""
    loaded = [load(str(files[0]), files) for files in sources]
    one = loaded[0]
    for other in loaded[1:]:
        found, _ = differences(one.made_by, other.made_by, set(one.solved_at), set(other.solved_at))
        if found:
            told = "; ".join(f"{what}: {text}" for what, text in found.items())
            raise UserError(f"{one.label} and {other.label} cannot be put together: {told}")
    solved = {task: [at for each in loaded for at in each.solved_at[task]] for task in one.solved_at}
    return Evaluation(label, solved, one.difficulty, one.made_by)


def load(label: str, files: list[Path]) -> Evaluation:
    """Read an evaluation; UserError for a file of another table, for no rows, and for parts made differently."""
    made = [tables.made_by(file) for file in files]
    if any(one != made[0] for one in made):
        raise UserError(f"{', '.join(map(str, files))}: parts of different evaluations; give one of them")
    rows = tables.read(files, tables.EVALS).to_pylist()
    if not rows:
        raise UserError(f"{files[0]}: holds no chains, so there is nothing to compare; evaluate some tasks")
    solved: dict[str, list[int | None]] = defaultdict(list)
    for row in rows:
        solved[row["task_id"]].append(row["solved_at"])
    return Evaluation(label, solved, {row["task_id"]: row["difficulty"] for row in rows}, made[0])
