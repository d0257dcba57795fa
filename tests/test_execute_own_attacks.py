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


BOMB = """
import threading, time
def f(x):
    try:
        while True:
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    except RuntimeError:
        return 'no more'
"""


def test_a_bomb_of_threads_gets_an_error(tmp_path):
    """Not a hang, wherever the limit is. In less than 256 MB a thread may run out after its start: a time-out."""
    limits = [*range(256, 512, 32), *range(512, 1025, 8)]
    lines = [{"id": str(mb), "code": BOMB, "tests": ["assert f(0) == 'no more'"], "memory_mb": mb} for mb in limits]
    answers = judge(tmp_path, lines, "--workers", "2")
    assert [mb for mb in limits if answers[str(mb)]["verdict"] != "passed"] == []
