"""The interpreter and packages inside the sandboxes, readable by the sandbox's uid.

``environment`` is the interpreter that runs this stage. Where the uid that sandboxes run under cannot read it (an
interpreter under /root, say), a copy is made once under a cache folder, of the same version; never another version in
its place. Packages are the environment's own files, without the rest of its site-packages, so that no data set that
happens to be installed is visible to candidates.
"""

import hashlib
import os
import py_compile
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from stages.common.cli import UserError
from stages.common.files import atomic_folder
from stages.execute.sandbox import BOX

INSIDE = "/usr/local/python"  # where the interpreter stands in a sandbox; the host's /usr/local is not shown
PACKAGES = "/usr/local/packages"
_LEFT_OUT = shutil.ignore_patterns(
    "site-packages", "dist-packages", "test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3",
    "config-*", "*.a", "*.opt-*.pyc",
)  # fmt: skip


@dataclass(frozen=True)
class Runtime:
    """An interpreter as a sandbox sees it: `binds` are (host path, path inside), read-only."""

    python: str
    version: str
    binds: list[tuple[str, str]]
    masks: list[str] = field(default_factory=list)  # folders inside that are covered by empty ones
    library_path: str = ""


def cache_folder() -> Path:
    """The folder for copies, owned by us and writable by nobody else."""
    base = Path(os.environ.get("MURPHY_CACHE") or f"/var/tmp/murphy-{os.getuid()}")
    base.mkdir(mode=0o755, parents=True, exist_ok=True)
    state = base.lstat()
    if base.is_symlink() or state.st_uid != os.getuid() or state.st_mode & 0o022:
        raise UserError(f"{base}: the cache folder must be a folder of your own that others cannot write to; remove it")
    return base


def reachable(path: Path, uid: int) -> bool:
    """Whether user `uid` can read `path` (for a folder: enter and list it, and read what stands in it)."""
    path = Path(path).resolve()
    if uid == os.getuid() and uid != 0:
        return os.access(path, os.R_OK | (os.X_OK if path.is_dir() else 0))

    def allowed(one: Path, bits: int) -> bool:
        state = one.stat()
        shift = 6 if state.st_uid == uid else 0
        return (state.st_mode >> shift) & bits == bits

    if not all(allowed(parent, 0o1) for parent in path.parents):
        return False
    if path.is_file():
        return allowed(path, 0o4)
    return all(allowed(p, 0o5 if p.is_dir() else 0o4) for p in [path, *path.iterdir()] if not p.is_symlink())


def _open_up(folder: Path) -> None:
    for path in [folder, *folder.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)


def copied(name: str, fill, *identity: object) -> Path:
    """The cached folder `name`-<hash of identity>, filled by `fill(folder)` when it is not there yet."""
    digest = hashlib.sha256(repr(identity).encode()).hexdigest()[:16]
    target = cache_folder() / f"{name}-{digest}"
    if not target.exists():
        with atomic_folder(target) as aside:
            fill(aside)
            _open_up(aside)
    return target


def stamp(path: Path) -> tuple:
    """What names a file's state: path, size and time of change."""
    state = path.stat()
    return str(path), state.st_size, state.st_mtime_ns


def _shared_library() -> list[Path]:
    """libpython as this process has loaded it, where the interpreter is linked against one."""
    with open("/proc/self/maps") as maps:
        paths = {line.split()[-1] for line in maps if "/libpython" in line}
    return [Path(p) for p in sorted(paths)]


def _environment(uid: int) -> Runtime:
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    binary = Path(sys.executable).resolve()
    stdlib = Path(sysconfig.get_path("stdlib"))
    if not (stdlib / "os.py").is_file():
        raise UserError(f"{stdlib}: no standard library there; set execute.python to another interpreter's path")
    full = sys.version.split()[0]
    if binary.parent == Path("/usr/bin") and stdlib.parent == Path("/usr/lib"):
        return Runtime(str(binary), full, [])
    libraries = _shared_library()
    parts = [binary, stdlib, stdlib / "lib-dynload", *libraries]
    if all(reachable(p, uid) for p in parts if p.exists()):
        binds = [(str(binary), f"{INSIDE}/bin/python{version}"), (str(stdlib), f"{INSIDE}/lib/python{version}")]
        binds += [(str(p), f"{INSIDE}/lib/{p.name}") for p in libraries]
        masks = [f"{INSIDE}/lib/python{version}/site-packages"] if (stdlib / "site-packages").is_dir() else []
    else:

        def fill(folder: Path) -> None:
            (folder / "bin").mkdir()
            shutil.copy2(binary, folder / "bin" / f"python{version}")
            shutil.copytree(stdlib, folder / "lib" / f"python{version}", ignore=_LEFT_OUT, symlinks=False)
            for library in libraries:
                shutil.copy2(library, folder / "lib" / library.name)

        copy = copied(f"python-{full}", fill, stamp(binary), stamp(stdlib / "os.py"), 1)
        binds, masks = [(str(copy), INSIDE)], []
    return Runtime(f"{INSIDE}/bin/python{version}", full, binds, masks, f"{INSIDE}/lib" if libraries else "")


