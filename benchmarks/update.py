"""Trained tokens per second and peak memory of the update stage, against TRL's GRPOTrainer on the same rows.

    python -m benchmarks.update [--models tiny 135m] [--tasks 1] [--threads 2] [--trl-python PATH]

For each task a root group and a group of second turns, eight siblings each, prompts of 200 to 400 tokens and more where
an attempt and its feedback follow, completions of 30 to 128; random weights, a vocabulary of 49,152. Both train
with the dapo loss, on-policy, in float32; TRL is handed the finished rollouts, so that sampling costs it nothing. Loss
and gradient norm of the first step are printed as proof of equal work. A step is forward, backward, clipping and AdamW.
Peak memory is that of the whole process. Without --trl-python, TRL is installed into
build/trl beside this project's own torch and transformers, so that both run on the same arithmetic.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
TRL = "trl>=1.16,<1.17"
GROUP, VOCABULARY, LR = 8, 49_152, 1e-6
MODELS = {
    "tiny": {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4},
    # the shape of SmolLM2-135M
    "135m": {"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9},
}
OURS = {"packs of 2,048": [], "packs of 2,048, recomputed": ["--gradient-checkpointing"]}
THEIRS = {
    "TRL, its defaults": {},  # 8 rows a batch, activations recomputed
    "TRL, activations kept": {"gradient_checkpointing": False},
}


def make_rows(tasks: int, seed: int = 0) -> list[dict]:
    """Rows as {group, prompt, completion, reward}; siblings follow each other, groups share what real ones share."""
    import numpy as np

    g = np.random.default_rng(seed)

    def ids(least: int, most: int) -> list[int]:
        return g.integers(10, VOCABULARY, int(g.integers(least, most + 1))).tolist()

    head, prompts = ids(30, 30), {}
    for task in range(tasks):
        statement = head + ids(170, 370)
        prompts[f"0/t{task}"] = statement
        prompts[f"0/t{task}/0"] = statement + ids(30, 128) + ids(20, 60)  # an attempt and the feedback on it
    rewards = [0.0, 1.0, 0.5, 0.0, 0.25, 1.0, 0.0, 0.75]
    return [
        {"group": group, "prompt": prompt, "completion": ids(30, 128), "reward": float(reward)}
        for group, prompt in prompts.items()
        for reward in g.permutation(rewards)
    ]


def make_policy(folder: Path, shape: dict) -> None:
    """Random weights of a shape, and a tokenizer that is never used."""
    import torch
    from tokenizers import Tokenizer, models
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    from stages.common.policy import write_manifest

    torch.manual_seed(0)
    kv = 3 if shape["num_attention_heads"] == 9 else 2
    config = LlamaConfig(
        **shape, vocab_size=VOCABULARY, num_key_value_heads=kv, tie_word_embeddings=True, eos_token_id=2, pad_token_id=2
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    words = Tokenizer(models.WordLevel({"a": 0, "<e>": 2}, unk_token="a"))
    PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<e>", pad_token="<e>").save_pretrained(folder)
    write_manifest(folder, 0, None, {"stage": "benchmarks"})


def write_tables(folder: Path, rows: list[dict], policy_hash: str) -> list[str]:
    """The credit and rollouts tables of the rows, as flags of the update stage."""
    import statistics

    from stages.common import tables

    credit, rollouts, groups = [], [], {}
    for row in rows:
        groups.setdefault(row["group"], []).append(row["reward"])
    for i, row in enumerate(rows):
        known = groups[row["group"]]
        advantage = (row["reward"] - statistics.mean(known)) / (statistics.stdev(known) + 1e-4)
        name = f"{row['group']}.{i % GROUP}"
        shared = {"node_id": name, "parent_id": None, "group_id": row["group"], "task_id": row["group"][:4]}
        numbers = {"reward": row["reward"], "credit": row["reward"], "group_mean": 0.0, "group_std": 0.0}
        turn = row["group"].count("/")
        credit.append(shared | numbers | {"turn": turn, "advantage": advantage, "kept": True, "prune_reason": None})
        ids = {"prompt_ids": row["prompt"], "completion_ids": row["completion"]}
        ids["sampling_logprobs"] = [-1.0] * len(row["completion"])
        facts = {"sample": i % GROUP, "prompt": "", "text": "", "code": None, "finish_reason": "stop", "seed": i}
        rollouts.append(shared | ids | facts | {"policy_hash": policy_hash})
    tables.write(folder / "credit.parquet", tables.CREDIT, credit)
    tables.write(folder / "rollouts.parquet", tables.ROLLOUTS, rollouts)
    return ["--credit", str(folder / "credit.parquet"), "--rollouts", str(folder / "rollouts.parquet")]


def measured(command: list[str], environment: dict[str, str], log: Path) -> float:
    """Run a command; the peak memory of its process in GiB."""
    with open(log, "w") as out:
        pid = subprocess.Popen(command, cwd=ROOT, env=os.environ | environment, stdout=out, stderr=out).pid
        _, status, usage = os.wait4(pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command[:4])} ... failed:\n{log.read_text()[-3000:]}")
    return usage.ru_maxrss / 2**20


def time_ours(folder: Path, tables_: list[str], steps: int, threads: int, flags: list[str]) -> dict:
    """The stage's command line: seconds per step, loss and gradient norm of the first, peak memory."""
    from stages.common import tables

    out = folder / "ours"
    command = [sys.executable, "-m", "stages.update", "--policy", str(folder / "policy"), "--out", str(out / "policy")]
    command += [*tables_, "--updates", str(out / "updates.parquet"), "--timings", str(out / "times.json")]
    command += ["--version", "0", "--seed", "0", "--temperature", "1.0", "--threads", str(threads), "--lr", str(LR)]
    command += ["--work", str(out / "work"), "--is-correction", "none", "--epochs", str(steps), *flags]
    out.mkdir(exist_ok=True)
    memory = measured(command, {}, out / "log")
    times = json.loads((out / "times.json").read_text())
    parts = [[t["seconds"] for t in times if t["phase"] == name] for name in ("forward and backward", "optimiser")]
    first = tables.read(out / "updates.parquet", tables.UPDATES).to_pylist()[0]
    seconds = min(map(sum, zip(*parts, strict=True)))
    return {"seconds": seconds, "memory": memory, "loss": first["loss"], "grad_norm": first["grad_norm"]}


