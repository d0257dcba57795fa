"""Small random models and rows for the tests of the update stage."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM

from stages.common import tables
from stages.common.policy import read_manifest
from stages.update.__main__ import main
from stages.update.attention import NAME
from stages.update.batch import Row
from tests.tiny_policy import make_tiny_policy

torch.set_num_threads(1)  # models this small only lose by sharing their work


def tiny(kind: str = "llama", tied: bool = True, seed: int = 0, dtype=torch.float32, vocab: int = 61):
    torch.manual_seed(seed)
    sizes = {
        "vocab_size": vocab,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "tie_word_embeddings": tied,
        "initializer_range": 0.3,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 2,
    }
    if kind == "llama":
        model = LlamaForCausalLM(LlamaConfig(**sizes))
    else:
        model = Qwen3ForCausalLM(Qwen3Config(**sizes, head_dim=8))
    model.set_attn_implementation(NAME)
    return model.to(dtype)


def random_rows(
    seed: int = 0, groups: int = 3, siblings: int = 4, prompt: int = 12, completion: int = 9, vocab: int = 61
) -> list[Row]:
    """Groups of siblings with prompts that share a head, completions of many lengths, some of them equal."""
    g = np.random.default_rng(seed)
    head = g.integers(3, vocab, 4)
    rows = []
    for i in range(groups):
        ids = np.concatenate([head, g.integers(3, vocab, int(g.integers(2, prompt)))])
        for j in range(siblings):
            n = int(g.integers(1, completion + 1))
            done = g.integers(3, vocab, n)
            if j == 1:
                done = rows[-1].completion.copy()  # siblings are often equal
            rows.append(
                Row(
                    node_id=f"0/t{i}/{j}",
                    group_id=f"0/t{i}",
                    turn=1 + i % 2,
                    advantage=float(g.normal()),
                    prompt=ids.astype(np.int64),
                    completion=done.astype(np.int64),
                    sampling=-g.random(len(done)).astype(np.float32) * 6 - 3,
                )
            )
    return rows


def plain_logprobs(model, row: Row, temperature: float = 1.0) -> torch.Tensor:
    """(tokens,) log-probabilities of one completion by an ordinary causal forward pass with full logits."""
    ids = torch.tensor(np.concatenate([row.prompt, row.completion]))[None]
    logits = model(input_ids=ids).logits[0, len(row.prompt) - 1 : -1] / temperature
    return torch.log_softmax(logits, -1).gather(1, torch.tensor(row.completion)[:, None])[:, 0]


def write_tables(
    folder: Path,
    rows: list[Row],
    policy_hash: str,
    kept: dict[str, bool] = {},
    empty: set[str] = frozenset(),
    unscored: set[str] = frozenset(),
    finish: dict[str, str] = {},
) -> tuple[Path, Path]:
    """The credit and rollouts tables of `rows`; `empty` nodes lose their completion, `unscored` ones one logprob."""
    credit, rollouts = [], []
    for i, row in enumerate(rows):
        shared = {"node_id": row.node_id, "parent_id": None, "group_id": row.group_id, "task_id": row.group_id}
        credit.append(
            shared
            | {"turn": row.turn, "reward": 0.5, "credit": 0.5, "group_mean": 0.5, "group_std": 0.1}
            | {"advantage": row.advantage, "kept": kept.get(row.node_id, True), "prune_reason": None}
        )
        completion = [] if row.node_id in empty else row.completion.tolist()
        sampling = [] if row.node_id in empty else row.sampling.tolist()
        rollouts.append(
            shared
            | {"sample": i, "prompt": "", "prompt_ids": row.prompt.tolist(), "completion_ids": completion}
            | {"sampling_logprobs": sampling[:-1] if row.node_id in unscored else sampling}
            | {"text": "", "code": None, "finish_reason": finish.get(row.node_id, "stop"), "seed": i}
            | {"policy_hash": policy_hash}
        )
    paths = folder / "credit.parquet", folder / "rollouts.parquet"
    tables.write(paths[0], tables.CREDIT, credit)
    tables.write(paths[1], tables.ROLLOUTS, rollouts)
    return paths


class Run:
    """One run's folder: policies, tables and the command lines of its updates."""

    def __init__(self, folder: Path, start: Path | None = None):
        self.folder = folder
        if start is None:
            make_tiny_policy(self.policy(0), hidden=32)
        else:
            for file in [p for p in start.rglob("*") if p.is_file()]:
                target = self.policy(0) / file.relative_to(start)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(file.read_bytes())

    def policy(self, version: int) -> Path:
        return self.folder / f"policies/version={version}"

    def updates(self, version: int):
        return tables.read(self.folder / f"updates-{version}.parquet", tables.UPDATES).to_pylist()

    def write(self, version: int, rows) -> None:
        made_for = read_manifest(self.policy(version)).hash
        write_tables(self.folder / f"data-{version}", rows, made_for)

    def argv(self, version: int, *flags: str) -> list[str]:
        data = self.folder / f"data-{version}"
        return [
            *("--policy", str(self.policy(version)), "--out", str(self.policy(version + 1))),
            *("--credit", str(data / "credit.parquet"), "--rollouts", str(data / "rollouts.parquet")),
            *("--updates", str(self.folder / f"updates-{version}.parquet"), "--version", str(version), "--seed", "7"),
            *("--work", str(self.folder / "work"), "--timings", str(self.folder / f"timings-{version}.json")),
            *("--threads", "1", "--temperature", "0.8", "--lr", "1e-3", *flags),
        ]

    def update(self, version: int, rows, *flags: str):
        self.write(version, rows)
        assert main(self.argv(version, *flags)) == 0
        return self.updates(version)

    def weights(self, version: int) -> dict[str, torch.Tensor]:
        return load_file(self.policy(version) / "model.safetensors")

    def model(self, version: int):
        return AutoModelForCausalLM.from_pretrained(self.policy(version), dtype=torch.float32)


def all_equal(a: dict, b: dict) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)
