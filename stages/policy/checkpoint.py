"""Is a folder a whole Hugging Face checkpoint that can be trained? Which of its files make the policy?

Everything is told from names, sizes and headers, before a weight is read: a broken folder is refused in seconds. Only
safetensors are taken, no pickles. The last check loads configuration and tokenizer with transformers and renders a
conversation, because only that shows that a chat template works.

Does not cover weights that are whole but meaningless (NaN), nor architectures that vLLM cannot run.
"""

import json
import re
from math import prod
from pathlib import Path

from stages.common.cli import UserError
from stages.common.policy import MANIFEST

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "spiece.model")
# What is not the model: state of a trainer, other formats of the same weights, papers and pictures.
_JUNK = re.compile(
    r"^(optimizer|scheduler|scaler|rng_state|training_args|trainer_state|pytorch_model|tf_model|flax_model|rust_model|"
    r"adapter_)|\.(bin|pt|pth|h5|msgpack|onnx|gguf|tflite|ot|md|png|jpg|pdf|log|py)$|^events\.out|^\."
)
_WIDTH = {"F64": 8, "I64": 8, "F32": 4, "I32": 4, "BF16": 2, "F16": 2, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}


def read_json(path: Path) -> dict:
    """A JSON object; UserError where the file is missing or holds something else."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; policy.init must be a whole Hugging Face folder") from None
    except (ValueError, OSError) as error:
        raise UserError(f"{path}: not readable as JSON ({error}); copy or download the model again") from None
    if not isinstance(value, dict):
        raise UserError(f"{path}: holds no JSON object; copy or download the model again")
    return value


def tensors_of(path: Path) -> dict[str, tuple[str, list[int]]]:
    """Name -> (dtype, shape) of a safetensors file, from its header; UserError where the file is not whole."""
    again = "copy or download the model again"
    try:
        size = path.stat().st_size
        with open(path, "rb") as handle:
            head = handle.read(8)
            if head == b"version ":
                raise UserError(f"{path}: a Git LFS pointer, not weights; run `git lfs pull` in the model's folder")
            length = int.from_bytes(head, "little")
            if len(head) < 8 or length > size - 8:
                raise UserError(f"{path}: cut off or no safetensors file ({size} bytes); {again}")
            header = json.loads(handle.read(length))
        header.pop("__metadata__", None)
        end = 0
        for name, entry in header.items():
            start, stop = entry["data_offsets"]
            width = _WIDTH.get(entry["dtype"])
            if width and stop - start != prod(entry["shape"]) * width:
                raise UserError(f"{path}: tensor {name} has not the size of its shape; {again}")
            end = max(end, stop)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file, though the weights' index names it; {again}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path}: the safetensors header is broken ({error}); {again}") from None
    if 8 + length + end != size:
        raise UserError(f"{path}: {size} bytes where its header says {8 + length + end}: cut off; {again}")
    return {name: (entry["dtype"], entry["shape"]) for name, entry in header.items()}


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of `folder`: the one, else those of its index; UserError where there is none."""
    if (folder / SINGLE).is_file():
        return [folder / SINGLE]
    if (folder / INDEX).is_file():
        names = read_json(folder / INDEX).get("weight_map")
        if not isinstance(names, dict) or not names:
            raise UserError(f"{folder / INDEX}: has no weight_map; copy or download the model again")
        return [folder / name for name in sorted(set(names.values()))]
    if (folder / "adapter_config.json").is_file():
        raise UserError(
            f"{folder}: a LoRA adapter without its base model; merge it (peft: model.merge_and_unload()) and "
            "save_pretrained the result"
        )
    if any(folder.glob("pytorch_model*.bin")):
        raise UserError(
            f"{folder}: weights are pickles (pytorch_model.bin), which are not opened; convert them once: "
            f"AutoModelForCausalLM.from_pretrained(folder).save_pretrained(new_folder)"
        )
    raise UserError(f"{folder}: no weights ({SINGLE} or {INDEX})")


