"""Sample one turn of rollout trees: ``python -m stages.generate --policy DIR --tasks F --turn 1 ... --out F``.

Turn 1 draws tasks; a later turn reads the rollouts and feedback of all turns before it and prompts the failed nodes
again. A turn with nothing to do writes a zero-row table and never imports vLLM. Running code is the execute stage's.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from stages.common import tables
from stages.common.cli import UserError, add_settings, run, settings_from
from stages.common.config import Generate
from stages.common.ids import node_id, seed_for
from stages.common.policy import read_manifest
from stages.common.timing import Timings
from stages.generate.budget import wave
from stages.generate.engine import Completion, Request
from stages.generate.extract import extract_code
from stages.generate.plan import Prompt, children, draw_tasks, first_tasks, roots

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass
class Group:
    """The nodes of one prompt as rows, with the requests that fill them; `most` tokens at most."""

    tokenizer: "PreTrainedTokenizerBase"
    prompt: Prompt
    most: int
    rows: list[dict] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)

    def fill(self, completions: Iterator[Completion]) -> int:
        """Take this group's completions; returns their tokens."""
        for row, _ in zip(self.rows, self.requests, strict=False):
            completion = next(completions)
            text = self.tokenizer.decode(completion.ids, skip_special_tokens=True)
            row |= {
                "completion_ids": completion.ids,
                "sampling_logprobs": completion.logprobs,
                "text": text,
                "code": extract_code(text, self.prompt.task["entry_point"]),
                "finish_reason": completion.finish_reason,
            }
        return sum(len(row["completion_ids"]) for row in self.rows)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m stages.generate", description=__doc__)
    parser.add_argument("--policy", type=Path, required=True, help="the policy's folder")
    parser.add_argument("--tasks", type=Path, nargs="+", required=True, help="tables of tasks")
    parser.add_argument("--limit", nargs="+", default=[], help="at most so many tasks of each --tasks file, or none")
    parser.add_argument("--rollouts", type=Path, nargs="*", default=[], help="rollouts of the turns before, in order")
    parser.add_argument("--feedback", type=Path, nargs="*", default=[], help="feedback of the turns before, in order")
    parser.add_argument("--version", type=int, required=True, help="policy version, part of every node's name")
    parser.add_argument("--turn", type=int, required=True, help="turn, from 1")
    parser.add_argument("--shard", type=int, default=0, help="number of this shard, from 0")
    parser.add_argument("--seed", type=int, default=0, help="the run's seed")
    parser.add_argument("--out", type=Path, required=True, help="table of rollouts to write")
    parser.add_argument("--timings", type=Path, help="JSON file for the phases' times")
    parser.add_argument("--stage-version", type=int, default=0, help="recorded; raised where completions would differ")
    add_settings(parser, Generate)
    return parser


def _prompts(args: argparse.Namespace, settings: Generate) -> list[Prompt]:
    limits = [None if limit == "none" else int(limit) for limit in args.limit] or [None] * len(args.tasks)
    if len(limits) != len(args.tasks):
        raise UserError(f"--limit has {len(limits)} values for {len(args.tasks)} --tasks files; give one for each")
    tasks = [
        task
        for path, limit in zip(args.tasks, limits, strict=True)
        for task in first_tasks(tables.read(path, tables.TASKS).to_pylist(), limit)
    ]
    if args.turn == 1:
        if args.shard >= settings.shards:
            raise UserError(f"--shard {args.shard}: shards are counted from 0, and --shards says {settings.shards}")
        drawn = draw_tasks(tasks, args.version, settings.tasks_per_version, args.seed)
        return roots(drawn[args.shard :: settings.shards], args.version, settings)
    if len(args.rollouts) != args.turn - 1 or len(args.feedback) != args.turn - 1:
        raise UserError(f"turn {args.turn} needs {args.turn - 1} --rollouts and as many --feedback files, oldest first")
    turns = [
        (tables.read(rollouts, tables.ROLLOUTS).to_pylist(), tables.read(feedback, tables.FEEDBACK).to_pylist())
        for rollouts, feedback in zip(args.rollouts, args.feedback, strict=True)
    ]
    return children(turns, tasks, settings)


