"""BigCodeBench: a `unittest` file per task, and functions that use many libraries.

The methods of the test classes are the tests, the first one visible; they run in process. A completion comes after the
task's imports and signature, as in the benchmark's calibrated score. Tasks ask for their libraries; those that are not
in the sandbox fail with the reference, and so are set aside on admission. Source: Zhuo et al. 2024 (arXiv 2406.15877).
"""

import ast
import sys

from stages.tasks.records import Record, functions, new_test, parse, task

FIELDS = ("task_id", "complete_prompt", "canonical_solution", "test", "entry_point")
USES = (*FIELDS, "instruct_prompt", "code_prompt", "libs")


def name(record: Record) -> str:
    """The task's id, as the data set has it."""
    return record.get("task_id")


def difficulty(record: Record) -> None:
    """BigCodeBench grades nothing; its hard subset is a data set of its own."""
    return None


def _packages(record: Record) -> list[str]:
    """The libraries a row lists, without those of the standard library; the list may be text."""
    libraries = record.get("libs", kind=(str, list), default=[])
    if isinstance(libraries, str):
        try:
            libraries = ast.literal_eval(libraries)
        except (ValueError, SyntaxError) as error:
            raise record.fail(f"field 'libs' is not a list: {error}") from None
    names = {str(library).split(".")[0] for library in libraries}
    return sorted(names - sys.stdlib_module_names)


def convert(record: Record) -> dict:
    """A BigCodeBench row as a row of the TASKS table; nothing of it is run."""
    setup, complete = record.get("test"), record.get("complete_prompt")
    signature = record.get("code_prompt", default="").rstrip()
    cases = [node for node in parse(record, setup, "field 'test'").body if isinstance(node, ast.ClassDef)]
    names = [f"{case.name}::{method}" for case in cases for method in functions(case) if method.startswith("test")]
    return task(
        record,
        task_id=name(record),
        source="bigcodebench",
        kind="unittest",
        prompt=record.get("instruct_prompt", default=complete).strip(),
        entry_point=record.get("entry_point"),
        prelude=f"{signature}\n    pass\n" if signature else None,
        stub=complete,
        setup=setup,
        tests=[new_test(code, visible=index == 0) for index, code in enumerate(names)],
        reference=complete + record.get("canonical_solution"),
        packages=_packages(record),
    )
