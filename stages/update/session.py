"""A version's update, from loading the policy to writing the next one.

What it does not cover: reading tables and the version without a step (``__main__.py``).
"""

from __future__ import annotations

import argparse
import ctypes
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
from stages.update.optim import export_state, export_weights, import_state, import_weights, make_optimiser
from stages.update.ranks import Ranks
from stages.update.state import State, load_checkpoint, save_checkpoint, save_policy
from stages.update.train import Progress, Trainer, forward_tokens, train_version


def _give_back() -> None:
    """Return freed memory to the system: what activations took, before writing takes copies of weights and moments."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's
    if trim is not None:
        trim(0)


@dataclass
class Session:
    """The parts that a version's update is made of."""

    args: argparse.Namespace
    settings: Update
    loss: LossSettings
    manifest: Manifest
    state: State
    timings: Timings
    ranks: Ranks

    def _say(self, text: str) -> None:
        if self.ranks.first:
            print(f"update: {text}", file=sys.stderr)

    def _model(self, device: torch.device):
        """The policy's model as the version before left it, on one device."""
        if self.settings.lora_rank:
            model = models.load(lora.base_folder(self.args.policy), self.settings, device=device)
            return lora.attach(model, self.args.policy, self.settings, self.args.seed)
        return models.load(self.args.policy, self.settings, device=device)

    def trainer(self, rows: Sequence[Row]) -> Trainer:
        """The model and the optimiser as they were at the end of the version before."""
        args, settings, ranks = self.args, self.settings, self.ranks
        torch.set_num_threads(max(1, args.threads // ranks.count))
        torch.use_deterministic_algorithms(ranks.device.type == "cpu", warn_only=True)
        torch.utils.deterministic.fill_uninitialized_memory = False  # a check of torch's own, which costs time
        with self.timings.phase("load"):
            # of several ranks each puts no more than its share onto its GPU
            model = self._model(ranks.device if ranks.count == 1 else models.CPU)
            models.prove(model, [row for row in rows if needs_forward(row, self.loss.beta)])
            model = ranks.shard(model)
            optimiser = make_optimiser(model, settings)
            if self.state.optimiser is not None:
                from safetensors.torch import load_file

                import_state(model, optimiser, load_file(self.state.optimiser), str(self.state.optimiser))
        attention = "dense" if ranks.device.type == "cuda" else "blocks"  # a GPU minds many small calls
        compute = Compute(args.temperature, settings.logits_chunk, getattr(torch, settings.dtype), attention)
        reference = None
        other = self.loss.beta > 0 and args.reference_policy is not None
        if other and read_manifest(args.reference_policy).hash != self.manifest.hash:  # else the version's own start
            reference = partial(self._reference, args.reference_policy)
        return Trainer(model, optimiser, settings, self.loss, compute, reference, ranks)

    def _reference(self, folder: Path):
        device = self.ranks.device if self.ranks.count == 1 else models.CPU
        return self.ranks.shard(models.load(folder, self.settings, trained=False, device=device))

    def run(self, rows: list[Row], steps: list[Step], work: Path, made_by: dict) -> list[dict]:
        """Take the steps (from the last checkpoint in `work` on), write the next policy; the rows of UPDATES."""
        trainer = self.trainer(rows)
        progress = self._resumed(trainer, work) or Progress(self.state.position)
        progress = self._train(trainer, rows, steps, progress, work)
        if progress.stopped:
            self._say(
                f"version {self.args.version}: stopped after {progress.done} of {len(steps)} optimiser steps, "
                f"as the KL to the version's start went above {self.settings.target_kl}"
            )
        with self.timings.phase("save"):
            _give_back()
            moments = export_state(trainer.model, trainer.optimiser, keep=self.ranks.first)
            model = self._whole_model(trainer)
            if not self.ranks.first:
                return progress.table
            save_policy(
                model,
                moments,
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

    def _whole_model(self, trainer: Trainer):
        """The trained model on one device, to be written; None on ranks that do not write."""
        if self.ranks.count == 1:
            return trainer.model
        weights = export_weights(trainer.model, keep=self.ranks.first)
        if not self.ranks.first:
            return None
        model = self._model(models.CPU)
        import_weights(model, weights)
        return model

    def _resumed(self, trainer: Trainer, work: Path) -> Progress | None:
        found = load_checkpoint(work)
        if found is None:
            return None
        progress, weights, tensors = found
        import_weights(trainer.model, weights)
        import_state(trainer.model, trainer.optimiser, tensors, str(work))
        self._say(f"going on after optimiser step {progress.done} of this version")
        return progress

    def _train(self, trainer: Trainer, rows: list[Row], steps: list[Step], progress: Progress, work: Path) -> Progress:
        from tqdm import tqdm

        def keep(now: Progress) -> None:
            with self.timings.phase("checkpoint"):
                _give_back()
                weights = export_weights(trainer.model, keep=self.ranks.first)
                moments = export_state(trainer.model, trainer.optimiser, keep=self.ranks.first)
                if self.ranks.first:
                    save_checkpoint(work, now, weights, moments)

        todo = forward_tokens(rows, steps[progress.done :], self.loss.beta) // self.ranks.count
        title = f"update {self.args.version} -> {self.args.version + 1}"
        quiet = not self.ranks.first
        with tqdm(total=todo, desc=title, unit="tok", mininterval=1.0, dynamic_ncols=True, disable=quiet) as bar:
            return train_version(trainer, rows, steps, progress, self.timings, bar.update, keep)
