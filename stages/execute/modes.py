"""Which way a task is judged: from the task alone, never from what a candidate does.

``answer_blind``: the tests run in a process that does not hold the candidate's code. ``stdio``: a whole program, its
output compared outside. ``in_process``: tests and candidate in one process of its own sandbox, because the tests reach
into the candidate (patching, captured output, fixtures, objects compared by methods of the candidate's classes); such
a verdict can be forged from inside, and the row says so.
"""

import ast
import re

ANSWER_BLIND, STDIO, IN_PROCESS, NONE = "answer_blind", "stdio", "in_process", "none"

# What one process has, and two do not share: files, environment, streams, patched names.
_SHARED_STATE = re.compile(
    r"\b(redirect_stdout|redirect_stderr|patch\(|patch\.object|MagicMock|StringIO|BytesIO|sys\.std(in|out|err)\s*=|"
    r"builtins\.(input|print|open)\s*=|open\(|tempfile|os\.environ|async\s+(for|with))"
)
# What a pytest file does beyond that to reach into the program.
_REACHES_IN = re.compile(
    r"\b(monkeypatch|capsys|capfd|caplog|mock\.|asyncio|async\s+def|await|inspect\.|importlib|__code__|__globals__|"
    r"recwarn|tmp_path|tmpdir|warns\(|getsource|doctest|subprocess)"
)
# Bases that bring no operators along: what a class has of them it defines itself.
_BARE_BASES = {"object", "ABC", "Generic", "Protocol", "Exception", "ValueError", "Enum", "TypedDict", "metaclass"}
_COMPARISONS = {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"}


def _tree(source: str | None) -> ast.Module | None:
    try:
        return ast.parse(source) if source else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def defines_classes(reference: str | None) -> bool | None:
    """Whether the reference solution defines classes; None where there is no reference to look at."""
    tree = _tree(reference)
    return None if tree is None else any(isinstance(node, ast.ClassDef) for node in ast.walk(tree))


def operators_of(reference: str | None) -> list[str] | None:
    """Names like ``__add__`` that classes of the reference define: what tests may ask of a candidate's objects.

    None, for any, where there is no reference to look at or a class has bases whose methods are not in sight.
    """
    tree = _tree(reference)
    if tree is None:
        return None
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    known = {node.name for node in classes} | _BARE_BASES
    found = set()
    for node in classes:
        if any(ast.unparse(base).partition("[")[0].rpartition(".")[2] not in known for base in node.bases):
            return None
        for step in node.body:
            if isinstance(step, ast.FunctionDef):
                found.add(step.name)
            elif isinstance(step, ast.Assign):
                found |= {target.id for target in step.targets if isinstance(target, ast.Name)}
    return sorted(name for name in found if name.startswith("__") and name.endswith("__"))


def _compares_itself(reference: str | None, tests: str) -> bool:
    """Whether a class that the tests name says itself, in the reference, when its objects are equal or in order."""
    for node in ast.walk(_tree(reference) or ast.Module([], [])):
        if isinstance(node, ast.ClassDef) and re.search(rf"\b{re.escape(node.name)}\b", tests):
            names = {f.name for f in node.body if isinstance(f, ast.FunctionDef)}
            marks = " ".join(ast.unparse(d) for d in node.decorator_list)
            if names & _COMPARISONS or "dataclass" in marks or "total_ordering" in marks:
                return True
    return False


def _has_fixtures(tree: ast.Module) -> bool:
    """Whether tests ask for fixtures, or subclass what they import from the solution."""
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "solution":
            imported |= {a.asname or a.name for a in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            marks = " ".join(ast.unparse(d) for d in node.decorator_list)
            if "fixture" in marks:
                return True
            if node.name.startswith("test"):
                wanted = {a.arg for a in node.args.args} - {"self", "cls"}
                named = set(re.findall(r"\w+", marks)) if "parametrize" in marks else set()
                if wanted - named:
                    return True
        if isinstance(node, ast.ClassDef):
            bases = {n.id for b in node.bases for n in ast.walk(b) if isinstance(n, ast.Name)}
            if bases & (imported | {"solution"}):
                return True
    return False


def mode_of(task: dict) -> str:
    """The mode of a task (a row of the TASKS table)."""
    if task["kind"] == "stdio":
        return STDIO
    if task["kind"] == "unittest":
        return IN_PROCESS
    text = "\n".join([task["setup"] or "", *(t["code"] or "" for t in task["tests"])])
    if _SHARED_STATE.search(text):
        return IN_PROCESS
    if task["kind"] == "pytest":
        tree = _tree(task["setup"])
        if _REACHES_IN.search(text) or (tree is not None and _has_fixtures(tree)):
            return IN_PROCESS
    return IN_PROCESS if _compares_itself(task["reference"], text) else ANSWER_BLIND
