"""Examples in a docstring as assert statements: `>>> f(x)` with its result, `f(x) => y` and the like.

Only examples whose expected value is a literal are taken: what has to be computed or guessed at is left as prose.
"""

import ast
import doctest
import re

# Between a call and its value: 3 => 4, 3 ==> 4, 3 ➞ 4, 3 -> 4, 3 == 4, 3 = 4, `f(3) returns 4`, `f(3) # => 4`.
_BETWEEN = re.compile(r"[ \t]*(?:#[ \t]*)?(?:=>|==>|➞|->|==|=|returns\b)[ \t]*")
_REST = re.compile(r"[ \t]*(?:[.,;]|#.*|\(.*)?[ \t]*$")  # what may follow the value on its line
_WORDS = {"true": "True", "false": "False", "none": "None"}


def literal(text: str) -> str | None:
    """The literal that `text` is, or that its first line starts with, as source text; None where there is none.

    After a literal, the line may go on with a comment, a remark in parentheses or a full stop, and with nothing else.
    """
    text = text.strip()
    text = _WORDS.get(text, text)
    line = text.split("\n", 1)[0]
    # The whole text first, then ever shorter beginnings of its first line.
    for end in (len(text), *range(len(line), 0, -1)):
        head, rest = text[:end], line[end:]
        if head != head.rstrip() or (end < len(line) and not _REST.match(rest)):
            continue
        try:
            tree = ast.parse(head, mode="eval")
            ast.literal_eval(tree)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
        return ast.get_source_segment(head, tree.body)
    return None


def _call_at(text: str, start: int) -> str | None:
    """The call that begins at `start` of `text`, with its closing parenthesis; it may go over several lines."""
    for match in re.finditer(r"\)", text[start:]):
        call = text[start : start + match.end()]
        try:
            tree = ast.parse(call.strip(), mode="eval")
        except (SyntaxError, ValueError):
            continue
        return call if isinstance(tree.body, ast.Call) else None
    return None


def _has_names(call: str) -> bool:
    """Whether a call's arguments hold names: `is_happy(abcd)` is an example with its quotes left out."""
    return sum(isinstance(n, ast.Name) for n in ast.walk(ast.parse(call.strip(), mode="eval"))) > 1


def _doctests(doc: str) -> list[str]:
    """Each `>>>` example with a literal result as an assert, after the statements of the examples before it."""
    try:
        found = doctest.DocTestParser().get_examples(doc)
    except ValueError:  # inconsistent indentation: not meant for doctest
        return []
    asserts, before = [], ""
    for example in found:
        source, want = example.source.strip(), literal(example.want)
        try:
            tree = ast.parse(source)
        except SyntaxError:
            continue
        is_value = len(tree.body) == 1 and isinstance(tree.body[0], ast.Expr)
        if not is_value:
            before += source + "\n"
        elif want is not None:
            value = ast.get_source_segment(source, tree.body[0].value)
            asserts.append(f"{before}assert {value} == {want}")
    return asserts


def _arrows(doc: str, name: str) -> list[str]:
    """Each `name(...) => literal` as an assert."""
    asserts = []
    for match in re.finditer(rf"(?<![\w.]){re.escape(name)}\(", doc):
        call = _call_at(doc, match.start())
        if call is None or _has_names(call):
            continue
        after = doc[match.start() + len(call) :]
        between = _BETWEEN.match(after)
        value = literal(after[between.end() :].split("\n", 1)[0]) if between else None
        if value is not None:
            asserts.append(
                f"assert {' '.join(call.split())} == {value}" if "\n" in call else f"assert {call} == {value}"
            )
    return asserts


def asserts(doc: str, name: str) -> list[str]:
    """The examples of the function `name` in its docstring, as assert statements without repeats, in order."""
    found = _doctests(doc) or _arrows(doc, name)
    return list(dict.fromkeys(found))
