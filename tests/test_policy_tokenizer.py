"""The nano policy's tokenizer: every text comes back, special tokens stand alone, one corpus gives one tokenizer."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.common.prompts import conversation
from stages.policy import tokenizer as words
from stages.tasks.generated import generated_tasks

MESSAGES = [
    {"role": "user", "content": "Write f(x).\n\nIt must pass:\nassert f(2) == 5"},
    {"role": "assistant", "content": "```python\ndef f(x):\n    return x - 3\n```"},
    {"role": "user", "content": "0 of 6 tests passed."},
]


def corpus():
    for row in generated_tasks(0, 120):
        yield from (message["content"] for message in conversation(row, []))
        yield row["reference"]


@pytest.fixture(scope="module")
def trained():
    return words.train(corpus(), 512)


@pytest.fixture(scope="module")
def folder(trained, tmp_path_factory):
    path = tmp_path_factory.mktemp("tokenizer")
    words.write(path, trained, 2048)
    return path


@settings(max_examples=300, deadline=None)
@given(st.text())
def test_any_text_comes_back(trained, text):
    for token in (words.PAD, words.START, words.END):
        text = text.replace(token, "")
    assert trained.decode(trained.encode(text).ids) == text


def test_digits_and_line_breaks_are_tokens_of_their_own(trained):
    tokens = trained.encode("return x[:12]\n\n    return x").tokens
    assert "1" in tokens and "2" in tokens and tokens.count("Ċ") == 2


def test_same_corpus_same_tokenizer(trained):
    assert words.train(corpus(), 512).to_str() == trained.to_str()
    assert trained.get_vocab_size() == 512


def test_transformers_renders_the_template_as_the_lessons_do(folder, trained):
    from transformers import AutoTokenizer

    loaded = AutoTokenizer.from_pretrained(folder)
    text = loaded.apply_chat_template(MESSAGES, tokenize=False, add_generation_prompt=True)
    assert text == words.chat(MESSAGES)
    assert text.startswith("<|start|>user\nWrite f(x).") and text.endswith("passed.<|end|>\n<|start|>assistant\n")
    ids = loaded.apply_chat_template(MESSAGES, add_generation_prompt=True, return_dict=False)
    assert ids == trained.encode(text, add_special_tokens=False).ids
    assert ids.count(loaded.eos_token_id) == 3 and ids.count(loaded.bos_token_id) == 4
    assert len({loaded.pad_token_id, loaded.bos_token_id, loaded.eos_token_id}) == 3
    assert loaded.decode(ids, skip_special_tokens=True) == text.replace("<|start|>", "").replace("<|end|>", "")


def test_configuration_names_the_context(folder):
    assert json.loads((folder / "tokenizer_config.json").read_text())["model_max_length"] == 2048
