"""The kinds of verdict a test can have, and the ways a node is judged."""

PASSED = "passed"
HOLLOW = "#hollow"  # after a task's id: the node that is its reference with functions that do nothing
INFRA_ERROR = "infra_error"  # the sandbox failed, not the program: no reward, never 0

# Why a test did not pass, in the order in which a node's one-word summary prefers them.
FAILURES = (
    "syntax_error",
    "missing_entry_point",
    "timeout",
    "memory_limit",
    "output_limit",
    "crash",
    "early_exit",
    "runtime_error",
    "unsupported_value",
    "protocol_error",
    "wrong_answer",
    "not_run",
)
# Kinds of a node of which nothing was run.
UNJUDGED = ("no_code", "context_overflow")
KINDS = (PASSED, *FAILURES, *UNJUDGED, INFRA_ERROR)
