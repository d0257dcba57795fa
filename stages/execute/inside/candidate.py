"""The candidate's process inside sandbox S: loads the program, then answers calls, one forked process per test.

It is given a control socket (descriptor 3) by the supervisor, never the tests or what they expect. Requests on it are
a length and JSON: first the program and its limits, then one per test, which carries the descriptor of that test's
channel. Nothing that this process says is believed: it can only make itself fail.

    python candidate.py CONTROL_FD
"""

import json
import os
import resource
import socket
import struct
import sys
import time
import types

NAME = "solution"
FILE = "solution.py"
_exit, _fork, _wait4, _process_time = os._exit, os.fork, os.wait4, time.process_time
_LENGTH = struct.Struct(">I")


def send(sock, message):
    """Send one message: a length and JSON."""
    data = json.dumps(message).encode()
    sock.sendall(_LENGTH.pack(len(data)) + data)


def receive(sock, fds=4):
    """One message and the descriptors that came with it; None at the end."""
    data, handed, _, _ = socket.recv_fds(sock, _LENGTH.size, fds)
    while 0 < len(data) < _LENGTH.size:
        data += sock.recv(_LENGTH.size - len(data))
    if not data:
        return None, []
    (length,) = _LENGTH.unpack(data)
    parts = []
    while length:
        part = sock.recv(min(length, 1 << 20))
        if not part:
            return None, handed
        parts.append(part)
        length -= len(part)
    return json.loads(b"".join(parts)), handed


def limit(limits):
    """Set this process's limits, soft and hard alike, before any of the candidate's code runs."""
    for name, value in limits.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))


def prepare(packages):
    """The interpreter as a program expects it: exit and quit, and where packages are found."""
    import _sitebuiltins
    import builtins

    builtins.exit = _sitebuiltins.Quitter("exit", "Ctrl-D (i.e. EOF)")
    builtins.quit = _sitebuiltins.Quitter("quit", "Ctrl-D (i.e. EOF)")
    builtins.help = _sitebuiltins._Helper()
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [p for p in sys.path if p != here] + packages
    sys.argv[:] = [FILE]


def silence():
    """From here on nobody reads what is written to stderr: a full pipe would make the program wait."""
    nothing = os.open("/dev/null", os.O_WRONLY)
    os.dup2(nothing, 2)
    os.close(nothing)


def warm(names):
    """Import modules before anything is forked; one that is not there is left out, but for pytest."""
    for name in names:
        try:
            __import__(name)
        except ImportError:
            if name == "pytest":
                raise


def cut(text, size=2000):
    """At most `size` characters of `text`, head and tail."""
    return text if len(text) <= size else f"{text[: size * 2 // 3]} ... {text[-size // 3 :]}"


def frames_of(error, lines):
    """The candidate's own frames of an exception: the last three, with their source lines."""
    seen = []
    trace = error.__traceback__
    steps = 0
    while trace is not None and steps < 20_000:
        code = trace.tb_frame.f_code
        if code.co_filename == FILE:
            seen.append((trace.tb_lineno, code.co_name))
            del seen[:-3]
        trace = trace.tb_next
        steps += 1
    text = []
    for number, name in seen:
        text.append(f"line {number}, in {cut(name, 80)}")
        if number is not None and 0 < number <= len(lines):
            text.append(f"  {cut(lines[number - 1].strip(), 200)}")
    return "\n".join(text)


def describe(error, lines):
    """One line for an exception, then the candidate's frames."""
    kind = type(error)
    name = cut(kind.__name__, 80)
    try:
        text = cut(str(error))
    except Exception:
        text = "<text of the exception could not be made>"
    if isinstance(error, SyntaxError) and error.filename == FILE and isinstance(error.lineno, int):
        where = f"line {error.lineno}"
        line = lines[error.lineno - 1].strip() if 0 < error.lineno <= len(lines) else ""
        return f"{name}: {cut(str(error.msg))}\n{where}\n  {cut(line, 200)}"
    frames = frames_of(error, lines)
    return (f"{name}: {text}" if text else name) + (f"\n{frames}" if frames else "")


def compiled(source):
    """The program's code object, or a string that says why there is none."""
    import linecache
    import warnings

    warnings.simplefilter("ignore")
    linecache.cache[FILE] = (len(source), None, source.splitlines(keepends=True), FILE)  # for inspect.getsource
    try:
        return compile(source, FILE, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, MemoryError, RecursionError, OverflowError, UnicodeError) as error:
        lines = source.encode("utf-8", "backslashreplace").decode().splitlines()
        if isinstance(error, SyntaxError):
            return describe(error, lines)
        return f"{type(error).__name__}: {cut(str(error).encode('utf-8', 'backslashreplace').decode(), 300)}"


