"""What a program sees and can do, in a sandbox of a zygote and in a bwrap of its own; and a zygote that is lost."""

import os
import signal
import time

import pytest

from stages.common.cli import UserError
from stages.common.config import Execute
from stages.execute import cases, preflight, sandbox, stage, worker
from stages.execute.sandbox import SandboxFailed
from stages.execute.supervisor import Supervisor
from stages.execute.zygote import Zygote
from tests.sandboxes import SETTINGS, judge

LOOK = """
import array, ctypes, fcntl, os, socket, struct, threading
libc = ctypes.CDLL(None, use_errno=True)

def status(*names):
    fields = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return {n: fields[n].strip() for n in names}

def writable(top):
    found = []
    for folder, _, names in os.walk(top):
        for name in names:
            try:
                os.close(os.open(os.path.join(folder, name), os.O_WRONLY | os.O_NONBLOCK))
                found.append(os.path.join(folder, name))
            except OSError:
                pass
    return found

def refused(path):
    try:
        os.close(os.open(path, os.O_RDONLY))
    except OSError as error:
        return error.errno
    return 0

def errors(calls):
    out = []
    for name, *arguments in calls:
        ctypes.set_errno(0)
        result = getattr(libc, name)(*arguments)
        out.append((name, result, ctypes.get_errno()))
    return out

def descriptors():
    out = {}
    for fd in range(256):
        try:
            out[fd] = os.readlink(f"/proc/self/fd/{fd}").split(":")[0]
        except OSError:
            pass
    return out

def left(folder):
    found = [name for name in os.listdir(folder) if name not in ("0", "ptmx")]
    try:
        open(os.path.join(folder, "left"), "w").close()
    except OSError:
        pass
    return found

def loopback():
    server = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=lambda: server.accept()[0].sendall(b"hello"), daemon=True).start()
    return socket.create_connection(server.getsockname(), 1).recv(5)

def interfaces():
    return [name for _, name in socket.if_nameindex()]

def pids():
    return sorted(int(p) for p in os.listdir("/proc") if p.isdigit())

def sizes():
    return {p: os.statvfs(p).f_blocks * os.statvfs(p).f_frsize >> 20 for p in ("/tmp", "/dev/shm")}

def environment():
    return sorted(os.environ), open("/proc/self/environ").read().count("CANARY")

def host():
    return socket.gethostname(), os.getuid(), os.getgid(), os.getgroups()

"""

NO_CAPABILITIES = dict.fromkeys(("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"), "0000000000000000")
FACTS = {
    "capabilities": f"assert status('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb') == {NO_CAPABILITIES}",
    "privileges": "assert status('NoNewPrivs', 'Seccomp') == {'NoNewPrivs': '1', 'Seccomp': '2'}",
    "sysctls": "assert writable('/proc/sys') == []",
    "core pattern": "assert '/proc/sys/kernel/core_pattern' not in writable('/proc/sys/kernel')",
    "proc": "assert [p for p in writable('/proc') if not p.split('/')[2].isdigit() and '/self/' not in p] == []",
    "machine's files": "assert writable('/usr/bin') == [] and writable('/usr/local') == []",
    "mounts": "assert {e for _, _, e in errors([('umount2', b'/proc', 2), ('umount2', b'/tmp', 2), "
    "('mount', b'none', b'/tmp', b'tmpfs', 0, None), ('chroot', b'/tmp')])} == {1}",
    "namespaces": "assert errors([('unshare', 0x10000000), ('unshare', 0x20000), ('setns', 0, 0)]) == "
    "[('unshare', -1, 1), ('unshare', -1, 1), ('setns', -1, 1)]",
    "host name": "assert errors([('sethostname', b'x', 1)]) == [('sethostname', -1, 1)]",
    "names": "assert host()[0] == 'sandbox' and host()[1] != 0 and host()[3] in ([], [65534], [host()[2]])",
    "processes": "assert len(pids()) <= 4 and pids()[0] == 1",
    "descriptors": "assert set(descriptors().values()) <= {'/dev/null', 'socket', '/proc/self/fd'}",
    "few descriptors": "assert len(descriptors()) <= 5",
    "environment": "assert environment() == (['HOME', 'LANG', 'MKL_NUM_THREADS', 'OMP_NUM_THREADS', "
    "'OPENBLAS_NUM_THREADS', 'PATH', 'PYTHONHASHSEED', 'TZ'], 0) or 'LD_LIBRARY_PATH' in environment()[0]",
    "interfaces": "assert interfaces() == ['lo']",
    "loopback": "assert loopback() == b'hello'",
    "sizes": "assert sizes() == {'/tmp': 32, '/dev/shm': 16}",
    "current folder": "assert left('.') == []",
    "current folder again": "assert left('.') == []",
    "shared memory": "assert left('/dev/shm') == []",
    "tmp": "assert left('/tmp') == []",
    "terminals": "assert left('/dev/pts') == []",
}


