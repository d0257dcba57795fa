"""How many groups to open, so that a version samples about as many tokens as it may.

With a budget, groups are opened in waves: as many as surely fit, then, once a wave is sampled, as many as fit into what
is left. When not even one surely fits, one more is opened if that is likely to come nearer to the budget than stopping.
So the sum is off by half a group or so, whatever the policy does: arms of a comparison with the same budget have
sampled alike. In a later turn the last tree opened may be left with some of its failed nodes not tried again; those,
and trees not reached, keep their reward as credit, as any node without children does.
"""

from collections.abc import Sequence


def wave(most: Sequence[int], left: int | None, mean: float | None) -> int:
    """How many of the next groups to open.

    `most`: the tokens that each group can take at most, in order; `left`: tokens of the budget that are left (None: no
    budget); `mean`: tokens that a group took so far (None: not known yet, then the most it can take).
    """
    if left is None:
        return len(most)
    count = total = 0
    while count < len(most) and total + most[count] <= left:
        total += most[count]
        count += 1
    if count or not most:
        return count
    expected = most[0] if mean is None else min(mean, most[0])
    return int(2 * left >= expected)
