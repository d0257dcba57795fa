"""Interpreter and packages for the sandboxes: what another user can read, copies, and what is refused."""

import os
import platform
import subprocess
import tempfile
from pathlib import Path

import pytest

from stages.common.cli import UserError
from stages.execute import runtime

UID = 61001


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("MURPHY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.skipif(os.getuid() != 0, reason="needs files of other users")
def test_reachable():
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        inner = top / "a" / "file"
        inner.parent.mkdir()
        inner.write_text("x")
        for mode, reach in ((0o755, True), (0o700, False), (0o711, True), (0o744, False)):
            top.chmod(0o755)
            inner.chmod(0o644)
            inner.parent.chmod(mode)
            assert runtime.reachable(inner, UID) is reach, oct(mode)
        inner.parent.chmod(0o711)
        assert not runtime.reachable(inner.parent, UID)  # cannot be listed
        inner.parent.chmod(0o755)
        inner.chmod(0o600)
        assert not runtime.reachable(inner, UID) and not runtime.reachable(inner.parent, UID)
        os.chown(inner, UID, UID)
        assert runtime.reachable(inner, UID)


def test_a_copy_is_made_once_and_can_be_read_by_anybody(cache):
    made = []

    def fill(folder):
        made.append(folder)
        (folder / "sub").mkdir(mode=0o700)
        (folder / "sub" / "x").write_text("x")
        (folder / "sub" / "x").chmod(0o600)

    first = runtime.copied("thing", fill, "identity")
    assert first == runtime.copied("thing", fill, "identity") and len(made) == 1
    assert (first / "sub" / "x").stat().st_mode & 0o777 == 0o644 and (first / "sub").stat().st_mode & 0o777 == 0o755
    assert runtime.copied("thing", fill, "another") != first
    with pytest.raises(ZeroDivisionError):
        runtime.copied("broken", lambda folder: 1 / 0, "identity")
    assert [p.name for p in cache.iterdir() if p.name.startswith("broken")] == []


def test_the_cache_folder_is_ours_alone(cache):
    cache.mkdir()
    cache.chmod(0o777)
    with pytest.raises(UserError, match="that others cannot write to"):
        runtime.cache_folder()
    cache.chmod(0o755)
    cache.rename(cache.with_name("real"))
    cache.symlink_to(cache.with_name("real"))
    with pytest.raises(UserError, match="a folder of your own"):
        runtime.cache_folder()


def test_the_environment_s_interpreter_is_this_one():
    found = runtime.find("environment", UID)
    assert found.version == platform.python_version()
    for source, target in found.binds:
        assert os.path.exists(source) and target.startswith(runtime.INSIDE)


def test_a_path_outside_usr_and_what_is_no_interpreter(tmp_path):
    with pytest.raises(UserError, match="no such interpreter"):
        runtime.find(str(tmp_path / "python"), UID)
    (tmp_path / "python").write_text("")
    with pytest.raises(UserError, match="only interpreters under /usr"):
        runtime.find(str(tmp_path / "python"), UID)
    with pytest.raises(UserError, match=r"Python 3\.11 or newer is needed"):
        runtime.find("/usr/bin/env", UID)


def test_the_system_s_interpreter():
    try:
        shown = subprocess.run(["/usr/bin/python3", "-V"], capture_output=True, text=True).stdout.split()[-1]
    except FileNotFoundError:
        pytest.skip("no /usr/bin/python3")
    if tuple(map(int, shown.split(".")[:2])) < (3, 11):
        with pytest.raises(UserError):
            runtime.find("system", UID)
    else:
        assert runtime.find("system", UID).version == shown


def test_packages():
    assert runtime.packages([], UID) == []
    binds = runtime.packages(["pytest"], UID)
    shown = {target for _, target in binds}
    copied = shown == {runtime.PACKAGES}
    names = os.listdir(binds[0][0]) if copied else [os.path.basename(target) for target in shown]
    assert {"pytest", "_pytest", "pluggy"} <= set(names)  # with what it needs
    assert not {"torch", "numpy", "datasets"} & set(names)
    with pytest.raises(UserError, match="no-such-package-here is not installed"):
        runtime.packages(["no-such-package-here"], UID)


def test_stamp_changes_with_the_file(tmp_path):
    file = tmp_path / "x"
    file.write_text("x")
    before = runtime.stamp(file)
    file.write_text("xy")
    assert runtime.stamp(file) != before
