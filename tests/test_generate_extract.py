"""Golden table of replies: what program each of them holds."""

import pytest

from stages.generate.extract import extract_code, without_thinking

ADD = "def add(a, b):\n    return a + b\n"
WRONG = "def add(a, b):\n    return a - b\n"

GOLDEN = {
    "one fence": (f"Sure!\n```python\n{ADD}```\nDone.", ADD),
    "fence without a language": (f"```\n{ADD}```", ADD),
    "fence with py and attributes": (f"```py title=add.py\n{ADD}```", ADD),
    "indented fence": (f"1. Here:\n   ```python\n{ADD}   ```", ADD),
    "last of two that define it": (f"```python\n{WRONG}```\nBetter:\n```python\n{ADD}```", ADD),
    "usage example after the definition": (f"```python\n{ADD}```\nUse it:\n```python\nprint(add(1, 2))\n```", ADD),
    "output after the definition": (f"```python\n{ADD}```\nOutput:\n```text\n3\n```", ADD),
    "shell before the definition": (f"```bash\npip install x\n```\n```python\n{ADD}```", ADD),
    "truncated: the fence never closes": (f"```python\n{ADD}", ADD),
    "truncated inside the code": ("```python\ndef add(a, b):\n    return a +", "def add(a, b):\n    return a +\n"),
    "unfenced": (ADD, ADD),
    "unfenced with prose around": (f"The function is:\n\n{ADD}\nIt adds.", ADD),
    "unfenced import first": (f"import math\n\n{ADD}This adds two numbers", f"import math\n\n{ADD}"),
    "thinking": (f"<think>\n```python\n{WRONG}```\n</think>\n```python\n{ADD}```", ADD),
    "thinking whose start was in the prompt": (f"```python\n{WRONG}```</think>\n```python\n{ADD}```", ADD),
    "thinking that never ends": (f"<think>\n```python\n{ADD}```", None),
    "prose only": ("I cannot help with that.", None),
    "empty": ("", None),
    "empty fence": ("```python\n```", None),
    "Windows line ends": (f"```python\r\n{ADD}```".replace("\n", "\r\n").replace("\r\r", "\r"), ADD),
    "a fence inside a docstring stays": (
        '```python\ndef add(a, b):\n    """Use `add`."""\n    return a + b\n```',
        'def add(a, b):\n    """Use `add`."""\n    return a + b\n',
    ),
    "class as entry point elsewhere": ("```python\nclass Box:\n    pass\n```", "class Box:\n    pass\n"),
    "assigned lambda": ("```python\nadd = lambda a, b: a + b\n```", "add = lambda a, b: a + b\n"),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden(name):
    text, code = GOLDEN[name]
    assert extract_code(text, "add") == code


def test_without_an_entry_point_the_last_block_that_parses_wins():
    assert extract_code("```python\nx = 1\n```\n```python\ny = 2\n```\n```python\ny = = 2\n```") == "y = 2\n"


def test_long_prose_is_dealt_with_quickly():
    assert extract_code("if you ask me, no\n" * 400, "add") is None


def test_thinking_is_dropped_and_the_rest_is_kept():
    assert without_thinking("<think>a</think>b<think>c</think>d") == "bd"
