"""A small policy made here: a Llama of some million parameters with its own tokenizer, taught on the run's tasks.

Hidden 256 and 6 layers give 5 million parameters, 128 and 3 layers 0.7 million. Training is plain supervised learning
of replies (cross entropy on reply tokens only), one fixed number of threads and a fixed order, so a seed
gives the same weights on the same kind of CPU. Run it through ``python -m stages.policy --init nano --tasks ...``.

Does not use a GPU (the work is minutes on two cores) and does not aim at a model good for anything but experiments.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import cross_entropy
from tqdm import tqdm

from stages.common.cli import UserError
from stages.common.config import Nano
from stages.common.ids import seed_for
from stages.common.timing import Timings
from stages.policy import tokenizer as words
from stages.policy.hf import write_configs, write_weights
from stages.policy.lessons import Lesson, Teacher, teacher

VOCABULARY = 768
CONTEXT = 2048  # longest sequence, tokens
BATCH = 16  # lessons per step
MUON_LR = 0.02
RETRIES = 0.3  # share of lessons that are second turns
THREADS = 2  # fixed: sums of other thread counts differ in the last digits
HEAD_SIZES = (32, 64, 80, 96, 112, 128, 160, 192, 224, 256)  # that vLLM's CPU attention knows


@dataclass(frozen=True)
class Example:
    """Token ids of a lesson; the reply, from `start` on, is learned."""

    ids: list[int]
    start: int


def config(settings: Nano, vocabulary: int) -> dict[str, object]:
    """``config.json`` of the model; UserError where vLLM could not run that shape."""
    size, rest = divmod(settings.hidden, settings.heads)
    if rest or size not in HEAD_SIZES:
        raise UserError(
            f"nano.hidden: {settings.hidden} over nano.heads: {settings.heads} gives heads of "
            f"{settings.hidden / settings.heads:g}; it must be one of {', '.join(map(str, HEAD_SIZES))}"
        )
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "dtype": "float32",
        "vocab_size": vocabulary,
        "hidden_size": settings.hidden,
        "intermediate_size": 32 * math.ceil(settings.hidden * 8 / 3 / 32),
        "num_hidden_layers": settings.layers,
        "num_attention_heads": settings.heads,
        "num_key_value_heads": settings.heads,
        "head_dim": size,
        "hidden_act": "silu",
        "max_position_embeddings": CONTEXT,
        "initializer_range": 0.05,  # learns faster than 0.02 at this size
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
        "attention_bias": False,
        "attention_dropout": 0.0,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "use_cache": True,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 0,
    }


def encode(tokenizer: Any, lesson: Lesson) -> Example:
    """Prompt as the chat template renders it, reply, end token; prompt and reply are encoded apart, as when sampled."""
    prompt = tokenizer.encode(words.chat(lesson.messages), add_special_tokens=False).ids
    reply = tokenizer.encode(lesson.reply, add_special_tokens=False).ids
    return Example([*prompt, *reply, tokenizer.token_to_id(words.END)], len(prompt))


def _texts(lessons: Teacher, count: int) -> Iterator[str]:
    """Texts to learn the tokenizer from; special tokens are left out, they are never merged."""
    for n in range(count):
        lesson = lessons.retry() if n % 4 == 0 else lessons.first()
        for message in lesson.messages:
            yield f"{message['role']}\n"
            yield message["content"]
        yield lesson.reply


def batches(lessons: Teacher, tokenizer: Any, steps: int) -> Iterator[list[Example]]:
    """One list of BATCH examples per step; lessons of like length share a step, so that little is padded."""
    retries = 0.0
    for _ in range(steps):
        # Whole steps of second turns, spread evenly.
        retries += RETRIES
        draw = lessons.first
        if retries >= 1:
            retries -= 1
            draw = lessons.retry
        yield [encode(tokenizer, draw()) for _ in range(BATCH)]


def loss_of(model: Any, batch: Sequence[Example]) -> torch.Tensor:
    """Mean cross entropy over the reply tokens of `batch`. Padding is on the right, where causal attention skips it."""
    longest = max(len(example.ids) for example in batch)
    ids = torch.zeros(len(batch), longest, dtype=torch.long)
    wanted = torch.full((len(batch), longest), -100)
    for row, example in enumerate(batch):
        count = len(example.ids)
        ids[row, :count] = torch.tensor(example.ids)
        wanted[row, example.start - 1 : count - 1] = ids[row, example.start : count]
    hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state
    chosen = wanted != -100  # logits of the reply only
    return cross_entropy(model.lm_head(hidden[chosen]).float(), wanted[chosen])


def learn(model: Any, examples: Iterator[list[Example]], settings: Nano) -> list[float]:
    """Train for `settings.steps` steps: linear warm-up over a twentieth, then cosine to zero. Returns the losses.

    Muon for the layers' matrices and AdamW for the rest: in 300 steps half of the tasks are learned, by AdamW alone a
    tenth.
    """
    matrices = [p for p in model.model.layers.parameters() if p.ndim == 2]
    rest = [p for p in model.parameters() if not any(p is m for m in matrices)]
    warmup = max(1, settings.steps // 20)
    falling = max(1, settings.steps - warmup)
    optimisers = [
        torch.optim.Muon(matrices, lr=MUON_LR, weight_decay=0.01),
        torch.optim.AdamW(rest, lr=settings.lr, betas=(0.9, 0.95), weight_decay=0.0),
    ]
    schedules = [
        torch.optim.lr_scheduler.LambdaLR(
            optimiser,
            lambda n: (n + 1) / warmup if n < warmup else 0.5 * (1 + math.cos(math.pi * (n - warmup) / falling)),
        )
        for optimiser in optimisers
    ]
    losses = []
    bar = tqdm(examples, total=settings.steps, desc="warm start", unit="step", mininterval=1)
    for batch in bar:
        loss = loss_of(model, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimiser, schedule in zip(optimisers, schedules, strict=True):
            optimiser.step()
            schedule.step()
        model.zero_grad(set_to_none=True)
        losses.append(loss.item())
        bar.set_postfix(loss=f"{losses[-1]:.3f}", refresh=False)
    return losses


def make(folder: Path, tasks: Sequence[Mapping], settings: Nano, seed: int, timings: Timings) -> dict[str, object]:
    """Write a policy taught on `tasks` (rows of the tasks table) into the empty `folder`; facts for its manifest."""
    config(settings, VOCABULARY)  # a shape that cannot be is refused before anything is learned
    from transformers import LlamaConfig, LlamaForCausalLM

    before = torch.get_num_threads()
    torch.set_num_threads(THREADS)
    try:
        lessons = teacher(tasks, seed_for(seed, "nano"))
        with timings.phase("tokenizer", "tokens") as phase:
            tokenizer = words.train(_texts(lessons, min(2000, 2 * len(tasks))), VOCABULARY)
            phase.count = tokenizer.get_vocab_size()
        shape = config(settings, tokenizer.get_vocab_size())
        torch.manual_seed(seed_for(seed, "nano weights") % 2**63)
        model = LlamaForCausalLM(LlamaConfig(**shape, attn_implementation="sdpa"))
        with timings.phase("warm start", "steps") as phase:
            losses = learn(model, batches(lessons, tokenizer, settings.steps), settings)
            phase.count = len(losses)
    finally:
        torch.set_num_threads(before)
    words.write(folder, tokenizer, CONTEXT)
    write_configs(folder, shape)
    weights = {name: value.numpy() for name, value in model.state_dict().items() if name != "lm_head.weight"}
    write_weights(folder, weights)
    last = losses[-20:]
    return {
        "parameters": sum(value.size for value in weights.values()),
        "tasks": len(tasks),
        "last_loss": sum(last) / len(last),
    }
