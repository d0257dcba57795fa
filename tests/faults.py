"""Kill a run at seeded random moments in every stage, restart it, compare its tables with an undisturbed run.

    python -m tests.faults --moments 100 --seed 0 --folder build/faults

The undisturbed run (smoke.yaml) is made once in the folder. A moment copies it, removes the outputs of one stage, lets
Snakemake make them again with a fault in the middle, restarts, and compares every table byte for byte and every
policy's hash. ``faults.log`` in the folder has a line per moment; started again, the command goes on after the last.
Disk full is a small tmpfs for root, a limit on the size of files for others. What it does not cover: faults of the
machine (no power, a file system that loses writes).
"""

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

from tests.workflow_runs import ROOT, command, heed_interrupts, snakemake

# Tables that the same run gives again byte for byte; times are kept elsewhere.
TABLES = (
    "import", "tasks", "rollouts", "verdicts", "feedback", "credit", "updates", "evals", "eval_rollouts",
    "eval_verdicts", "eval_feedback",
)  # fmt: skip
RUN = "results/smoke"
# A stage: the rule that snakemake names, what it makes (the first is asked for), and a file made from it by a stage
# that reads it, for the faults that only a reader can notice.
STAGES = {
    "tasks_import": ("tasks_import", ["import/candidates.parquet"], "import/verdicts.parquet"),
    "tasks_references": (
        "tasks_references",
        ["import/verdicts.parquet", "import/feedback.parquet"],
        "rejected.parquet",
    ),
    "tasks_admit": (
        "tasks_admit",
        ["tasks/split=train/part-0.parquet", "tasks/split=heldout/part-0.parquet", "rejected.parquet"],
        "policies/version=0/manifest.json",
    ),
    "policy_init": ("policy_init", ["policies/version=0/manifest.json"], "rollouts/version=0/turn=1/shard-0.parquet"),
    **{
        f"generate turn {t}": (
            "generate",
            [f"rollouts/version=0/turn={t}/shard-0.parquet"],
            f"feedback/version=0/turn={t}/shard-0.parquet",
        )
        for t in (1, 2)
    },
    "execute": (
        "execute",
        ["feedback/version=0/turn=1/shard-0.parquet", "verdicts/version=0/turn=1/shard-0.parquet"],
        "rollouts/version=0/turn=2/shard-0.parquet",
    ),
    "credit": ("credit", ["credit/version=0/part-0.parquet"], "policies/version=1/manifest.json"),
    "update": (
        "update_0",
        ["policies/version=1/manifest.json", "updates/version=0/part-0.parquet"],
        "eval_rollouts/version=1/turn=1/part-0.parquet",
    ),
    "eval_generate": (
        "eval_generate",
        ["eval_rollouts/version=1/turn=1/part-0.parquet"],
        "eval_feedback/version=1/turn=1/part-0.parquet",
    ),
    "eval_execute": (
        "eval_execute",
        ["eval_feedback/version=1/turn=2/part-0.parquet", "eval_verdicts/version=1/turn=2/part-0.parquet"],
        "evals/benchmark=heldout/version=1/part-0.parquet",
    ),
    "evaluate": ("evaluate", ["evals/benchmark=heldout/version=1/part-0.parquet"], "report.html"),
    "report": ("report", ["report.html"], None),
}
KILLS = {
    "kill -9 of all": (os.killpg, signal.SIGKILL),
    "kill -9 of snakemake alone": (os.kill, signal.SIGKILL),
    "kill -15": (os.kill, signal.SIGTERM),
    "Ctrl-C": (os.killpg, signal.SIGINT),
}
FAULTS = (*KILLS, "disk full", "deleted output", "truncated Parquet", "policy without manifest")


def fingerprints(run: Path) -> tuple[dict[str, bytes], dict[str, str]]:
    """Bytes of every table, and hashes of every policy."""
    files = {str(p.relative_to(run)): p.read_bytes() for t in TABLES for p in sorted((run / t).rglob("*.parquet"))}
    hashes = {p.parent.name: json.loads(p.read_text())["hash"] for p in sorted(run.glob("policies/*/manifest.json"))}
    return files, hashes


