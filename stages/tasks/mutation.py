"""Does a task's reference change its arguments in a way that its tests can see?

Calls reach a candidate with copies of their arguments; changes come back only for tasks marked `inplace`. The rule, on
syntax trees alone: the reference may change one of its parameters (an assignment to an item or attribute, `del`, `+=`,
a method such as `append`, or a function such as `random.shuffle`, on the parameter, on a part of it, or on a loop
variable over it), **and** some test uses a variable that it also passes to the entry point. Both are needed: a solution
that sorts its argument while the tests only look at the result gets copies.
"""

import ast

_METHODS = {
    *("append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse"),
    *("update", "setdefault", "popitem", "add", "discard", "appendleft", "popleft", "extendleft", "rotate"),
    *("difference_update", "intersection_update", "symmetric_difference_update", "__setitem__", "__delitem__"),
}
_FUNCTIONS = {
    *("shuffle", "heapify", "heappush", "heappop", "heapreplace", "heappushpop"),
    *("insort", "insort_left", "insort_right"),
}


def _root(node: ast.AST) -> str | None:
    """The variable that `a`, `a[i]`, `a.b[i:j]` are parts of."""
    while isinstance(node, ast.Subscript | ast.Attribute | ast.Starred):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _aliases(function: ast.FunctionDef) -> set[str]:
    """The parameters, and variables that may hold them or parts of them."""
    args = function.args
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    names = {a.arg for a in every if a is not None}
    while True:
        more = set()
        for node in ast.walk(function):
            if isinstance(node, ast.For) and any(_root(n) in names for n in _parts(node.iter)):
                more |= {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
            elif isinstance(node, ast.Assign) and _root(node.value) in names:
                more |= {t.id for t in node.targets if isinstance(t, ast.Name)}
        if more <= names:
            return names
        names |= more


def _parts(node: ast.AST) -> list[ast.AST]:
    """What a loop goes over: `a`, also inside enumerate(a), zip(a, b), reversed(a)."""
    return [node, *node.args] if isinstance(node, ast.Call) else [node]


def _changes(function: ast.FunctionDef, names: set[str]) -> bool:
    for node in ast.walk(function):
        targets = []
        if isinstance(node, ast.Assign | ast.Delete):
            targets = [n for t in node.targets for n in (t.elts if isinstance(t, ast.Tuple | ast.List) else [t])]
            targets = [t for t in targets if isinstance(t, ast.Subscript | ast.Attribute)]
        elif isinstance(node, ast.AugAssign):
            targets = [node.target]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
            targets = [node.func.value]
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
            if called in _FUNCTIONS:
                targets = [*targets, *node.args]
        if any(_root(target) in names for target in targets):
            return True
    return False


def may_change(tree: ast.Module) -> bool:
    """Whether a function of the module may change one of its parameters (its `self` not counted)."""
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    return any(_changes(f, _aliases(f) - {"self", "cls"}) for f in functions)


def _observes(code: ast.Module, entry_point: str) -> bool:
    """Whether a variable passed to the entry point occurs again in the test."""
    names = [n.id for n in ast.walk(code) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    passed: list[str] = []
    for node in ast.walk(code):
        called = getattr(node.func, "id", getattr(node.func, "attr", None)) if isinstance(node, ast.Call) else None
        if called == entry_point:
            values = [*node.args, *(keyword.value for keyword in node.keywords)]
            passed += [v.id for v in values if isinstance(v, ast.Name)]
    return any(names.count(n) > passed.count(n) for n in set(passed))


def changes_arguments(reference: ast.Module, entry_point: str, tests: list[str]) -> bool:
    """Whether changes to arguments have to come back to the tests of this task (the rule of this module)."""
    return may_change(reference) and any(_observes(ast.parse(code), entry_point) for code in tests)
