"""Nodes per second of the credit stage, against the same method as a plain recursion in Python.

    python -m benchmarks.credit [--nodes 10000 100000 1000000 10000000] [--threads 2]

Makes trees (G = 8, S = 3, a bit over half of the attempts fail, 0.5 % unjudged), runs the stage's command line on them
in a process of its own and prints wall time, nodes per second and peak memory, all of it: start, reading, checks, SQL,
writing. The recursion only works on rows that are in memory already. Does not time sampling or execution.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

GROUP, TURNS, FAIL, TESTS = 8, 3, 0.55, 6
LIMIT = 1_000_000  # nodes up to which the recursion is timed; it takes gigabytes beyond
SETTINGS = {
    "defaults": [],
    "all of it": ["--strategy", "mers", "--prune", "inter+intra", "--scale", "batch"],
}


def make(nodes: int, folder: Path, seed: int = 0) -> dict[str, list[Path]]:
    """Write trees of `nodes` nodes in all as rollouts and feedback; gives the files, as ``assign`` takes them."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from stages.common.tables import FEEDBACK, ROLLOUTS

    rng = np.random.default_rng(seed)
    tasks = int(nodes / (GROUP * sum((FAIL * GROUP) ** t for t in range(TURNS))) * 1.05) + 2
    parent_task = pa.array([f"task-{i:07d}" for i in range(tasks)])
    parents = pc.binary_join_element_wise("0", parent_task, "/")
    files: dict[str, list[Path]] = {"rollouts": [], "feedback": []}
    left = nodes
    for turn in range(1, TURNS + 1):
        rows = min(left, len(parents) * GROUP)
        left -= rows
        of = pa.array(np.arange(rows) // GROUP)
        group, task = parents.take(of), parent_task.take(of)
        sample = pa.array((np.arange(rows) % GROUP).astype(np.int32))
        node = pc.binary_join_element_wise(group, pc.cast(sample, pa.string()), "/" if turn == 1 else ".")
        passed = np.where(rng.random(rows) < 1 - FAIL, TESTS, rng.integers(0, TESTS, rows)).astype(np.int32)
        unjudged = rng.random(rows) < 0.005
        columns = {
            "node_id": node,
            "parent_id": pa.nulls(rows, pa.string()) if turn == 1 else group,
            "group_id": group,
            "task_id": task,
            "sample": sample,
            "reward": pa.array(passed / TESTS, mask=unjudged),
            "passed": pa.array(passed),
        }
        for table in (ROLLOUTS, FEEDBACK):
            empty = {field.name: _filler(field.type, rows) for field in table.schema}
            path = folder / table.name / "version=0" / f"turn={turn}" / "shard-0.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            whole = pa.table([columns.get(name, empty[name]) for name in table.schema.names], schema=table.schema)
            pq.write_table(whole, path, compression="zstd")
            files[table.name].append(path)
        failed = pa.array(np.flatnonzero((passed < TESTS) & ~unjudged))
        parents, parent_task = node.take(failed), task.take(failed)
    return files


def _filler(kind: object, rows: int) -> object:
    """A column that the stage does not read: empty text, 0 or empty lists."""
    import numpy as np
    import pyarrow as pa

    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(pa.array(np.zeros(rows + 1, np.int32)), pa.array([], kind.value_type)).cast(
            kind
        )
    return pa.repeat(pa.scalar("" if pa.types.is_string(kind) else 0, kind), rows)


def recursion(rows: list[tuple[str, str | None, str, float | None]]) -> dict[str, float]:
    """MaRS and group advantages over (node_id, parent_id, group_id, reward); gives node_id to advantage."""
    children, groups = defaultdict(list), defaultdict(list)
    reward = {}
    for node, parent, group, own in rows:
        reward[node] = own
        groups[group].append(node)
        if parent is not None:
            children[parent].append(node)
    credit: dict[str, float | None] = {}

    def back(node: str) -> float | None:
        below = [value for child in children[node] if (value := back(child)) is not None]
        credit[node] = None if reward[node] is None else max([reward[node], *below])
        return credit[node]

    for node, parent, _, _ in rows:
        if parent is None:
            back(node)
    advantages = {}
    for members in groups.values():
        known = [credit[node] for node in members if credit[node] is not None]
        mean = sum(known) / len(known) if known else 0.0
        std = statistics.stdev(known) if len(known) > 1 else 0.0
        for node in members:
            advantages[node] = 0.0 if credit[node] is None or not std else (credit[node] - mean) / (std + 1e-4)
    return advantages


def _time_recursion(files: dict[str, list[Path]]) -> float:
    """Seconds of :func:`recursion`, without reading the files."""
    from stages.common import tables

    rollouts = tables.read(files["rollouts"], tables.ROLLOUTS, ["node_id", "parent_id", "group_id"])
    feedback = tables.read(files["feedback"], tables.FEEDBACK, ["node_id", "reward"])
    names = ("node_id", "parent_id", "group_id")
    rows = list(zip(*(rollouts[name].to_pylist() for name in names), feedback["reward"].to_pylist(), strict=True))
    start = time.perf_counter()
    recursion(rows)
    return time.perf_counter() - start


def _time_stage(files: dict[str, list[Path]], folder: Path, threads: int, flags: list[str]) -> tuple[float, float]:
    """Wall seconds and peak memory (GiB) of the stage's command line."""
    command = [sys.executable, "-m", "stages.credit", "--turns", str(TURNS), "--out", str(folder / "credit.parquet")]
    for name, paths in files.items():
        command += [f"--{name}", *map(str, paths)]
    start = time.perf_counter()
    pid = subprocess.Popen([*command, "--threads", str(threads), *flags], stdout=subprocess.DEVNULL).pid
    _, status, usage = os.wait4(pid, 0)
    if status:
        raise SystemExit(f"the stage failed: {' '.join(command[:6])} ...")
    return time.perf_counter() - start, usage.ru_maxrss / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[10**4, 10**5, 10**6, 10**7])
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--folder", type=Path, help="where the trees are written for a while (default: temporary)")
    args = parser.parse_args()

    print(f"{'nodes':>10} {'settings':>10} {'ratio':>6} {'seconds':>8} {'nodes/s':>10} {'peak GiB':>9}   plain Python")
    for nodes in args.nodes:
        with tempfile.TemporaryDirectory(dir=args.folder) as folder:
            files = make(nodes, Path(folder))
            plain = _time_recursion(files) if nodes <= LIMIT else None
            for name, flags in SETTINGS.items():
                seconds, memory = _time_stage(files, Path(folder), args.threads, flags)
                ratio = f"{plain / seconds:.2f}" if plain else "-"
                other = f"{plain:.2f} s, {nodes / plain:,.0f} nodes/s" if plain and not flags else ""
                speed = f"{nodes / seconds:,.0f}"
                print(
                    f"{nodes:>10,} {name:>10} {ratio:>6} {seconds:>8.2f} {speed:>10} {memory:>9.2f}   {other}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