def load(start, module):
    """Run prelude and program in `module`. None, or the failure as (kind, message)."""
    source = start["code"].removeprefix("\ufeff")
    lines = source.splitlines()
    code = compiled(source)
    if isinstance(code, str):
        return "syntax_error", code
    try:
        if start["prelude"]:
            exec(compile(start["prelude"], "<prelude>", "exec", dont_inherit=True), module.__dict__)
        exec(code, module.__dict__)
    except MemoryError:
        return "memory_limit", "MemoryError while the program was loaded"
    except SystemExit:
        return "early_exit", "the program ended itself while it was loaded"
    except BaseException as error:
        return "runtime_error", describe(error, lines)
    entry = (start["entry_point"] or "").partition(".")[0]
    if entry and entry not in module.__dict__:
        return "missing_entry_point", f"the program defines no {cut(entry, 80)}"
    return None


def functions(sock, start):
    """Load, then serve tests: fork, answer calls on the test's channel, report how the child ended.

    A test that is to be `alone` is served by the process that loaded the program, with its threads; it is the last one.
    """
    import codec
    import peer

    module = types.ModuleType(NAME)
    module.__file__ = FILE
    sys.modules[NAME] = module
    import decimal  # noqa: F401  value types that tests may use
    import fractions  # noqa: F401

    lines = start["code"].removeprefix("\ufeff").splitlines()
    returns_arguments, budget = start["inplace"], start["budget"]
    failure = load(start, module)
    start.clear()
    if failure:
        send(sock, {"failed": failure[0], "message": failure[1]})
        return
    send(sock, {"loaded": True})
    while True:
        request, handed = receive(sock)
        if request is None:
            return
        alone, before = request["alone"], _process_time()
        child = 0 if alone else _fork()
        if child == 0:
            if not alone:
                sock.close()
            end = peer.Peer(socket.socket(fileno=handed[0]), budget)
            end.namespace = lambda name: module.__dict__[name] if name in module.__dict__ else _missing(name)
            end.returns_arguments = returns_arguments
            end.frames_of = lambda error: frames_of(error, lines)
            try:
                end.serve()
            except codec.Malformed:
                _exit(70)
            if alone:
                send(sock, {"ended": 0, "cpu": round(_process_time() - before, 4)})
            _exit(0)
        os.close(handed[0])
        _, status, usage = _wait4(child, 0)
        send(sock, {"ended": status, "cpu": round(usage.ru_utime + usage.ru_stime, 4)})


def _missing(name):
    raise NameError(f"name {name!r} is not defined")


def programs(sock, start):
    """Serve stdio tests: fork, and in the child return the program, to be run as this interpreter's main program."""
    while True:
        request, handed = receive(sock)
        if request is None:
            return None
        child = _fork()
        if child == 0:
            sock.detach()  # closed by name below, so that no object of it is left
            for target, source in enumerate(handed):
                os.dup2(source, target, inheritable=True)
            os.closerange(3, 256)
            return start
        for fd in handed:
            os.close(fd)
        _, status, usage = _wait4(child, 0)
        send(sock, {"ended": status, "cpu": round(usage.ru_utime + usage.ru_stime, 4)})


def main_program(start):
    """Run the program as ``__main__`` and return its exit status; threads, atexit and flushing are left to the exit."""
    sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    source = start["code"].removeprefix("\ufeff")
    lines = source.splitlines()
    code = compiled(source)
    if isinstance(code, str):
        sys.stderr.write(f"\x00syntax_error\n{code}\n")
        return 1
    module = types.ModuleType("__main__")
    module.__file__ = FILE
    module.__builtins__ = __builtins__
    sys.modules["__main__"] = module
    try:
        if start["prelude"]:
            exec(compile(start["prelude"], "<prelude>", "exec", dont_inherit=True), module.__dict__)
        exec(code, module.__dict__)
    except SystemExit as error:
        return error.code
    except BaseException as error:
        sys.stderr.write(describe(error, lines) + "\n")
        return 1
    return 0


def serve(sock):
    """What the supervisor asked for; a program to run as main, or None when all is done."""
    start, _ = receive(sock)
    if start is None:
        return None
    limit(start["limits"])
    prepare(start["packages"])
    send(sock, {"ready": True})
    silence()
    if start["mode"] == "stdio":
        return programs(sock, start)
    functions(sock, start)
    return None


def main(sock):
    """Serve the supervisor on `sock`; the exit status of a program that is to run as this interpreter's main one."""
    program = serve(sock)
    if program is None:
        _exit(0)
    return main_program(program)


if __name__ == "__main__":
    _control = socket.socket(fileno=int(sys.argv[1]))
    _control.set_inheritable(False)
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import peer  # noqa: F401  loaded before the limits, with all that it needs

    sys.exit(main(_control))
