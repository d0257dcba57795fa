"""Sample one turn of rollout trees: ``python -m stages.generate --policy DIR --tasks F --turn 1 ... --out F``.

Turn 1 draws tasks; a later turn reads the rollouts and feedback of all turns before it and prompts the failed nodes
again. A turn with nothing to do writes a zero-row table and never imports vLLM. Running code is the execute stage's.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from stages.common import tables
from stages.common.cli import UserError, add_settings, run, settings_from
from stages.common.config import Generate
from stages.common.ids import node_id, seed_for
from stages.common.policy import read_manifest
from stages.common.timing import Timings
from stages.generate.extract import extract_code
from stages.generate.plan import Prompt, children, draw_tasks, first_tasks, roots


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
        drawn = draw_tasks(tasks, args.version, settings.tasks_per_version, args.seed)
        return roots(drawn[args.shard :: settings.shards], args.version, settings)
    if len(args.rollouts) != args.turn - 1 or len(args.feedback) != args.turn - 1:
        raise UserError(f"turn {args.turn} needs {args.turn - 1} --rollouts and as many --feedback files, oldest first")
    turns = [
        (tables.read(rollouts, tables.ROLLOUTS).to_pylist(), tables.read(feedback, tables.FEEDBACK).to_pylist())
        for rollouts, feedback in zip(args.rollouts, args.feedback, strict=True)
    ]
    return children(turns, tasks, settings)


def _sample(prompts: Sequence[Prompt], args: argparse.Namespace, settings: Generate, timings: Timings) -> list[dict]:
    """Rows of the rollouts table for every prompt's group."""
    policy = read_manifest(args.policy)
    from stages.generate.engine import Engine, Request  # vLLM: only where there is something to sample

    engine = None
    with timings.phase("tokenizer"):
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(args.policy)
    if not tokenizer.chat_template:
        raise UserError(f"{args.policy}: its tokenizer has no chat template; use an instruct model, or add one")
    rows, requests = [], []
    for prompt in prompts:
        text = tokenizer.apply_chat_template(prompt.messages, tokenize=False, add_generation_prompt=True)
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        room = min(settings.max_tokens, settings.max_model_len - len(ids))
        fits = room >= min(settings.max_tokens, 16)  # fewer tokens than that hold no program
        for sample in range(settings.group_size if fits else 1):
            name = node_id(prompt.group_id, sample, prompt.parent_id is None)
            seed = seed_for(args.seed, name)
            rows.append(_row(prompt, name, sample, text, ids, seed, policy.hash))
            if fits:
                requests.append(Request(name, ids, room, seed))
    if requests:
        engine = Engine(args.policy, settings, timings)
        with timings.phase("sample", "tokens") as phase:
            completions = engine.sample(requests)
            phase.count = sum(len(completion.ids) for completion in completions)
        sampled = {r.name: c for r, c in zip(requests, completions, strict=True)}
        entry_points = {prompt.group_id: prompt.task["entry_point"] for prompt in prompts}
        for row in rows:
            if completion := sampled.get(row["node_id"]):
                text = tokenizer.decode(completion.ids, skip_special_tokens=True)
                row |= {
                    "completion_ids": completion.ids,
                    "sampling_logprobs": completion.logprobs,
                    "text": text,
                    "code": extract_code(text, entry_points[row["group_id"]]),
                    "finish_reason": completion.finish_reason,
                }
    return rows


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
