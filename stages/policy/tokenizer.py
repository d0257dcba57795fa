"""The nano policy's own tokenizer: byte-level BPE of some hundred tokens, with a ChatML-like template.

Any text can be encoded and comes back unchanged. Every digit and every line break is a token; words that often stand
together may become one ("take the first "), because prompts made from templates are then short and a small model has
less to read. The end of a message is the end-of-sequence token; padding is another one.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from stages.policy.hf import write_json

PAD, START, END = "<|pad|>", "<|start|>", "<|end|>"  # ids 0, 1, 2
TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|start|>' + message['role'] + '\n' + message['content'] + '<|end|>' + '\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|start|>assistant\n' }}{% endif %}"
)
# One digit, one line break, a run of words, or what stands between.
_PIECES = r"\d|\n| ?[A-Za-z_]+(?: [A-Za-z_]+)* ?|[^A-Za-z_\d\n]+"


def chat(messages: Iterable[dict[str, str]]) -> str:
    """The text that TEMPLATE makes of a conversation, up to where the assistant begins."""
    said = "".join(f"{START}{message['role']}\n{message['content']}{END}\n" for message in messages)
    return f"{said}{START}assistant\n"


def train(texts: Iterator[str], vocabulary: int) -> Any:
    """A `tokenizers.Tokenizer` of at most `vocabulary` tokens, learned from `texts`; the same for the same texts."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[PAD, START, END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def write(folder: Path, tokenizer: Any, longest: int) -> None:
    """Write ``tokenizer.json`` and its configuration; `longest` is the model's context in tokens."""
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": longest,
        "clean_up_tokenization_spaces": False,
        "chat_template": TEMPLATE,
        "bos_token": START,
        "eos_token": END,
        "pad_token": PAD,
    }
    write_json(folder / "tokenizer_config.json", settings)
