# What the rules share: the checked configuration, paths of a run, flags of a stage.
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

from stages.common.cli import UserError, flags_for
from stages.common.check import check, merged
from stages.common.files import sha256

try:
    RUN = check(dict(config))
except UserError as error:
    raise WorkflowError(str(error)) from None

RESULTS = f"results/{RUN.run}"
START = f"results/{RUN.start}" if RUN.start else None
ENVIRONMENT = f"{workflow.basedir}/envs/{RUN.device}.yaml"
# Stages run in the interpreter that runs Snakemake; --sdm conda puts its own first on the path.
PYTHON = (
    "python"
    if workflow.deployment_settings.deployment_method
    else shlex.quote(sys.executable)
)
STAGE = f"SNAKEMAKE_JOB=1 PYTHONPATH={shlex.quote(str(workflow.basedir))}${{{{PYTHONPATH:+:$PYTHONPATH}}}} {PYTHON} -m stages"
TURNS = range(1, RUN.turns + 1)
SHARDS = range(RUN.generate.shards)
CODE = {".py", ".sql", ".jinja", ".css", ".js"}
# Weights pass through memory on their way to a GPU.
HOST_MB = {"cpu": 8000, "gpu": 64000}[RUN.device]
GPUS = {"gpu": RUN.generate.tensor_parallel_size} if RUN.device == "gpu" else {}


def grows(amount):
    """A resource (MB, minutes) that grows with every attempt at a job."""
    return lambda wildcards, attempt: amount * attempt


def flags(section, tracked=True, **changed):
    """The flags of a section of the configuration, some values changed; untracked ones change no numbers."""
    settings = getattr(RUN, section).model_copy(update=changed)
    return shlex.join(flags_for(settings, tracked))


def code(stage, *more):
    """A hash of a cheap stage's files, for params: an edit re-runs it, moving or checking out the project does not.

    Generating, executing and training carry a stage_version instead.
    """
    root = Path(workflow.basedir)
    files = [p for p in root.joinpath("stages", stage).rglob("*") if p.suffix in CODE]
    return sha256([*sorted(files), *(root / name for name in more)])[:16]


def data_files(source):
    """The user's own files that a data set is read from, so that an edit imports them again; none of a package's."""
    path = Path(source).expanduser()
    if source in ("starter", "generated", "humaneval") or not path.exists():
        return []
    return sorted(map(str, path.rglob("*.*"))) if path.is_dir() else [str(path)]


def policy(version):
    """The file that says a policy is whole."""
    return f"{RESULTS}/policies/version={version}/manifest.json"


def split(name):
    """A table of admitted tasks: train, heldout, or a benchmark's name."""
    return f"{RESULTS}/tasks/split={name}/part-0.parquet"


def parts(table, version, turns=TURNS, shards=SHARDS):
    """The files of a table of trees, for a version's turns and shards."""
    return [
        f"{RESULTS}/{table}/version={version}/turn={t}/shard-{s}.parquet"
        for t in turns
        for s in shards
    ]


def earlier(table):
    """Input function: a table's files of the turns before this one, of the same shard."""
    return lambda wildcards: parts(
        table, wildcards.version, range(1, int(wildcards.turn)), [wildcards.shard]
    )


def benchmarks():
    """The task tables that policies are evaluated on, and how many tasks of each (None: all)."""
    chosen = RUN.evaluate.benchmarks.items()
    return {name: one.limit for name, one in chosen if one.limit != 0}


def evaluated_parts(table, version, turns):
    """The files of a table of an evaluation's own trees."""
    return [
        f"{RESULTS}/eval_{table}/version={version}/turn={t}/part-0.parquet"
        for t in turns
    ]


def evaluated():
    """The policy versions that are evaluated, ascending."""
    chosen = {
        "ends": {0, RUN.versions},
        "last": {RUN.versions},
        "all": set(range(RUN.versions + 1)),
        "none": set(),
    }[RUN.evaluate.versions]
    return sorted(chosen) if benchmarks() else []


def evals():
    """The evaluation tables of the run, versions ascending."""
    return [
        f"{RESULTS}/evals/benchmark={name}/version={version}/part-0.parquet"
        for version in evaluated()
        for name in benchmarks()
    ]


# The runs of a comparison.
MEMBERS = [(arm, seed) for arm in RUN.compare.arms for seed in RUN.compare.seeds]
BASELINE = next(iter(RUN.compare.arms), None)


def member(arm, seed):
    """The name of a run of the comparison."""
    return f"{RUN.run}-{arm}-{seed}"


def ends(arm):
    """The last version of an arm's runs, as `evaluate compare` takes them: all seeds together."""
    return ",".join(
        f"results/{member(arm, seed)}@{RUN.versions}" for seed in RUN.compare.seeds
    )


def pages(*arms):
    """The reports of arms' runs, each written when all else of its run is there."""
    return [
        f"results/{member(arm, seed)}/report.html"
        for arm in arms
        for seed in RUN.compare.seeds
    ]


# How much fits (memory, batch sizes): in the command, not in params, so that changing it re-runs nothing.
GENERATE_CAPACITY = flags("generate", tracked=False)
UPDATE_CAPACITY = flags("update", tracked=False)


def cancel_slurm_jobs(logs):
    """Cancel what a run that ended early left in SLURM's queue; all its jobs have the name that its log tells."""
    for path in logs:
        for name in re.findall(r"SLURM run ID: (\S+)", Path(path).read_text()):
            subprocess.run(["scancel", "--me", f"--name={name}"])
