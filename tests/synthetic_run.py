"""A whole run's tables written from a few lines of text, so that every number of a report can be known beforehand.

A tree is written as its nodes: ``"1/2 wrong_answer"`` passed one test of two, ``"?"`` could not be judged,
``"0/2 no_code"`` had no program, and ``"0/2 timeout !intra"`` was pruned. Credit is MaRS and the advantage its z-score,
worked out here in plain Python. :func:`small_run` is the run that the tests count by hand, :func:`large_run` has many
nodes.
"""

import json
import random
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from stages.common import ids, tables
from stages.common.policy import write_manifest
from stages.common.verdicts import INFRA_ERROR

Tree = list  # of "text" (a leaf) or ("text", [children])
HOSTILE = "</script><script>document.title='forged'</script><img src=x onerror=\"document.title='forged'\">&amp;"


@dataclass
class Node:
    """A node as written down, with what the tables say about it."""

    version: int
    turn: int
    node_id: str
    parent: "Node | None"
    group_id: str
    task_id: str
    sample: int
    passed: int
    total: int
    kind: str
    prune_reason: str | None
    children: list["Node"] = field(default_factory=list)
    credit: float | None = None
    advantage: float = 0.0
    group_mean: float | None = None
    group_std: float | None = None

    @property
    def reward(self) -> float | None:
        return None if self.kind == INFRA_ERROR else self.passed / self.total

    @property
    def completion_tokens(self) -> int:
        return 0 if self.kind == "context_overflow" else 10 * self.turn + self.sample

    @property
    def prompt_tokens(self) -> int:
        return 20 if self.turn == 1 else 35


def grow(version: int, task_id: str, tree: Tree, turn: int = 1, parent: Node | None = None) -> list[Node]:
    """The nodes of a group as written in `tree`, with their children; credit and advantages filled in."""
    group_id = parent.node_id if parent else ids.root_group(version, task_id)
    group = []
    for sample, written in enumerate(tree):
        text, children = written if isinstance(written, tuple) else (written, [])
        text, _, reason = text.partition(" !")
        share, _, kind = text.partition(" ")
        passed, total = (0, 2) if share == "?" else map(int, share.split("/"))
        kind = INFRA_ERROR if share == "?" else kind or "passed"
        name = ids.node_id(group_id, sample, parent is None)
        node = Node(version, turn, name, parent, group_id, task_id, sample, passed, total, kind, reason or None)
        node.children = grow(version, task_id, children, turn + 1, node)
        known = [child.credit for child in node.children if child.credit is not None]
        node.credit = None if node.reward is None else max([node.reward, *known])
        group.append(node)
    kept = [node.credit for node in group if node.credit is not None and node.prune_reason is None]
    for node in group:
        if kept:
            node.group_mean = statistics.fmean(kept)
            node.group_std = statistics.stdev(kept) if len(kept) > 1 else None
            if node.group_std and node.credit is not None and node.prune_reason is None:
                node.advantage = (node.credit - node.group_mean) / (node.group_std + 1e-4)
    return group


def walk(group: Iterable[Node]) -> list[Node]:
    """All nodes of a group's trees."""
    return [node for root in group for node in (root, *walk(root.children))]


def task_row(task_id: str, prompt: str, total: int = 2) -> dict:
    tests = [
        {"visible": i == 0, "code": f"assert f({i}) == {i}  # {task_id}", "stdin": None, "stdout": None}
        for i in range(total)
    ]
    return {
        "task_id": task_id,
        "source": "starter",
        "kind": "function",
        "prompt": prompt,
        "entry_point": "f",
        "prelude": None,
        "setup": None,
        "tests": tests,
        "reference": "def f(x):\n    return x\n",
        "difficulty": "easy",
        "stub": None,
        "inplace": False,
        "exact": False,
        "tolerance": None,
        "packages": [],
        "cpu_seconds": None,
        "memory_mb": None,
    }


def code_of(node: Node) -> str:
    return (
        f'def f(x):\n    """Attempt {node.node_id}, {HOSTILE}"""\n    # turn {node.turn}\n'
        f'    for i in range({node.sample}):\n        x += 1  # "quoted"\n    return f"{{x}}" if x < 0x1F else None\n'
    )


