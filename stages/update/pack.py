"""Rows laid out for the model without padding and without computing a shared prefix twice.

A pack is a prefix tree of token sequences. Each of its N tokens stands once, however many rows go through it, and sees
its ancestors and itself alone: siblings share their prompt, children of one task its statement, equal completions
everything. Position ids are depths. So a pack's numbers are those of its rows, each run by itself.

Light: numpy only. What it does not cover: the forward pass (``logprobs.py``).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from stages.update.batch import Row


@dataclass(frozen=True)
class Pack:
    """`tokens`, `parents` (index, -1 for a root), `positions`: (N,). M of them are predicted by some row.

    `context` (M,): the token whose output predicts `target` (M,). `place` (B, T) points row by row into those M, 0
    where `mask` (B, T) is False. `rows` (B,) are indices of the rows packed.
    """

    rows: tuple[int, ...]
    tokens: np.ndarray
    parents: np.ndarray
    positions: np.ndarray
    context: np.ndarray
    target: np.ndarray
    place: np.ndarray
    mask: np.ndarray

    def chains(self) -> Iterator[tuple[int, int, np.ndarray]]:
        """The tree as chains, each token its predecessor's child: (start, end, ancestors of the start, from the root).

        Rows are put in one after the other, so there is at most one chain per row.
        """
        starts = np.flatnonzero(self.parents != np.arange(-1, len(self.parents) - 1)).tolist()
        starts = starts if starts[:1] == [0] else [0, *starts]
        for start, end in zip(starts, [*starts[1:], len(self.parents)], strict=True):
            ancestors, at = [], self.parents[start]
            while at >= 0:
                ancestors.append(at)
                at = self.parents[at]
            yield start, end, np.array(ancestors[::-1], dtype=np.int64)

    def sees(self) -> np.ndarray:
        """(N, N) bool: whether token i sees token j, which is an ancestor of i or i itself."""
        n = len(self.tokens)
        sees = np.zeros((n, n), dtype=bool)
        for i, parent in enumerate(self.parents):
            if parent >= 0:
                sees[i, : parent + 1] = sees[parent, : parent + 1]
            sees[i, i] = True
        return sees


@dataclass
class _Tree:
    """A prefix tree that grows by rows and can be cut back to an earlier size."""

    tokens: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    index: dict[tuple[int, int], int] = field(default_factory=dict)

    def add(self, row: Row) -> list[int]:
        """Put a row in; the tree's index of each of its tokens, prompt first."""
        path, at = [], -1
        for token in [*row.prompt.tolist(), *row.completion.tolist()]:
            key = (at, token)
            found = self.index.get(key)
            if found is None:
                found = self.index[key] = len(self.tokens)
                self.tokens.append(token)
                self.depths.append(self.depths[at] + 1 if at >= 0 else 0)
                self.parents.append(at)
            path.append(found)
            at = found
        return path

    def cut(self, size: int) -> None:
        """Forget every token after the first `size`."""
        for i in range(size, len(self.tokens)):
            del self.index[self.parents[i], self.tokens[i]]
        del self.tokens[size:], self.parents[size:], self.depths[size:]


def _finish(tree: _Tree, paths: dict[int, list[int]], rows: Sequence[Row]) -> Pack:
    """The pack of a tree; `paths` holds per row index the tree's index of each token."""
    lengths = {at: len(rows[at].completion) for at in paths}
    predicted = sorted({i for at, path in paths.items() for i in path[-lengths[at] :]})
    slot = {i: m for m, i in enumerate(predicted)}
    place = np.zeros((len(paths), max(lengths.values())), dtype=np.int64)
    mask = np.zeros(place.shape, dtype=bool)
    for b, (at, path) in enumerate(paths.items()):
        place[b, : lengths[at]] = [slot[i] for i in path[-lengths[at] :]]
        mask[b, : lengths[at]] = True
    tokens, parents = np.array(tree.tokens, dtype=np.int64), np.array(tree.parents, dtype=np.int64)
    return Pack(
        rows=tuple(paths),
        tokens=tokens,
        parents=parents,
        positions=np.array(tree.depths, dtype=np.int64),
        context=parents[predicted],
        target=tokens[predicted],
        place=place,
        mask=mask,
    )


def packs(rows: Sequence[Row], chosen: Sequence[int], budget: int) -> Iterator[Pack]:
    """Pack the rows `chosen` (indices) into trees of at most `budget` tokens; a longer row stands alone.

    Rows are taken in the order of their tokens, so that those that share most come together. A group is cut only where
    it does not fit one pack.
    """
    groups: dict[tuple[str, bytes], list[int]] = {}
    for at in chosen:
        groups.setdefault((rows[at].group_id, rows[at].prompt.tobytes()), []).append(at)
    tree, paths = _Tree(), {}
    for group in sorted(groups.values(), key=lambda g: (rows[g[0]].prompt.tolist(), rows[g[0]].node_id)):
        size = len(tree.tokens)
        grown = {at: tree.add(rows[at]) for at in group}
        if len(tree.tokens) <= budget:
            paths.update(grown)
            continue
        tree.cut(size)
        if paths:
            yield _finish(tree, paths, rows)
            tree, paths = _Tree(), {}
        for at in group:
            size = len(tree.tokens)
            path = tree.add(rows[at])
            if len(tree.tokens) > budget and paths:
                tree.cut(size)
                yield _finish(tree, paths, rows)
                tree, paths = _Tree(), {}
                path = tree.add(rows[at])
            paths[at] = path
    if paths:
        yield _finish(tree, paths, rows)


def dealt(rows: Sequence[Row], chosen: Sequence[int], budget: int, rank: int, count: int) -> list[Pack | None]:
    """The packs that `rank` of `count` runs, equally many for each rank: None where one has to sit a pass out.

    Packs run at the same time are of about the same size; where they do not go round evenly, smaller ones are tried.
    """

    def rounds(limit: int) -> list[list[Pack]]:
        made = sorted(packs(rows, chosen, limit), key=lambda pack: -len(pack.tokens))
        return [made[at : at + count] for at in range(0, len(made), count)]

    def cost(made: list[list[Pack]]) -> int:
        return sum(len(together[0].tokens) for together in made)

    best = rounds(budget)
    if best and len(best[-1]) < count:
        tokens = sum(len(pack.tokens) for together in best for pack in together)
        best = min(best, rounds(-(-tokens * 11 // (10 * count * len(best)))), key=cost)
    return [together[rank] if rank < len(together) else None for together in best]


def idle_pack(rows: Sequence[Row]) -> Pack:
    """The smallest pack there is, for a rank that only has to take part."""
    first = rows[0]
    short = replace(first, prompt=first.prompt[:1], completion=first.completion[:1], sampling=first.sampling[:1])
    return next(packs([short], [0], 1))
