"""A short deny list of system calls as a classic BPF program, for ``bwrap --seccomp``; no libseccomp.

What is refused with EPERM: tracing other processes, kernel modules, keyrings, io_uring, bpf, mounts and namespaces,
System V and POSIX message objects (they would outlive a test), memory files, sockets of unusual families, priorities
and limits of other processes. Other architectures' calls are killed. Names and numbers are the kernel's for x86_64 and
aarch64; on another machine there is no filter and preflight says so.
"""

import os
import struct

# name: (x86_64, aarch64); None where the architecture has no such call
DENIED = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106), "bpf": (321, 280),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "userfaultfd": (323, 282), "perf_event_open": (298, 241), "keyctl": (250, 219), "add_key": (248, 217),
    "request_key": (249, 218), "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264), "mount": (165, 40),
    "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97), "setns": (308, 268),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442), "swapon": (167, 224),
    "swapoff": (168, 225), "reboot": (169, 142), "acct": (163, 89), "quotactl": (179, 60), "syslog": (103, 116),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171), "sethostname": (170, 161),
    "setdomainname": (171, 162), "iopl": (172, None), "ioperm": (173, None), "modify_ldt": (154, None),
    "personality": (135, 92), "vhangup": (153, 58), "lookup_dcookie": (212, 18), "fanotify_init": (300, 262),
    "memfd_create": (319, 279), "memfd_secret": (447, 447),  # memory that no limit of a process counts
    "shmget": (29, 194), "shmat": (30, 196), "semget": (64, 190), "msgget": (68, 186), "mq_open": (240, 180),
}  # fmt: skip
# Calls that could change another process, here the one that tests are forked from: argument that has to be 0 (itself).
ITSELF = {
    "setpriority": ((141, 140), 1), "ioprio_set": ((251, 30), 1), "prlimit64": ((302, 261), 0),
    "sched_setaffinity": ((203, 122), 0), "sched_setscheduler": ((144, 119), 0), "sched_setparam": ((142, 118), 0),
    "sched_setattr": ((314, 274), 0),
}  # fmt: skip
SOCKET, FAMILIES = (41, 198), (1, 2, 10, 16)  # AF_UNIX, AF_INET, AF_INET6, AF_NETLINK: all end in the namespaces
CLONE, CLONE3 = (56, 220), (435, 435)
CLONE_NEW = 0x7E020000  # CLONE_NEWNS, CGROUP, UTS, IPC, USER, PID, NET
_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_EPERM, _ENOSYS = 0x00050000 | 1, 0x00050000 | 38


def clone_number(machine: str | None = None) -> int | None:
    """The number of the system call clone; None on an architecture that is not listed."""
    index = _ARCHITECTURES.get(machine or os.uname().machine)
    return None if index is None else CLONE[index[0]]


def _on(number: int, *steps: tuple[int, int, int, int]) -> list[tuple[int, int, int, int]]:
    """Steps for the system call `number` alone; for any other they are jumped over."""
    return [(_EQUAL, 0, len(steps), number), *steps]


def program(machine: str | None = None, namespaces: bool = False) -> bytes | None:
    """The filter as bytes of ``struct sock_filter``; None on an architecture that is not listed.

    `namespaces` leaves clone into new namespaces, and mount, to a zygote; its children get the whole filter.
    """
    machine = machine or os.uname().machine
    if machine not in _ARCHITECTURES:
        return None
    index, audit = _ARCHITECTURES[machine]
    free = {"mount"} if namespaces else set()
    numbers = sorted(n[index] for name, n in DENIED.items() if n[index] is not None and name not in free)
    code = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, audit), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, 0)]
    if machine == "x86_64":
        code += [(_AT_LEAST, 0, 1, 0x40000000), (_RETURN, 0, 0, _KILL)]  # the x32 calls
    for number in numbers:
        code += _on(number, (_RETURN, 0, 0, _EPERM))
    for calls, argument in ITSELF.values():
        only_zero = [(_EQUAL, 0, 1, 0), (_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _EPERM)]
        code += _on(calls[index], (_LOAD, 0, 0, 16 + 8 * argument), *only_zero)
    families = [(_EQUAL, len(FAMILIES) - place, 0, family) for place, family in enumerate(FAMILIES)]
    code += _on(SOCKET[index], (_LOAD, 0, 0, 16), *families, (_RETURN, 0, 0, _EPERM), (_RETURN, 0, 0, _ALLOW))
    if not namespaces:
        code += _on(CLONE3[index], (_RETURN, 0, 0, _ENOSYS))  # its flags lie in memory; libc then uses clone
        code += _on(CLONE[index], (_LOAD, 0, 0, 16), (_ANY_BIT, 0, 1, CLONE_NEW), (_RETURN, 0, 0, _EPERM))
    code += [(_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("HBBI", *step) for step in code)
