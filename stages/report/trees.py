"""Whole trees, packed small for the page's tree explorer.

The pack is JSON, gzipped and in base64. Texts stand once in a list and are named by their place in it (siblings share
their prompt), nodes are lists in the order of ``fields``; a node's parent comes before it. The page unpacks it and
draws one tree at a time. Takes the trees with most to tell where not all are wanted.
"""

import base64
import gzip
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from stages.common import runs
from stages.report.queries import FOLDER

if TYPE_CHECKING:
    import duckdb

FIELDS = (
    *("parent", "turn", "sample", "id", "kind", "reward", "passed", "total", "hidden_passed", "hidden_total", "mode"),
    *("credit", "advantage", "group_mean", "group_std", "kept", "prune_reason", "finish_reason", "tokens"),
    *("prompt", "text", "code", "feedback", "verdicts"),
)
LONGEST_TEXT = 20_000  # characters; a longer text is cut on the page, and says so
PARTS = {"training": "", "evaluation": "eval_"}  # prefix of the tables


@dataclass
class Texts:
    """Texts by number, each kept once."""

    texts: list[str] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)

    def place(self, text: str | None) -> int | None:
        """The number of `text`, which is added when new."""
        if text is None:
            return None
        if len(text) > LONGEST_TEXT:
            text = text[:LONGEST_TEXT] + f"\n[{len(text) - LONGEST_TEXT:,} more characters are in the tables]"
        if text not in self.places:
            self.places[text] = len(self.texts)
            self.texts.append(text)
        return self.places[text]


def choose(trees: list[dict], limit: int | None) -> list[dict]:
    """At most `limit` of `trees`, shared evenly among parts and versions.

    Trees in which feedback led to a first solution come first, then those whose roots are solved in part, then the
    rest; among equals those with more nodes, then by task id.
    """
    if limit is None or len(trees) <= limit:
        return trees

    def rank(tree: dict) -> tuple:
        rescued = (tree["solved_in"] or 0) > 1
        mixed = 0 < tree["roots_solved"] < tree["roots"]
        return (not rescued, not mixed, -tree["nodes"], tree["task_id"])

    groups: dict[tuple[str, int], list[dict]] = {(tree["part"], tree["version"]): [] for tree in trees}
    for tree in sorted(trees, key=rank):
        groups[tree["part"], tree["version"]].append(tree)
    places = sorted((place, index) for index, group in enumerate(groups.values()) for place in range(len(group)))
    ordered = list(groups.values())
    taken = {id(ordered[index][place]) for place, index in places[:limit]}
    return [tree for tree in trees if id(tree) in taken]


def tree_list(connection: "duckdb.DuckDBPyConnection", run: Path) -> list[dict]:
    """Every tree of the run: part, version, task_id, and what :func:`choose` looks at."""
    text = (FOLDER / "trees.sql").read_text()
    return [
        {"part": part, **row}
        for part, prefix in PARTS.items()
        for row in runs.query(connection, run, text.replace("$feedback", f"{prefix}feedback")).dicts()
    ]


def _nodes(connection: "duckdb.DuckDBPyConnection", run: Path, prefix: str) -> list[dict]:
    text = (FOLDER / "nodes.sql").read_text()
    for table in ("rollouts", "feedback"):
        text = text.replace(f"${table}", prefix + table)
    # Evaluation gives no credit; an empty table stands for it.
    text = text.replace(
        "'$credit/**/*.parquet'", f"({runs.empty_select('credit')})" if prefix else "'credit/**/*.parquet'"
    )
    return runs.query(connection, run, text).dicts()


def _verdicts(connection: "duckdb.DuckDBPyConnection", run: Path, prefix: str, texts: Texts) -> dict[tuple, list]:
    sql = (
        "select version, node_id, test, visible, kind, message, call, got, expected "
        f"from '{prefix}verdicts/**/*.parquet' semi join chosen_nodes using (version, node_id) "
        "order by version, node_id, test"
    )
    found: dict[tuple, list] = {}
    for version, node_id, test, visible, *rest in runs.query(connection, run, sql).rows:
        found.setdefault((version, node_id), []).append([test, visible, *map(texts.place, rest)])
    return found


