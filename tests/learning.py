"""A run that has to learn: some tasks with known answers, a small policy that was taught to be wrong mostly, tree
rollouts from the real engine, real execution, credit and updates.

    python -m tests.learning FOLDER [--versions N] [--flip V]

prints a JSON line per version: the mean reward of the policy's first turn. With `--flip V` one more policy is made from
version V and its trees with the sign of the loss turned round, and measured. vLLM and torch are imported once; every
stage runs in a forked process, as its own command would.
"""

import argparse
import json
import os
import random
import shutil
import time
from pathlib import Path

from stages.common import tables
from stages.common.policy import write_manifest
from tests.forks import forked

# Right for one task each; their values at 7 and 12 are all different.
ANSWERS = {
    "n plus one": "n + 1",
    "n minus one": "n - 1",
    "twice n": "n * 2",
    "the square of n": "n * n",
    "n with its sign changed": "-n",
    "half of n, rounded down": "n // 2",
    "the remainder of n and two": "n % 2",
    "n times ten": "n * 10",
}
RIGHT = 0.25  # of what the policy is taught; the rest is another task's answer
ASKED = 4  # tasks, of the answers above the first ones
GROUP, TEMPERATURE = 16, 0.7
GENERATE = ["--group-size", GROUP, "--max-tokens", 32, "--max-model-len", 384, "--kv-cache-gib", 1]
GENERATE += ["--temperature", TEMPERATURE, "--max-num-seqs", 256]
UPDATE = ["--lr", "4e-4", "--epochs", 3, "--minibatches", 2, "--eps-high", "2.0", "--tokens-per-batch", 8192]
UPDATE += ["--logits-chunk", 4096, "--temperature", TEMPERATURE, "--threads", 1, "--seed", 0]


def make_tasks(path: Path) -> list[dict]:
    """The tasks table: one visible test and one hidden."""
    rows = []
    for i, (words, code) in enumerate(list(ANSWERS.items())[:ASKED]):
        value = lambda n, code=code: eval(code, {"n": n})
        tests = [
            {"visible": n == 7, "code": f"assert f({n}) == {value(n)}", "stdin": None, "stdout": None} for n in (7, 12)
        ]
        rows.append(
            {"task_id": f"t{i}", "source": "test", "kind": "function", "entry_point": "f", "tests": tests}
            | {"prompt": f"Write a Python function `f(n)` that returns {words}."}
            | {"inplace": False, "packages": [], "exact": False}
            | {"reference": f"def f(n):\n    return {code}\n"}
            | dict.fromkeys(["prelude", "setup", "difficulty", "cpu_seconds", "memory_mb", "stub", "tolerance"])
        )
    tables.write(path, tables.TASKS, rows)
    return rows


