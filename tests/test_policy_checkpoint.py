"""Which folders are taken as a policy, and what is said about the others. Every case breaks one whole folder."""

import json
import shutil

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from stages.common.cli import UserError
from stages.policy import checkpoint
from stages.policy.hf import write_configs, write_json, write_weights

TEMPLATE = "{% for m in messages %}<s>{{ m['role'] }}: {{ m['content'] }}</s>{% endfor %}<s>assistant: "


def make_folder(path):
    """A Llama of two layers and 320 tokens, random weights, whole in every respect."""
    path.mkdir(parents=True, exist_ok=True)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({c: i for i, c in enumerate([*alphabet, "<s>", "</s>"])}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.add_special_tokens(["<s>", "</s>"])
    tokenizer.save(str(path / "tokenizer.json"))
    write_json(
        path / "tokenizer_config.json",
        {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "</s>", "chat_template": TEMPLATE},
    )
    h, rng = 16, np.random.default_rng(0)
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": 320,
        "hidden_size": h,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "tie_word_embeddings": True,
        "bos_token_id": 256,
        "eos_token_id": 257,
        "pad_token_id": None,
    }
    write_configs(path, config)
    shapes = {"model.embed_tokens.weight": (320, h), "model.norm.weight": (h,)}
    for layer in (0, 1):
        for name in "qkvo":
            shapes[f"model.layers.{layer}.self_attn.{name}_proj.weight"] = (h, h)
        shapes[f"model.layers.{layer}.mlp.gate_proj.weight"] = (32, h)
        shapes[f"model.layers.{layer}.mlp.up_proj.weight"] = (32, h)
        shapes[f"model.layers.{layer}.mlp.down_proj.weight"] = (h, 32)
        for name in ("input_layernorm", "post_attention_layernorm"):
            shapes[f"model.layers.{layer}.{name}.weight"] = (h,)
    write_weights(path, {n: rng.normal(0, 0.02, s).astype(np.float32) for n, s in shapes.items()})
    return path


@pytest.fixture
def folder(tmp_path):
    return make_folder(tmp_path / "model")


def edit(path, **changes):
    value = json.loads(path.read_text())
    value.update(changes)
    path.write_text(json.dumps({k: v for k, v in value.items() if v is not None}))


def shard(folder):
    """The same weights in two files with an index."""
    from safetensors.numpy import load_file, save_file

    arrays = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(arrays)
    parts = {"a.safetensors": names[:8], "b.safetensors": names[8:]}
    for file, held in parts.items():
        save_file({n: arrays[n] for n in held}, folder / file, metadata={"format": "pt"})
    write_json(folder / checkpoint.INDEX, {"weight_map": {n: f for f, held in parts.items() for n in held}})


def test_a_whole_folder_passes_and_loads(folder):
    from transformers import AutoModelForCausalLM

    checkpoint.check(folder)
    _, info = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    assert not any(info.values())
    shard(folder)
    checkpoint.check(folder)
    assert {"a.safetensors", "b.safetensors", checkpoint.INDEX} <= {p.name for p in checkpoint.model_files(folder)}


def test_template_in_its_own_file_passes(folder):
    edit(folder / "tokenizer_config.json", chat_template=None)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    checkpoint.check(folder)
    assert folder / "chat_template.jinja" in checkpoint.model_files(folder)


BREAKS = {
    "no config": (lambda f: (f / "config.json").unlink(), r"config\.json: no such file"),
    "config is not JSON": (lambda f: (f / "config.json").write_text("{"), "not readable as JSON"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), r"no weights \(model\.safetensors"),
    "no tokenizer": (lambda f: (f / "tokenizer.json").unlink(), "no tokenizer"),
    "no template": (lambda f: edit(f / "tokenizer_config.json", chat_template=None), "has no chat template"),
    "broken template": (lambda f: edit(f / "tokenizer_config.json", chat_template="{% for %}"), "chat template fails"),
    "template raises": (
        lambda f: edit(f / "tokenizer_config.json", chat_template="{{ raise_exception('one message only') }}"),
        "one message only",
    ),
    "template drops": (
        lambda f: edit(f / "tokenizer_config.json", chat_template="{{ messages[-1]['content'] }}"),
        "drops messages",
    ),
    "no end token": (
        lambda f: (
            edit(f / "tokenizer_config.json", eos_token=None),
            edit(f / "generation_config.json", eos_token_id=None),
        ),
        "no eos_token",
    ),
    "quantised": (lambda f: edit(f / "config.json", quantization_config={"bits": 4}), "quantised model"),
    "unknown type": (lambda f: edit(f / "config.json", model_type="none_such"), "transformers cannot load it"),
    "other vocabulary": (lambda f: edit(f / "config.json", vocab_size=321), "embed_tokens.weight has 320 rows"),
    "more layers": (lambda f: edit(f / "config.json", num_hidden_layers=3), "lack layer 2"),
    "cut weights": (
        lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:-4]),
        "cut off",
    ),
    "cut header": (
        lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:100]),
        "cut off",
    ),
    "empty weights": (lambda f: (f / "model.safetensors").write_bytes(b""), "cut off or no safetensors"),
    "not safetensors": (lambda f: (f / "model.safetensors").write_bytes(b"\x08" + b"\0" * 7 + b"nonsense"), "broken"),
    "git lfs": (lambda f: (f / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\n"), "lfs"),
    "pickles only": (lambda f: (f / "model.safetensors").rename(f / "pytorch_model.bin"), "save_pretrained"),
    "adapter": (lambda f: ((f / "config.json").unlink(), adapter(f)), "merge it"),
    "shard lost": (lambda f: (shard(f), (f / "b.safetensors").unlink()), r"b\.safetensors: no such file"),
    "index names more": (
        lambda f: (shard(f), edit(f / checkpoint.INDEX, weight_map=index_with(f, "model.extra.weight"))),
        r"names model\.extra\.weight",
    ),
}


def adapter(folder):
    (folder / "model.safetensors").unlink()
    write_json(folder / "adapter_config.json", {"r": 8})


def index_with(folder, name):
    return json.loads((folder / checkpoint.INDEX).read_text())["weight_map"] | {name: "a.safetensors"}


@pytest.mark.parametrize("case", BREAKS)
def test_a_broken_folder_is_refused_by_name(folder, case):
    break_it, message = BREAKS[case]
    break_it(folder)
    with pytest.raises(UserError, match=message) as refusal:
        checkpoint.check(folder)
    assert str(folder) in str(refusal.value)


def test_trainer_state_and_other_formats_stay_behind(folder):
    whole = {path.name for path in checkpoint.model_files(folder)}
    for name in ("optimizer.pt", "scheduler.pt", "rng_state_0.pth", "training_args.bin", "trainer_state.json"):
        (folder / name).write_bytes(b"x")
    for name in ("pytorch_model.bin", "model.onnx", "README.md", "manifest.json", "old.safetensors", ".gitattributes"):
        (folder / name).write_bytes(b"x")
    (folder / "trainer").mkdir()
    (folder / "trainer" / "state.safetensors").write_bytes(b"x")
    assert {path.name for path in checkpoint.model_files(folder)} == whole
    (folder / "LICENSE.md").write_text("terms")
    (folder / "merges.txt").write_text("")
    assert {path.name for path in checkpoint.model_files(folder)} == whole | {"LICENSE.md", "merges.txt"}
    shutil.rmtree(folder)
    with pytest.raises(UserError, match="no such folder"):
        checkpoint.check(folder)
