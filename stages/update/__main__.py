"""One GRPO update: the kept nodes of a version and its policy give the next policy.

    python -m stages.update --policy POLICIES/version=0 --credit CREDIT.parquet --rollouts TURN1.parquet ... \\
        --out POLICIES/version=1 --updates UPDATES.parquet --version 0 --seed 1 --work WORK --timings TIMES.json \\
        --threads 2 --temperature 0.8 --lr 1e-6

With --processes 2 it starts two of itself that share the work, as `torchrun --nproc-per-node 2 -m stages.update ...`
does.
A version without an informative group passes its policy on and makes no step. Killed and run again with the same
input, a version of several steps goes on from the last one. See docs/update.md.
"""

import argparse
import os
import sys
from importlib.metadata import version as package_version
from pathlib import Path

from stages.common import cli, tables
from stages.common.cli import UserError
from stages.common.config import Update
from stages.common.policy import Manifest, read_manifest
from stages.common.timing import Timings
from stages.update.batch import Row, Step, load_rows, plan
from stages.update.loss import LossSettings
from stages.update.state import State, input_key, load_state, pass_on


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(
        prog="python -m stages.update", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--policy", type=Path, required=True, help="folder of the policy that sampled the rollouts")
    p.add_argument("--credit", type=Path, required=True, help="the version's credit table")
    p.add_argument("--rollouts", type=Path, nargs="+", required=True, help="the version's rollouts, every turn")
    p.add_argument("--out", type=Path, required=True, help="folder of the next policy")
    p.add_argument("--updates", type=Path, required=True, help="table written: one row per optimiser step")
    p.add_argument("--version", type=int, required=True, help="version of the policy that is updated")
    p.add_argument("--seed", type=int, required=True, help="seed of the run; used at its first update")
    p.add_argument("--work", type=Path, required=True, help="folder for checkpoints inside a version")
    p.add_argument("--timings", type=Path, help="JSON written: where the time went")
    p.add_argument("--threads", type=int, default=1, help="CPU threads, of all processes together (default: 1)")
    p.add_argument("--device", choices=["auto", "cpu", "gpu"], default="auto", help="auto takes a GPU where there is")
    p.add_argument("--temperature", type=float, required=True, help="temperature the rollouts were sampled at")
    p.add_argument("--max-tokens", type=int, help="longest completion that was allowed; dr_grpo divides by it")
    p.add_argument("--reference-policy", type=Path, help="folder of the policy that KL is taken to, when beta > 0")
    cli.add_settings(p, Update)
    return p


def loss_settings(settings: Update, max_tokens: int | None) -> LossSettings:
    """The loss' part of the settings; UserError where the chosen loss needs one more."""
    if settings.loss == "dr_grpo" and max_tokens is None:
        raise UserError("--loss dr_grpo divides by the longest completion allowed: give --max-tokens")
    if settings.loss == "cispo" and settings.eps_high is None:
        raise UserError(
            "--loss cispo: --eps-high is its upper bound on the ratio itself and has to be set (5.0 is usual)"
        )
    if settings.schedule != "constant" and settings.schedule_steps is None:
        raise UserError(f"--schedule {settings.schedule} needs --schedule-steps")
    names = [name for name in LossSettings.__dataclass_fields__ if name != "max_len"]
    return LossSettings(**{name: getattr(settings, name) for name in names}, max_len=max_tokens)


def main(argv: list[str]) -> int:
    """Run the stage."""
    args = parser().parse_args(argv)
    settings = cli.settings_from(args, Update)
    loss = loss_settings(settings, args.max_tokens)
    if args.temperature <= 0:
        raise UserError("--temperature: must be above 0; greedy samples have no log-probabilities to train on")
    if loss.beta and settings.reference == "initial" and args.reference_policy is None:
        raise UserError("--reference-policy: beta > 0 with --reference initial needs the initial policy's folder")
    timings = Timings()
    with timings.phase("read", "rows") as phase:
        first = int(os.environ.get("RANK", 0)) == 0
        manifest = read_manifest(args.policy, verify=first)
        if manifest.version != args.version:
            raise UserError(f"{args.policy}: is version {manifest.version}, and --version says {args.version}")
        state = load_state(args.policy, manifest, args.seed)
        rows = load_rows(args.credit, args.rollouts, manifest.hash, settings.mask_truncated)
        steps = plan(rows, settings.epochs, settings.minibatches, state.rng)
        phase.count = len(rows)
    started = "WORLD_SIZE" in os.environ  # by torchrun, as one of several
    if steps and settings.processes > 1 and not started:
        from stages.update.ranks import launch

        return launch(settings.processes, argv)
    made_by = tables.provenance("update", settings.model_dump(), version=args.version, policy=manifest.hash)
    if not steps and not first:
        return 0
    if not steps:
        why = "no kept node" if not rows else f"none of {len(rows)} kept nodes has an advantage"
        print(f"update: version {args.version} has {why}: no optimiser step, the policy is passed on", file=sys.stderr)
        table: list[dict] = []
        with timings.phase("save"):
            pass_on(args.policy, manifest, state, args.out, made_by)
    else:
        table = train(args, settings, loss, manifest, state, rows, steps, timings, made_by)
        if not first:
            return 0
    tables.write(args.updates, tables.UPDATES, table, made_by)
    timings.write(args.timings)
    return 0


def train(
    args: argparse.Namespace,
    settings: Update,
    loss: LossSettings,
    manifest: Manifest,
    state: State,
    rows: list[Row],
    steps: list[Step],
    timings: Timings,
    made_by: dict,
) -> list[dict]:
    """Load the model, take the steps, write the next policy; the rows of UPDATES."""
    from stages.update.ranks import join, leave
    from stages.update.session import Session

    # what only says how much fits is no part of the input: less memory may be used to go on
    numbers = cli.flags_for(settings, tracked=True)
    facts = {"policy": manifest.files, "settings": numbers, "temperature": args.temperature}
    facts |= {"version": args.version, "seed": args.seed, "max_tokens": args.max_tokens}
    if loss.beta and args.reference_policy is not None:
        facts["reference"] = read_manifest(args.reference_policy).hash
    work = args.work / input_key(facts, [args.credit, *args.rollouts])
    ranks = join(args.device)
    session = Session(args, settings, loss, manifest, state, timings, ranks)
    made_by["libraries"] |= {name: package_version(name) for name in ("torch", "transformers")}
    table = session.run(rows, steps, work, made_by)
    leave(ranks)
    return table


if __name__ == "__main__":
    cli.run(main)
