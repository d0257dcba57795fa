"""What a small wrong solution does on a task's tests, and the feedback on it, in the executor's words.

For the nano policy's lessons only, so that its second turn has seen true feedback: "got" is what the attempt returned.
This is no sandbox. It takes only functions of a few harmless expressions (no loops, imports, attributes but a handful
of text and list methods, no large numbers), made by `attempts` from a reference, and gives None for everything else.
Completions of a model never come here; they are judged by the execute stage, whose wording is kept equal by a test.
"""

import ast
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_BUILTINS = {f.__name__: f for f in (abs, bool, int, len, list, max, min, round, sorted, str, sum)}
_METHODS = {"count", "lower", "replace", "upper"}
_NODES = (
    *(ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Assign, ast.Name, ast.Constant),
    *(ast.expr_context, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Subscript, ast.Slice),
    *(ast.Call, ast.Attribute, ast.List, ast.Tuple, ast.ListComp, ast.comprehension),
    *(ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.unaryop, ast.boolop, ast.cmpop),
)
_MOST_NODES, _MOST_PRODUCTS, _LARGEST = 120, 4, 20


@dataclass(frozen=True)
class Outcome:
    """One test of one attempt: whether it passed, the call, what came back (or what was raised), what was expected."""

    passed: bool
    call: str
    got: str | None
    raised: str | None
    expected: str


def harmless(code: str) -> bool:
    """Whether `code` is one function of the expressions that may be run here."""
    try:
        nodes = list(ast.walk(ast.parse(code)))
    except (SyntaxError, ValueError):
        return False
    if len(nodes) > _MOST_NODES or sum(isinstance(n, ast.Mult) for n in nodes) > _MOST_PRODUCTS:
        return False
    functions = [n for n in nodes if isinstance(n, ast.FunctionDef)]
    body = nodes[0].body
    if len(functions) != 1 or len(body) != 1 or functions[0].decorator_list or functions[0].returns:
        return False
    return all(_allowed(node) for node in nodes)


def _allowed(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr=name):
            return name in _METHODS
        case ast.Call(func=func):  # never itself: recursion may take for ever
            return isinstance(func, ast.Attribute) or (isinstance(func, ast.Name) and func.id in _BUILTINS)
        case ast.Name(id=name):
            return not name.startswith("_")
        case ast.arg(arg=name):
            return not name.startswith("_") and node.annotation is None
        case ast.Constant(value=value):
            return abs(value) <= _LARGEST if isinstance(value, int) else isinstance(value, str) and len(value) <= 40
        case ast.arguments():
            return not (node.defaults or node.kw_defaults or node.vararg or node.kwarg)
    return isinstance(node, _NODES)


def _question(test: Mapping) -> tuple[str, list, object] | None:
    """Name, arguments and answer of a test `assert f(...) == value` whose parts are literals, else None."""
    try:
        match ast.parse(test["code"] or "").body:
            case [
                ast.Assert(test=ast.Compare(left=ast.Call(ast.Name(name), args, []), ops=[ast.Eq()], comparators=[to]))
            ]:
                return name, [ast.literal_eval(arg) for arg in args], ast.literal_eval(to)
    except (SyntaxError, ValueError):
        pass
    return None


def outcomes(code: str, tests: Sequence[Mapping]) -> list[Outcome] | None:
    """What `code` does on each test, or None where it, or a test, is not of the kind that may be run here."""
    questions = [_question(test) for test in tests]
    if None in questions or not harmless(code):
        return None
    space: dict[str, object] = {"__builtins__": _BUILTINS}
    exec(compile(code, "<attempt>", "exec"), space)
    found = []
    for name, args, answer in questions:
        if name not in space or name == "__builtins__":
            return None
        call, got, raised, same = f"{name}({', '.join(map(repr, args))})", None, None, False
        try:
            value = space[name](*args)
            got, same = repr(value), type(value) is type(answer) and value == answer
        except Exception as error:  # whatever the attempt raises is its outcome
            raised = _raised(error, code)
        found.append(Outcome(same, call, got, raised, repr(answer)))
    return found


def _raised(error: Exception, code: str) -> str:
    lines = code.splitlines()
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "<attempt>"]
    shown = [f"line {frame.lineno}, in {frame.name}\n  {lines[frame.lineno - 1].strip()}" for frame in frames]
    return "\n".join([f"{type(error).__name__}: {error}", *shown])


def feedback(found: Sequence[Outcome], tests: Sequence[Mapping]) -> str:
    """The executor's feedback on an attempt with these outcomes, uncut: visible tests quoted, hidden ones counted."""
    parts = [f"{sum(o.passed for o in found)} of {len(found)} tests passed."]
    for number, (outcome, test) in enumerate(zip(found, tests, strict=True), 1):
        if outcome.passed or not test["visible"]:
            continue
        lines = [test["code"]]
        if outcome.raised is not None:
            lines += f"raised: {outcome.raised}".split("\n")
        else:
            lines += [f"call: {outcome.call}"] if outcome.call not in test["code"] else []
            lines += [f"got: {outcome.got}", f"expected: {outcome.expected}"]
        parts.append("\n".join([f"Test {number} failed:", *(f"  {line}" for line in lines)]))
    hidden = [o for o, test in zip(found, tests, strict=True) if not test["visible"]]
    if hidden:
        counts = Counter("runtime error" if o.raised else "wrong answer" for o in hidden if not o.passed)
        failed = "; " + ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items())) if counts else ""
        parts.append(f"Hidden tests: {sum(o.passed for o in hidden)} of {len(hidden)} passed{failed}.")
    return "\n\n".join(parts)
