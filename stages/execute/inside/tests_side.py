"""The tests' process inside sandbox D: evaluates a task's tests, and never holds the candidate's code.

One warm process per worker; for each program it forks a child, which knows the task and is given, test by test, the
channel to a fresh candidate process. The child's word is the verdict, because nothing of the candidate runs in it.
Tests are compiled before the fork, once for programs of one task that come one after another.

    python tests_side.py CONTROL_FD
"""

import functools
import json
import os
import signal
import socket
import sys
import types

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import asserts
import candidate
import codec
import handles
import named_tests
import peer
import trust
from trust import MODULE

_MODULES = {"np": "numpy", "pd": "pandas"}


class Unsupported(BaseException):
    """A handle refused; no Exception, so that tests do not swallow it."""


class Names(dict):
    """Globals of the tests: what they do not define themselves comes from both sides' modules or from the candidate.

    A name of a built-in stays the built-in, and a standard module is imported here, whatever the candidate calls so:
    else a program could bring its own `all` or `math.isclose`.
    """

    def __init__(self, task, end):
        super().__init__(__name__=MODULE, __builtins__=__builtins__)
        self._task, self._end, self._prelude = task, end, None

    def __missing__(self, name):
        entry = self._task["entry_point"]
        if name != entry:
            if hasattr(_builtins, name) or (name.startswith("__") and name.endswith("__")):
                raise KeyError(name)
            if self._prelude is None:
                self._prelude = self._run_prelude()
            if name in self._prelude:
                return self._keep(name, self._prelude[name])
            module = _MODULES.get(name, name)
            if module in sys.stdlib_module_names or module in _MODULES.values():
                try:
                    return self._keep(name, __import__(module))
                except ImportError:
                    raise Absent(f"the tests need {module}, which is not installed here") from None
            if name == "pytest":
                raise Absent("the tests use pytest without importing it")
        return self._keep(name, of_candidate(self._end, self._task, entry if name == "candidate" and entry else name))

    def _keep(self, name, value):
        self[name] = value
        return value

    def _run_prelude(self):
        space = {"__name__": MODULE}
        if self._task["prelude"]:
            exec(compile(self._task["prelude"], "<prelude>", "exec", dont_inherit=True), space)
        space.pop(self._task["entry_point"] or "", None)
        return space


import builtins as _builtins  # noqa: E402


class Absent(NameError):
    """The tests need a module that is not there, and do not take what the candidate calls so."""


class NotDefined(KeyError):
    """The tests need a name that the candidate does not define."""


def of_candidate(end, task, name):
    """What the candidate calls `name`; NotDefined (a KeyError, so Python raises NameError) where it has none."""
    try:
        value = end.request("name", name)
    except NameError:
        end.missing = name
        raise NotDefined(name) from None
    if isinstance(value, handles.Handle):
        object.__setattr__(value, "_murphy_label", name)
    if task["objects"] is None and name in end.classes:
        end.trust = "named"
    return value


class Solution(types.ModuleType):
    """The module `solution` that pytest files import from."""

    def __init__(self, end, task):
        super().__init__(candidate.NAME)
        self.__dict__["_ask"] = lambda name: of_candidate(end, task, name)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self._ask(name)
        except KeyError:
            raise AttributeError(name) from None


def remote(error):
    """Whether an exception was raised by the candidate."""
    return getattr(error, "_murphy_origin", None) is not None


def describe(error):
    """(kind, message) of an exception that ended a test."""
    name = type(error).__name__
    if remote(error):
        text = error._murphy_text
        message = (f"{name}: {text}" if text else name) + (f"\n{error._murphy_frames}" if error._murphy_frames else "")
        if isinstance(error, MemoryError):
            return "memory_limit", message
        return ("early_exit" if isinstance(error, SystemExit) else "runtime_error"), message
    if isinstance(error, codec.Refused):
        return error.kind, str(error)
    try:
        text = str(error)
    except Exception:
        text = ""
    if isinstance(error, Absent):
        return "wrong_answer", text
    if isinstance(error, AssertionError) or name in ("Failed", "Skipped"):
        return "wrong_answer", text or None
    return "wrong_answer", f"the test could not use what came back: {name}: {text}"


