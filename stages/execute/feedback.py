"""The text that the policy reads about its attempt, in its next prompt.

It says how many tests passed and, for each failing visible test, the call, what came back and what was expected, or the
exception with the program's own lines. Of hidden tests it gives counts by kind, so that no expected value of theirs
reaches a prompt. The text is stable from run to run, valid Unicode, and holds no token of a chat template.
"""

import re
from collections import Counter
from collections.abc import Sequence

CHARACTERS_PER_TOKEN = 4

_TEMPLATE_TOKENS = re.compile(
    r"<(?=[|｜])|(?<=[|｜])>|<(?=/?(?:s|bos|eos|pad|unk|think|sep|cls|mask|filename|reponame|unused\d+|[a-z]+(?:_\w+)+)>)|"
    r"\[(?=/?(?:INST|SYS|AVAILABLE_TOOLS|TOOL_CALLS)\])|<(?=</?SYS>>)",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]{4,}")
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

_WORDS = {
    "timeout": "took too long and was stopped",
    "memory_limit": "used too much memory",
    "output_limit": "gave too large a value or printed too much",
    "crash": "crashed",
    "early_exit": "ended the process before the test was over",
    "unsupported_value": "gave a value that cannot be compared",
    "protocol_error": "disturbed the test",
    "not_run": "was not run after an earlier test took too long",
    "missing_entry_point": "needs something that the program does not define",
    "syntax_error": "could not be run",
}
# Why a program failed before any test, where that is more than the message.
_LOADING = {"syntax_error": "The program is not valid Python.", "missing_entry_point": "", "early_exit": ""}
NO_CODE = (
    "The answer holds no program. Write the whole program in one block that starts with ```python and ends with ```."
)


def clean(text: str | None) -> str | None:
    """Text that any table, terminal or tokenizer can hold: no surrogates, control characters or addresses."""
    if text is None:
        return None
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    text = _ADDRESS.sub("", _ESCAPE.sub("", text))
    return "".join(c if c in "\n\t" or (c >= " " and c != "\x7f") else f"\\x{ord(c):02x}" for c in text)


def neutral(text: str) -> str:
    """`text` with the tokens of chat templates taken apart by a space."""
    return _TEMPLATE_TOKENS.sub(lambda m: f" {m[0]}" if m[0] == ">" else f"{m[0]} ", text)


def cut(text: str, size: int) -> str:
    """At most `size` characters: two thirds from the head, one third from the tail."""
    if len(text) <= size:
        return text
    mark = "\n[...]\n"
    room = max(0, size - len(mark))
    head = room * 2 // 3
    return text[:head] + mark + text[len(text) - (room - head) :]


def _one_test(name: str, test: dict, verdict: dict, size: int) -> str:
    """The paragraph about one failing test."""
    kind, lines = verdict["kind"], []
    is_program = test.get("stdout") is not None
    source = verdict.get("assert") or ""
    if is_program:
        lines.append(_labelled("input", test["stdin"] or "", size // 3))
    elif source:
        lines.append(cut(source if source.startswith("self.") else f"assert {source}", size // 3))
    elif test.get("code") and len(test["code"]) <= 200:
        lines.append(test["code"])
    call = verdict.get("call")
    if call and call not in " ".join(lines):
        lines.append(f"call: {cut(call, size // 3)}")
    message = cut(verdict.get("message") or "", size // 2)
    if kind == "wrong_answer":
        for label in ("got", "expected"):
            if verdict.get(label) is not None:
                lines.append(_labelled(label, verdict[label], size // 3))
        if message:
            lines.append(message)
    elif kind == "runtime_error":
        ended = not message or message.startswith("exit status ")
        lines.append(f"ended with {message}" if ended and message else f"raised: {message}" if message else "failed")
    else:
        lines.append(f"{_WORDS.get(kind, kind)}{': ' + message if message else ''}")
    return f"{name} failed:\n" + "\n".join(f"  {line}".rstrip() for part in lines for line in part.split("\n"))


def _labelled(label: str, text: str, size: int) -> str:
    """A text on its label's line, or below it where it has several lines."""
    text = cut(text.strip("\n"), size)
    return f"{label}:\n{text}" if "\n" in text else f"{label}: {text or '(nothing)'}"


def feedback(tests: Sequence[dict], verdicts: Sequence[dict], tokens: int, every: bool = False, show_all: bool = False):
    """The text about one node; `tests` and `verdicts` in the task's order.

    `every` says that the program failed before any test, for the one reason that all verdicts give. `show_all` quotes
    hidden tests like visible ones (a setting for data whose tests need not be hidden).
    """
    size = tokens * CHARACTERS_PER_TOKEN
    total = len(tests)
    passed = sum(v["kind"] == "passed" for v in verdicts)
    if passed == total:
        return f"All {total} tests passed." if total > 1 else "The test passed."
    parts = [f"{passed} of {total} tests passed."]
    shown = [show_all or t["visible"] for t in tests]
    if every:
        kind, message = verdicts[0]["kind"], verdicts[0].get("message") or ""
        what = _LOADING.get(kind, "The program failed while it was loaded.")
        if not what and message:
            message = f"{message[0].upper()}{message[1:]}."
        parts.append(f"{what}\n{cut(message, size * 2 // 3)}".strip())
    else:
        failing = [n for n, v in enumerate(verdicts) if shown[n] and v["kind"] != "passed"]
        for n in failing:
            parts.append(
                _one_test(f"Test {n + 1}", tests[n], verdicts[n], max(120, size // max(1, min(3, len(failing)))))
            )
        hidden = [v["kind"] for n, v in enumerate(verdicts) if not shown[n]]
        if hidden:
            good = hidden.count("passed")
            counts = Counter(kind for kind in hidden if kind != "passed")
            text = ", ".join(f"{number} {kind.replace('_', ' ')}" for kind, number in sorted(counts.items()))
            parts.append(f"Hidden tests: {good} of {len(hidden)} passed" + (f"; {text}." if text else "."))
    return cut(neutral(clean("\n\n".join(parts))), size)
