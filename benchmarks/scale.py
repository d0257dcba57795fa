"""What a version's tables weigh and what reading them costs: 1,000 tasks x G 8 x S 3, from a hundredth and a tenth.

    python -m benchmarks.scale [--shares 100 10] [--threads 2]

Writes tables of the real schemas, with what a run would hold: token ids of a 150,000 word vocabulary drawn with Zipf's
law, log-probabilities, code cut from this project's own files as text, six tests a node. 55 % of the attempts fail.
Then it runs the credit stage in a process of its own, DuckDB's queries over all files, and prints bytes per node,
seconds and memory. The last column goes on in a straight line from the two shares: what grows, grows with nodes.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
TASKS, GROUP, TURNS, FAIL, TESTS, SHARDS = 1000, 8, 3, 0.55, 6, 8
VOCABULARY, COMPLETION, PROMPT = 150_000, 300, 400  # tokens; a later prompt holds an attempt and its feedback too
FILES = {"rollouts": 1, "verdicts": 1, "feedback": 1, "test_times": 1}  # per shard and turn, beside logs and times
QUERIES = {
    "reward by turn": "select turn, count(*), avg(reward) from '{run}/feedback/**/*.parquet' group by all",
    "tokens by turn": "select turn, sum(len(completion_ids)) from '{run}/rollouts/**/*.parquet' group by all",
    "kinds of failure": "select kind, count(*) from '{run}/verdicts/**/*.parquet' group by all",
    "one node": "select * from '{run}/rollouts/**/*.parquet' where node_id = '0/task-00003/1'",
}


def _lists(lengths, values):
    import numpy as np
    import pyarrow as pa

    return pa.ListArray.from_arrays(pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)), values)


def _texts(lengths, rng) -> list[str]:
    source = "\n".join(p.read_text() for p in sorted((ROOT / "stages").rglob("*.py")))
    starts = rng.integers(0, len(source) - 8000, len(lengths))
    return [source[a : a + 4 * n] for a, n in zip(starts, lengths, strict=True)]


def make(tasks: int, run: Path, seed: int = 0) -> int:
    """Write one version's tables of that many tasks; how many nodes they hold."""
    import numpy as np
    import pyarrow as pa

    from stages.common import tables

    rng = np.random.default_rng(seed)
    words = np.minimum(rng.zipf(1.2, 2_000_000) - 1, VOCABULARY - 1).astype(np.int32)
    names = [f"task-{i:05d}" for i in range(tasks)]
    groups = [(f"0/{name}", None, name, i % SHARDS) for i, name in enumerate(names)]
    total = 0
    for turn in range(1, TURNS + 1):
        length = PROMPT + (turn > 1) * (COMPLETION + 128)
        failed = []
        for shard in range(SHARDS):
            here = [g for g in groups if g[3] == shard]
            rows = len(here) * GROUP
            total += rows
            of = np.repeat(np.arange(len(here)), GROUP)
            sample = np.tile(np.arange(GROUP), len(here))
            mark = "/" if turn == 1 else "."
            nodes = [f"{here[g][0]}{mark}{s}" for g, s in zip(of, sample, strict=True)]
            lengths = np.clip(rng.lognormal(np.log(COMPLETION), 0.4, rows), 16, 1500).astype(np.int64)
            ids = words[rng.integers(0, len(words), int(lengths.sum()))]
            starts = rng.integers(0, len(words) - length, len(here))
            prompt_ids = np.concatenate([words[starts[g] : starts[g] + length] for g in of] or [words[:0]])
            code = _texts(lengths, rng)
            prompts = _texts([length] * len(here), rng)
            logprobs = pa.array(-rng.gamma(0.25, 1.6, len(ids)).astype(np.float32))
            place = f"version=0/turn={turn}/shard-{shard}.parquet"

            def write(table, columns, run=run, place=place):
                whole = pa.table([columns[n] for n in table.schema.names], names=table.schema.names)
                tables.write(run / table.name / place, table, whole)

            keys = {
                "node_id": pa.array(nodes, pa.string()),
                "parent_id": pa.array([here[g][1] for g in of], pa.string()),
                "group_id": pa.array([here[g][0] for g in of], pa.string()),
                "task_id": pa.array([here[g][2] for g in of], pa.string()),
            }
            passed = np.where(rng.random(rows) < 1 - FAIL, TESTS, rng.integers(0, TESTS, rows))
            same = {"finish_reason": "stop", "policy_hash": "0" * 64}
            write(
                tables.ROLLOUTS,
                keys
                | {
                    "sample": pa.array(sample),
                    "prompt": pa.array([prompts[g] for g in of], pa.string()),
                    "prompt_ids": _lists([length] * rows, pa.array(prompt_ids)),
                    "completion_ids": _lists(lengths, pa.array(ids)),
                    "sampling_logprobs": _lists(lengths, logprobs),
                    "text": pa.array([f"```python\n{c}\n```" for c in code], pa.string()),
                    "code": pa.array(code, pa.string()),
                    "seed": pa.array(rng.integers(0, 2**62, rows)),
                }
                | {name: pa.repeat(pa.scalar(value), rows) for name, value in same.items()},
            )
            kinds = ["passed", "wrong_answer"]
            write(
                tables.FEEDBACK,
                {
                    "node_id": keys["node_id"],
                    "task_id": keys["task_id"],
                    "reward": pa.array(passed / TESTS),
                    "passed": pa.array(passed),
                    "total": pa.repeat(pa.scalar(TESTS), rows),
                    "hidden_passed": pa.array(np.maximum(passed - 2, 0)),
                    "hidden_total": pa.repeat(pa.scalar(TESTS - 2), rows),
                    "kind": pa.array([kinds[int(p < TESTS)] for p in passed], pa.string()),
                    "mode": pa.repeat(pa.scalar("answer_blind"), rows),
                    "feedback": pa.array(_texts([100] * rows, rng), pa.string()),
                },
            )
            each = np.repeat(np.arange(rows), TESTS)
            test = np.tile(np.arange(TESTS), rows)
            wrong = test >= passed[each]
            spoken = wrong & (test < 2)  # visible tests are quoted
            values = pa.array([str(v) for v in rng.integers(0, 10**6, len(each))], mask=~spoken)
            by_test = {"node_id": keys["node_id"].take(pa.array(each)), "test": pa.array(test)}
            write(
                tables.VERDICTS,
                by_test
                | {
                    "visible": pa.array(test < 2),
                    "kind": pa.array([kinds[int(w)] for w in wrong], pa.string()),
                    "message": pa.nulls(len(each), pa.string()),
                    "call": values,
                    "got": values,
                    "expected": values,
                },
            )
            write(
                tables.TEST_TIMES,
                by_test
                | {
                    "cpu_ms": pa.array(rng.gamma(2.0, 3.0, len(each))),
                    "wall_ms": pa.array(rng.gamma(2.0, 4.0, len(each))),
                    "retried": pa.repeat(pa.scalar(False), len(each)),
                },
            )
            failed += [(nodes[i], nodes[i], here[of[i]][2], shard) for i in np.flatnonzero(passed < TESTS)]
        groups = failed
    return total


