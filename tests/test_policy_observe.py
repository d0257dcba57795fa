"""What may be run in the stage itself, what an attempt does, and that feedback is worded as the executor words it."""

import random

import pytest

from stages.policy.attempts import attempt, habits, kinds
from stages.policy.observe import feedback, harmless, outcomes
from stages.tasks.generated import generated_tasks


@pytest.mark.parametrize(
    "code",
    [
        "import os\ndef f(x):\n    return os",
        "def f(x):\n    return x.__class__",
        "def f(x):\n    return x.format(x)",
        "def f(x):\n    return __import__('os')",
        "def f(x):\n    while True:\n        x = x",
        "def f(x):\n    for y in x:\n        x = y",
        "def f(x):\n    return x ** 9",
        "def f(x):\n    return x * 1000000",
        "def f(x):\n    return x << 20",
        "def f(x):\n" + "    x = x * 9\n" * 9 + "    return x",
        "def f(x):\n    return f'{x.y}'",
        "def f(x):\n    return (lambda: x)()",
        "@print\ndef f(x):\n    return x",
        "def f(x=print('now')):\n    return x",
        "def f(x: print('now')):\n    return x",
        "print('now')",
        "def f(x):\n    return open(x)",
        "def f(x):\n    return f(x)",
        "def f(x):\n    return x[0](x)",
        "def f(x):\n    return x\nf(1)",
        "def f(x) -> print(1):\n    return x",
        "def f(x):\n    del x",
        "def f(x):\n    global y\n    y = x",
        "class f:\n    pass",
        "def f(x",
    ],
)
def test_anything_else_is_not_run(code, capsys):
    assert outcomes(code, [{"code": "assert f(1) == 1", "visible": True}]) is None
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("test", ["assert f(1) > 1", "assert f(x) == 1", "assert f(1) == 1, 'no'; f(2)", "f(1", None])
def test_a_test_of_another_form_is_not_run(test):
    assert outcomes("def f(x):\n    return x", [{"code": test, "visible": True}]) is None


def test_every_generated_reference_passes_here():
    for row in generated_tasks(1, 400):
        assert harmless(row["reference"])
        assert all(o.passed for o in outcomes(row["reference"], row["tests"])), row["task_id"]


def test_feedback_is_worded_as_the_executor_words_it():
    """Ours against the execute stage's own text, made from the verdicts that its tests' side would give."""
    executor = pytest.importorskip("stages.execute.feedback")
    rng, kinds_seen = random.Random(0), set()
    rows = generated_tasks(2, 300)
    always = dict.fromkeys(habits([row["reference"] for row in rows], rng), 0.7)
    for row in rows:
        found = outcomes(attempt(row["reference"], always, rng), row["tests"])
        if all(o.passed for o in found):
            continue
        verdicts = []
        for o in found:
            kind = "passed" if o.passed else "runtime_error" if o.raised else "wrong_answer"
            verdicts.append({"kind": kind, "message": o.raised, "call": o.call, "got": o.got, "expected": o.expected})
            if o.raised:
                verdicts[-1]["call"] = None
        kinds_seen |= {v["kind"] for v in verdicts}
        theirs = executor.feedback(row["tests"], verdicts, tokens=4000)
        assert feedback(found, row["tests"]) == theirs
        hidden = [t["code"].split(" == ")[0] for t in row["tests"] if not t["visible"]]
        assert not any(call in theirs for call in hidden)
    assert kinds_seen == {"passed", "runtime_error", "wrong_answer"}


def test_mistakes_are_made_at_their_rate_and_nowhere_else():
    rng = random.Random(1)
    code = "def f(x):\n    x = sorted(x)\n    return x[:3]"
    assert kinds(code) == ["sorted", "to start"]
    assert attempt(code, {}, rng) == code
    assert attempt(code, {"sorted": 1.0}, rng) == "def f(x):\n    x = list(x)\n    return x[:3]"
    assert attempt(code, {"to start": 1.0}, rng) == "def f(x):\n    x = sorted(x)\n    return x[3:]"
    wrong = sum(attempt(code, {"sorted": 0.25}, rng) != code for _ in range(4000))
    assert 0.22 < wrong / 4000 < 0.28


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("x + 3", "x - 3"),
        ("x + 'a'", "'a' + x"),
        ("[3] + x", "x + [3]"),
        ("x // 3", "x % 3"),
        ("x > 3", "x >= 3"),
        ("x in y", "x not in y"),
        ("x[::-1]", "x[1:]"),
        ("x[-2:]", "x[:-2]"),
        ("x[0]", "x[1]"),
        ("x[-1]", "x[1]"),
        ("-x", "x"),
        ("max(x)", "min(x)"),
        ("abs(x)", "x"),
        ("x.upper()", "x.lower()"),
        ("x.replace('a', '')", "x"),
        ("[y for y in x if y > 3]", "[y for y in x if y >= 3]"),
    ],
)
def test_each_kind_of_mistake(right, wrong):
    everything = dict.fromkeys(kinds(right), 1.0)
    assert len(everything) == 1
    assert attempt(right, everything, random.Random(0)) == wrong


def test_habits_are_dealt_evenly_and_repeat():
    codes = [row["reference"] for row in generated_tasks(0, 500)]
    rates = habits(codes, random.Random(5))
    assert rates == habits(codes, random.Random(5)) != habits(codes, random.Random(6))
    counts = [list(rates.values()).count(rate) for rate in set(rates.values())]
    assert max(counts) - min(counts) <= 1
    assert kinds("def (") == []
