"""Golden table of docstrings and the asserts they hold."""

import pytest

from stages.tasks.examples import asserts, literal

GOLDEN = {
    "doctest": (">>> f(1)\n2\n>>> f(2)\n4\n", ["assert f(1) == 2", "assert f(2) == 4"]),
    "doctest on an expression, with a comment": (">>> round(f(1), 2)  # half\n0.5\n", ["assert round(f(1), 2) == 0.5"]),
    "doctest with a statement before": (">>> a = [1]\n>>> f(a)\n[1]\n", ["a = [1]\nassert f(a) == [1]"]),
    "doctest without a literal result": (">>> f(1)\n<object at 0x1>\n>>> f(2)\n2\n", ["assert f(2) == 2"]),
    "doctest, result over two lines": (">>> f(1)\n[1,\n 2]\n", ["assert f(1) == [1,\n 2]"]),
    "doctest with prose after the result": (">>> f(1)\n2\nAnd so on.\n", ["assert f(1) == 2"]),
    "doctest, repeated": (">>> f(1)\n2\n>>> f(1)\n2\n", ["assert f(1) == 2"]),
    "doctest, odd indentation": ("   >>> f(1)\n 2\n", []),
    "doctest that raises": (">>> f(1)\nTraceback (most recent call last):\n    ...\nValueError: no\n", []),
    "arrow": (
        "f(2, 8) => [2, 4]\n    f(8) ==> 3\n    f('x') ➞ 'y'",
        ["assert f(2, 8) == [2, 4]", "assert f(8) == 3", "assert f('x') == 'y'"],
    ),
    "thin arrow and comment": (
        "* f(5, 6) -> [11, 4]\nf('a.txt') # => 'Yes'",
        ["assert f(5, 6) == [11, 4]", "assert f('a.txt') == 'Yes'"],
    ),
    "equals": ("f(4) == 1\nf(3) = [1, 3]", ["assert f(4) == 1", "assert f(3) == [1, 3]"]),
    "returns": ("f('hi') returns 'lm'\nf(15)   # returns \"db\"", ["assert f('hi') == 'lm'", 'assert f(15) == "db"']),
    "lower-case words": ("f(1, 4) => true\nf(3, 2) => false", ["assert f(1, 4) == True", "assert f(3, 2) == False"]),
    "call over several lines": ("f([\n  [1],\n  [2]\n], 1) == [(0, 0)]", ["assert f([ [1], [2] ], 1) == [(0, 0)]"]),
    "remark after the value": (
        "f(1) ➞ 'No' (the name is bad)\nf(2) ==> 3;",
        ["assert f(1) == 'No'", "assert f(2) == 3"],
    ),
    "a sum is not a value": ("f('5 apples', 19) ->19 - 5 - 6 = 8\nf([1]) == 1 + 9 = 10", []),
    "quotes left out": ("f(abcd) => True", []),
    "another function": ("g(1) => 2\nself.f(1) => 2\nf2(1) => 2", []),
    "call without a value": ("f(1) is nice, f(2)", []),
    "unclosed": ("f(1 => 2", []),
    "parenthesis inside a string": ("f(':)') => 1", ["assert f(':)') == 1"]),
    "empty": ("", []),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_asserts(name):
    doc, expected = GOLDEN[name]
    assert asserts(doc, "f") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[1, 2]", "[1, 2]"),
        ("-0.5 # half", "-0.5"),
        ("'a # b'", "'a # b'"),
        ("None", "None"),
        ("5 apples", None),
        ("x", None),
        ("", None),
        ("{'a': (1,)}  (a remark)", "{'a': (1,)}"),
    ],
)
def test_literal(text, expected):
    assert literal(text) == expected