def _timed(argv: list[str]) -> tuple[float, float]:
    """Wall seconds and peak memory (MB) of a command."""
    began = time.monotonic()
    child = subprocess.Popen(argv, stdout=subprocess.DEVNULL, cwd=ROOT)
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"failed: {' '.join(argv[:4])} ...")
    return time.monotonic() - began, usage.ru_maxrss / 1024


def measure(share: int, threads: int) -> dict[str, float]:
    """The figures of 1/share of a version."""
    import duckdb

    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder)
        figures: dict[str, float] = {"nodes": make(TASKS // share, run)}
        for name in ("rollouts", "verdicts", "test_times", "feedback"):
            size = sum(p.stat().st_size for p in (run / name).rglob("*.parquet"))
            figures[f"{name}, bytes per node"] = size / figures["nodes"]
        argv = [sys.executable, "-m", "stages.credit", "--turns", str(TURNS), "--threads", str(threads)]
        argv += ["--out", str(run / "credit/version=0/part-0.parquet")]
        for name in ("rollouts", "feedback"):
            argv += [f"--{name}", *map(str, sorted((run / name).rglob("*.parquet")))]
        seconds, memory = _timed(argv)
        figures |= {"credit stage, s": seconds, "credit stage, MB": memory}
        size = sum(p.stat().st_size for p in (run / "credit").rglob("*.parquet"))
        figures["credit, bytes per node"] = size / figures["nodes"]
        duckdb.sql(f"set threads = {threads}")
        for query in QUERIES.values():  # a first time, so that imports and file caches are out of it
            duckdb.sql(query.format(run=run)).fetchall()
        for name, query in QUERIES.items():
            began = time.monotonic()
            duckdb.sql(query.format(run=run)).fetchall()
            figures[f"query {name}, s"] = time.monotonic() - began
        read = "from stages.common import tables; from pathlib import Path; import sys; "
        read += "tables.read(sorted(Path(sys.argv[1]).rglob('*.parquet')), tables.ROLLOUTS).to_pylist()"
        turn = run / f"rollouts/version=0/turn={TURNS - 1}"
        _, figures["a turn's rollouts as rows, MB"] = _timed([sys.executable, "-c", read, str(turn)])
        return figures


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__.split("\n")[0])
    parser.add_argument("--shares", type=int, nargs="+", default=[100, 10], help="1/N of a version (default: 100 10)")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    columns = {share: measure(share, args.threads) for share in args.shares}
    last = args.shares[-1]
    print("| one version | " + " | ".join(f"1/{share}" for share in args.shares) + " | whole, extrapolated |")
    print("|---|" + "---|" * (len(args.shares) + 1))
    for name, value in columns[last].items():
        fixed = "bytes per node" in name
        base = columns[args.shares[0]][name]  # what does not grow: start, imports
        slope = (value - base) / (1 / last - 1 / args.shares[0]) if len(args.shares) > 1 else value * last
        whole = value if fixed else base + slope * (1 - 1 / args.shares[0]) if len(args.shares) > 1 else slope
        whole = max(whole, value)  # measured times near zero go up and down
        cells = [columns[share][name] for share in args.shares] + [whole]
        print(f"| {name} | " + " | ".join(f"{c:,.0f}" if c >= 10 else f"{c:.2f}" for c in cells) + " |")
    files = SHARDS * TURNS * sum(FILES.values())
    print(f"| Parquet files ({SHARDS} shards, {TURNS} turns) | {files} | | {files} + 2 |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
