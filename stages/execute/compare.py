"""Whether a program's output is what was expected: by tokens, line by line, on bytes.

As judges do it: white space at the ends of lines, empty lines, and the amount of white space between tokens do not
count; everything else does, letter case too. A token that is expected to be a number with a fraction or an exponent
may differ by a tolerance, absolute or relative; two integers must be equal, and not-a-number is near nothing. A task
that sets a tolerance itself also takes ``2.0`` where ``2`` is expected; one that is `exact` compares every byte.
"""

import math
import re

TOLERANCE = 1e-6  # where a task sets none

_FRACTION = re.compile(rb"[+-]?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][+-]?\d+)?")
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
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
    return len(mine) == len(theirs) and all(
        len(a) == len(b) and all(near(x, y, tolerance) for x, y in zip(a, b, strict=True))
        for a, b in zip(mine, theirs, strict=True)
    )
