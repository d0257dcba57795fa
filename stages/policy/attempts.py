"""Plausible wrong solutions of a task: the failed attempts that the nano policy's lessons are made of.

A wrong solution is the reference with the mistakes of a pupil who has habits: takes `<=` for `<`, the wrong end of a
list, `min` for `max`. Each kind of mistake has a rate of its own, so a policy that learned from this pupil fails the
same way wherever such a step occurs, and can unlearn it everywhere.

Does not say whether a wrong solution fails a test (a few do not); see `observe`.
"""

import ast
import random
from collections.abc import Mapping, Sequence

# What is written in place of what.
_OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mod,
    ast.Mod: ast.FloorDiv,
    ast.Gt: ast.GtE,
    ast.Lt: ast.LtE,
    ast.GtE: ast.Gt,
    ast.LtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.In: ast.NotIn,
}
_NAMES = {"max": "min", "min": "max", "sum": "len", "len": "sum", "sorted": "list", "upper": "lower", "lower": "upper"}
_FORGOTTEN = {"abs", "count", "replace", "str", "list"}  # calls that are left out
# The shares of wrong solutions that kinds of mistakes are dealt, in turn.
RATES = (0.1, 0.25, 0.5, 0.8)


def _joins(node: ast.BinOp) -> bool:
    """Whether an addition joins texts or lists, so that order matters and there is no opposite."""
    sides = (node.left, node.right)
    return any(isinstance(s, ast.List) or (isinstance(s, ast.Constant) and isinstance(s.value, str)) for s in sides)


def _kind(node: ast.AST) -> str | None:
    """The kind of mistake that can be made at `node`, or None."""
    match node:
        case ast.BinOp(op=op) if type(op) in _OPERATORS:
            return "order" if _joins(node) else type(op).__name__
        case ast.Compare(ops=[op]) if type(op) in _OPERATORS:
            return type(op).__name__
        case ast.Slice(lower=None, upper=None, step=step) if step is not None:
            return f"step {ast.unparse(step)}"
        case ast.Slice(lower=lower, upper=upper, step=None) if (lower is None) != (upper is None):
            return ("from " if upper is None else "to ") + (
                "end" if isinstance(lower or upper, ast.UnaryOp) else "start"
            )
        case ast.Subscript(slice=ast.Constant(value=0)) | ast.Subscript(slice=ast.UnaryOp(operand=ast.Constant())):
            return f"item {ast.unparse(node.slice)}"
        case ast.UnaryOp(op=ast.USub(), operand=ast.Name()):
            return "sign"
        case ast.Call(func=ast.Name(id=name), args=[_, *_]) if name in _NAMES or name in _FORGOTTEN:
            return name
        case ast.Call(func=ast.Attribute(attr=name)) if name in _NAMES or name in _FORGOTTEN:
            return name
    return None


def _mistake(node: ast.AST, kind: str) -> ast.AST:
    """`node` with its kind of mistake made; the node itself may be changed."""
    match node:
        case ast.BinOp(left=left, right=right) if kind == "order":
            node.left, node.right = right, left
        case ast.BinOp(op=op):
            node.op = _OPERATORS[type(op)]()
        case ast.Compare(ops=[op]):
            node.ops = [_OPERATORS[type(op)]()]
        case ast.Slice(step=None):
            node.lower, node.upper = node.upper, node.lower
        case ast.Slice():
            node.lower, node.step = ast.Constant(1), None
        case ast.Subscript():
            node.slice = ast.Constant(1)
        case ast.UnaryOp(operand=operand):
            return operand
        case ast.Call(func=ast.Name(id=name), args=[first, *_]):
            if name not in _NAMES:
                return first
            node.func.id = _NAMES[name]
        case ast.Call(func=ast.Attribute(attr=name, value=value)):
            if name not in _NAMES:
                return value
            node.func.attr = _NAMES[name]
    return node


class _Pupil(ast.NodeTransformer):
    def __init__(self, rates: Mapping[str, float], rng: random.Random) -> None:
        self.rates, self.rng = rates, rng

    def visit(self, node: ast.AST) -> ast.AST:
        kind = _kind(node)
        self.generic_visit(node)
        if kind is None or self.rng.random() >= self.rates.get(kind, 0.0):
            return node
        return _mistake(node, kind)


def kinds(code: str) -> list[str]:
    """The kinds of mistakes that can be made in `code`; none where it is not valid Python."""
    try:
        return [kind for node in ast.walk(ast.parse(code)) if (kind := _kind(node))]
    except (SyntaxError, ValueError):
        return []


def habits(codes: Sequence[str], rng: random.Random) -> dict[str, float]:
    """Kind of mistake -> rate, for the kinds that occur in `codes`: RATES dealt evenly, in an order of `rng`."""
    found = sorted({kind for code in codes for kind in kinds(code)})
    rng.shuffle(found)
    return {kind: RATES[i % len(RATES)] for i, kind in enumerate(found)}


def attempt(code: str, rates: Mapping[str, float], rng: random.Random) -> str:
    """`code` as a pupil with these habits writes it, in the layout of `ast.unparse`; at rates of 0 it stays right."""
    tree = _Pupil(rates, rng).visit(ast.parse(code))
    return ast.unparse(ast.fix_missing_locations(tree))
