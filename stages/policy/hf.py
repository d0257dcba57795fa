"""Writes the files of a Hugging Face folder that do not need transformers: JSON, and weights as safetensors."""

import json
import os
from pathlib import Path

import numpy as np


def write_json(path: Path, value: dict[str, object]) -> None:
    """Write `value` as indented JSON."""
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def write_weights(folder: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write ``model.safetensors``, as readable to others as any new file (safetensors itself makes it private)."""
    from safetensors.numpy import save_file

    path = folder / "model.safetensors"
    save_file(arrays, path, metadata={"format": "pt"})
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(0o666 & ~mask)


def write_configs(folder: Path, config: dict[str, object]) -> None:
    """Write ``config.json``, and ``generation_config.json`` with the tokens at which a completion begins and ends."""
    write_json(folder / "config.json", config)
    ends = {name: config[name] for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    write_json(folder / "generation_config.json", ends)
