"""Tests and candidate in one process, for tests that reach into the candidate; in a sandbox of its own.

What such a process says can be forged by the candidate, so rows judged here carry ``mode = in_process``. A parent that
never loads the candidate forks for each test; the child loads program and tests anew and says over a pipe how it went.

    python in_process.py CONTROL_FD
"""

import io
import json
import os
import socket
import sys
import types

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import asserts
import candidate

TESTS = "test_solution"
_FOLDER = "/tmp"


def _raised_by_program(error):
    """Whether an exception was raised in the program's own lines."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_filename == candidate.FILE


def _line_of_test(error, tests):
    """The line of the test file that an exception came through last, where it is a call of ``self.assert...``."""
    found, trace = "", error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == f"{TESTS}.py" and 0 < trace.tb_lineno <= len(tests):
            found = tests[trace.tb_lineno - 1].strip()
        trace = trace.tb_next
    return candidate.cut(found, 600) if found.startswith("self.assert") else None


def verdict_of(error, lines, notes=None, tests=()):
    """The verdict's fields for an exception that ended a test; `lines` of the program and of the `tests`' file."""
    name = type(error).__name__
    if isinstance(error, MemoryError):
        kind = "memory_limit"
    elif isinstance(error, SystemExit):
        kind = "early_exit"
    elif isinstance(error, AssertionError) or name in ("Failed", "Skipped", "SkipTest"):
        kind = "runtime_error" if _raised_by_program(error) else "wrong_answer"
    elif isinstance(error, ImportError) and error.name == candidate.NAME:
        kind = "missing_entry_point"
    else:
        kind = "runtime_error"
    try:
        text = str(error)
    except Exception:
        text = ""
    source, got, expected = (notes and notes.failed) or (None, None, None)
    message = candidate.describe(error, lines) if kind == "runtime_error" else text or name
    if source is not None:
        message = None
    elif kind == "wrong_answer":
        source = _line_of_test(error, tests)
    fields = {"got": got, "expected": expected, "assert": source}
    return {"kind": kind, "message": message and candidate.cut(message, 4000), **fields}


class _Outcome:
    """A pytest plugin that keeps the first failure of a run and counts what passed."""

    def __init__(self):
        self.passed, self.error, self.text = 0, None, None

    def pytest_runtest_makereport(self, item, call):
        """Called for set-up, call and tear-down of each test."""
        if call.excinfo is not None and self.error is None:
            self.error = call.excinfo.value
        elif call.when == "call" and call.excinfo is None:
            self.passed += 1

    def pytest_collectreport(self, report):
        """Called when the file was imported, or failed to."""
        if report.failed and self.text is None:
            self.text = str(report.longrepr)[-2000:]


def _judges(kind):
    """What the parts of pytest or unittest that decide a verdict consist of now."""
    if kind == "pytest":
        from _pytest import nodes, outcomes, python, runner

        parts = [python, runner, outcomes, nodes, python.Function, python.Module, nodes.Item, runner.CallInfo]
    else:
        import unittest

        parts = [unittest.TestCase, unittest.TestResult, unittest.TestSuite]
    notes = ("_pytest_", "__warning")  # attributes that tell which warnings were given
    return [{name: id(v) for name, v in vars(part).items() if not name.startswith(notes)} for part in parts]


def with_pytest(start, test):
    """Run one test of a pytest file by pytest itself."""
    import pytest

    outcome, before = _Outcome(), _judges("pytest")
    file = f"{_FOLDER}/{TESTS}.py"
    sys.path.insert(0, _FOLDER)
    flags = ["-q", "-p", "no:cacheprovider", "-p", "no:faulthandler", "--rootdir", _FOLDER, "-c", "/dev/null"]
    out, sys.stdout = sys.stdout, io.StringIO()
    pytest.main([*flags, f"{file}::{test}"], plugins=[outcome])
    sys.stdout = out
    if outcome.error is not None:
        return verdict_of(outcome.error, start["code"].splitlines())
    if outcome.text is not None:
        missing = "cannot import name" in outcome.text or "No module named" in outcome.text
        last = outcome.text.strip().splitlines()[-1]
        return {"kind": "missing_entry_point" if missing else "runtime_error", "message": last}
    if _judges("pytest") != before:
        return {"kind": "protocol_error", "message": "the program changed pytest"}
    if outcome.passed:
        return {"kind": "passed"}
    return {"kind": "runtime_error", "message": "no test of this name was run"}


def _run_case(cls, name, lines, notes, tests):
    """Run one method of a TestCase with the set-up and tear-down of its class and module; its verdict.

    A skipped test is none that passed, whoever skipped it; an expected failure passes by failing.
    """
    import unittest

    errors, skipped, result = [], [], unittest.TestResult()
    result.addError = result.addFailure = lambda case, info: errors.append(info[1])
    result.addSubTest = lambda case, sub, info: errors.append(info[1]) if info else None
    result.addSkip = lambda case, reason: skipped.append(reason)
    result.addUnexpectedSuccess = lambda case: skipped.append("expected to fail, and did not")
    unittest.TestSuite([cls(name)]).run(result)
    if errors:
        return verdict_of(errors[0], lines, notes, tests)
    if skipped:
        return {"kind": "wrong_answer", "message": candidate.cut(f"the test was not passed: {skipped[0]}")}
    if not result.testsRun:
        return {"kind": "runtime_error", "message": "no test of this name was run"}
    return {"kind": "passed"}


def in_one_module(start, test):
    """Program and tests in one module: unittest classes as ``Class::name``, or statements."""
    before = _judges("unittest")
    lines = start["code"].splitlines()
    module = types.ModuleType(candidate.NAME)
    sys.modules[candidate.NAME] = module
    failure = candidate.load(start, module)
    if failure:
        return {"kind": failure[0], "message": failure[1]}
    notes = asserts.Notes()
    space = module.__dict__
    if _judges("unittest") != before:
        return {"kind": "protocol_error", "message": "the program changed unittest"}
    space[asserts.COMPARE], space[asserts.TRUTH] = notes.compare, notes.truth
    if start["kind"] == "unittest":  # as BigCodeBench's runner gives them
        for name, value in (("sys", sys), ("os", os), ("environ", os.environ)):
            space.setdefault(name, value)
    if start["entry_point"]:
        space.setdefault("candidate", space.get(start["entry_point"].partition(".")[0]))
    try:
        if start["setup"]:
            exec(asserts.compiled(start["setup"], f"{TESTS}.py", notes), space)
        owner, _, name = test.rpartition("::")
        if start["kind"] == "function":
            exec(asserts.compiled(test, f"{TESTS}.py", notes), space)
            return {"kind": "passed"}
        return _run_case(space[owner], name, lines, notes, (start["setup"] or "").splitlines())
    except BaseException as error:
        return verdict_of(error, lines, notes)


def child(start, test, pipe, token):
    """Run one test and say over `pipe` how it went, after `token`, which nobody knows who writes there blindly."""
    verdict = (with_pytest if start["kind"] == "pytest" else in_one_module)(start, test)
    os.write(pipe, token + json.dumps(verdict).encode())
    os._exit(0)


def serve(sock):
    """Answer one request per test."""
    start, _ = candidate.receive(sock)
    candidate.limit(start["limits"])
    candidate.prepare(start["packages"])
    candidate.send(sock, {"ready": True})
    candidate.silence()
    code = candidate.compiled(start["code"].removeprefix("\ufeff"))
    if isinstance(code, str):
        candidate.send(sock, {"failed": "syntax_error", "message": code})
        return
    candidate.send(sock, {"loaded": True})
    while True:
        request, _ = candidate.receive(sock)
        if request is None:
            return
        files = {}
        if start["kind"] == "pytest":
            program = (start["prelude"] or "") + "\n" + start["code"] if start["prelude"] else start["code"]
            files = {f"{_FOLDER}/{candidate.NAME}.py": program, f"{_FOLDER}/{TESTS}.py": start["setup"]}
            for path, text in files.items():
                with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
                    file.write(text)
        token = os.urandom(16)
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            sock.close()
            os.close(read)
            child(start, request["test"], write, token)
        os.close(write)
        data = b""
        while len(data) < 1 << 16 and (piece := os.read(read, 1 << 16)):
            data += piece
        os.close(read)
        _, status, usage = os.wait4(pid, 0)
        for path in files:
            if os.path.lexists(path):
                os.unlink(path)
        try:
            verdict = json.loads(data.removeprefix(token) or b"{}")
        except (ValueError, RecursionError):
            verdict = None
        answer = verdict if isinstance(verdict, dict) and data.startswith(token) else {}
        if data and not answer:
            answer = {"kind": "protocol_error", "message": "the program wrote into its own channel"}
        candidate.send(sock, {**answer, "ended": status, "cpu": round(usage.ru_utime + usage.ru_stime, 4)})


def main(sock):
    """Serve the supervisor on `sock`, and end."""
    serve(sock)
    os._exit(0)


if __name__ == "__main__":
    _control = socket.socket(fileno=int(sys.argv[1]))
    _control.set_inheritable(False)
    main(_control)
