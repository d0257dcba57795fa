"""The columns of the Parquet tables that stages exchange; reading and writing them is in tables.py.

A column may hold NULL only where `_null` says so. `key` names the columns that tell one row from another.
"""

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class Table:
    """A table's name, the columns of its files and the columns that name a row."""

    name: str
    key: tuple[str, ...]
    schema: pa.Schema


def _schema(**columns: pa.DataType) -> pa.Schema:
    """Columns in order; a type wrapped by `_null` may hold NULL."""
    return pa.schema(
        [
            pa.field(name, kind[0], nullable=True) if isinstance(kind, tuple) else pa.field(name, kind, nullable=False)
            for name, kind in columns.items()
        ]
    )


def _null(kind: pa.DataType) -> tuple[pa.DataType]:
    return (kind,)


_TEXT, _INT, _REAL, _FLAG = pa.string(), pa.int32(), pa.float64(), pa.bool_()

TEST = pa.struct(
    [
        # One test of a task. `code`: assert statements (function), or the name of a test function (pytest);
        # `stdin`/`stdout` for programs. Invisible tests are scored and never shown.
        pa.field("visible", _FLAG, nullable=False),
        pa.field("code", _TEXT),
        pa.field("stdin", _TEXT),
        pa.field("stdout", _TEXT),
    ]
)

TASKS = Table(
    "tasks",
    ("task_id",),
    _schema(
        task_id=_TEXT,
        source=_TEXT,  # starter, humaneval, mbpp, kodcode, ...
        kind=_TEXT,  # function | pytest | stdio | unittest
        prompt=_TEXT,  # the statement, without chat template
        entry_point=_null(_TEXT),  # the function or class the tests call
        prelude=_null(_TEXT),  # code put before every completion (HumanEval: the prompt's imports and helpers)
        setup=_null(_TEXT),  # code that runs on the tests' side before each test; for pytest the whole test file
        tests=pa.list_(pa.field("item", TEST, nullable=False)),
        reference=_null(_TEXT),  # a solution that scores 1.0
        difficulty=_null(_TEXT),
        stub=_null(_TEXT),  # code that a bare completion goes on from (HumanEval, BigCodeBench)
        inplace=_FLAG,  # the reference changes its arguments, so changes come back to the test
        exact=_FLAG,  # stdio: output must equal the expected byte for byte; else by tokens
        tolerance=_null(_REAL),  # stdio: by which a token with a fraction may differ; NULL takes the usual 1e-6
        packages=pa.list_(pa.field("item", _TEXT, nullable=False)),  # importable beside the standard library
        cpu_seconds=_null(_REAL),  # limits of this task; NULL takes the run's
        memory_mb=_null(_INT),
    ),
)

REJECTED = Table("rejected", ("task_id",), _schema(task_id=_TEXT, source=_TEXT, reward=_null(_REAL), reason=_TEXT))

ROLLOUTS = Table(
    "rollouts",
    ("node_id",),
    _schema(
        node_id=_TEXT,
        parent_id=_null(_TEXT),  # NULL for a root
        group_id=_TEXT,  # the parent's node_id; for roots version/task_id
        task_id=_TEXT,
        sample=_INT,  # 0.. within the group
        prompt=_TEXT,  # what the engine read, as text, for reading only
        prompt_ids=pa.list_(pa.field("item", _INT, nullable=False)),
        completion_ids=pa.list_(pa.field("item", _INT, nullable=False)),  # as sampled, end-of-sequence token included
        sampling_logprobs=pa.list_(pa.field("item", pa.float32(), nullable=False)),  # of completion_ids, as sampled
        text=_TEXT,  # the completion, special tokens removed
        code=_null(_TEXT),  # extracted program; NULL where there is none
        finish_reason=_TEXT,  # stop | length | context_overflow
        seed=pa.int64(),
        policy_hash=_TEXT,
    ),
)

VERDICTS = Table(
    "verdicts",
    ("node_id", "test"),
    _schema(
        node_id=_TEXT,
        test=_INT,  # index into the task's tests
        visible=_FLAG,
        kind=_TEXT,  # one of stages.common.verdicts.KINDS
        message=_null(_TEXT),
        call=_null(_TEXT),  # visible tests only, like got and expected
        got=_null(_TEXT),
        expected=_null(_TEXT),
    ),
)

TEST_TIMES = Table(
    "test_times",
    ("node_id", "test"),
    _schema(node_id=_TEXT, test=_INT, cpu_ms=_null(_REAL), wall_ms=_null(_REAL), retried=_FLAG),
)

FEEDBACK = Table(
    "feedback",
    ("node_id",),
    _schema(
        node_id=_TEXT,
        task_id=_TEXT,
        reward=_null(_REAL),  # passed / total; NULL where the node could not be judged
        passed=_INT,
        total=_INT,
        hidden_passed=_INT,
        hidden_total=_INT,
        kind=_TEXT,  # passed, or the kind of the first test that failed
        mode=_TEXT,  # answer_blind | in_process | stdio | none (nothing was run)
        feedback=_TEXT,
    ),
)

CREDIT = Table(
    "credit",
    ("node_id",),
    _schema(
        node_id=_TEXT,
        parent_id=_null(_TEXT),
        group_id=_TEXT,
        task_id=_TEXT,
        turn=_INT,
        reward=_null(_REAL),
        credit=_null(_REAL),
        group_mean=_null(_REAL),  # over the kept nodes of the group
        group_std=_null(_REAL),  # sample standard deviation
        advantage=_REAL,
        kept=_FLAG,
        prune_reason=_null(_TEXT),  # inter | intra
    ),
)

_STEP_METRICS = {
    "loss": _REAL,  # this part's share of the step's loss; the shares add up
    "kl": _null(_REAL),  # to the reference policy; NULL without one
    "kl_start": _REAL,  # to the policy at the version's start
    "entropy": _null(_REAL),
    "ratio_mean": _REAL,
    "ratio_max": _REAL,
    "clip_low": _REAL,  # share of tokens
    "clip_high": _REAL,
    "is_ratio_mean": _REAL,  # trainer/engine correction before truncation
    "is_ratio_max": _REAL,
    "is_used_mean": _REAL,  # the correction as it was applied, after truncation or masking
    "is_clipped": _REAL,  # share of tokens truncated or masked
    "logp_diff": _REAL,  # mean |trainer - engine| log-probability
}
_STEP_SIZE = {
    "rows": _INT,
    "tokens": pa.int64(),  # completion tokens in the loss
    "forward_tokens": pa.int64(),  # those with a forward pass, which means and shares are over
}

UPDATES = Table(
    "updates",
    ("step",),
    _schema(
        step=_INT,  # optimiser steps of this version, from 0
        epoch=_INT,
        **_STEP_SIZE,
        **_STEP_METRICS,
        grad_norm=_REAL,
        lr=_REAL,
        by_turn=pa.list_(pa.struct(list(_schema(turn=_INT, **_STEP_SIZE, **_STEP_METRICS)))),
    ),
)

EVALS = Table(
    "evals",
    ("task_id", "sample"),
    _schema(
        task_id=_TEXT,
        sample=_INT,  # the chain's root
        difficulty=_null(_TEXT),
        attempts=_INT,
        solved_at=_null(_INT),  # turn of the first attempt that passes every hidden test, NULL if none
        first_kind=_TEXT,
        last_kind=_TEXT,
    ),
)

ALL = {t.name: t for t in (TASKS, REJECTED, ROLLOUTS, VERDICTS, TEST_TIMES, FEEDBACK, CREDIT, UPDATES, EVALS)}
