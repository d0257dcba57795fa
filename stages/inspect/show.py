"""Answers in the terminal: tables, rollout trees and single nodes, with `rich`.

Text from a run is printed as it is, never read as markup.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stages.common.runs import Query

if TYPE_CHECKING:
    from rich.console import Console


def cell(value: object) -> str:
    """A value as a table shows it."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def rows(query: Query, console: "Console", limit: int, title: str) -> None:
    """A query's rows as a table, the first `limit` of them."""
    from rich.table import Table
    from rich.text import Text

    if not query.rows:
        console.print(f"{title}: nothing found", highlight=False)
        return
    table = Table(title=title, title_justify="left", title_style="bold")
    for index, column in enumerate(query.columns):
        words = isinstance(query.rows[0][index], str)
        table.add_column(column.replace("_", " "), justify="left" if words else "right", overflow="fold")
    for row in query.rows[:limit]:
        table.add_row(*(Text(cell(value)) for value in row))
    console.print(table)
    if len(query.rows) > limit:
        console.print(f"{limit:,} of {len(query.rows):,} rows; --limit shows more", highlight=False)


def colour(reward: float | None) -> str:
    """Red for nothing passed, yellow for some, green for all, dim for not judged."""
    if reward is None:
        return "dim"
    return "green" if reward == 1 else "red" if reward == 0 else "yellow"


def node_line(node: dict) -> str:
    """A node of a tree in one line."""
    parts = [node["node_id"].rsplit("/", 1)[-1]]
    if node["kind"] is None:
        return f"{parts[0]}  not judged yet"
    reward = "no reward" if node["reward"] is None else f"{node['passed']}/{node['total']}"
    parts += [reward, node["kind"].replace("_", " ")]
    if node["credit"] is not None:
        parts.append(f"credit {node['credit']:.3f}, advantage {node['advantage']:+.3f}")
    if node["kept"] is False:
        parts.append(f"pruned: {node['prune_reason']}")
    return "  ".join(parts)


def trees(nodes: Sequence[dict], console: "Console", task: str) -> None:
    """The trees of one task, one for each version."""
    from rich.text import Text
    from rich.tree import Tree

    for version in dict.fromkeys(node["version"] for node in nodes):
        here = [node for node in nodes if node["version"] == version]
        root = Tree(Text(f"{task}, version {version}: {len(here)} nodes", style="bold"))
        branches = {}
        for node in sorted(here, key=lambda node: (node["turn"], node["sample"])):
            above = branches.get(node["parent_id"], root)
            branches[node["node_id"]] = above.add(Text(node_line(node), style=colour(node["reward"])))
        console.print(root)


def node(found: dict, verdicts: Query, console: "Console", limit: int) -> None:
    """One node: prompt, code, verdicts, feedback, and its numbers."""
    from rich.panel import Panel
    from rich.syntax import Syntax
    from rich.text import Text

    console.print(Panel(Text(found["prompt"]), title=f"prompt of {found['node_id']}", title_align="left"))
    if found["code"] is None:
        console.print(Panel(Text(found["text"] or "(empty)"), title="reply, without code", title_align="left"))
    else:
        console.print(Panel(Syntax(found["code"], "python", theme="ansi_dark"), title="code", title_align="left"))
    rows(verdicts, console, limit, "verdicts")
    if found["feedback"] is not None:
        console.print(Panel(Text(found["feedback"]), title="feedback", title_align="left"))
    left_out = ("prompt", "text", "code", "feedback")
    facts = [(name, str(value) if name == "seed" else value) for name, value in found.items() if name not in left_out]
    rows(
        Query("", ("what", "value"), [(name.replace("_", " "), cell(value)) for name, value in facts]),
        console,
        99,
        "facts",
    )
