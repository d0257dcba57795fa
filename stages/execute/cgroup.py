"""Control groups, version 2, where they were delegated to us: memory and processes of a sandbox as a whole.

A machine may have version 1 only, or a version 2 that this user cannot write to; so they are used where they are and
the tables' provenance says which. To have one, start the stage as the only process of a delegated group:
``systemd-run --user --scope -p Delegate=yes python -m stages.execute ...``. Without one, limits are those of each
process, and the supervisor looks at the memory of all together ten times a second. Standard library only.
"""

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

WANTED = ("memory", "pids")
LEAF = "stage"  # the group that this process moves into, beside those of the sandboxes


def own(mountinfo: Path = Path("/proc/self/mountinfo"), membership: Path = Path("/proc/self/cgroup")) -> Path | None:
    """The folder of this process's group in version 2; None where version 2 is not mounted."""
    try:
        mounts = [line.split(" - ") for line in mountinfo.read_text().splitlines()]
        lines = membership.read_text().splitlines()
    except OSError:
        return None
    tops = [Path(left.split()[4]) for left, right in mounts if right.split()[0] == "cgroup2"]
    inside = [line[3:] for line in lines if line.startswith("0::")]
    return tops[0] / inside[0].lstrip("/") if tops and inside else None


@dataclass(frozen=True)
class Delegated:
    """Where groups of sandboxes are made (None: nowhere), and in words what that means for this run."""

    base: Path | None
    words: str


def find(home: Path | None) -> Delegated:
    """Whether groups with limits can be made below `home`, the group of this process; moves it into a leaf for that.

    The kernel gives controllers only to groups below one without processes, so `home` must hold this process alone.
    """
    if home is None:
        return Delegated(None, "none: no cgroup v2 here")
    words = f"v2 with {', '.join(WANTED)}"
    if home.name == LEAF and _given(home.parent):  # moved there before
        return Delegated(home.parent, words)
    try:
        offered = (home / "cgroup.controllers").read_text().split()
    except OSError as error:
        return Delegated(None, f"none: {error.strerror}")
    missing = [name for name in WANTED if name not in offered]
    if missing:
        return Delegated(None, f"none: cgroup v2 without {', '.join(missing)}")
    if not all(os.access(home / name, os.W_OK) for name in ("", "cgroup.procs", "cgroup.subtree_control")):
        return Delegated(None, "none: cgroup v2 is not delegated to this user")
    others = set((home / "cgroup.procs").read_text().split()) - {str(os.getpid())}
    if others:
        return Delegated(None, "none: other processes are in the stage's cgroup")
    leaf = home / LEAF
    try:
        leaf.mkdir(exist_ok=True)
        (leaf / "cgroup.procs").write_text(str(os.getpid()))
        (home / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in WANTED))
    except OSError as error:
        with contextlib.suppress(OSError):
            (home / "cgroup.procs").write_text(str(os.getpid()))
            leaf.rmdir()
        return Delegated(None, f"none: {error.strerror}")
    return Delegated(home, words)


def _given(group: Path) -> bool:
    """Whether groups below this one have the controllers."""
    try:
        return set(WANTED) <= set((group / "cgroup.subtree_control").read_text().split())
    except OSError:
        return False


class Group:
    """One group: limits where the controllers are there; everything in it can be killed at once."""

    def __init__(self, path: Path):
        self.path = path
        path.mkdir(exist_ok=True)
        self._limits: dict[str, int] = {}

    def limit(self, memory: int, processes: int) -> None:
        """Bound the memory of all in it (bytes; swap is none of it) and their number, where the controllers are."""
        for name, value in (("memory.max", memory), ("memory.swap.max", 0), ("pids.max", processes)):
            if self._limits.get(name) != value and (self.path / name).exists():
                (self.path / name).write_text(str(value))
                self._limits[name] = value

    def adopt(self, *pids: int) -> None:
        """Move processes in; what they start from then on is in it too."""
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                (self.path / "cgroup.procs").write_text(str(pid))

    def processes(self) -> list[int]:
        """Processes in it."""
        return [int(pid) for pid in (self.path / "cgroup.procs").read_text().split()]

    def cpu(self) -> float:
        """CPU seconds used by everything that was ever in it."""
        return int((self.path / "cpu.stat").read_text().split()[1]) / 1e6

    def killed_for_memory(self) -> int:
        """How many processes the kernel has killed because of `memory`."""
        try:
            lines = (self.path / "memory.events").read_text().splitlines()
        except OSError:
            return 0
        return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)

    def close(self) -> None:
        """Kill what is in it and remove it."""
        with contextlib.suppress(OSError):
            (self.path / "cgroup.kill").write_text("1")
        for _ in range(100):
            try:
                self.path.rmdir()
                return
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.01)