def rollout_row(node: Node) -> dict:
    code = None if node.kind in ("no_code", "context_overflow") else code_of(node)
    return {
        "node_id": node.node_id,
        "parent_id": node.parent.node_id if node.parent else None,
        "group_id": node.group_id,
        "task_id": node.task_id,
        "sample": node.sample,
        "prompt": f"<|user|>Prompt of {node.group_id} {HOSTILE}",
        "prompt_ids": list(range(node.prompt_tokens)),
        "completion_ids": list(range(node.completion_tokens)),
        "sampling_logprobs": [-0.5] * node.completion_tokens,
        "text": f"Here it is:\n```python\n{code}```\n" if code else "I cannot say.",
        "code": code,
        "finish_reason": {"context_overflow": "context_overflow", "no_code": "length"}.get(node.kind, "stop"),
        "seed": 1,
        "policy_hash": "0" * 16,
    }


def verdict_rows(node: Node) -> list[dict]:
    return [
        {
            "node_id": node.node_id,
            "test": test,
            "visible": test == 0,
            "kind": "passed" if test < node.passed else node.kind,
            "message": None if test < node.passed else f"AssertionError: test {test} of {node.node_id}",
            "call": "f(0)" if test == 0 else None,
            "got": "'<b>0</b>'" if test == 0 else None,
            "expected": "0" if test == 0 else None,
        }
        for test in range(node.total)
    ]


def feedback_row(node: Node) -> dict:
    return {
        "node_id": node.node_id,
        "task_id": node.task_id,
        "reward": node.reward,
        "passed": node.passed,
        "total": node.total,
        "hidden_passed": max(node.passed - 1, 0),
        "hidden_total": node.total - 1,
        "kind": node.kind,
        "mode": "none" if node.kind in ("no_code", "context_overflow") else "answer_blind",
        "feedback": f"{node.passed} of {node.total} tests passed. Feedback on {node.node_id} {HOSTILE}",
    }


def credit_row(node: Node) -> dict:
    return {
        "node_id": node.node_id,
        "parent_id": node.parent.node_id if node.parent else None,
        "group_id": node.group_id,
        "task_id": node.task_id,
        "turn": node.turn,
        "reward": node.reward,
        "credit": node.credit,
        "group_mean": node.group_mean,
        "group_std": node.group_std,
        "advantage": node.advantage,
        "kept": node.prune_reason is None,
        "prune_reason": node.prune_reason,
    }


def write_trees(run: Path, nodes: list[Node], turns: int, prefix: str = "", settings: Mapping = {}) -> None:
    """Rollouts, verdicts, test times and feedback of `nodes`, by version and turn; a turn without nodes has no rows."""
    made = {name: tables.provenance(name, settings.get(name, {}), seed=7) for name in ("generate", "execute")}
    for version in sorted({node.version for node in nodes}):
        for turn in range(1, turns + 1):
            here = [node for node in nodes if (node.version, node.turn) == (version, turn)]
            place = f"version={version}/turn={turn}/shard-0.parquet"
            verdicts = [row for node in here for row in verdict_rows(node) if node.kind != "context_overflow"]
            times = [
                {"node_id": row["node_id"], "test": row["test"], "cpu_ms": 5.0, "wall_ms": 6.5, "retried": False}
                for row in verdicts
            ]
            tables.write(run / f"{prefix}rollouts/{place}", tables.ROLLOUTS, map(rollout_row, here), made["generate"])
            tables.write(run / f"{prefix}verdicts/{place}", tables.VERDICTS, verdicts, made["execute"])
            tables.write(run / f"{prefix}test_times/{place}", tables.TEST_TIMES, times, made["execute"])
            tables.write(run / f"{prefix}feedback/{place}", tables.FEEDBACK, map(feedback_row, here), made["execute"])


def write_credit(run: Path, nodes: list[Node], settings: Mapping = {}) -> None:
    for version in sorted({node.version for node in nodes}):
        rows = [credit_row(node) for node in nodes if node.version == version]
        made = tables.provenance("credit", settings)
        tables.write(run / f"credit/version={version}/part-0.parquet", tables.CREDIT, rows, made)


def write_policy(run: Path, version: int, parent: str | None) -> str:
    folder = run / f"policies/version={version}"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"version": version}))
    return write_manifest(folder, version, parent, tables.provenance("update", {"lr": 1e-5})).hash


