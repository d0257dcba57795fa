"""Checks that sandboxes hold and judge before a stage relies on them; no silent way round them.

A known-good and a known-bad program are judged, and a probe looks from inside for what must not be there: network, host
files, environment, writable system files, capabilities, new user namespaces.
"""

import os
import subprocess
from pathlib import Path

from stages.common.cli import UserError
from stages.common.config import Execute
from stages.execute.stage import Node, Sandboxes, judge

_PROBE = """
import ctypes, os, socket
def probe():
    found = []
    s = socket.socket()
    s.settimeout(0.3)
    for address in (("127.0.0.1", 22), ("10.255.255.255", 80)):
        try:
            s.connect(address)
            found.append("network")
        except OSError:
            pass
    for path in ("/root", "/home", "/etc/passwd", "/etc/shadow", "/sys", "/run", "/var"):
        if os.path.exists(path):
            found.append("host folder " + path)
    for path in ("/x", "/usr/x", "/dev/x", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname"):
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT))
            found.append("writable " + path)
        except OSError:
            pass
    status = open("/proc/self/status").read()
    for field in ("CapEff", "CapPrm", "CapBnd"):
        if int(status.split(field + ":")[1].split()[0], 16):
            found.append(field)
    if "NoNewPrivs:\\t1" not in status:
        found.append("new privileges")
    try:
        first = open("/proc/1/environ").read()
    except OSError:
        first = ""
    if b"PATH" not in open("/proc/self/environ", "rb").read() or "MURPHY_CANARY" in first:
        found.append("environment")
    if ctypes.CDLL(None).unshare(0x10000000) == 0:
        found.append("user namespaces")
    if os.getuid() == 0 or len([p for p in os.listdir("/proc") if p.isdigit()]) > 4:
        found.append("processes or uid of the host")
    return found
"""


def _task(name: str, entry: str, code: str) -> dict:
    test = {"visible": True, "code": code, "stdin": None, "stdout": None}
    empty = dict.fromkeys(
        ("prelude", "setup", "reference", "difficulty", "cpu_seconds", "memory_mb", "stub", "tolerance")
    )
    return {
        **empty,
        "task_id": name,
        "source": "preflight",
        "kind": "function",
        "prompt": "",
        "entry_point": entry,
        "tests": [test],
        "inplace": False,
        "exact": False,
        "packages": [],
    }


def explain(error: str, root: Path = Path("/")) -> str:
    """What to do about a sandbox that does not start, from bwrap's message and the machine's settings."""

    def read(path: str) -> str:
        try:
            return (root / path).read_text().strip()
        except OSError:
            return ""

    advice = []
    if read("proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
        advice.append(
            "AppArmor restricts user namespaces here (Ubuntu 24.04 and later): install the profile of bubblewrap "
            "(`apt install apparmor-profiles`, then `ln -s /usr/share/apparmor/extra-profiles/bwrap-userns-restrict "
            "/etc/apparmor.d/ && apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict`), or as an administrator "
            "`sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`"
        )
    if read("proc/sys/kernel/unprivileged_userns_clone") == "0":
        advice.append("user namespaces are off: as an administrator `sysctl -w kernel.unprivileged_userns_clone=1`")
    if read("proc/sys/user/max_user_namespaces") == "0":
        advice.append("no user namespaces are allowed: as an administrator `sysctl -w user.max_user_namespaces=10000`")
    if (root / ".dockerenv").exists() or (root / "run/.containerenv").exists():
        advice.append(
            "this is a container: start it with `--security-opt seccomp=unconfined --security-opt apparmor=unconfined "
            "--security-opt systempaths=unconfined`, or run the stage outside of it"
        )
    if "zygote:" in error:
        advice = [
            "a sandbox starts here, but none within it, which the warm process needs: set execute.sandbox: bwrap "
            "(the same walls, a new bwrap per program, several times the cost of a start)"
        ]
    elif "No space left" in error:
        advice.append("user namespaces cannot be nested here: this process is already inside a closed sandbox")
    if not advice:
        advice.append("user namespaces may be forbidden here; `bwrap --unshare-user --ro-bind / / true` shows it")
    return f"the sandbox does not start: {error.strip()[:500]}\n" + "\n".join(f"- {a}" for a in advice)


def check(boxes: Sandboxes, settings: Execute) -> None:
    """UserError when bwrap does not start, a good program fails, a bad one passes, or a probe finds a hole."""
    start = boxes.starts[0]
    command = start["commands"]["tests"]
    # as process 1, because the one that bwrap would start before it is left behind as a zombie
    trial = [*command[: command.index("--")], "--as-pid-1", "--", "/usr/bin/true"]
    uid = start["uid"]
    drop = {"user": uid, "group": uid, "extra_groups": []} if os.getuid() != uid else {}
    shown = subprocess.run(trial, env={}, cwd="/", capture_output=True, text=True, stdin=subprocess.DEVNULL, **drop)
    if shown.returncode:
        raise UserError(explain(shown.stderr or f"bwrap ended with status {shown.returncode}"))
    tasks = {
        t["task_id"]: t
        for t in (
            _task("good", "double", "assert double(4) == 8"),
            _task("bad", "double", "assert double(4) == 8"),
            _task("probe", "probe", "assert probe() == []"),
            _task("version", "version", f"assert version() == {boxes.facts['python_inside']!r}"),
        )
    }
    nodes = [
        Node("good", "good", "def double(x):\n    return 2 * x\n"),
        Node("bad", "bad", "def double(x):\n    return x\n"),
        Node("probe", "probe", _PROBE),
        Node("version", "version", "import platform\ndef version():\n    return platform.python_version()\n"),
    ]
    results = judge(nodes, tasks, settings, boxes)
    for name, result in zip(("good", "bad", "probe", "version"), results, strict=True):
        want = "wrong_answer" if name == "bad" else "passed"
        verdict = result["tests"][0]
        if verdict["kind"] == want:
            continue
        if "infra_error" in result:
            raise UserError(explain(result["infra_error"]))
        if name == "version" and verdict["kind"] == "wrong_answer":
            raise UserError(f"another Python runs inside: {verdict.get('got')}, wanted {boxes.facts['python_inside']}")
        if name == "probe":
            raise UserError(
                f"the sandbox has holes: {verdict.get('got') or verdict.get('message')}; not running programs"
            )
        raise UserError(
            f"the {name} sample came back as {verdict['kind']} ({verdict.get('message')}); the limits may be too low "
            f"for this machine: execute.memory_mb {settings.memory_mb}, execute.cpu_seconds {settings.cpu_seconds}, "
            f"execute.processes {settings.processes}"
        )
