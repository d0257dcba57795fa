"""Rewrites `assert` in tests, so that a failure can say what was called, what came back and what was expected.

``assert left == right`` becomes ``assert compare(7, left, right)``: both sides are evaluated once, in order, and
noted when they do not fit. Any other condition becomes ``assert truth(7, condition)``. Run alone: no.
"""

import ast
import operator

_OPERATORS = {
    "Eq": ("==", operator.eq),
    "NotEq": ("!=", operator.ne),
    "Lt": ("<", operator.lt),
    "LtE": ("<=", operator.le),
    "Gt": (">", operator.gt),
    "GtE": (">=", operator.ge),
    "Is": ("is", operator.is_),
    "IsNot": ("is not", operator.is_not),
    "In": ("in", lambda a, b: a in b),
    "NotIn": ("not in", lambda a, b: a not in b),
}
_MAX_BITS, _LOOKED_AT = 200_000, 100_000  # of one integer, and values of one structure
COMPARE, TRUTH = "__murphy_compare__", "__murphy_truth__"
FILE = "test_solution.py"  # the tests, in their own process


class AssertFailed(AssertionError):
    """An assert of the tests did not hold."""


class Notes:
    """What the latest call gave and which assert failed."""

    def __init__(self):
        self.sites = []  # (condition as a syntax tree, operator, swapped) of each assert
        self.asserts, self.withs = [], []  # (first line, last line) of each `assert`, of each `with`
        self.call = None  # (label, args, kwargs, result) of the latest call on the candidate
        self.failed = None  # (source, got, expected) texts of the assert that failed

    def on_call(self, *call):
        """Keep the latest call."""
        self.call = call

    def call_text(self):
        """The latest call, as it would be written, or None."""
        if self.call is None:
            return None
        label, args, kwargs, _ = self.call
        parts = [short(a, 200) for a in args] + [f"{k}={short(v, 200)}" for k, v in kwargs.items()]
        return f"{label}({', '.join(parts)})"

    def may_swallow(self, error, frame):
        """Whether a `with` of the tests, in `frame`, may end `error` without leaving out an assert.

        It may not when the error came while an assert was evaluated, or before another one in the same `with`.
        """
        if isinstance(error, AssertionError) or not isinstance(error, Exception):
            return False
        step = error.__traceback__
        while step is not None:
            if step.tb_frame.f_code.co_filename == FILE:
                line = step.tb_lineno
                if any(first <= line <= last for first, last in self.asserts):
                    return False
                if step.tb_frame is frame:
                    ends = [last for first, last in self.withs if first == frame.f_lineno]
                    if any(line < first <= last <= end for first, last in self.asserts for end in ends):
                        return False
            step = step.tb_next
        return True

    def compare(self, site, left, right):
        """What a rewritten comparison calls."""
        condition, symbol, swapped = self.sites[site]
        if _OPERATORS[symbol][1](left, right):
            return True
        got, expected = (right, left) if swapped else (left, right)
        text = short(expected) if symbol == "Eq" else f"{_OPERATORS[symbol][0]} {short(expected)}"
        self.failed = (_source(condition), short(got), text)
        raise AssertFailed

    def truth(self, site, value):
        """What any other rewritten condition calls."""
        if value:
            return True
        source = _source(self.sites[site][0])
        self.failed = (source, short(self.call[3]) if self.call else short(value), None)
        raise AssertFailed


def _has_endless_digits(value):
    """Whether `repr` would write integers so large that it takes longer than any test: its time is quadratic."""
    found, seen = [value], 0
    while found and seen < _LOOKED_AT:
        item = found.pop()
        seen += 1
        kind = type(item)
        if kind is int and item.bit_length() > _MAX_BITS:
            return True
        if kind in (list, tuple, set, frozenset):
            found += item
        elif kind is dict:
            found += item
            found += item.values()
    return False


def short(value, limit=400):
    """`repr`, at most `limit` characters, head and tail; never raises an Exception."""
    try:
        endless = _has_endless_digits(value)
        size = value.bit_length() if type(value) is int else 0
        text = f"<{type(value).__name__} of {size} bits>" if endless and size else "<very large integers>"
        text = text if endless else repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= limit else f"{text[: limit * 2 // 3]} ... {text[-limit // 3 :]}"


def _source(condition):
    """The text of an assert's condition, at most about 600 characters."""
    source = ast.unparse(condition)
    return source if len(source) <= 600 else source[:400] + " ... " + source[-200:]


class _Rewriter(ast.NodeTransformer):
    def __init__(self, notes):
        self.notes = notes

    def visit_With(self, node):
        self.notes.withs.append((node.lineno, node.end_lineno))
        return self.generic_visit(node)

    def visit_Assert(self, node):
        self.notes.asserts.append((node.lineno, node.end_lineno))
        number = ast.Constant(len(self.notes.sites))
        test = node.test
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            left, right = test.left, test.comparators[0]
            calls = [any(isinstance(n, ast.Call) for n in ast.walk(side)) for side in (left, right)]
            self.notes.sites.append((test, type(test.ops[0]).__name__, calls == [False, True]))
            call = ast.Call(ast.Name(COMPARE, ast.Load()), [number, left, right], [])
        else:
            self.notes.sites.append((test, "", False))
            call = ast.Call(ast.Name(TRUTH, ast.Load()), [number, test], [])
        return ast.copy_location(ast.Assert(ast.copy_location(call, test), node.msg), node)


def compiled(source, filename, notes):
    """Code object of `source` with its asserts rewritten to report to `notes`."""
    tree = ast.fix_missing_locations(_Rewriter(notes).visit(ast.parse(source)))
    return compile(tree, filename, "exec", dont_inherit=True)
