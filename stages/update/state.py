"""The trainer's files: its state inside a policy's folder, the next policy, checkpoints inside a version.

``trainer/state.json`` holds the schedule's position, the random generator and the digests of the weights it belongs
to; ``trainer/optimizer.safetensors`` the AdamW moments by parameter name. What it does not cover: training itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stages.common.cli import UserError
from stages.common.config import Update
from stages.common.files import atomic_folder, sha256
from stages.common.ids import seed_for
from stages.common.policy import TRAINER, Manifest, write_manifest

STATE = "state.json"
OPTIMISER = "optimizer.safetensors"
WEIGHTS = (".safetensors", ".bin", ".index.json")


@dataclass(frozen=True)
class State:
    """`position`: optimiser steps over all versions; `rng`: the generator that shuffles; `optimiser`: its file."""

    position: int
    rng: np.random.Generator
    optimiser: Path | None


def _digests(manifest: Manifest) -> dict[str, str]:
    """SHA-256 of the weight files of a policy, as in its manifest."""
    names = {name: digest for name, digest in manifest.files.items() if "/" not in name}
    return {name: digest for name, digest in names.items() if name.endswith(WEIGHTS)}


def load_state(folder: Path, manifest: Manifest, seed: int) -> State:
    """The trainer's state in a policy's folder; a fresh one for version 0.

    UserError where it is missing, unreadable, or belongs to other weights.
    """
    path = Path(folder) / TRAINER / STATE
    if not path.exists():
        if manifest.version:
            raise UserError(
                f"{path}: missing, and version {manifest.version} was trained; remove {folder} and run again, or start "
                "a new run from it with policy.init"
            )
        return State(0, np.random.Generator(np.random.PCG64(seed_for(seed, "update"))), None)
    try:
        raw = json.loads(path.read_text())
        position, weights, bits = int(raw["position"]), raw["weights"], raw["rng"]
        rng = np.random.Generator(np.random.PCG64())
        rng.bit_generator.state = bits
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: not readable ({error}); remove {folder} and run again") from None
    if weights != _digests(manifest):
        raise UserError(
            f"{path}: the optimiser's state is stale: it belongs to other weights than those beside it; remove "
            f"{folder} and run again"
        )
    optimiser = path.with_name(OPTIMISER)
    if position and not optimiser.exists():
        raise UserError(f"{optimiser}: missing after {position} optimiser steps; remove {folder} and run again")
    return State(position, rng, optimiser if position else None)


def _link(source: Path, target: Path) -> None:
    """The file at another place: a hard link where the file system allows it, else a copy."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _write_state(folder: Path, position: int, rng: np.random.Generator, weights: Mapping[str, str]) -> None:
    (folder / TRAINER).mkdir(exist_ok=True)
    text = {"position": position, "rng": rng.bit_generator.state, "weights": dict(weights)}
    (folder / TRAINER / STATE).write_text(json.dumps(text, indent=1, sort_keys=True) + "\n")


def pass_on(policy: Path, manifest: Manifest, state: State, out: Path, made_by: dict) -> Manifest:
    """The next version with the same weights and the same trainer's state."""
    with atomic_folder(out) as aside:
        for name in manifest.files:
            if name != f"{TRAINER}/{STATE}":
                _link(Path(policy) / name, aside / name)
        _write_state(aside, state.position, state.rng, _digests(manifest))
        return write_manifest(aside, manifest.version + 1, manifest.hash, made_by)


def save_policy(
    model,
    optimiser_tensors: dict,
    policy: Path,
    manifest: Manifest,
    position: int,
    rng: np.random.Generator,
    settings: Update,
    out: Path,
    made_by: dict,
) -> Manifest:
    """Write the next version: weights, everything else as in the policy it came from, the trainer's state."""
    from safetensors.torch import save_file

    from stages.update.lora import BASE, base_folder
    from stages.update.lora import save as save_adapter

    with atomic_folder(out) as aside:
        if settings.lora_rank:
            for file in base_folder(policy).iterdir():
                if file.name == "config.json" or file.name.endswith(WEIGHTS):
                    _link(file, aside / BASE / file.name)
            model = save_adapter(model, aside)
        model.save_pretrained(aside)
        for name in manifest.files:
            if "/" not in name and not name.endswith(WEIGHTS):
                (aside / name).unlink(missing_ok=True)
                _link(Path(policy) / name, aside / name)
        weights = {p.name: sha256([p]) for p in aside.iterdir() if p.name.endswith(WEIGHTS)}
        _write_state(aside, position, rng, weights)
        save_file(optimiser_tensors, aside / TRAINER / OPTIMISER)
        for file in aside.rglob("*.safetensors"):
            if file.stat().st_nlink == 1:  # safetensors makes files that only their owner may read
                file.chmod((aside / TRAINER / STATE).stat().st_mode)
        return write_manifest(aside, manifest.version + 1, manifest.hash, made_by)


def input_key(facts: Mapping[str, object], files: list[Path]) -> str:
    """A name for a version's input: the same facts and file contents give the same key."""
    text = json.dumps(facts, sort_keys=True, default=str)
    return hashlib.sha256((text + sha256(files)).encode()).hexdigest()[:16]


def save_checkpoint(work: Path, progress, weights: dict, optimiser_tensors: dict) -> None:
    """Keep all that the next step needs in ``work/step-<done>``; older ones are removed once it is there."""
    from safetensors.numpy import save_file as save_arrays
    from safetensors.torch import save_file

    with atomic_folder(Path(work) / f"step-{progress.done}") as aside:
        save_file(weights, aside / "weights.safetensors")
        save_file(optimiser_tensors, aside / OPTIMISER)
        for name in ("old", "ref"):
            known = getattr(progress, name)
            if known is not None:
                save_arrays({str(at): values for at, values in known.items()}, aside / f"{name}.safetensors")
        facts = {"position": progress.position, "done": progress.done, "table": progress.table}
        (aside / STATE).write_text(json.dumps(facts))
    for other in Path(work).iterdir():
        if other.name != f"step-{progress.done}":
            shutil.rmtree(other, ignore_errors=True)


def load_checkpoint(work: Path):
    """(progress, weights, optimiser tensors) of the latest checkpoint, or None."""
    from safetensors.numpy import load_file as load_arrays
    from safetensors.torch import load_file

    from stages.update.train import Progress

    found = sorted(Path(work).glob("step-*"), key=lambda p: int(p.name.removeprefix("step-")))
    if not found:
        return None
    folder = found[-1]
    facts = json.loads((folder / STATE).read_text())
    known = {}
    for name in ("old", "ref"):
        path = folder / f"{name}.safetensors"
        known[name] = {int(at): v for at, v in load_arrays(path).items()} if path.exists() else None
    progress = Progress(facts["position"], facts["done"], False, known["old"] or {}, known["ref"], facts["table"])
    return progress, load_file(folder / "weights.safetensors"), load_file(folder / OPTIMISER)