def time_trl(folder: Path, python: str, rows: list[dict], steps: int, threads: int, flags: dict) -> dict:
    """The same of GRPOTrainer, run by `python`."""
    job = {"policy": str(folder / "policy"), "rows": rows, "steps": steps, "threads": threads, "flags": flags}
    (folder / "job.json").write_text(json.dumps(job | {"result": str(folder / "trl.json")}))
    environment = {"HF_HUB_OFFLINE": "1", "TRL_EXPERIMENTAL_SILENCE": "1", "OMP_NUM_THREADS": str(threads)}
    command = [python, "-m", "benchmarks.update", "--run-trl", str(folder / "job.json")]
    memory = measured(command, environment, folder / "trl.log")
    return json.loads((folder / "trl.json").read_text()) | {"memory": memory}


def run_trl(path: str) -> None:
    """Inside TRL's environment: train for some steps on the job's rows, write what was measured."""
    import torch
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    job = json.loads(Path(path).read_text())
    torch.set_num_threads(job["threads"])
    groups: dict[str, list[dict]] = {}
    for row in job["rows"]:
        groups.setdefault(row["group"], []).append(row)
    began: list[float] = []
    times: list[float] = []

    def rollout(prompts, trainer):
        asked: dict[str, int] = {}
        rows = []
        for name in prompts:
            rows.append(groups[name][asked.setdefault(name, 0)])
            asked[name] += 1
        logprobs = [[-1.0] * len(row["completion"]) for row in rows]
        lists = {"prompt_ids": [row["prompt"] for row in rows], "completion_ids": [row["completion"] for row in rows]}
        return lists | {"logprobs": logprobs, "given": [row["reward"] for row in rows]}

    def reward(prompts, completions, given, **_):
        return given

    class Clock(TrainerCallback):
        def on_step_begin(self, *_, **__):
            began.append(time.perf_counter())

        def on_step_end(self, *_, **__):
            times.append(time.perf_counter() - began[-1])

    rows = len(job["rows"])
    settings = {
        "output_dir": str(Path(path).parent / "trl"),
        "use_cpu": True,
        "bf16": False,
        "loss_type": "dapo",
        "beta": 0.0,
        "learning_rate": LR,
        "lr_scheduler_type": "constant",
        "num_generations": GROUP,
        "max_completion_length": 128,
        "per_device_train_batch_size": 8,
        "gradient_accumulation_steps": rows // 8,
        "max_steps": job["steps"],
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
    }
    trainer = GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(job["policy"], dtype=torch.float32),
        reward_funcs=reward,
        args=GRPOConfig(**settings | job["flags"]),
        train_dataset=Dataset.from_list([{"prompt": name} for name in groups]),
        processing_class=AutoTokenizer.from_pretrained(job["policy"]),
        rollout_func=rollout,
        callbacks=[Clock()],
    )
    trainer.train()
    first = next(entry for entry in trainer.state.log_history if "grad_norm" in entry)
    result = {"seconds": min(times), "loss": first["loss"], "grad_norm": float(first["grad_norm"])}
    Path(job["result"]).write_text(json.dumps(result))


