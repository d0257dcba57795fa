"""What a policy reads: the user's messages of a first attempt and of a retry, and the conversation they make.

Shared by `generate`, which renders conversations for the engine, and `policy`, whose warm start trains on the same
words. Only visible tests are ever quoted.
"""

from collections.abc import Mapping, Sequence

REPLY = {
    "function": "Reply with the complete Python code in one code block.",
    "stdio": "Write a complete Python program that reads standard input and prints the answer. "
    "Reply with the program in one code block.",
}


def _reply(task: Mapping) -> str:
    return REPLY.get(task["kind"], REPLY["function"])


def first_prompt(task: Mapping) -> str:
    """The user's message of turn 1: the statement, the visible tests unless it shows examples itself, how to reply."""
    parts = [task["prompt"].strip()]
    visible = [test for test in task["tests"] if test["visible"]]
    if visible and task["kind"] == "function" and ">>>" not in task["prompt"]:
        parts.append("It must pass:\n" + "\n".join(test["code"].strip() for test in visible))
    if visible and task["kind"] == "stdio":
        parts += [f"Example input:\n{test['stdin']}\nExample output:\n{test['stdout']}" for test in visible]
    return "\n\n".join([*parts, _reply(task)])


def retry_prompt(task: Mapping, feedback: str) -> str:
    """The user's message of a later turn: the executor's feedback on the attempt above, and what to do about it."""
    return f"{feedback.strip()}\n\nFix the code. {_reply(task)}"


def fenced(code: str) -> str:
    """Code as an attempt's reply shows it in a later prompt."""
    return f"```python\n{code.strip()}\n```"


def conversation(task: Mapping, attempts: Sequence[tuple[str, str]], instruction: str | None = None) -> list[dict]:
    """Chat messages that ask for the next attempt.

    `attempts` holds (reply, feedback) of the attempts that the policy is to see, oldest first; empty in turn 1.
    """
    messages = [{"role": "system", "content": instruction}] if instruction else []
    messages.append({"role": "user", "content": first_prompt(task)})
    for reply, feedback in attempts:
        messages.append({"role": "assistant", "content": reply})
        messages.append({"role": "user", "content": retry_prompt(task, feedback)})
    return messages
