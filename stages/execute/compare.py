"""Whether a program's output is what was expected: by tokens, line by line, on bytes.

As judges do it: white space at the ends of lines, empty lines, and the amount of white space between tokens do not
count; everything else does, letter case too. A token that is expected to be a number with a fraction or an exponent
may differ by `tolerance`, absolute or relative; integers are exact, and not-a-number is near nothing.
"""

import math
import re

_FRACTION = re.compile(rb"[+-]?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][+-]?\d+)?")
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def lines(data: bytes) -> list[list[bytes]]:
    """Tokens of each line that has any."""
    split = (line.split() for line in data.split(b"\n"))
    return [line for line in split if line]


def near(got: bytes, expected: bytes, tolerance: float) -> bool:
    """Whether one token will do for the other."""
    if got == expected:
        return True
    if not tolerance or len(got) > 400 or not _FRACTION.fullmatch(expected) or not _NUMBER.fullmatch(got):
        return False
    a, b = float(got), float(expected)
    return math.isfinite(a) and math.isfinite(b) and abs(a - b) <= tolerance * max(1.0, abs(b))


def same(got: bytes, expected: bytes, tolerance: float = 1e-6, exact: bool = False) -> bool:
    """Whether output `got` is right; `exact` compares every byte."""
    if got == expected:
        return True
    if exact:
        return False
    mine, theirs = lines(got), lines(expected)
    return len(mine) == len(theirs) and all(
        len(a) == len(b) and all(near(x, y, tolerance) for x, y in zip(a, b, strict=True))
        for a, b in zip(mine, theirs, strict=True)
    )
