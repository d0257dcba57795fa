"""A program that does nothing, which no task's tests should be content with.

It is the reference solution with the body of every function taken out, so that all names are there. Where it passes,
any program is paid: tests that bring their own solution along, or look at no result. Run alone: no.
"""

import ast
from collections.abc import Mapping


class _Emptied(ast.NodeTransformer):
    def __init__(self) -> None:
        self.functions = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.functions += 1
        node.body = [ast.Pass()]
        return node

    visit_AsyncFunctionDef = visit_FunctionDef


def hollow(task: Mapping) -> str | None:
    """The program for a task (a row of TASKS); None where there is no reference, or no function in it."""
    if task["reference"] is None:
        return None
    if task["kind"] == "stdio":
        return "pass\n"
    try:
        tree, emptied = ast.parse(task["reference"]), _Emptied()
        program = ast.unparse(emptied.visit(tree)) + "\n"
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return program if emptied.functions else None
