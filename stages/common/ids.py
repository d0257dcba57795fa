"""Deterministic names and seeds of nodes.

A node is named by where it stands in its tree: ``0/starter-add-one/2.1`` is, in version 0, the second child (1) of the
third root sample (2) of that task. The name of a group is its parent's name, or ``0/starter-add-one`` for the roots, so
groups are keyed by parent, never by prompt text.
"""

import hashlib


def root_group(version: int, task_id: str) -> str:
    """Name of the group of a task's roots; also the prefix of every node of its tree."""
    return f"{version}/{task_id}"


def node_id(group_id: str, sample: int, is_root: bool) -> str:
    """Name of sample number `sample` (from 0) of a group."""
    return f"{group_id}{'/' if is_root else '.'}{sample}"


def seed_for(*parts: object) -> int:
    """A 63-bit seed from the values given; the same values always give the same seed."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
