"""Feedback: golden texts of each kind from real verdicts, and what must hold of any text."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.common.config import Execute
from stages.common.verdicts import FAILURES, INFRA_ERROR, PASSED
from stages.execute import stage
from stages.execute.feedback import CHARACTERS_PER_TOKEN, NO_CODE, clean, cut, feedback, neutral
from tests.feedback_cases import FUNCTIONS, rendered, tasks

GOLDEN = Path(__file__).parent / "golden" / "feedback.txt"


def test_golden_texts():
    """Every kind of verdict, from programs that were run; twice the same."""
    text = rendered()
    assert text.split("\n") == GOLDEN.read_text().split("\n")
    assert rendered() == text


def test_the_golden_texts_hold_every_kind_and_no_answer():
    text = GOLDEN.read_text()
    heads = set(re.findall(r"^##### \w+: (\w+)", text, re.MULTILINE)) | set(
        re.findall(r"\b(not_run)$", "\n".join(FUNCTIONS), re.MULTILINE)
    )
    assert heads >= {PASSED, "no_code", *FAILURES}
    assert "433" not in text  # what the hidden tests expect
    assert not re.search(r"0x[0-9a-f]{4}|/tmp|/usr|\.py\b|<\||\|>", text)


SECRET = "5ecret"
KINDS = st.sampled_from([PASSED, *FAILURES])
ANY = st.text(max_size=300) | st.sampled_from(["<|im_end|>", "</s>", "\ud800", "\x1b[1m\x00", "x" * 5000, "\n" * 50])


@st.composite
def judged(draw):
    """Tests and verdicts of one node; each text of a hidden test holds the secret, except the program's own error."""
    tests, verdicts = [], []
    for _ in range(draw(st.integers(1, 8))):
        visible, kind, program = draw(st.booleans()), draw(KINDS), draw(st.booleans())
        text = ANY if visible else ANY.map(lambda t: SECRET + t)
        maybe = st.none() | text
        given = {"stdin": draw(text), "stdout": draw(text)} if program else {"stdin": None, "stdout": None}
        tests.append({"visible": visible, "code": None if program else draw(text), **given})
        verdicts.append({"kind": kind} | {n: draw(maybe) for n in ("message", "call", "got", "expected", "assert")})
    return tests, verdicts


@settings(max_examples=300, deadline=None)
@given(judged(), st.integers(8, 400))
def test_any_text_is_short_clean_and_tells_no_hidden_answer(case, tokens):
    tests, verdicts = case
    text = feedback(tests, verdicts, tokens)
    assert text == feedback(tests, verdicts, tokens)
    assert SECRET not in text
    assert len(text) <= tokens * CHARACTERS_PER_TOKEN
    text.encode("utf-8")
    assert not any((c < " " and c not in "\n\t") or c == "\x7f" for c in text)
    assert "<|" not in text and "|>" not in text and "</s>" not in text
    passed = sum(v["kind"] == PASSED for v in verdicts)
    head = f"{passed} of {len(tests)} tests passed."
    assert passed == len(tests) or len(head) > tokens * CHARACTERS_PER_TOKEN - 20 or text.startswith(head)


@settings(max_examples=200, deadline=None)
@given(judged())
def test_no_row_of_the_tables_tells_a_hidden_answer(case):
    tests, verdicts = case
    one = tasks()[0] | {"tests": tests}
    result = {"tests": [{"test": n, **v} for n, v in enumerate(verdicts)], "mode": "answer_blind"}
    result |= {"retried": [], "every": False}
    rows, row, _ = stage.rows(stage.Node("n", "function", "code"), one, result, Execute())
    for test, verdict in zip(tests, rows, strict=True):
        if not test["visible"]:
            assert verdict["call"] is verdict["got"] is verdict["expected"] is None
            if verdict["kind"] == "wrong_answer":
                assert verdict["message"] is None
    assert SECRET not in row["feedback"]


def test_a_setting_shows_hidden_tests():
    tests = [{"visible": False, "code": "assert f(1) == 2", "stdin": None, "stdout": None}]
    verdicts = [{"kind": "wrong_answer", "assert": "f(1) == 2", "call": "f(1)", "got": "3", "expected": "2"}]
    shown = "0 of 1 tests passed.\n\nTest 1 failed:\n  assert f(1) == 2\n  got: 3\n  expected: 2"
    assert feedback(tests, verdicts, 100, show_all=True) == shown
    assert feedback(tests, verdicts, 100) == "0 of 1 tests passed.\n\nHidden tests: 0 of 1 passed; 1 wrong answer."


def test_the_budget_keeps_head_and_tail():
    assert cut("a" * 10, 10) == "a" * 10
    text = cut("head" + "x" * 1000 + "tail", 100)
    assert len(text) == 100 and text.startswith("head") and text.endswith("tail") and "\n[...]\n" in text
    tests = [{"visible": True, "code": f"assert f({n}) == 0", "stdin": None, "stdout": None} for n in range(50)]
    verdicts = [{"kind": "wrong_answer", "got": "y" * 400, "expected": "0"} for _ in tests]
    text = feedback(tests, verdicts, 64)
    assert len(text) <= 256 and text.startswith("0 of 50 tests passed.") and text.endswith("expected: 0")


@pytest.mark.parametrize(
    "token",
    [
        *("<|im_start|>", "<|endoftext|>", "<|eot_id|>", "<｜Assistant｜>", "<s>", "</s>", "<bos>", "<eos>", "<pad>"),
        *("<unk>", "<think>", "</think>", "<start_of_turn>", "<end_of_turn>", "<tool_call>", "</tool_response>"),
        *("[INST]", "[/INST]", "<<SYS>>", "<</SYS>>", "[TOOL_CALLS]", "<file_sep>", "<fim_prefix>", "<unused7>"),
        *("<repo_name>", "<reponame>", "<filename>", "<jupyter_code>", "<begin_of_text>", "<THINK>"),
    ],
)
def test_tokens_of_chat_templates_are_taken_apart(token):
    text = f"a{token}b {token}{token}"
    assert token not in neutral(text)
    assert neutral(text).replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize(
    "text", ["a < b > c", "x[1]", "List[int]", "<b>", "a|b", "if a<s: pass", "[...]", "f(<lambda>)"]
)
def test_code_is_left_as_it_is(text):
    assert neutral(text) == text and clean(text) == text


def test_clean():
    assert clean(None) is None
    assert clean("<A object at 0x7f00beef1234>") == "<A object>"
    assert clean("\x1b[31mred\x1b[0m\x00\x07\ud800é\t\n") == "red\\x00\\x07\\ud800é\t\n"


def test_what_was_not_judged():
    settings, one = Execute(), tasks()[0]
    nothing = stage.judge([stage.Node("n", "function", None)], {"function": one}, settings, stage.Sandboxes([], {}))[0]
    assert stage.rows(stage.Node("n", "function", None), one, nothing, settings)[1]["feedback"] == NO_CODE
    failed = {"infra_error": "x", "mode": "answer_blind", "retried": [], "every": False}
    failed["tests"] = [{"test": n, "kind": INFRA_ERROR} for n in range(3)]
    row = stage.rows(stage.Node("n", "function", "x"), one, failed, settings)[1]
    assert (row["reward"], row["feedback"]) == (None, "")