@pytest.mark.parametrize("user", [False, True], ids=["as-is", "ordinary-user"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_walls(tmp_path, setting, user):
    """Each fact twice, as programs of their own one after the other: the second must find nothing of the first."""
    if user and os.getuid() != 0:
        pytest.skip("already an ordinary user")
    lines = [
        {"id": f"{name} {n}", "code": LOOK + f"# {n}\n", "tests": [test]}
        for name, test in FACTS.items()
        for n in (1, 2)
    ]
    answers = judge(tmp_path, lines, "--sandbox", setting, "--workers", "1", user=user)
    wrong = {k: (a["verdict"], a["message"]) for k, a in answers.items() if a["verdict"] != "passed"}
    assert wrong == {}


def supervisor_of(**changes):
    settings = Execute(cpu_seconds=2, **changes)
    sandbox.become_subreaper()
    start = stage.sandboxes(settings, (), 1).starts[0]
    return Supervisor(start), settings, start


def run(supervisor, settings, start, code, *tests, judged=worker.judge):
    task = cases.task_of({"id": "a", "code": code, "tests": list(tests)}, 1)
    job = {**stage.job_of(task, code, settings), "first": 0}
    job["limits"] = worker.limits(job, start["settings"])
    result = judged(supervisor, job)
    return [(t["kind"], t.get("message")) for t in result["tests"]] or result


KINDS = ("pid", "mnt", "ipc", "uts", "net", "user", "cgroup")
NAMESPACES = """
import os
def spaces(kinds): return {os.readlink(f"/proc/self/ns/{kind}") for kind in kinds}
"""
DEAF = """
import os
def first(name):
    try:
        return open(f"/proc/1/{name}", "rb").read(10)
    except OSError as error:
        return error.errno
def root():
    try:
        return os.listdir("/proc/1/root")
    except OSError as error:
        return error.errno
"""


def test_nothing_is_shared_with_the_zygote():
    supervisor, settings, start = supervisor_of(sandbox="zygote")
    try:
        assert run(supervisor, settings, start, "def f(): return 1", "assert f() == 1") == [("passed", None)]
        warm = sandbox.descendants(supervisor._zygotes["candidate"]._box.init)[-1]
        for pid in (warm, os.getpid()):
            taken = {os.readlink(f"/proc/{pid}/ns/{kind}") for kind in KINDS}
            test = f"assert spaces({KINDS}) & {taken} == set()"
            assert run(supervisor, settings, start, NAMESPACES, test) == [("passed", None)]
        tests = [f"assert first({n!r}) in (1, 13)" for n in ("mem", "environ", "maps")]
        assert run(supervisor, settings, start, DEAF, *tests, "assert root() in (1, 13)") == [("passed", None)] * 4
        kill = "import os, signal\nos.kill(0, 9)\ndef f(): return 1\n"
        for code in (kill, kill.replace("(0, 9)", "(-1, 9)"), kill.replace("(0, 9)", "(os.getppid(), 9)")):
            kind = run(supervisor, settings, start, code, "assert f() == 1")[0][0]
            # process 1 of a namespace is deaf to signals from inside, and there may be nobody else
            assert kind in ("crash", "passed", "runtime_error"), code
        assert sandbox.descendants(supervisor._zygotes["candidate"]._box.init) == [warm]  # alive, and alone
    finally:
        supervisor.reset()


def test_a_zygote_that_is_lost_is_started_again(capfd):
    supervisor, settings, start = supervisor_of(sandbox="zygote")
    try:
        assert run(supervisor, settings, start, "def f(): return 1", "assert f() == 1") == [("passed", None)]
        zygote = supervisor._zygotes["candidate"]
        first = zygote._box.init
        os.kill(first, signal.SIGKILL)
        assert run(supervisor, settings, start, "def f(): return 2", "assert f() == 2") == [("passed", None)]
        assert zygote._box.init != first
        second = zygote._box.init
        kill = "def f():\n    while True: pass\n"

        def lose(supervisor, job):
            if os.fork() == 0:  # in the middle of a test
                time.sleep(0.5)
                os.kill(second, signal.SIGKILL)
                os._exit(0)
            result = worker.judge(supervisor, job)
            os.wait()
            return result

        # judged again from the start: the loop is the program's own and ends as one
        assert run(supervisor, settings, start, kill, "assert f() == 1", judged=lose)[0][0] == "timeout"
        assert "sandbox failed (1)" in capfd.readouterr().err
    finally:
        supervisor.reset()
    assert sandbox.descendants(os.getpid()) == []


def test_where_no_namespaces_can_be_made_inside():
    """A bwrap that closes user namespaces stands for a machine that does."""
    supervisor, _, start = supervisor_of(sandbox="zygote")
    closed = Zygote(start["commands"]["candidate"], start["uid"], [], [], 32)
    try:
        with pytest.raises(SandboxFailed, match=r"zygote: .*clone"):
            closed.open("candidate.py")
        with pytest.raises(SandboxFailed, match="zygote: "):
            closed.open("candidate.py")
    finally:
        closed.close()
        supervisor.reset()
    boxes = stage.sandboxes(Execute(sandbox="zygote"), (), 1)
    for name in ("candidate", "tests"):
        boxes.starts[0]["commands"][f"{name}_zygote"] = boxes.starts[0]["commands"][name]
    with pytest.raises(UserError, match=r"set execute\.sandbox: bwrap"):
        preflight.check(boxes, Execute(sandbox="zygote"))