def _at_path(python: str, uid: int) -> Runtime:
    path = Path(python).resolve()
    if not path.is_file():
        raise UserError(f"execute.python: {python}: no such interpreter")
    if not str(path).startswith("/usr/"):
        raise UserError(
            f"execute.python: {python}: only interpreters under /usr are used by path; run this stage with that "
            "interpreter and set execute.python: environment"
        )
    shown = subprocess.run([path, "-c", "import sys;print(sys.version.split()[0])"], capture_output=True, text=True)
    if shown.returncode or tuple(map(int, re.findall(r"\d+", shown.stdout)[:2])) < (3, 11):
        raise UserError(f"execute.python: {python}: Python 3.11 or newer is needed, this is {shown.stdout.strip()!r}")
    return Runtime(str(path), shown.stdout.strip(), [])


def find(python: str, uid: int) -> Runtime:
    """The interpreter that the setting `execute.python` names."""
    if python == "environment":
        return _environment(uid)
    return _at_path("/usr/bin/python3" if python == "system" else python, uid)


def _requirements(name: str) -> list[str]:
    """Distributions that `name` needs without extras, itself first, each once."""
    from packaging.requirements import Requirement  # a dependency of pytest and snakemake

    seen: list[str] = []
    queue = [name]
    while queue:
        one = re.sub(r"[-_.]+", "-", queue.pop(0)).lower()
        if one in seen:
            continue
        try:
            needs = metadata.requires(one) or []
        except metadata.PackageNotFoundError:
            if one == re.sub(r"[-_.]+", "-", name).lower():
                raise UserError(
                    f"execute.packages: {name} is not installed in this environment; pip install {name}"
                ) from None
            continue
        seen.append(one)
        for text in needs:
            need = Requirement(text)
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                queue.append(need.name)
    return seen


def _tops(distribution: str) -> set[Path]:
    """Top-level files and folders in site-packages of a distribution (its modules, shared libraries and metadata)."""
    found = metadata.distribution(distribution)
    tops = set()
    for file in found.files or []:
        if file.parts[0] not in ("..", "__pycache__") and not file.name.endswith(".pth"):
            tops.add(Path(found.locate_file(file.parts[0])).resolve())
    return {t for t in tops if t.exists()}


def packages(names: list[str], uid: int) -> list[tuple[str, str]]:
    """Binds that put distributions and what they need under :data:`PACKAGES`; UserError for one not installed."""
    tops = sorted({top for name in names for one in _requirements(name) for top in _tops(one)})
    if not tops:
        return []
    if all(reachable(top, uid) for top in tops):
        return [(str(top), f"{PACKAGES}/{top.name}") for top in tops]

    def fill(folder: Path) -> None:
        for top in tops:
            if top.is_dir():
                shutil.copytree(top, folder / top.name, ignore=shutil.ignore_patterns("tests"))
            else:
                shutil.copy2(top, folder / top.name)

    copy = copied("packages", fill, [stamp(t) for t in tops], 1)
    return [(str(copy), PACKAGES)]


def own_files() -> list[tuple[str, str]]:
    """The bind of our files that run inside: a copy with their bytecode, which a sandbox cannot write."""
    files = sorted((Path(__file__).parent / "inside").glob("*.py"))
    content = [(f.name, hashlib.sha256(f.read_bytes()).hexdigest()) for f in files]

    def fill(folder: Path) -> None:
        for file in files:
            copy = shutil.copy2(file, folder / file.name)
            # checked against nothing: the copy is never edited, and its times may change on the way
            mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
            py_compile.compile(copy, dfile=f"{BOX}/{file.name}", doraise=True, invalidation_mode=mode)

    return [(str(copied("inside", fill, sys.implementation.cache_tag, content)), BOX)]