def trl_python() -> str:
    """The interpreter of build/trl: TRL and what it needs beyond this environment, made where it is missing."""
    folder = ROOT / "build" / "trl"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        [packages] = folder.glob("lib/python3*/site-packages")
        below = [path for path in sys.path if path.endswith("site-packages")]
        (packages / "below.pth").write_text("\n".join(below) + "\n")
        done = subprocess.run([python, "-m", "pip", "install", "--quiet", TRL], capture_output=True, text=True)
        if done.returncode:  # else it only complains about what lies below and TRL does not use
            raise SystemExit(done.stderr)
        (folder / "ready").touch()
    return str(python)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--tasks", type=int, default=1, help="tasks, of 16 rows each (default: 1)")
    parser.add_argument("--steps", type=int, default=2, help="steps taken; the fastest counts (default: 2)")
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--trl-python", help="interpreter of an environment with TRL (default: made in build/trl)")
    parser.add_argument("--run-trl", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run_trl:
        return run_trl(args.run_trl)
    other = args.trl_python or trl_python()
    rows = make_rows(args.tasks)
    tokens = sum(len(row["completion"]) for row in rows)
    print(f"{len(rows)} rows, {tokens:,} completion tokens, {args.threads} threads, {VOCABULARY:,} words")
    print("speed and memory: ours over the line's; seconds of one step", flush=True)
    print(f"{'model':>6} {'speed':>6} {'memory':>6} {'tokens/s':>9} {'GiB':>6} {'seconds':>8} {'loss':>10} {'norm':>9}")
    from stages.common.policy import read_manifest

    for name in args.models:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            make_policy(folder / "policy", MODELS[name])
            flags = write_tables(folder, rows, read_manifest(folder / "policy").hash)
            measures = {}
            for what, more in OURS.items():
                measures[what] = time_ours(folder, flags, args.steps, args.threads, more)
            for what, more in THEIRS.items():
                measures[what] = time_trl(folder, other, rows, args.steps, args.threads, more)
            ours = next(iter(measures.values()))
            for what, m in measures.items():
                ratios = f"{m['seconds'] / ours['seconds']:>6.2f} {ours['memory'] / m['memory']:>6.2f}"
                speed = f"{tokens / m['seconds']:>9,.0f} {m['memory']:>6.2f} {m['seconds']:>8.2f}"
                print(f"{name:>6} {ratios} {speed} {m['loss']:>10.6f} {m['grad_norm']:>9.5f}   {what}", flush=True)


if __name__ == "__main__":
    main()
