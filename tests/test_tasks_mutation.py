"""When a task's arguments have to come back: the reference changes them and a test looks."""

import ast

import pytest

from stages.tasks.mutation import changes_arguments, may_change

CHANGES = {
    "item": "def f(a):\n    a[0] = 1",
    "part of an item": "def f(a):\n    a[0][1] = 1",
    "slice": "def f(a):\n    a[:] = []",
    "attribute": "def f(a):\n    a.left = None",
    "del": "def f(a):\n    del a[0]",
    "augmented": "def f(a):\n    a += [1]",
    "method": "def f(a):\n    a.sort()",
    "method of a part": "def f(a):\n    a['x'].append(1)",
    "swap": "def f(a, i, j):\n    a[i], a[j] = a[j], a[i]",
    "heap": "import heapq\ndef f(a):\n    heapq.heapify(a)",
    "shuffle": "from random import shuffle\ndef f(a):\n    shuffle(a)",
    "loop variable": "def f(a):\n    for row in a:\n        row.sort()",
    "enumerated loop variable": "def f(a):\n    for i, row in enumerate(a):\n        row.reverse()",
    "alias": "def f(a):\n    b = a\n    b.append(1)",
    "alias of a part": "def f(node):\n    last = node.next\n    last.next = None",
    "helper": "def f(a):\n    g(a)\ndef g(b):\n    b.clear()",
    "method of a class": "class Box:\n    def put(self, a):\n        a.pop()",
    "varargs": "def f(*a):\n    a[0].append(1)",
}
KEEPS = {
    "pure": "def f(a):\n    return sorted(a)",
    "copy": "def f(a):\n    b = list(a)\n    b.sort()\n    return b",
    "own list": "def f(a):\n    r = []\n    for x in a:\n        r.append(x)\n    return r",
    "own state": "class Box:\n    def put(self, x):\n        self.items.append(x)",
    "lookup": "def f(a):\n    return a.get(1), a.count(2), a.copy()",
    "local alias of a new value": "def f(a):\n    b = a[:1] + [2]\n    b[0] = 3\n    return b",
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes(name):
    assert may_change(ast.parse(CHANGES[name]))


@pytest.mark.parametrize("name", KEEPS)
def test_keeps(name):
    assert not may_change(ast.parse(KEEPS[name]))


@pytest.mark.parametrize(
    ("test", "seen"),
    [
        ("x = [2, 1]\nf(x)\nassert x == [1, 2]", True),
        ("x = [2, 1]\nassert f(x) is None and x == [1, 2]", True),
        ("x = [2, 1]\nf(a=x)\nassert x == [1, 2]", True),
        ("assert f([2, 1]) is None", False),
        ("x = [2, 1]\nassert f(x) is None", False),
        ("x = [2, 1]\ny = [1]\nassert f(x) is None and y == [1]", False),
        ("x = [1]\nassert g(x) == x", False),
    ],
)
def test_only_a_test_that_looks_counts(test, seen):
    reference = ast.parse("def f(a):\n    a.sort()")
    assert changes_arguments(reference, "f", ["assert f([]) is None", test]) is seen


def test_looking_is_not_enough():
    assert not changes_arguments(ast.parse("def f(a):\n    return a"), "f", ["x = [1]\nassert f(x) == x"])
