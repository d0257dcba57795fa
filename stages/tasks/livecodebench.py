"""LiveCodeBench: programs that read standard input, and methods of a class `Solution` with JSON arguments.

Public test cases are visible, private ones hidden. Private ones come as JSON, or as base64 of zlib of a pickled string;
of that pickle only the string is read, no object is ever built from it. The data set has no reference solutions.
Source: Jain et al. 2024 (arXiv 2403.07974).
"""

import base64
import binascii
import json
import pickletools
import zlib

from stages.tasks.records import Record, new_test, task

FIELDS = ("question_id", "question_content", "public_test_cases")
USES = (*FIELDS, "private_test_cases", "starter_code", "metadata", "difficulty", "contest_date")
CPU_SECONDS = 6.0  # per test, as the benchmark's own runner has it
MAX_BYTES = 1 << 30  # of one row's private tests, unpacked
_MODULES = (
    *("string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random", "statistics"),
    *("itertools", "functools", "operator", "io", "sys", "json", "builtins", "typing"),
)
# The benchmark runs every solution after these imports.
PRELUDE = "\n".join([*(f"from {name} import *" for name in _MODULES), f"import {', '.join(_MODULES[:-2])}", ""])
# Its comparison takes a tuple for a list.
AS_LIST = "def as_list(value):\n    return list(value) if isinstance(value, tuple) else value\n"
_STRINGS = {"BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "UNICODE"}
_NO_MEANING = {"PROTO", "FRAME", "MEMOIZE", "BINPUT", "LONG_BINPUT", "PUT", "STOP"}


def name(record: Record) -> str:
    """The task's id, `livecodebench/<question id>`."""
    return f"livecodebench/{record.get('question_id', kind=(str, int))}"


def difficulty(record: Record) -> str | None:
    """easy, medium or hard, as the contest's site says."""
    return record.get("difficulty", default=None)


def released(record: Record) -> str:
    """When the contest was held, an ISO date or time; hub data sets hold it as a time, files as text."""
    return str(record.get("contest_date", kind=object))


def pickled_string(data: bytes) -> str:
    """The string that a pickle holds, read from its opcodes; ValueError where it holds anything else."""
    found = []
    for opcode, argument, _ in pickletools.genops(data):
        if opcode.name in _STRINGS:
            found.append(argument)
        elif opcode.name not in _NO_MEANING:
            raise ValueError(f"the pickle holds more than a string ({opcode.name})")
    if len(found) != 1:
        raise ValueError(f"the pickle holds {len(found)} strings, not one")
    return found[0]


def unpack(text: str) -> str:
    """JSON text of private test cases: as it is, or out of base64, zlib and a pickled string.

    Raises ValueError where `text` is neither, or more than `MAX_BYTES` when unpacked.
    """
    if text.lstrip().startswith("["):
        return text
    try:
        packed = base64.b64decode(text, validate=True)
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(packed, MAX_BYTES)
    except (binascii.Error, zlib.error) as error:
        raise ValueError(f"neither JSON nor base64 of zlib ({error})") from None
    if unpacker.unconsumed_tail or not unpacker.eof:
        raise ValueError(f"cut off, or more than {MAX_BYTES} bytes when unpacked")
    return pickled_string(data)


def _cases(record: Record, field: str) -> list[dict]:
    text = record.get(field, default="[]")
    try:
        cases = json.loads(unpack(text)) if text.strip() else []
    except ValueError as error:
        raise record.fail(f"field {field!r}: {error}") from None
    if not isinstance(cases, list) or not all(
        isinstance(c, dict) and all(isinstance(c.get(k), str) for k in ("input", "output")) for c in cases
    ):
        raise record.fail(f"field {field!r} must be a JSON list of objects with 'input' and 'output'")
    return cases


def _function(record: Record) -> str | None:
    """The method of `Solution` that the tests call, or None for a program that reads standard input."""
    text = record.get("metadata", kind=(str, dict), default="{}")
    try:
        metadata = json.loads(text or "{}") if isinstance(text, str) else text
    except ValueError as error:
        raise record.fail(f"field 'metadata': {error}") from None
    return metadata.get("func_name")


def _assert(record: Record, case: dict, method: str) -> str:
    try:
        arguments = [json.loads(line) for line in case["input"].split("\n") if line.strip()]
        expected = json.loads(case["output"])
    except ValueError as error:
        raise record.fail(f"a test case of {method} is not JSON: {error}") from None
    call = f"Solution().{method}({', '.join(map(repr, arguments))})"
    return f"assert as_list({call}) == {expected!r}" if isinstance(expected, list) else f"assert {call} == {expected!r}"


def convert(record: Record) -> dict:
    """A LiveCodeBench row as a row of the TASKS table."""
    method = _function(record)
    cases = [(case, True) for case in _cases(record, "public_test_cases")]
    cases += [(case, False) for case in _cases(record, "private_test_cases")]
    prompt, starter = record.get("question_content").strip(), record.get("starter_code", default="")
    if method:
        tests = [new_test(_assert(record, case, method), visible) for case, visible in cases]
        prompt += f"\n\nComplete this code:\n\n```python\n{starter.rstrip()}\n```" if starter.strip() else ""
    else:
        tests = [new_test(visible=visible, stdin=case["input"], stdout=case["output"]) for case, visible in cases]
    return task(
        record,
        task_id=name(record),
        source="livecodebench",
        kind="function" if method else "stdio",
        prompt=prompt,
        entry_point="Solution" if method else None,
        prelude=PRELUDE,
        setup=AS_LIST if method else None,
        tests=tests,
        difficulty=difficulty(record),
        cpu_seconds=CPU_SECONDS,
    )