def write_update(run: Path, version: int, losses: list[float], tokens: list[int]) -> None:
    rows = [
        {
            "step": step,
            "epoch": 0,
            "rows": 8,
            "tokens": tokens[step],
            "forward_tokens": tokens[step],
            "loss": loss,
            "kl": None,
            "kl_start": 0.0,
            "entropy": 0.5,
            "ratio_mean": 1.0,
            "ratio_max": 1.25 + step,
            "clip_low": 0.0,
            "clip_high": 0.125,
            "is_ratio_mean": 1.0,
            "is_ratio_max": 1.5,
            "is_used_mean": 1.0,
            "is_clipped": 0.0,
            "logp_diff": 0.001,
            "grad_norm": 2.0 + step,
            "lr": 1e-5,
            "by_turn": [],
        }
        for step, loss in enumerate(losses)
    ]
    made = tables.provenance("update", {"lr": 1e-5, "loss": "dapo"})
    tables.write(run / f"updates/version={version}/part-0.parquet", tables.UPDATES, rows, made)


HARD = {"h4": "hard", "h5": "hard", "HumanEval/0": None, "HumanEval/1": None}


def write_evals(run: Path, benchmark: str, version: int, solved_at: Mapping[str, list[int | None]], k: int) -> None:
    """`solved_at`: for each task, the attempt that solved it in each chain."""
    rows = [
        {
            "task_id": task,
            "sample": sample,
            "difficulty": HARD.get(task, "easy"),
            "attempts": k if at is None else at,
            "solved_at": at,
            "first_kind": "passed" if at == 1 else "wrong_answer",
            "last_kind": "wrong_answer" if at is None else "passed",
        }
        for task, chains in solved_at.items()
        for sample, at in enumerate(chains)
    ]
    made = tables.provenance("evaluate", {"iterations": k, "samples": 1})
    tables.write(run / f"evals/benchmark={benchmark}/version={version}/part-0.parquet", tables.EVALS, rows, made)


def write_timing(run: Path, place: str, *phases: tuple[str, float, int, str]) -> None:
    path = run / "timings" / f"{place}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([dict(zip(("phase", "seconds", "count", "unit"), p, strict=True)) for p in phases]))


# The worked example of the method: own rewards 1, .5, 0, 0; MaRS gives credit 1, 1, 0, 1.
WORKED = [
    "2/2",
    ("1/2 wrong_answer", ["2/2", "2/2", "1/2 wrong_answer", "0/2 timeout"]),
    ("0/2 syntax_error", ["0/2 syntax_error"] * 4),
    ("0/2 runtime_error", ["2/2"] * 4),
]
SMALL = {
    0: {
        "worked": WORKED,
        "unjudged": ["?", "2/2", ("0/2 no_code", ["0/2 no_code", "1/2 wrong_answer", "?", "2/2"]), "2/2"],
        "pruned": [
            ("0/2 wrong_answer", ["0/2 wrong_answer !inter"] * 4),
            ("0/2 timeout !intra", ["1/2 timeout"] * 4),
            ("1/2 wrong_answer", ["2/2", "1/2 wrong_answer", "1/2 wrong_answer !intra", "0/2 context_overflow"]),
            ("0/2 wrong_answer !intra", ["0/2 wrong_answer !inter"] * 4),
        ],
    },
    1: {
        "worked": ["2/2", "2/2", "2/2", ("1/2 wrong_answer", ["2/2", "2/2", "2/2", "0/2 crash"])],
        "easy": ["2/2"] * 4,
    },
}
SMALL_EVALS = {
    ("heldout", 0): {"h1": [1], "h2": [2], "h3": [None], "h4": [3], "h5": [None]},
    ("heldout", 2): {"h1": [1], "h2": [1], "h3": [2], "h4": [None], "h5": [3]},
    ("humaneval", 0): {"HumanEval/0": [1, 2], "HumanEval/1": [None, 1]},
}


def small_nodes(versions: Iterable[int] = (0, 1)) -> list[Node]:
    return [node for v in versions for task, tree in SMALL[v].items() for node in walk(grow(v, task, tree))]


