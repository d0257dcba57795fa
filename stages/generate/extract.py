"""From a completion's text to the program in it.

A reply may hold thinking, prose, several fences, a fence that was never closed, or bare code. The rules, in order:
thinking is dropped; among the fenced blocks the last that defines the entry point, else the last that parses as Python,
else the last; without a fence, the longest run of lines that parses and does something, unless there is none.
"""

import ast
import re
import warnings

_THINKING = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
# A fence opens at the start of a line; an unclosed one runs to the end of the text.
_FENCE = re.compile(r"^[ \t]*```[ \t]*([\w+.-]*)[^\n]*\n(.*?)(?:^[ \t]*```|\Z)", re.DOTALL | re.MULTILINE)
_PYTHON = {"", "python", "python3", "py", "pycon"}
_CODE_START = re.compile(r"^(?:def |async def |class |import |from \w|@|if |for |while |try:|with |print\(|\w+ *= )")


def without_thinking(text: str) -> str:
    """The text without its <think> blocks; one that never ends swallows the rest, one that never begins the start."""
    if "</think>" in text and "<think>" not in text.split("</think>")[0]:
        text = text.split("</think>", 1)[1]
    return _THINKING.sub("", text)


def _parse(code: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a candidate's invalid escapes are not our user's business
            return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _defines(code: str, name: str) -> bool:
    tree = _parse(code)
    if tree is None:
        return re.search(rf"^(?:async )?(?:def|class) {re.escape(name)}\b", code, re.MULTILINE) is not None
    named = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return any(isinstance(node, named) and node.name == name for node in tree.body) or any(
        isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets)
        for node in tree.body
    )


def _bare(text: str) -> str | None:
    """The longest run of lines that starts like code and parses; the earliest of equals."""
    lines = text.splitlines()
    best: list[str] = []
    for start, line in enumerate(lines):
        if not _CODE_START.match(line) or len(lines) - start <= len(best):
            continue
        for end in range(len(lines), start + len(best), -1):
            tree = _parse("\n".join(lines[start:end]))
            if tree is not None and tree.body:
                best = lines[start:end]
                break
    return "\n".join(best) if best else None


def extract_code(text: str, entry_point: str | None = None) -> str | None:
    """The program in a completion's text, or None where there is none."""
    text = without_thinking(text).replace("\r\n", "\n")
    blocks = [body for tag, body in _FENCE.findall(text) if tag.lower() in _PYTHON and body.strip()]
    if not blocks:
        bare = _bare(text)
        return bare.strip("\n") + "\n" if bare else None
    if entry_point:
        defining = [block for block in blocks if _defines(block, entry_point)]
        if defining:
            return defining[-1].strip("\n") + "\n"
    parsing = [block for block in blocks if (tree := _parse(block)) is not None and tree.body]
    return (parsing or blocks)[-1].strip("\n") + "\n"
