"""Tiny Python tasks with known answers, from templates: chains of one to three steps on a number, a list or a text.

"Write a Python function f(x). x is a list of numbers. Sort the list, then take the first 2 items. Return the result."
There are some two hundred one-step tasks and many thousands of longer ones, which share their steps, so that a small
model can generalise from some tasks to others. A task is named by its steps, and its name fixes its words and its
tests: the seed only chooses which tasks there are, and the first tasks of a longer list are those of a shorter one.

    from stages.tasks.generated import generated_tasks
    rows = generated_tasks(seed=0, count=400)  # rows of the tasks table

Every test set tells the task from the same chain with steps left out. Does not cover loops, helper functions or
input that a function should refuse.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import combinations

from stages.common.cli import UserError
from stages.common.ids import seed_for

SOURCE = "generated"
TESTS, VISIBLE = 6, 2
DIFFICULTY = {1: "easy", 2: "medium", 3: "hard"}
SHARE = {1: 0.2, 2: 0.5, 3: 0.3}  # of tasks by their number of steps, while there are new ones
NAMES = ("f", "g", "solve", "change", "work", "answer")
TAKES = {"int": "x is a whole number.", "list": "x is a list of numbers.", "str": "x is a text."}
WORDS = ("sun", "Moon", "river", "Apple", "banana", "sea", "Letter", "tree", "eel", "Anna", "otter", "noon", "toast")
MOST = 50_000  # tasks given out at once

# name, takes, gives, words, expression; `{k}` stands for each value of the last column. A chain ends where a step
# gives a kind that no step takes.
_STEPS = (
    ("add-{k}", "int", "int", "add {k}", "x + {k}", range(1, 10)),
    ("sub-{k}", "int", "int", "subtract {k}", "x - {k}", range(1, 10)),
    ("mul-{k}", "int", "int", "multiply by {k}", "x * {k}", range(2, 10)),
    ("div-{k}", "int", "int", "divide by {k} and round down", "x // {k}", range(2, 10)),
    ("mod-{k}", "int", "int", "take the remainder by {k}", "x % {k}", range(2, 10)),
    ("cap-{k}", "int", "int", "cap it at {k}", "min(x, {k})", range(1, 10)),
    ("floor-{k}", "int", "int", "raise it to at least {k}", "max(x, {k})", range(1, 10)),
    ("square", "int", "int", "square it", "x * x", ("",)),
    ("negate", "int", "int", "change its sign", "-x", ("",)),
    ("abs", "int", "int", "take the absolute value", "abs(x)", ("",)),
    ("text", "int", "str", "turn it into a text", "str(x)", ("",)),
    ("over-{k}", "int", "bool", "tell whether it is greater than {k}", "x > {k}", range(1, 10)),
    ("under-{k}", "int", "bool", "tell whether it is less than {k}", "x < {k}", range(1, 10)),
    ("by-{k}", "int", "bool", "tell whether {k} divides it", "x % {k} == 0", range(2, 10)),
    ("first-{k}", "list", "list", "take the first {k} items", "x[:{k}]", range(2, 5)),
    ("last-{k}", "list", "list", "take the last {k} items", "x[-{k}:]", range(2, 5)),
    ("skip-{k}", "list", "list", "drop the first {k} items", "x[{k}:]", range(2, 5)),
    ("cut-{k}", "list", "list", "drop the last {k} items", "x[:-{k}]", range(2, 5)),
    ("append-{k}", "list", "list", "put {k} at the end", "x + [{k}]", range(1, 10)),
    ("prepend-{k}", "list", "list", "put {k} at the start", "[{k}] + x", range(1, 10)),
    ("each-add-{k}", "list", "list", "add {k} to each item", "[y + {k} for y in x]", range(1, 10)),
    ("each-mul-{k}", "list", "list", "multiply each item by {k}", "[y * {k} for y in x]", range(2, 7)),
    ("keep-over-{k}", "list", "list", "keep the items greater than {k}", "[y for y in x if y > {k}]", range(1, 9)),
    ("keep-under-{k}", "list", "list", "keep the items less than {k}", "[y for y in x if y < {k}]", range(1, 9)),
    ("reverse", "list", "list", "reverse the list", "x[::-1]", ("",)),
    ("sort", "list", "list", "sort the list", "sorted(x)", ("",)),
    ("second", "list", "list", "take every second item", "x[::2]", ("",)),
    ("double", "list", "list", "repeat the list twice", "x * 2", ("",)),
    ("sum", "list", "int", "take the sum", "sum(x)", ("",)),
    ("size", "list", "int", "count the items", "len(x)", ("",)),
    ("largest", "list", "int", "take the largest item", "max(x)", ("",)),
    ("smallest", "list", "int", "take the smallest item", "min(x)", ("",)),
    ("head", "list", "int", "take the first item", "x[0]", ("",)),
    ("tail", "list", "int", "take the last item", "x[-1]", ("",)),
    ("count-{k}", "list", "int", "count how often {k} occurs", "x.count({k})", range(1, 10)),
    ("has-{k}", "list", "bool", "tell whether {k} is in it", "{k} in x", range(1, 10)),
    ("start-{k}", "str", "str", "take the first {k} letters", "x[:{k}]", range(2, 4)),
    ("end-{k}", "str", "str", "take the last {k} letters", "x[-{k}:]", range(2, 4)),
    ("behead-{k}", "str", "str", "drop the first {k} letters", "x[{k}:]", range(2, 4)),
    ("dock-{k}", "str", "str", "drop the last {k} letters", "x[:-{k}]", range(2, 4)),
    ("times-{k}", "str", "str", "repeat it {k} times", "x * {k}", range(2, 5)),
    ("suffix-{k}", "str", "str", 'put "{k}" at the end', "x + '{k}'", "aenort"),
    ("prefix-{k}", "str", "str", 'put "{k}" at the start', "'{k}' + x", "aenort"),
    ("without-{k}", "str", "str", 'remove every "{k}"', "x.replace('{k}', '')", "aenort"),
    ("backwards", "str", "str", "reverse the text", "x[::-1]", ("",)),
    ("upper", "str", "str", "make it upper case", "x.upper()", ("",)),
    ("lower", "str", "str", "make it lower case", "x.lower()", ("",)),
    ("length", "str", "int", "take its length", "len(x)", ("",)),
    ("occurs-{k}", "str", "int", 'count how often "{k}" occurs', "x.count('{k}')", "aenort"),
    ("holds-{k}", "str", "bool", 'tell whether "{k}" is in it', "'{k}' in x", "aenort"),
    ("letters", "str", "letters", "split it into letters", "list(x)", ("",)),
)


@dataclass(frozen=True)
class Step:
    """One step of a chain: the kinds it takes and gives, its words, its Python expression in `x`, and that compiled."""

    name: str
    takes: str
    gives: str
    words: str
    code: str
    compute: Callable[[object], object]


@cache
def steps_from(kind: str) -> tuple[Step, ...]:
    """The steps that take a value of `kind` (int, list, str); none for kinds that end a chain."""
    steps = []
    for name, takes, gives, words, code, values in _STEPS:
        for k in values if takes == kind else ():
            expression = code.replace("{k}", str(k))
            # eval sees the table above and nothing else.
            compute = eval(f"lambda x: {expression}")
            steps.append(
                Step(name.format(k=k), takes, gives, words.replace("{k}", str(k)), expression, compute),
            )
    return tuple(steps)


def _draw_input(rng: random.Random, kind: str) -> object:
    if kind == "int":
        return rng.randint(-9, 20)
    if kind == "list":
        return [rng.randint(0, 9) for _ in range(rng.randint(4, 6))]
    return rng.choice(WORDS)


def _run(steps: tuple[Step, ...], value: object) -> object:
    for step in steps:
        value = step.compute(value)
    return value


def _shows(shorter: tuple[Step, ...], value: object, answer: object) -> bool:
    """Whether `value` tells the chain that gives `answer` from a shorter one."""
    try:
        other = _run(shorter, value)
    except (TypeError, AttributeError, IndexError, ValueError):
        return True
    return type(other) is not type(answer) or other != answer


def draw_tests(kind: str, steps: tuple[Step, ...], rng: random.Random) -> list[tuple[object, object]] | None:
    """Inputs and answers, each input once; or None where the chain makes no fair task.

    That is where it fails on an input (the largest of no items), where a shorter chain answers the same, or where
    answers hardly differ.
    """
    shorter = [part for n in range(len(steps)) for part in combinations(steps, n)]
    least = 2 if steps[-1].gives == "bool" else 3
    for _ in range(6):
        cases: dict[str, tuple[object, object]] = {}
        while len(cases) < TESTS:
            value = _draw_input(rng, kind)
            try:
                cases[repr(value)] = (value, _run(steps, value))
            except (IndexError, ValueError):
                return None
        drawn = list(cases.values())
        if len({repr(answer) for _, answer in drawn}) >= least and all(
            any(_shows(other, value, answer) for value, answer in drawn) for other in shorter
        ):
            return drawn
    return None


def make_task(kind: str, steps: tuple[Step, ...]) -> dict[str, object] | None:
    """The row of a chain of steps on an input of `kind` (int, list, str), or None where it makes no fair task."""
    task_id = f"{SOURCE}/{kind}." + ".".join(step.name for step in steps)
    rng = random.Random(seed_for(task_id))
    cases = draw_tests(kind, steps, rng)
    if cases is None:
        return None
    name = rng.choice(NAMES)
    words = ", then ".join(step.words for step in steps)
    lines = [f"    x = {step.code}" for step in steps[:-1]] + [f"    return {steps[-1].code}"]
    tests = [
        {"visible": i < VISIBLE, "code": f"assert {name}({value!r}) == {answer!r}", "stdin": None, "stdout": None}
        for i, (value, answer) in enumerate(cases)
    ]
    return {
        "task_id": task_id,
        "source": SOURCE,
        "kind": "function",
        "prompt": f"Write a Python function {name}(x). {TAKES[kind]} {words[0].upper()}{words[1:]}. Return the result.",
        "entry_point": name,
        "prelude": None,
        "setup": None,
        "tests": tests,
        "reference": "\n".join([f"def {name}(x):", *lines]) + "\n",
        "difficulty": DIFFICULTY[len(steps)],
        "stub": None,
        "inplace": False,
        "exact": False,
        "tolerance": None,
        "packages": [],
        "cpu_seconds": None,
        "memory_mb": None,
    }


def generated_tasks(seed: int, count: int) -> list[dict[str, object]]:
    """`count` different tasks, rows of the tasks table in the order drawn; the same for the same seed.

    Raises UserError for more than MOST.
    """
    rng = random.Random(seed_for("generated tasks", seed))
    tasks: dict[str, dict[str, object]] = {}
    solutions: set[str] = set()
    if count > MOST:
        raise UserError(f"tasks: {count} generated tasks are more than the {MOST} that can be had; ask for fewer")
    while len(tasks) < count:
        length = rng.choices(list(SHARE), list(SHARE.values()))[0]
        kind = start = rng.choice(list(TAKES))
        steps: list[Step] = []
        while len(steps) < length and (choices := steps_from(kind)):
            # The kind of step first, or those with many values of k would drown the others.
            family = rng.choice(sorted({step.name.split("-")[0] for step in choices}))
            steps.append(rng.choice([step for step in choices if step.name.split("-")[0] == family]))
            kind = steps[-1].gives
        row = make_task(start, tuple(steps)) if len(steps) == length else None
        body = row and start + row["reference"].split("\n", 1)[1]
        if row is not None and body not in solutions:
            solutions.add(body)
            tasks[row["task_id"]] = row
    return list(tasks.values())