def _tasks(connection: "duckdb.DuckDBPyConnection", run: Path, names: set[str], texts: Texts) -> dict[str, dict]:
    sql = "select task_id, prompt, difficulty, reference, tests from 'tasks/**/*.parquet' order by task_id, split"
    found: dict[str, dict] = {}
    for row in runs.query(connection, run, sql).dicts():
        if row["task_id"] in names:
            tests = [test["code"] or f"input:\n{test['stdin']}\noutput:\n{test['stdout']}" for test in row["tests"]]
            found[row["task_id"]] = {
                "prompt": texts.place(row["prompt"]),
                "difficulty": row["difficulty"],
                "reference": texts.place(row["reference"]),
                "tests": [texts.place(test) for test in tests],
            }
    return found


def _tree(rows: list[dict], verdicts: dict[tuple, list], texts: Texts) -> list[list]:
    """The rows of one tree as lists in the order of FIELDS, parents first, siblings by sample."""
    by_id = {row["node_id"]: row for row in rows}
    place: dict[str, int] = {}
    nodes = []
    for row in sorted(rows, key=lambda row: (row["turn"], place_of(row, by_id))):
        place[row["node_id"]] = len(nodes)
        node = {
            **row,
            "id": row["node_id"],
            "parent": place.get(row["parent_id"]),
            "verdicts": verdicts.get((row["version"], row["node_id"]), []),
            **{name: texts.place(row[name]) for name in ("kind", "prompt", "text", "code", "feedback")},
        }
        nodes.append([node[name] for name in FIELDS])
    return nodes


def place_of(row: dict, by_id: dict[str, dict]) -> tuple[int, ...]:
    """The samples on the way from the root to a node."""
    parent = by_id.get(row["parent_id"])
    return (*(place_of(parent, by_id) if parent else ()), row["sample"])


def pack(connection: "duckdb.DuckDBPyConnection", run: Path, limit: int | None) -> tuple[dict, int]:
    """The chosen trees with their texts, ready for JSON, and the number of trees that there are."""
    everything = tree_list(connection, run)
    chosen = choose(everything, limit)
    texts, trees = Texts(), []
    for part, prefix in PARTS.items():
        connection.execute("create or replace temp table chosen (version BIGINT, task_id VARCHAR)")
        pairs = [(tree["version"], tree["task_id"]) for tree in chosen if tree["part"] == part]
        if not pairs:
            continue
        connection.executemany("insert into chosen values (?, ?)", pairs)
        rows: dict[tuple[int, str], list[dict]] = {}
        for row in _nodes(connection, run, prefix):
            rows.setdefault((row["version"], row["task_id"]), []).append(row)
        connection.execute("create or replace temp table chosen_nodes (version BIGINT, node_id VARCHAR)")
        names = [(row["version"], row["node_id"]) for tree in rows.values() for row in tree]
        _insert(connection, names)
        verdicts = _verdicts(connection, run, prefix, texts)
        for pair, tree_rows in rows.items():
            nodes = _tree(tree_rows, verdicts, texts)
            trees.append({"part": part, "version": pair[0], "task": pair[1], "nodes": nodes})
    tasks = _tasks(connection, run, {tree["task"] for tree in trees}, texts)
    return {"fields": FIELDS, "trees": trees, "tasks": tasks, "texts": texts.texts}, len(everything)


def _insert(connection: "duckdb.DuckDBPyConnection", names: list[tuple[int, str]]) -> None:
    """Fill chosen_nodes from an Arrow table: row by row would take seconds for thousands of nodes."""
    import pyarrow as pa

    arrow = pa.table({"version": [version for version, _ in names], "node_id": [name for _, name in names]})
    connection.register("names", arrow)
    connection.execute("insert into chosen_nodes select version, node_id from names")
    connection.unregister("names")


def compressed(data: object) -> str:
    """`data` as JSON, gzipped, in base64; the same data always gives the same text."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), mtime=0)).decode()