def small_run(run: Path, finished: bool = True) -> list[Node]:
    """Write the small run under `run`: two versions of two turns, or (not `finished`) version 0 up to its credit."""
    settings = {"generate": {"group_size": 4, "temperature": 0.8}, "execute": {"cpu_seconds": 4.0}}
    names = sorted({task for trees in SMALL.values() for task in trees})
    made = tables.provenance("tasks", {"source": "starter"})
    train = [task_row(name, f"Write f for {name}. {HOSTILE}") for name in names]
    heldout = [task_row(name, f"Write f for {name}.") for name in SMALL_EVALS["heldout", 0]]
    tables.write(run / "tasks/split=train/part-0.parquet", tables.TASKS, train, made)
    tables.write(run / "tasks/split=heldout/part-0.parquet", tables.TASKS, heldout, made)
    rejected = [{"task_id": "odd", "source": "starter", "reward": 0.5, "reason": "its reference fails test 1"}]
    tables.write(run / "rejected.parquet", tables.REJECTED, rejected, made)
    nodes = small_nodes((0, 1) if finished else (0,))
    write_trees(run, nodes, 2, settings=settings)
    write_credit(run, nodes, {"strategy": "mars", "prune": "inter+intra"})
    parent = write_policy(run, 0, None)
    write_timing(
        run,
        "generate/version=0/turn=1/shard-0",
        ("import vllm", 15.0, 0, ""),
        ("engine start", 7.0, 0, ""),
        ("first call", 8.0, 0, ""),
        ("sample", 2.0, 138, "tokens"),
    )
    write_timing(run, "execute/version=0/turn=1/shard-0", ("run", 4.0, 24, "tests"))
    if not finished:
        return nodes
    write_timing(run, "generate/version=0/turn=2/shard-0", ("import vllm", 10.0, 0, ""), ("sample", 3.0, 462, "tokens"))
    write_timing(run, "update/version=0", ("load", 1.0, 0, ""), ("train", 50.0, 5000, "tokens"))
    write_update(run, 0, [0.5, 0.25], [300, 100])
    write_update(run, 1, [], [])
    for version in (1, 2):
        parent = write_policy(run, version, parent)
    for (benchmark, version), solved_at in SMALL_EVALS.items():
        write_evals(run, benchmark, version, solved_at, 3)
    chains = []
    for version in (0, 2):
        for task, (at,) in SMALL_EVALS["heldout", version].items():
            tree: Tree = []
            for attempt in range(at or 3, 0, -1):
                text = "2/2" if attempt == at else "1/2 wrong_answer"
                tree = [(text, tree)]
            chains += walk(grow(version, task, tree))
    write_trees(run, chains, 3, "eval_", settings)
    return nodes


def large_run(run: Path, versions: int, tasks: int, group: int, turns: int, seed: int = 0) -> list[Node]:
    """Write a run of random trees: about versions * tasks * group * (1 + group * failing share) nodes for two turns."""
    rng = random.Random(seed)
    kinds = ["wrong_answer", "wrong_answer", "runtime_error", "timeout", "syntax_error", "no_code"]

    def tree(turn: int, skill: float) -> Tree:
        nodes: Tree = []
        for _ in range(group):
            if rng.random() < skill:
                nodes.append("5/5")
                continue
            kind = rng.choice(kinds)
            passed = rng.randrange(5) if kind == "wrong_answer" else 0
            pruned = " !intra" if rng.random() < 0.2 else ""
            nodes.append((f"{passed}/5 {kind}{pruned}", tree(turn + 1, skill + 0.1) if turn < turns else []))
        return nodes

    names = [f"task-{i:04d}" for i in range(tasks)]
    rows = [task_row(name, f"Write f for {name}.", 5) for name in names]
    tables.write(run / "tasks/split=train/part-0.parquet", tables.TASKS, rows, tables.provenance("tasks"))
    skill = {name: rng.random() * 0.8 for name in names}
    nodes = [
        node
        for version in range(versions)
        for name in names
        for node in walk(grow(version, name, tree(1, min(skill[name] + 0.05 * version, 0.95))))
    ]
    write_trees(run, nodes, turns)
    write_credit(run, nodes, {"strategy": "mars"})
    parent = None
    for version in range(versions + 1):
        parent = write_policy(run, version, parent)
    for version in range(versions):
        write_update(run, version, [rng.random() for _ in range(4)], [2000] * 4)
        for turn in range(1, turns + 1):
            write_timing(
                run,
                f"generate/version={version}/turn={turn}/shard-0",
                ("import vllm", 15.0, 0, ""),
                ("engine start", 7.0, 0, ""),
                ("sample", 60.0, 6000, "tokens"),
            )
            write_timing(run, f"execute/version={version}/turn={turn}/shard-0", ("run", 20.0, 640, "nodes"))
        write_timing(run, f"credit/version={version}", ("credit", 1.0, 640, "nodes"))
        write_timing(run, f"update/version={version}", ("load", 2.0, 0, ""), ("train", 70.0, 8000, "tokens"))
    for version in range(versions + 1):
        chances = [0.25 + 0.03 * version, 0.2, 0.1]
        solved = {}
        for i in range(40):
            at = next((k for k, p in enumerate(chances, 1) if rng.random() < p), None)
            solved[f"held-{i:02d}"] = [at]
        write_evals(run, "heldout", version, solved, 3)
    return nodes
