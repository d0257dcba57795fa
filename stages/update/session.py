"""A version's update on one device, from loading the policy to writing the next one.

What it does not cover: reading tables and the version without a step (``__main__.py``).
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from stages.common.config import Update
from stages.common.policy import Manifest, read_manifest
from stages.common.timing import Timings
from stages.update import lora
from stages.update import model as models
from stages.update.batch import Row, Step, needs_forward
from stages.update.logprobs import Compute
from stages.update.loss import LossSettings
from stages.update.optim import export_state, import_state, make_optimiser, trained
from stages.update.state import State, load_checkpoint, save_checkpoint, save_policy
from stages.update.train import Progress, Trainer, forward_tokens, train_version


@dataclass
class Session:
    """The parts that a version's update is made of."""

    args: argparse.Namespace
    settings: Update
    loss: LossSettings
    manifest: Manifest
    state: State
    timings: Timings

    def trainer(self, rows: Sequence[Row]) -> Trainer:
        """The model and the optimiser as they were at the end of the version before."""
        args, settings = self.args, self.settings
        torch.set_num_threads(args.threads)
        torch.use_deterministic_algorithms(not torch.cuda.is_available(), warn_only=True)
        torch.utils.deterministic.fill_uninitialized_memory = False  # a check of torch's own, which costs time
        with self.timings.phase("load"):
            if settings.lora_rank:
                model = models.load(lora.base_folder(args.policy), settings)
                model = lora.attach(model, args.policy, settings, args.seed)
            else:
                model = models.load(args.policy, settings)
            models.prove(model, [row for row in rows if needs_forward(row, self.loss.beta)])
            optimiser = make_optimiser(model, settings)
            if self.state.optimiser is not None:
                from safetensors.torch import load_file

                import_state(model, optimiser, load_file(self.state.optimiser), str(self.state.optimiser))
        attention = "dense" if model.device.type == "cuda" else "blocks"  # a GPU minds many small calls
        compute = Compute(args.temperature, settings.logits_chunk, getattr(torch, settings.dtype), attention)
        reference = None
        other = self.loss.beta > 0 and args.reference_policy is not None
        if other and read_manifest(args.reference_policy).hash != self.manifest.hash:  # else the version's own start
            reference = partial(models.load, args.reference_policy, settings, trained=False)
        return Trainer(model, optimiser, settings, self.loss, compute, reference)

    def run(self, rows: list[Row], steps: list[Step], work: Path, made_by: dict) -> list[dict]:
        """Take the steps (from the last checkpoint in `work` on), write the next policy; the rows of UPDATES."""
        trainer = self.trainer(rows)
        progress = self._resumed(trainer, work) or Progress(self.state.position)
        progress = self._train(trainer, rows, steps, progress, work)
        if progress.stopped:
            print(
                f"update: version {self.args.version}: stopped after {progress.done} of {len(steps)} optimiser steps, "
                f"as the KL to the version's start went above {self.settings.target_kl}",
                file=sys.stderr,
            )
        with self.timings.phase("save"):
            save_policy(
                trainer.model,
                export_state(trainer.model, trainer.optimiser),
                self.args.policy,
                self.manifest,
                progress.position,
                self.state.rng,
                self.settings,
                self.args.out,
                made_by,
            )
        for done in work.parent.glob("[0-9a-f]" * 16):  # this input's checkpoints, and those of earlier inputs
            shutil.rmtree(done, ignore_errors=True)
        return progress.table

    def _resumed(self, trainer: Trainer, work: Path) -> Progress | None:
        found = load_checkpoint(work)
        if found is None:
            return None
        progress, weights, tensors = found
        with torch.no_grad():
            for name, parameter in trained(trainer.model).items():
                parameter.copy_(weights[name])
        import_state(trainer.model, trainer.optimiser, tensors, str(work))
        print(f"update: going on after optimiser step {progress.done} of this version", file=sys.stderr)
        return progress

    def _train(self, trainer: Trainer, rows: list[Row], steps: list[Step], progress: Progress, work: Path) -> Progress:
        from tqdm import tqdm

        def keep(now: Progress) -> None:
            with self.timings.phase("checkpoint"):
                weights = {name: p.detach().cpu().contiguous() for name, p in trained(trainer.model).items()}
                save_checkpoint(work, now, weights, export_state(trainer.model, trainer.optimiser))

        todo = forward_tokens(rows, steps[progress.done :], self.loss.beta)
        title = f"update {self.args.version} -> {self.args.version + 1}"
        with tqdm(total=todo, desc=title, unit="tok", mininterval=1.0, dynamic_ncols=True) as bar:
            return train_version(trainer, rows, steps, progress, self.timings, bar.update, keep)
