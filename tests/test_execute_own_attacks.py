"""Our own cheats and odd programs: no cheat is paid, no right program fails."""

import pytest

from tests.attacks_bad import BAD
from tests.attacks_good import GOOD
from tests.sandboxes import disagreements, judge


@pytest.mark.parametrize("cases", [BAD, GOOD], ids=["bad", "good"])
def test_verdicts(tmp_path, cases):
    assert len({case["id"] for case in cases}) == len(cases) > 30
    hide = ("expected", "reward")
    lines = [{k: v for k, v in case.items() if k not in hide and v is not None} for case in cases]
    answers = judge(tmp_path, lines, "--workers", "2")
    wanted = [{**c, "expected_verdict": c["expected"], "expected_reward": c["reward"]} for c in cases]
    assert disagreements(wanted, answers) == []
