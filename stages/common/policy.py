"""A policy's folder: a Hugging Face checkpoint, the trainer's state, and a manifest written last.

``policies/version=1/`` holds what ``transformers.AutoModelForCausalLM.from_pretrained`` reads, ``trainer/`` (optimiser,
schedule, RNG) and ``manifest.json``. A folder without a manifest is not a policy: its writer was stopped.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from stages.common.cli import UserError
from stages.common.files import sha256, write_text

MANIFEST = "manifest.json"
TRAINER = "trainer"  # folder of the trainer's state inside a policy's folder


@dataclass(frozen=True)
class Manifest:
    """What a policy is: `hash` names weights, configuration and tokenizer; `files` maps each file to its SHA-256."""

    hash: str
    version: int
    parent: str | None  # hash of the policy it was trained from
    made_by: dict[str, object]
    files: dict[str, str]


def write_manifest(folder: Path, version: int, parent: str | None, made_by: dict[str, object]) -> Manifest:
    """Hash every file of `folder` and write its manifest; the last thing done to a new policy."""
    folder = Path(folder)
    names = sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and p.name != MANIFEST)
    files = {name: sha256([folder / name]) for name in names}
    model = "".join(f"{n}={h}\n" for n, h in files.items() if not n.startswith(f"{TRAINER}/"))
    manifest = Manifest(hashlib.sha256(model.encode()).hexdigest()[:16], version, parent, made_by, files)
    write_text(folder / MANIFEST, json.dumps(asdict(manifest), indent=1, sort_keys=True) + "\n")
    return manifest


def read_manifest(folder: Path, verify: bool = False) -> Manifest:
    """The manifest of `folder`; UserError where it is missing or (with `verify`) a file is not as it was written."""
    folder = Path(folder)
    try:
        manifest = Manifest(**json.loads((folder / MANIFEST).read_text()))
    except FileNotFoundError:
        raise UserError(
            f"{folder}: no {MANIFEST}, so this is no finished policy; delete the folder and run again"
        ) from None
    except (ValueError, TypeError) as error:
        raise UserError(f"{folder / MANIFEST}: not readable ({error}); delete the folder and run again") from None
    for name, digest in manifest.files.items():
        path = folder / name
        if not path.is_file() or (verify and sha256([path]) != digest):
            state = "has changed since it was written" if path.is_file() else "is missing"
            raise UserError(f"{path}: {state}; delete {folder} and run again to make the policy anew")
    return manifest