def make_policy(folder: Path, tasks: list[dict], steps: int = 260) -> None:
    """A nano policy taught, in first and second turns alike, a wrong answer to each task and at times the right one."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from stages.common.config import Nano
    from stages.common.prompts import conversation, fenced
    from stages.policy import nano, tokenizer
    from stages.policy.hf import write_configs, write_weights
    from stages.policy.lessons import Lesson
    from stages.policy.observe import feedback, outcomes

    rng = random.Random(0)
    answers = list(ANSWERS.values())

    def lesson(second: bool) -> Lesson:
        at = rng.randrange(len(tasks))
        task = tasks[at]
        tried = f"def f(n):\n    return {rng.choice(answers)}\n"
        found = outcomes(tried, task["tests"])
        attempts = [(fenced(tried), feedback(found, task["tests"]))] if second else []
        right = rng.random() < RIGHT
        return Lesson(
            conversation(task, attempts), fenced(f"def f(n):\n    return {answers[at if right else at - 1]}\n")
        )

    lessons = [lesson(i % 3 == 0) for i in range(600)]
    texts = (part for one in lessons for part in [*(f"{m['role']}\n{m['content']}" for m in one.messages), one.reply])
    words = tokenizer.train(texts, nano.VOCABULARY)
    settings = Nano(hidden=64, layers=2, heads=2, steps=steps)
    shape = nano.config(settings, words.get_vocab_size())
    torch.set_num_threads(1)  # sharing work this small costs more than it gains
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(**shape))
    batches = ([nano.encode(words, lesson(i % 3 == 2)) for _ in range(nano.BATCH)] for i in range(steps))
    nano.learn(model, batches, settings)
    folder.mkdir(parents=True)
    tokenizer.write(folder, words, nano.CONTEXT)
    write_configs(folder, shape)
    write_weights(folder, {k: v.numpy() for k, v in model.state_dict().items() if k != "lm_head.weight"})
    write_manifest(folder, 0, None, {"stage": "tests"})


def apart(work, *args) -> None:
    """Run it in a process of its own, with all that is imported here; its failure is ours."""
    if status := os.waitstatus_to_exitcode(os.waitpid(forked(work, *args), 0)[1]):
        raise SystemExit(f"{work.__module__} ended with {status}")


def flipped(argv: list[str]) -> int:
    """The update with the sign of its loss turned round."""
    from stages.update import step
    from stages.update.__main__ import main

    right = step.policy_loss
    step.policy_loss = lambda *args: (-right(*args)[0], right(*args)[1])
    return main(argv)


class Learning:
    """One run's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, what: str, version: int, turn: int) -> Path:
        return self.folder / what / f"version={version}" / f"turn={turn}" / "0.parquet"

    def policy(self, version: int) -> Path:
        return self.folder / "policies" / f"version={version}"

    def turn(self, version: int, turn: int) -> float:
        """Sample and judge one turn; the mean reward."""
        from stages.execute.__main__ import main as execute
        from stages.generate.__main__ import main as generate

        earlier = range(1, turn)
        files = lambda what: [self.path(what, version, t) for t in earlier]
        tasks, out = ["--tasks", self.folder / "tasks.parquet"], self.path("rollouts", version, turn)
        argv = ["--policy", self.policy(version), "--version", version, "--turn", turn, "--out", out, *tasks, *GENERATE]
        argv += ["--rollouts", *files("rollouts"), "--feedback", *files("feedback")] if turn > 1 else []
        apart(generate, [str(a) for a in argv])
        verdicts, feedback = (self.path(what, version, turn) for what in ("verdicts", "feedback"))
        argv = ["run", *tasks, "--rollouts", out, "--verdicts", verdicts, "--feedback", feedback]
        apart(execute, [str(a) for a in argv])
        rewards = tables.read(feedback, tables.FEEDBACK)["reward"].to_pylist()
        return sum(rewards) / len(rewards)

    def fresh(self, version: int) -> Path:
        """The same policy as the first of a run of its own: AdamW's momentum would carry on in the old direction."""
        folder = self.folder / "fresh"
        shutil.copytree(self.policy(version), folder, ignore=shutil.ignore_patterns("trainer", "manifest.json"))
        write_manifest(folder, 0, None, {"stage": "tests"})
        return folder

    def update(self, version: int, out: int, flip: bool = False) -> None:
        """Credit and the update of a version whose two turns are there."""
        from stages.credit.__main__ import main as credit
        from stages.update.__main__ import main as update

        both = lambda what: [self.path(what, version, turn) for turn in (1, 2)]
        rollouts, table = both("rollouts"), self.folder / f"credit-{version}.parquet"
        argv = [
            "--rollouts",
            *rollouts,
            "--feedback",
            *both("feedback"),
            "--turns",
            2,
            "--out",
            table,
            "--strategy",
            "mers",
        ]
        apart(credit, [str(a) for a in argv])
        start = self.fresh(version) if flip else self.policy(version)
        argv = ["--policy", start, "--out", self.policy(out), "--credit", table, "--rollouts", *rollouts]
        argv += ["--updates", self.folder / f"updates-{out}.parquet", "--version", 0 if flip else version, *UPDATE]
        argv += ["--work", self.folder / "work" / str(out)]
        apart(flipped if flip else update, [str(a) for a in argv])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--versions", type=int, default=3)
    parser.add_argument("--flip", type=int)
    args = parser.parse_args()
    from stages.common.config import Generate
    from stages.generate.engine import _prepare

    run, began = Learning(args.folder), time.monotonic()
    _prepare(Generate(kv_cache_gib=1))
    os.environ |= {"OMP_NUM_THREADS": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "TQDM_MININTERVAL": "5"}

    def say(version: int, reward: float, flip: bool = False) -> None:
        line = {"version": version, "reward": reward, "flipped": flip, "seconds": round(time.monotonic() - began, 1)}
        print(json.dumps(line), flush=True)

    tasks = make_tasks(run.folder / "tasks.parquet")
    apart(make_policy, run.policy(0), tasks)
    from vllm.v1.engine.llm_engine import LLMEngine  # noqa: F401

    import stages.update.session  # noqa: F401

    for version in range(args.versions):
        say(version, run.turn(version, 1))
        run.turn(version, 2)
        run.update(version, version + 1)
    say(args.versions, run.turn(args.versions, 1))
    if args.flip is not None:
        run.update(args.flip, args.versions + 1, flip=True)
        say(args.versions + 1, run.turn(args.versions + 1, 1), True)


if __name__ == "__main__":
    main()