def check_weights(folder: Path, config: dict) -> None:
    """Every tensor is there, every layer too, and the vocabulary is the configuration's."""
    found: dict[str, tuple[str, list[int]]] = {}
    files = weight_files(folder)
    for path in files:
        found |= tensors_of(path)
    if files != [folder / SINGLE]:
        missing = sorted(set(read_json(folder / INDEX)["weight_map"]) - set(found))
        if missing:
            raise UserError(f"{folder / INDEX}: names {missing[0]}, which no file holds ({len(missing)} missing)")
    packed = sorted({kind for kind, _ in found.values()} - {"F32", "BF16", "F16", "F64", "I64", "BOOL"})
    if packed:
        raise UserError(f"{folder}: weights of type {', '.join(packed)} cannot be trained; take the unquantised model")
    layers = {int(match[1]) for name in found if (match := re.search(r"(?:^|\.)(?:layers|h)\.(\d+)\.", name))}
    wanted = config.get("num_hidden_layers")
    if isinstance(wanted, int) and layers and (lost := sorted(set(range(wanted)) - layers)):
        raise UserError(f"{folder}: config.json says {wanted} layers, but the weights lack layer {lost[0]}")
    for name, (_, shape) in found.items():
        rows = config.get("vocab_size")
        if name.endswith("embed_tokens.weight") and isinstance(rows, int) and shape[0] != rows:
            raise UserError(f"{folder}: config.json says vocab_size {rows}, but {name} has {shape[0]} rows")


def check_small_files(folder: Path) -> dict:
    """Configuration and tokenizer, as far as names tell; returns config.json."""
    if not (folder / "config.json").is_file() and (folder / "adapter_config.json").is_file():
        weight_files(folder)
    config = read_json(folder / "config.json")
    if "quantization_config" in config:
        raise UserError(f"{folder}: a quantised model cannot be trained; take the unquantised one")
    if config.get("is_encoder_decoder"):
        raise UserError(f"{folder}: an encoder-decoder model; a policy must be a causal language model")
    if not any((folder / name).is_file() for name in TOKENIZERS):
        raise UserError(f"{folder}: no tokenizer ({', '.join(TOKENIZERS)}); save it there: tokenizer.save_pretrained")
    settings = read_json(folder / "tokenizer_config.json")
    places = [folder / "chat_template.jinja", folder / "chat_template.json", folder / "additional_chat_templates"]
    if not settings.get("chat_template") and not any(place.exists() for place in places):
        raise UserError(
            f"{folder}: the tokenizer has no chat template, so prompts cannot be put into its words; take the "
            "instruct model, or add chat_template.jinja"
        )
    return config


def check_loads(folder: Path) -> None:
    """Load configuration and tokenizer as transformers does and render a conversation of three turns."""
    from transformers import AutoConfig, AutoTokenizer

    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # whatever the files made it raise, it is about them
        raise UserError(f"{folder}: transformers cannot load it ({type(error).__name__}: {error})") from error
    talk = [("user", "Question."), ("assistant", "Attempt."), ("user", "Feedback.")]
    messages = [{"role": role, "content": content} for role, content in talk]
    try:
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    except Exception as error:  # jinja and the template itself may raise anything
        raise UserError(f"{folder}: the chat template fails on user, assistant, user ({error})") from error
    if not all(content in text for _, content in talk):
        raise UserError(f"{folder}: the chat template drops messages, so a retry would not see feedback: {text!r}")
    vocabulary = getattr(config.get_text_config(), "vocab_size", None)
    if vocabulary and max(tokenizer(text, add_special_tokens=False)["input_ids"]) >= vocabulary:
        raise UserError(f"{folder}: the tokenizer is of another model: ids at or above vocab_size {vocabulary}")
    ends = folder / "generation_config.json"
    if tokenizer.eos_token_id is None and not (ends.is_file() and read_json(ends).get("eos_token_id")):
        raise UserError(f"{folder}: no eos_token in tokenizer_config.json; completions would never stop")


def check(folder: Path) -> None:
    """UserError, with the file and the fix, for a folder that is no trainable chat model."""
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder")
    check_weights(folder, check_small_files(folder))
    check_loads(folder)


def model_files(folder: Path) -> list[Path]:
    """The files of `folder` that make the policy: weights of its index, configuration, tokenizer, template.

    Left out: optimiser state, other formats of the weights, subfolders (but for additional chat templates), a
    manifest or trainer state of a run it comes from.
    """
    weights = weight_files(folder)
    other = {MANIFEST, SINGLE, INDEX} - ({INDEX} if weights != [folder / SINGLE] else set())
    small = [
        path
        for path in folder.iterdir()
        if path.is_file()
        and path.name not in other
        and path.suffix != ".safetensors"
        and (path.name.startswith("LICENSE") or not _JUNK.search(path.name))
    ]
    return sorted([*weights, *small, *folder.glob("additional_chat_templates/*.jinja")])