class Judge:
    """Evaluates the tests of one task."""

    def __init__(self, task):
        self.task = task
        self.notes = asserts.Notes()
        text = "\n".join([task["setup"] or "", *(t for t in task["tests"] if t)])
        self._classes, self._stops = trust.classes_in(text), "StopIteration" in text
        self._setup = self._compiled(task["setup"]) if task["setup"] else None
        self._tests = [self._compiled(t) for t in task["tests"]] if task["kind"] == "function" else []

    def _compiled(self, source):
        """Code of a piece of the tests, or the exception that compiling it raised."""
        try:
            return asserts.compiled(source, asserts.FILE, self.notes)
        except Exception as error:
            return error

    def run(self, number, sock):
        """Run one test against the candidate at the other end of `sock`; the verdict's fields."""
        self.notes.call = self.notes.failed = None
        end = peer.Peer(sock, peer.MAX_ARGUMENTS, allow=trust.allow, incoming=self.task["budget"])
        end.trust = "named" if self.task["objects"] else "strict"
        end.operators = self.task["operators"]
        end.takes_arguments = self.task["inplace"]
        end.on_call, end.may_swallow = self.notes.on_call, self.notes.may_swallow
        end.classes, end.stops = self._classes, self._stops
        end.missing = None
        refusals = []

        def on_refusal(refusal):
            refusals.append(refusal)
            return Unsupported(str(refusal))

        end.on_refusal = on_refusal
        kind, message = "passed", None
        try:
            self._evaluate(number, end)
            if end.failed_inside is not None:
                kind, message = describe(end.failed_inside)
        except Unsupported:
            pass
        except BaseException as error:
            if isinstance(error, peer.Closed | codec.Malformed):
                pass
            elif isinstance(error, NameError | ImportError) and not remote(error) and end.missing:
                kind, message = "missing_entry_point", f"the program defines no {end.missing}"
            else:
                try:
                    kind, message = describe(error)
                except BaseException:  # its text asks the program, which may end or refuse just then
                    kind, message = "wrong_answer", None
        if refusals:
            kind, message = refusals[0].kind, str(refusals[0])
        if end.broken is not None:
            closed = isinstance(end.broken, peer.Closed)
            kind, message = ("lost", None) if closed else ("protocol_error", "the program wrote into its own channel")
        return self._verdict(kind, message)

    def _verdict(self, kind, message):
        if kind == "passed":
            return {"kind": kind, "message": None, "call": None, "got": None, "expected": None, "assert": None}
        failed = self.notes.failed if kind == "wrong_answer" else None
        source, got, expected = failed or (None, None, None)
        try:
            call = self.notes.call_text() if failed or message is None or kind != "lost" else None
        except BaseException:
            call = None
        cut = candidate.cut
        fields = {"kind": kind, "message": message and cut(message, 4000), "call": call and cut(call, 600)}
        return fields | {"got": got, "expected": expected, "assert": source}

    def _evaluate(self, number, end):
        names = Names(self.task, end)
        names[asserts.COMPARE], names[asserts.TRUTH] = self.notes.compare, self.notes.truth
        sys.modules[candidate.NAME] = Solution(end, self.task)
        if self.task["setup"]:
            _execute(self._setup, names)
        if self.task["kind"] == "function":
            _execute(self._tests[number], names)
        elif test := self.task["tests"][number]:
            named_tests.run_named(names, test)


def _execute(code, names):
    if isinstance(code, Exception):
        raise code
    exec(code, names)


@functools.lru_cache(maxsize=8)
def judge_of(task):
    """The judge of a task, given as JSON. It has run nothing: only forks of this process use it."""
    return Judge(json.loads(task))


def child(sock, judge):
    """Serve one program: one test per message."""
    candidate.limit(judge.task["limits"])
    while True:
        request, handed = candidate.receive(sock)
        if request is None:
            return
        channel = socket.socket(fileno=handed[0])
        verdict = judge.run(request["test"], channel)
        channel.close()
        candidate.send(sock, verdict)


def reap(*_):
    """Reap children that ended, so that their CPU time counts as ours."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def main(fd):
    """Warm up, then fork a child for each task and control socket that the supervisor sends."""
    control = socket.socket(fileno=fd)
    control.set_inheritable(False)
    start, _ = candidate.receive(control)
    candidate.prepare(start["packages"])
    candidate.warm(start["preload"])
    sys.modules[MODULE] = types.ModuleType(MODULE)
    candidate.send(control, {"ready": sys.version.split()[0]})
    signal.signal(signal.SIGCHLD, reap)
    import gc

    gc.freeze()
    while True:
        request, handed = candidate.receive(control)
        if request is None:
            return
        judge = judge_of(request["task"])
        if os.fork() == 0:
            control.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            child(socket.socket(fileno=handed[0]), judge)
            os._exit(0)
        os.close(handed[0])


if __name__ == "__main__":
    main(int(sys.argv[1]))
    os._exit(0)
