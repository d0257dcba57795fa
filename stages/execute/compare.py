"""Whether a program's output is what was expected: by tokens, line by line, on bytes.

As judges do it: white space at the ends of lines, empty lines, and the amount of white space between tokens do not
count; everything else does, letter case too. A token that is expected to be a number with a fraction or an exponent
may differ by a tolerance, absolute or relative; two integers must be equal, and not-a-number is near nothing. A task
that sets a tolerance itself also takes ``2.0`` where ``2`` is expected; one that is `exact` compares every byte.
"""

import math
import re
from itertools import zip_longest

TOLERANCE = 1e-6  # where a task sets none

_FRACTION = re.compile(rb"[+-]?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][+-]?\d+)?")
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
SHORT = 3  # lines of output that are seen at a glance
_LONGEST = 400  # characters of a token that is read as a number


def lines(data: bytes) -> list[list[bytes]]:
    """Tokens of each line that has any."""
    split = (line.split() for line in data.split(b"\n"))
    return [line for line in split if line]


def near(got: bytes, expected: bytes, tolerance: float | None = None) -> bool:
    """Whether one token will do for the other; `tolerance` as the task sets it, or None."""
    if got == expected:
        return True
    allowed = TOLERANCE if tolerance is None else tolerance
    if not allowed or max(len(got), len(expected)) > _LONGEST:
        return False
    if not _FRACTION.fullmatch(expected) and not (
        tolerance and _NUMBER.fullmatch(expected) and _FRACTION.fullmatch(got)
    ):
        return False
    if not _NUMBER.fullmatch(got):
        return False
    a, b = float(got), float(expected)
    return math.isfinite(a) and math.isfinite(b) and abs(a - b) <= allowed * max(1.0, abs(b))


def same(got: bytes, expected: bytes, tolerance: float | None = None, exact: bool = False) -> bool:
    """Whether output `got` is right, by the task's `tolerance` (None: the usual) and `exact`."""
    if got == expected:
        return True
    if exact:
        return False
    mine, theirs = lines(got), lines(expected)
    return len(mine) == len(theirs) and all(_fits(a, b, tolerance) for a, b in zip(mine, theirs, strict=True))


def _fits(mine: list[bytes], theirs: list[bytes], tolerance: float | None) -> bool:
    return len(mine) == len(theirs) and all(near(x, y, tolerance) for x, y in zip(mine, theirs, strict=True))


def difference(got: bytes, expected: bytes, tolerance: float | None = None) -> str | None:
    """Where wrong output of several lines first differs, by tokens; None where it has few lines or does not differ so.

    Lines are counted without empty ones.
    """
    mine, theirs = lines(got), lines(expected)
    if max(len(mine), len(theirs)) <= SHORT:
        return None
    for number, (a, b) in enumerate(zip_longest(mine, theirs), 1):
        if a is None or b is None or not _fits(a, b, tolerance):
            shown = ["no more output" if line is None else _shown(line) for line in (a, b)]
            return f"first difference in line {number}: got {shown[0]}, expected {shown[1]}"
    return None


def _shown(line: list[bytes], size: int = 80) -> str:
    text = b" ".join(line[:size])[: size + 1].decode("utf-8", "backslashreplace")
    return text if len(text) <= size else f"{text[:size]} ..."