def _spent(paths: Sequence[Path]) -> int:
    """Tokens that the turns before have sampled."""
    import pyarrow.compute as pc

    read = (tables.read(path, tables.ROLLOUTS, ["completion_ids"])["completion_ids"] for path in paths)
    return sum(pc.sum(pc.list_value_length(ids)).as_py() or 0 for ids in read)


def _groups(prompts: Sequence[Prompt], args: argparse.Namespace, settings: Generate, policy_hash: str) -> list[Group]:
    """The nodes of each prompt, not sampled yet, and what to ask the engine for."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(args.policy)
    if not tokenizer.chat_template:
        raise UserError(f"{args.policy}: its tokenizer has no chat template; use an instruct model, or add one")
    groups = []
    for prompt in prompts:
        text = tokenizer.apply_chat_template(prompt.messages, tokenize=False, add_generation_prompt=True)
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        room = min(settings.max_tokens, settings.max_model_len - len(ids))
        fits = room >= min(settings.max_tokens, 16)  # fewer tokens than that hold no program
        group = Group(tokenizer, prompt, room * settings.group_size if fits else 0)
        for sample in range(settings.group_size if fits else 1):
            name = node_id(prompt.group_id, sample, prompt.parent_id is None)
            seed = seed_for(args.seed, name)
            group.rows.append(_row(prompt, name, sample, text, ids, seed, policy_hash))
            if fits:
                group.requests.append(Request(name, ids, room, seed, prompt.group_id))
        groups.append(group)
    return groups


def _sample(prompts: Sequence[Prompt], args: argparse.Namespace, settings: Generate, timings: Timings) -> list[dict]:
    """Rows of the rollouts table for every group that the budget allows, in the order of the prompts."""
    policy = read_manifest(args.policy)
    with timings.phase("tokenizer"):
        groups = _groups(prompts, args, settings, policy.hash)
    budget = settings.tokens_per_version
    left = None if budget is None else max(0, budget // settings.shards - _spent(args.rollouts))
    if not any(group.requests for group in groups) or (left == 0):
        return [row for group in groups if not group.requests for row in group.rows]
    from stages.generate.engine import Engine  # vLLM: only where there is something to sample

    engine, spent, opened = Engine(args.policy, settings, timings), 0, 0
    with timings.phase("sample", "tokens") as phase:
        while count := wave([group.most for group in groups[opened:]], left, spent / opened if opened else None):
            now = groups[opened : opened + count]
            completions = iter(engine.sample([request for group in now for request in group.requests]))
            tokens = sum(group.fill(completions) for group in now)
            left = None if left is None else max(0, left - tokens)
            spent, opened = spent + tokens, opened + count
        phase.count = spent
    return [row for group in groups[:opened] for row in group.rows]


def _row(prompt: Prompt, name: str, sample: int, text: str, ids: list[int], seed: int, policy_hash: str) -> dict:
    """A node that has not been sampled, as it stays when its prompt leaves no room."""
    return {
        "node_id": name,
        "parent_id": prompt.parent_id,
        "group_id": prompt.group_id,
        "task_id": prompt.task["task_id"],
        "sample": sample,
        "prompt": text,
        "prompt_ids": ids,
        "completion_ids": [],
        "sampling_logprobs": [],
        "text": "",
        "code": None,
        "finish_reason": "context_overflow",
        "seed": seed,
        "policy_hash": policy_hash,
    }


def _provenance(args: argparse.Namespace, settings: Generate) -> Mapping[str, object]:
    return tables.provenance(
        "generate",
        settings.model_dump(),
        seed=args.seed,
        version=args.version,
        turn=args.turn,
        stage_version=args.stage_version,
    )


def main(argv: list[str]) -> None:
    """Read, sample, write."""
    args = _parser().parse_args(argv)
    settings = settings_from(args, Generate)
    timings = Timings()
    prompts = _prompts(args, settings)
    rows = _sample(prompts, args, settings, timings) if prompts else []
    tables.write(args.out, tables.ROLLOUTS, rows, _provenance(args, settings))
    timings.write(args.timings)
    overflow = sum(row["finish_reason"] == "context_overflow" for row in rows)
    print(
        f"turn {args.turn}: {len(prompts)} prompts, {len(rows)} nodes" + f", {overflow} without room" * bool(overflow)
    )


if __name__ == "__main__":
    run(main)
