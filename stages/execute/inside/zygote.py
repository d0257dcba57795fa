"""A warm interpreter inside a sandbox, which gives each program a process in fresh namespaces of its own.

It never loads a program. Asked for one, it clones: the clone is process 1 of new user, process, mount, IPC, host name,
network and cgroup namespaces, mounts /tmp, /dev/shm, /dev/pts and /proc anew, gives up every capability and the making
of namespaces, and forks the process that takes the program over a socket of its own. Nothing in there has a name for
the warm process: not in /proc, not as a process id, not as a process group, not as a descriptor.

    python zygote.py CONTROL_FD
"""

import array
import ctypes
import errno
import fcntl
import os
import signal
import socket
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import asserts  # noqa: F401  warm, for what is forked
import candidate
import in_process
import peer  # noqa: F401

_NEW = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000  # CLONE_NEW*, no time
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _REMOUNT, _BIND = 1, 2, 4, 8, 32, 4096
_libc = ctypes.PyDLL(None, use_errno=True)  # keeps the interpreter's lock: nothing may run between clone and its return


class _Program(ctypes.Structure):
    """struct sock_fprog: a filter's length in steps, and its steps."""

    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


def _checked(result, what):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _write(path, data):
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)


def _mount(kind, target, flags, options=None):
    source = None if kind is None else kind.encode()
    options = None if options is None else options.encode()
    _checked(_libc.mount(source, target.encode(), source, flags, options), f"mount {target}")


def _clone(number):
    """As fork, into new namespaces: 0 in the child, which is their process 1 and holds every capability over them."""
    return _checked(_libc.syscall(ctypes.c_long(number), ctypes.c_long(_NEW | signal.SIGCHLD), 0, 0, 0, 0), "clone")


def _own_names(uid, gid):
    """The same user and group as outside, and no other; no way back to the groups of the outside."""
    _write("/proc/self/setgroups", b"deny")
    _write("/proc/self/uid_map", f"{uid} {uid} 1".encode())
    _write("/proc/self/gid_map", f"{gid} {gid} 1".encode())


def _fresh_files(tmp_mb):
    """Empty and bounded /tmp, /dev/shm and /dev/pts; a /proc that shows the new processes only, read-only."""
    _mount("tmpfs", "/tmp", _NOSUID | _NODEV, f"size={tmp_mb}m,mode=0700,nr_inodes=16384")
    _mount("tmpfs", "/dev/shm", _NOSUID | _NODEV, "size=16m,mode=1777,nr_inodes=16384")
    _mount("devpts", "/dev/pts", _NOSUID | _NOEXEC, "newinstance,ptmxmode=0666,mode=620")
    _mount("proc", "/proc", _NOSUID | _NODEV | _NOEXEC)
    _write("/proc/sys/user/max_user_namespaces", b"0")
    _write("/proc/self/oom_score_adj", b"1000")  # should memory run out, the program goes before anything else
    _mount(None, "/proc", _REMOUNT | _BIND | _RDONLY | _NOSUID | _NODEV | _NOEXEC)
    os.chdir("/tmp")  # what was the current folder is the warm process's


def _loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP


def _give_up_rights(filter_steps):
    """No capability is left nor can come back, and the filter of system calls holds from here on."""
    capability = 0
    while _libc.prctl(24, capability, 0, 0, 0) == 0:  # PR_CAPBSET_DROP, up to the last that the kernel knows
        capability += 1
    if ctypes.get_errno() != errno.EINVAL:
        _checked(-1, "dropping capabilities")
    header, none = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    _checked(_libc.capset(header, none), "capset")
    _checked(_libc.prctl(38, 1, 0, 0, 0), "no_new_privs")
    if filter_steps:
        program = _Program(len(filter_steps) // 8, filter_steps)
        _checked(_libc.prctl(22, 2, ctypes.byref(program), 0, 0), "seccomp")


def _dumpable(flag):
    """Whether processes of the same user may look at this one through /proc."""
    _checked(_libc.prctl(4, flag, 0, 0, 0), "dumpable")


def _first_process(start, uid, gid, handed):
    """Process 1 of the new namespaces: prepares them, forks the program's process, in which alone this returns.

    It waits for that process, reaps what others leave behind and ends as that process did (128 + signal, as bwrap).
    """
    sock, errors = handed
    os.setsid()
    os.dup2(errors, 2)
    _own_names(uid, gid)
    _fresh_files(start["tmp_mb"])
    _loopback_up()
    _give_up_rights(bytes.fromhex(start["filter"]))
    _dumpable(0)
    me = os.pidfd_open(os.getpid())
    with socket.socket(fileno=os.dup(sock)) as control:
        control.sendmsg([b"!"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [me]))])
    os.close(me)
    os.close(errors)
    child = os.fork()
    if child == 0:
        _dumpable(1)
        return sock
    os.close(sock)
    while True:
        pid, status = os.wait()
        if pid == child:
            os._exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))


def _serve(control):
    """Clone for each request; returns, in a new program's process, the name of our file to run and its socket."""
    start, _ = candidate.receive(control)
    kept = list(sys.path)
    sys.path += start["packages"]
    candidate.warm(start["preload"])
    sys.path[:] = kept
    import gc

    uid, gid = os.getuid(), os.getgid()
    candidate.send(control, {"ready": sys.version.split()[0]})
    gc.collect()
    gc.freeze()
    while True:
        request, handed = candidate.receive(control)
        if request is None:
            return None
        try:
            pid = _clone(start["clone"])
            if pid == 0:
                control.close()
                return request["program"], _first_process(start, uid, gid, handed)
        except BaseException as error:
            os.write(handed[1], f"zygote: {error}".encode())
            os._exit(71)
        for fd in handed:
            os.close(fd)
        _, status, usage = os.wait4(pid, 0)
        candidate.send(control, {"ended": status, "cpu": round(usage.ru_utime + usage.ru_stime, 4)})


if __name__ == "__main__":
    _control = socket.socket(fileno=int(sys.argv[1]))
    _control.set_inheritable(False)
    _asked = _serve(_control)
    if _asked is None:
        os._exit(0)
    _name, _fd = _asked
    _socket = socket.socket(fileno=_fd)
    _socket.set_inheritable(False)
    sys.exit((candidate if _name == "candidate.py" else in_process).main(_socket))
