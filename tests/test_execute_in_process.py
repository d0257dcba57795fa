"""Tests that run beside the program: unittest classes as BigCodeBench has them, and pytest files that reach in."""

import textwrap

from tests.test_execute_stage import execute, rollout, task

CASES = """
import io, os, sys, tempfile, unittest
from unittest.mock import MagicMock, patch

made = []

def setUpModule():
    made.append("module")

class TestCases(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shared = [1]

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.path = os.path.join(self.folder, "in.txt")
        with open(self.path, "w") as file:
            file.write("1 2 3")
        self.addCleanup(made.append, "cleaned")

    def tearDown(self):
        os.remove(self.path)
        os.rmdir(self.folder)

    def test_file(self):
        self.assertEqual(total(self.path), 6)
        self.shared.append(2)

    def test_each_starts_anew(self):
        self.assertEqual((self.shared, made), ([1], ["module"]))

    def test_missing(self):
        with self.assertRaises(FileNotFoundError):
            total("/nowhere")

    def test_mocked(self):
        with patch("builtins.open", MagicMock(return_value=io.StringIO("4 5"))) as opened:
            self.assertEqual(total("any"), 9)
        opened.assert_called_once()

    @patch("sys.stdout", new_callable=io.StringIO)
    def test_printed(self, out):
        total(self.path)
        self.assertEqual(out.getvalue(), "6\\n")

    def test_parts(self):
        for text in ("1", "1 1", "0 3"):
            with self.subTest(text=text):
                with open(self.path, "w") as file:
                    file.write(text)
                self.assertEqual(total(self.path), sum(map(int, text.split())))

    @unittest.expectedFailure
    def test_that_must_fail(self):
        self.assertEqual(total(self.path), 7)

    @unittest.skip("not here")
    def test_skipped(self):
        self.assertEqual(total(self.path), 6)

class TestMore(unittest.IsolatedAsyncioTestCase):
    async def test_awaited(self):
        self.assertAlmostEqual(total.__call__(sys.argv[0] and self.file()), 3.0)

    def file(self):
        handle, path = tempfile.mkstemp()
        os.write(handle, b"3")
        return path
"""
NAMES = [
    *(f"TestCases::test_{name}" for name in ("file", "each_starts_anew", "missing", "mocked", "printed", "parts")),
    *("TestCases::test_that_must_fail", "TestCases::test_skipped", "TestMore::test_awaited"),
]
GOOD = """
def total(path):
    with open(path) as file:
        result = sum(map(int, file.read().split()))
    print(result)
    return result
"""


def kinds(folder, code, setup=CASES, names=NAMES, kind="unittest", **more):
    one = task(kind=kind, setup=textwrap.dedent(setup), tests=names, entry_point="total") | more
    got = execute(folder, [one], [rollout("n", code)])
    assert got["feedback"][0]["mode"] == "in_process"
    return {v["test"]: (v["kind"], v["message"]) for v in got["verdicts"]}


def test_every_method_is_a_test(tmp_path):
    found = kinds(tmp_path, GOOD)
    assert [kind for kind, _ in found.values()] == ["passed"] * 7 + ["wrong_answer", "passed"]
    assert found[7][1] is None  # hidden: what a wrong answer's message says may be the answer


def test_what_fails_is_said(tmp_path):
    found = kinds(tmp_path, GOOD.replace("sum(", "1 + sum(").replace("    print(result)\n", ""))
    expected = dict.fromkeys(range(9), "wrong_answer") | {1: "passed", 2: "passed", 7: "wrong_answer"}
    assert {n: kind for n, (kind, _) in found.items()} == expected  # 6 was expected to fail, and passes
    assert found[0][1] == "7 != 6"


FAILURES = [
        ("def total(path):\n    raise KeyError('k')", "runtime_error", "KeyError: 'k'\nline 2, in total\n  raise"),
        ("def total(path):\n    assert False, 'mine'", "runtime_error", "AssertionError: mine\nline 2"),
        ("def total(path):\n    import sys\n    sys.exit(0)", "early_exit", None),
        ("def total(path):\n    import os\n    os._exit(0)", "early_exit", "the process ended itself with status 0"),
        ("def total(path):\n    raise KeyboardInterrupt", "runtime_error", "KeyboardInterrupt"),
        ("import unittest\ndef total(path):\n    raise unittest.SkipTest('nothing to see')", "wrong_answer", None),
        ("def total(path):\n    return [0] * 10**10", "memory_limit", None),
        ("def totals(path): pass", "missing_entry_point", "the program defines no total"),
        ("def total(path)", "syntax_error", "SyntaxError"),
        ("import unittest\nunittest.TestCase.assertEqual = lambda *a: None\ndef total(p): pass", "protocol_error",
         "the program changed unittest"),
        ("import unittest\nunittest.TestCase.run = lambda *a: None\ndef total(p): pass", "protocol_error", None),
        ("import unittest\nunittest.TestSuite.run = lambda s, r: r\ndef total(p): pass", "protocol_error", None),
]  # fmt: skip


def test_failures_have_their_kinds(tmp_path):
    one = task(kind="unittest", setup=CASES, tests=NAMES[:1], entry_point="total")
    got = execute(tmp_path, [one], [rollout(f"{n:02}", code) for n, (code, _, _) in enumerate(FAILURES)])
    for (code, kind, message), row in zip(FAILURES, got["verdicts"], strict=True):
        assert row["kind"] == kind, (code, row)
        assert message is None or row["message"].startswith(message), (code, row)


def test_set_up_that_fails_fails_each_method(tmp_path):
    setup = """
    import unittest
    class TestCases(unittest.TestCase):
        @classmethod
        def setUpClass(cls):
            cls.value = total(1)
        def test_a(self): self.assertEqual(self.value, 1)
        def test_b(self): pass
    """
    names = ["TestCases::test_a", "TestCases::test_b"]
    found = kinds(tmp_path, "def total(x): return 1 // (x - 1)", setup, names)
    assert [kind for kind, _ in found.values()] == ["runtime_error"] * 2
    assert [kind for kind, _ in kinds(tmp_path, "def total(x): return x", setup, names).values()] == ["passed"] * 2


PYTEST = """
import pytest
import solution
from solution import total

@pytest.fixture
def two():
    yield 2

def test_fixture(two):
    assert total(two) == 4

def test_output(capsys):
    total(1)
    assert capsys.readouterr().out == "1\\n"

def test_patch(monkeypatch):
    monkeypatch.setattr(solution, "factor", 10)
    assert total(2) == 20

def test_file(tmp_path):
    (tmp_path / "x").write_text("2")
    assert total(int((tmp_path / "x").read_text())) == 4

@pytest.mark.parametrize("n", [1, 2, 3])
def test_each(n, two):
    assert total(n) == two * n

@pytest.mark.skip(reason="no")
def test_skipped():
    assert total(1) == 2

@pytest.mark.xfail
def test_expected_to_fail():
    assert total(1) == 3
"""


def test_pytest_files_that_reach_in(tmp_path):
    names = [f"test_{n}" for n in ("fixture", "output", "patch", "file", "each", "skipped", "expected_to_fail")]
    good = "factor = 2\ndef total(n):\n    print(n)\n    return factor * n\n"
    found = kinds(tmp_path, good, PYTEST, names, "pytest")
    assert [kind for kind, _ in found.values()][:5] == ["passed"] * 5 and found[5][0] != "passed"
    wrong = kinds(tmp_path, good.replace("factor * n", "n + 2"), PYTEST, names, "pytest")
    assert [kind for kind, _ in wrong.values()][:5] == ["passed", "passed", "wrong_answer", "passed", "wrong_answer"]