def moments(count: int, seed: int) -> list[tuple[str, str]]:
    """(stage, fault) of each moment: every pair that makes sense comes once before any comes again."""
    pairs = [
        (stage, fault)
        for stage, (_, outputs, reader) in STAGES.items()
        for fault in FAULTS
        if (fault != "truncated Parquet" or (reader and outputs[0].endswith(".parquet")))
        and (fault != "policy without manifest" or outputs[0].startswith("policies/"))
    ]
    random.Random(seed).shuffle(pairs)
    return [pairs[i % len(pairs)] for i in range(count)]


def _seconds(base: Path, rule: str) -> float:
    """How long the rule's jobs took in the undisturbed run."""
    logs = [*(base / RUN).glob(f"benchmarks/**/{rule.removesuffix('_0')}*.jsonl")]
    logs += [*(base / RUN).glob(f"benchmarks/{rule.removesuffix('_0')}/**/*.jsonl")]
    taken = [json.loads(p.read_text().splitlines()[-1])["s"] for p in logs]
    return max(taken, default=3.0)


def _start(folder: Path, target: str, log: Path, limit: int | None = None) -> subprocess.Popen:
    def prepare() -> None:
        heed_interrupts()
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    with log.open("w") as out:
        return subprocess.Popen(
            command(folder, "--", f"{RUN}/{target}"),
            stdout=out,
            stderr=out,
            cwd=ROOT,
            start_new_session=True,
            preexec_fn=prepare,
        )


