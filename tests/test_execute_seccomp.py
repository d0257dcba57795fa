"""The filter of system calls: what it answers for each number, and that it is on inside a sandbox."""

import ctypes
import os
import struct

import pytest

from stages.common.config import Execute
from stages.execute import seccomp, stage
from stages.execute.cases import task_of

ALLOW, KILL, EPERM, ENOSYS = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# read, write, openat, futex, execve, getpid, mmap, exit_group, kill
NEEDED = {"x86_64": [0, 1, 257, 202, 59, 39, 9, 231, 62], "aarch64": [63, 64, 56, 98, 221, 172, 222, 94, 129]}


def answer(program, number, audit, first_argument=0, second_argument=0):
    """What the kernel does with a call, by running the filter as it would: struct seccomp_data, one step at a time."""
    data = struct.pack("<IIQ6Q", number, audit, 0, first_argument, second_argument, 0, 0, 0, 0)
    steps = list(struct.iter_unpack("HBBI", program))
    at = loaded = 0
    while True:
        code, yes, no, value = steps[at]
        at += 1
        if code == 0x06:
            return value
        if code == 0x20:
            (loaded,) = struct.unpack_from("<I", data, value)
        else:
            holds = {0x15: loaded == value, 0x35: loaded >= value, 0x45: bool(loaded & value)}[code]
            at += yes if holds else no


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_every_listed_call_is_refused_and_no_other(machine):
    program, index = seccomp.program(machine), ["x86_64", "aarch64"].index(machine)
    denied = {n[index] for n in seccomp.DENIED.values() if n[index] is not None}
    special = {seccomp.CLONE[index]: ALLOW, seccomp.CLONE3[index]: ENOSYS, seccomp.SOCKET[index]: EPERM}
    for number in range(600):
        want = EPERM if number in denied else special.get(number, ALLOW)
        assert answer(program, number, AUDIT[machine]) == want, number
    assert not denied & {*NEEDED[machine], *special}


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_sockets_by_family_and_other_processes_left_alone(machine):
    program, index = seccomp.program(machine), ["x86_64", "aarch64"].index(machine)
    allowed = [f for f in range(46) if answer(program, seccomp.SOCKET[index], AUDIT[machine], f) == ALLOW]
    assert allowed == [1, 2, 10, 16]
    for calls, position in seccomp.ITSELF.values():
        for who, want in ((0, ALLOW), (1, EPERM), (4242, EPERM)):
            arguments = (who, 0) if position == 0 else (0, who)
            assert answer(program, calls[index], AUDIT[machine], *arguments) == want


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_new_namespaces_and_other_architectures(machine):
    program, index = seccomp.program(machine), ["x86_64", "aarch64"].index(machine)
    clone = seccomp.CLONE[index]
    for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert answer(program, clone, AUDIT[machine], flag | 17) == EPERM, hex(flag)
    threads = 0x3D0F00  # CLONE_VM | FS | FILES | SIGHAND | THREAD | SYSVSEM | SETTLS | ...
    assert answer(program, clone, AUDIT[machine], threads) == ALLOW
    for audit in {*AUDIT.values(), 0x40000003} - {AUDIT[machine]}:
        assert answer(program, 0, audit) == KILL
    if machine == "x86_64":
        assert answer(program, 0x40000000 | 39, AUDIT[machine]) == KILL


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_a_zygote_may_mount_and_clone_and_nothing_more(machine):
    strict, zygote = seccomp.program(machine), seccomp.program(machine, namespaces=True)
    index, audit = ["x86_64", "aarch64"].index(machine), AUDIT[machine]
    different = {n for n in range(600) if answer(strict, n, audit, 0x10000011) != answer(zygote, n, audit, 0x10000011)}
    assert different == {seccomp.DENIED["mount"][index], seccomp.CLONE[index], seccomp.CLONE3[index]}
    assert seccomp.clone_number(machine) == seccomp.CLONE[index]


def test_length_and_other_machines():
    assert seccomp.program("riscv64") is None and seccomp.clone_number("riscv64") is None
    assert len(seccomp.program("x86_64")) % 8 == 0
    assert len(seccomp.program("x86_64")) // 8 <= 4096  # BPF_MAXINSNS


INSIDE = """
import ctypes
def calls(numbers):
    libc = ctypes.CDLL(None, use_errno=True)
    out = {}
    for number in numbers:
        ctypes.set_errno(0)
        result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(-1)] * 6)
        out[number] = (result, ctypes.get_errno())
    return out
def mode():
    return [line.split()[1] for line in open("/proc/self/status") if line.startswith("Seccomp:")]
"""


@pytest.mark.skipif(os.uname().machine not in AUDIT, reason="no filter on this machine's architecture")
def test_inside_a_sandbox():
    index = ["x86_64", "aarch64"].index(os.uname().machine)
    numbers = [n[index] for n in seccomp.DENIED.values() if n[index] is not None]
    # without a filter the kernel says EINVAL, EBADF, ESRCH, ... to these arguments of calls that anybody may use
    free = [seccomp.DENIED[name][index] for name in ("process_vm_readv", "kcmp", "shmget", "keyctl", "mq_open")]
    case = {
        "id": "a",
        "code": INSIDE,
        "tests": [
            f"assert calls({numbers}) == {dict.fromkeys(numbers, (-1, 1))}",
            f"assert calls([{seccomp.CLONE3[index]}]) == {{{seccomp.CLONE3[index]}: (-1, 38)}}",
            "assert mode() == ['2']",
        ],
    }
    task = task_of(case, 1)
    settings = Execute()
    (result,) = stage.judge([stage.Node("a", "a", INSIDE)], {"a": task}, settings, stage.sandboxes(settings, (), 1))
    assert [(t["kind"], t.get("got"), t.get("message")) for t in result["tests"]] == [("passed", None, None)] * 3
    libc = ctypes.CDLL(None, use_errno=True)
    outside = []
    for number in free:
        ctypes.set_errno(0)
        libc.syscall(ctypes.c_long(number), *[ctypes.c_long(-1)] * 6)
        outside.append(ctypes.get_errno())
    assert any(error != 1 for error in outside), "this machine refuses them all by itself: nothing is shown here"
