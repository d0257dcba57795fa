"""Seconds that Snakemake takes to plan a long run, as a dry run in a process of its own.

    python -m benchmarks.plan [--versions 200] [--turns 3] [--shards 8] [--limit 30]

Prints jobs, seconds and memory; exits with 1 above the limit. Nothing is run. The plan of a run that is half done takes
less: finished files are only looked at.
"""

import argparse
import os
import re
import sys
import tempfile
import time
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]


def plan(versions: int, turns: int, shards: int) -> tuple[int, float, float, float]:
    """(jobs, wall seconds, CPU seconds, MB at the peak) of the plan of the default run made so long."""
    with tempfile.TemporaryDirectory() as folder:
        overlay, said = Path(folder, "long.yaml"), Path(folder, "said")
        long = {"run": "long", "versions": versions, "turns": turns, "generate": {"shards": shards}}
        overlay.write_text(yaml.safe_dump(long))
        argv = [sys.executable, "-m", "snakemake", "-n", "-q", "rules", "-s", str(ROOT / "Snakefile")]
        argv += ["--directory", folder, "--cores", "2", "--configfile", str(overlay)]
        argv += ["--workflow-profile", str(ROOT / "profiles/default")]
        began = time.monotonic()
        with said.open("wb") as out:
            actions = [(os.POSIX_SPAWN_DUP2, out.fileno(), 1), (os.POSIX_SPAWN_DUP2, out.fileno(), 2)]
            child = os.posix_spawn(sys.executable, argv, os.environ, file_actions=actions)
            _, status, usage = os.wait4(child, 0)
        wall = time.monotonic() - began
        text = said.read_text()
        found = re.findall(r"^total\s+(\d+)", text, re.MULTILINE)
        if status or not found:
            raise SystemExit(text[-4000:])
        return int(found[0]), wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plan", description=__doc__.split("\n")[0])
    for name, default in (("versions", 200), ("turns", 3), ("shards", 8), ("limit", 30)):
        parser.add_argument(f"--{name}", type=int, default=default, help=f"(default: {default})")
    args = parser.parse_args()
    jobs, wall, cpu, memory = plan(args.versions, args.turns, args.shards)
    shape = f"{args.versions} versions x {args.turns} turns x {args.shards} shards"
    print(f"{shape}: {jobs} jobs planned in {wall:.1f} s ({cpu:.1f} s of CPU, {memory:.0f} MB)")
    return int(wall > args.limit)


if __name__ == "__main__":
    sys.exit(main())
