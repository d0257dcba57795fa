"""Files that are there whole or not at all: write aside, then rename.

A killed stage leaves nothing but a hidden temporary name beside its output, which the next run replaces.
"""

import glob
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def _asides(path: Path, ending: str) -> Path:
    """A temporary name beside `path` for this process; what killed processes left under such names is removed."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.{ending}"):
        writer = left.name.removeprefix(f".{path.name}.").removesuffix(f".{ending}")
        if writer == str(os.getpid()) or (writer.isdigit() and not Path(f"/proc/{writer}").exists()):
            shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)
    return path.with_name(f".{path.name}.{os.getpid()}.{ending}")


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it onto `path` if the block ends well, else remove it."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = _asides(path, "tmp")
    try:
        yield aside
        with open(aside, "rb") as handle:
            os.fsync(handle.fileno())
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8 through :func:`atomic_file`."""
    with atomic_file(path) as aside:
        aside.write_text(text, encoding="utf-8")


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield an empty temporary folder beside `path`; rename it onto `path` if the block ends well, else remove it.

    What stood at `path` before is set aside and removed only after the new folder is in place. Everything in the new
    folder is synced to disk before the rename.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    aside, old = _asides(path, "tmp"), _asides(path, "old")
    aside.mkdir()
    try:
        yield aside
        for file in aside.rglob("*"):
            if file.is_file():
                with open(file, "rb") as handle:
                    os.fsync(handle.fileno())
        if path.exists():
            os.replace(path, old)
        os.replace(aside, path)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def sha256(paths: list[Path]) -> str:
    """Hex digest over the names and contents of `paths`, in the order given."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(Path(path).name.encode() + b"\0")
        with open(path, "rb") as handle:
            while chunk := handle.read(1 << 20):
                digest.update(chunk)
    return digest.hexdigest()