def _kill(folder: Path, rule: str, target: str, after: float, how: str) -> str:
    """Start the rule, disturb it `after` seconds into it; what came of that."""
    log = folder.with_suffix(".out")
    process = _start(folder, target, log)
    while process.poll() is None and f"rule {rule}:" not in log.read_text():
        time.sleep(0.02)
    try:
        process.wait(after)
        return "was done before"
    except subprocess.TimeoutExpired:
        act, number = KILLS[how]
        act(process.pid, number)
        code = process.wait(300)
        return f"killed, exit {code}" if code else "was done before"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def _place(folder: Path, small: bool):
    """The moment's folder; for root and a full disk a tmpfs that can be made to hold little."""
    if folder.is_mount():  # left by a driver that was killed
        subprocess.run(["umount", "-l", str(folder)], check=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    mounted = small and os.geteuid() == 0
    if mounted:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2g", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], check=True)
        shutil.rmtree(folder, ignore_errors=True)


def _resize(folder: Path, size: str) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", str(folder)], check=True)


def _restart(folder: Path, target: str) -> subprocess.CompletedProcess:
    snakemake(folder, "--unlock")
    return snakemake(folder, "--", f"{RUN}/{target}")


def disturb(base: Path, folder: Path, stage: str, fault: str, rng: random.Random) -> dict:
    """One moment; what was done, when, what came of it, and whether the tables are equal again."""
    rule, outputs, reader = STAGES[stage]
    facts: dict[str, object] = {"stage": stage, "fault": fault}
    with _place(folder, fault == "disk full"):
        shutil.copytree(base, folder, dirs_exist_ok=True, symlinks=True)
        run = folder / RUN
        made = [run / name for name in outputs]
        if fault in KILLS or fault == "disk full":
            size = sum(p.stat().st_size for o in made for p in _belongs(o))
            for path in made:
                _remove(path)
        if fault in KILLS:
            facts["seconds"] = round(rng.uniform(0, 1.05) * _seconds(base, rule), 2)
            facts["outcome"] = _kill(folder, rule, outputs[0], facts["seconds"], fault)
        elif fault == "disk full":
            facts |= _fill(folder, outputs[0], rng.randrange(32768 + size))  # Snakemake writes there too
        elif fault == "truncated Parquet":
            path = rng.choice([p for p in made if p.suffix == ".parquet"][:1])
            size = path.stat().st_size
            facts |= {"file": str(path.relative_to(run)), "bytes": rng.randrange(size), "of": size}
            os.truncate(path, facts["bytes"])
            done = _restart(folder, reader)
            said = done.stdout + done.stderr
            facts["outcome"] = "refused" if done.returncode and path.name in said else f"ACCEPTED {said[-2000:]}"
            path.unlink()
        else:
            path = made[0] if fault == "policy without manifest" else rng.choice(made)
            facts["file"] = str(path.relative_to(run))
            path.unlink()
        # A lost file is asked for by its name; the reader that refused a file lost its outputs.
        asked = reader if fault == "truncated Parquet" else str(facts.get("file", outputs[0]))
        done = _restart(folder, asked)
        facts["restart"] = "ok" if done.returncode == 0 else (done.stdout + done.stderr)[-3000:]
        (files, hashes), (wanted, wanted_hashes) = fingerprints(run), fingerprints(base / RUN)
        odd = [name for name in files.keys() | wanted.keys() if files.get(name) != wanted.get(name)]
        odd += [name for name in hashes.keys() | wanted_hashes.keys() if hashes.get(name) != wanted_hashes.get(name)]
        facts["differ"] = sorted(odd)
    ok = facts["restart"] == "ok" and not odd and not str(facts.get("outcome", "")).startswith("ACCEPTED")
    return facts | {"equal": ok}


def _belongs(output: Path) -> list[Path]:
    """The files that are an output: a policy's manifest stands for its folder."""
    return [p for p in output.parent.rglob("*") if p.is_file()] if output.name == "manifest.json" else [output]


def _remove(output: Path) -> None:
    if output.name == "manifest.json":
        shutil.rmtree(output.parent)
    else:
        output.unlink()


def _fill(folder: Path, target: str, room: int) -> dict:
    """Let the stage run with `room` bytes left on the disk, then with enough."""
    log, root = folder.with_suffix(".out"), os.geteuid() == 0
    if root:
        used = shutil.disk_usage(folder).used
        _resize(folder, str(used + room))
    process = _start(folder, target, log, None if root else room)
    try:
        code = process.wait(300)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        if root:
            _resize(folder, "2g")
    return {"bytes": room, "outcome": f"exit {code}"}


def drive(
    base: Path, log: Path, count: int, seed: int, say: Callable[[str], object] = print, limit: float = 1e9
) -> int:
    """Do the moments that the log does not have yet, for at most `limit` seconds; how many were not equal."""
    lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    known = {line["moment"]: line["equal"] for line in lines if line["seed"] == seed}
    end = time.monotonic() + limit
    for number, (stage, fault) in enumerate(moments(count, seed)):
        if number in known:
            continue
        if time.monotonic() > end:
            break
        began = time.monotonic()
        facts = disturb(base, log.parent / f"moment-{number}", stage, fault, random.Random(seed * 1_000_003 + number))
        line = {"moment": number, "seed": seed, **facts, "took": round(time.monotonic() - began, 1)}
        with log.open("a") as out:
            out.write(json.dumps(line) + "\n")
        known[number] = line["equal"]
        say(json.dumps(line))
    done = [known[n] for n in range(count) if n in known]
    say(f"{sum(done)} of {len(done)} moments ended equal; {count - len(done)} left")
    return len(done) - sum(done)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__.split("\n")[0])
    parser.add_argument("--moments", type=int, default=100, help="how many (default: 100)")
    parser.add_argument("--seed", type=int, default=0, help="of stages, faults and times (default: 0)")
    parser.add_argument("--folder", type=Path, default=Path("build/faults"), help="where runs and log go")
    parser.add_argument("--seconds", type=float, default=1e9, help="start no moment after so long")
    args = parser.parse_args()
    base = args.folder.resolve() / "undisturbed"
    done = snakemake(base)
    if done.returncode:
        print((done.stdout + done.stderr)[-6000:], file=sys.stderr)
        return 1
    return 1 if drive(base, base.parent / "faults.log", args.moments, args.seed, limit=args.seconds) else 0


if __name__ == "__main__":
    sys.exit(main())
