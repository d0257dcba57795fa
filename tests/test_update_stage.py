"""The stage from its command line: a right step, resuming, passing on, refusals, what a killed run leaves."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoTokenizer

from stages.common import tables
from stages.common.cli import UserError
from stages.common.policy import read_manifest
from stages.update.__main__ import main
from tests.tiny_policy import make_tiny_policy
from tests.update_helpers import Run, all_equal, plain_logprobs, random_rows

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    folder = tmp_path_factory.mktemp("policy")
    make_tiny_policy(folder, hidden=32)
    return folder


@pytest.fixture
def run(tmp_path, start):
    return Run(tmp_path, start)


def test_one_step_is_what_plain_torch_makes(run):
    rows = random_rows(1, groups=4)
    rows[0] = type(rows[0])(**{**vars(rows[0]), "advantage": 0.0})
    model = run.model(0)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
    loss, tokens = 0.0, sum(len(row.completion) for row in rows)  # the row of advantage 0 counts
    for row in rows:
        logp = plain_logprobs(model, row, 0.8)
        rho = (logp.detach() - torch.from_numpy(row.sampling)).exp().clamp(max=2.0)
        loss = loss - ((logp - logp.detach()).exp() * row.advantage * rho).sum() / tokens
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()

    (row,) = run.update(0, rows)
    assert row["loss"] == pytest.approx(loss.item(), abs=1e-6)
    assert row["grad_norm"] == pytest.approx(norm.item(), rel=1e-5)
    assert (row["rows"], row["tokens"], row["lr"]) == (len(rows), tokens, 1e-3)
    assert row["forward_tokens"] == tokens - len(rows[0].completion)
    assert row["is_used_mean"] < row["is_ratio_mean"] and row["kl_start"] == 0
    for name in ("rows", "tokens", "forward_tokens", "loss"):
        assert sum(turn[name] for turn in row["by_turn"]) == pytest.approx(row[name], abs=1e-9)
    for name in ("entropy", "is_ratio_mean", "is_clipped", "logp_diff"):
        whole = sum(turn[name] * turn["forward_tokens"] for turn in row["by_turn"]) / row["forward_tokens"]
        assert whole == pytest.approx(row[name], rel=1e-9)
    assert [turn["turn"] for turn in row["by_turn"]] == [1, 2]
    assert max(turn["is_ratio_max"] for turn in row["by_turn"]) == row["is_ratio_max"]
    assert row["ratio_mean"] == 1.0 and row["kl"] is None and row["is_ratio_max"] > 2
    got, before = run.model(1).state_dict(), run.weights(0)
    for name, want in model.state_dict().items():
        # Adam's first step is the gradient's sign: where the gradient is nothing but rounding the sign is anybody's
        clear = name not in before or (want - before[name]).abs() > 0.9e-3
        assert (got[name] - want)[clear].abs().max() < 1e-5
    manifest = read_manifest(run.policy(1), verify=True)
    assert manifest.version == 1 and manifest.parent == read_manifest(run.policy(0)).hash != manifest.hash
    assert AutoTokenizer.from_pretrained(run.policy(1)).chat_template
    assert not list(run.folder.glob("work/*"))
    phases = {p["phase"]: p["count"] for p in json.loads((run.folder / "timings-0.json").read_text())}
    assert phases["forward and backward"] == tokens - len(rows[0].completion)


def test_likelihood_follows_the_advantage(run):
    rows = random_rows(2)
    run.update(0, rows)
    gain = 0.0
    for row in rows:
        with torch.no_grad():
            change = plain_logprobs(run.model(1), row, 0.8).sum() - plain_logprobs(run.model(0), row, 0.8).sum()
        gain += row.advantage * change.item()
    assert gain > 1.0


@pytest.mark.parametrize(
    "flags",
    [
        ("--tokens-per-batch", "1"),
        ("--tokens-per-batch", "40"),
        ("--logits-chunk", "1"),
        ("--gradient-checkpointing",),
        ("--beta", "0.04", "--reference", "previous"),
    ],
)
def test_the_cut_of_a_step_does_not_change_it(run, tmp_path, start, flags):
    rows = random_rows(3, groups=5)
    other = Run(tmp_path / "other", start)
    a = run.update(0, rows, *(("--beta", "0.04", "--reference", "previous") if "--beta" in flags else ()))
    b = other.update(0, rows, *flags, *(("--tokens-per-batch", "40") if "--beta" in flags else ()))
    assert a[0]["loss"] == pytest.approx(b[0]["loss"], abs=1e-6)
    assert a[0]["grad_norm"] == pytest.approx(b[0]["grad_norm"], rel=1e-5)
    moments = [load_file(r.policy(1) / "trainer/optimizer.safetensors") for r in (run, other)]
    for name, value in moments[0].items():
        if name.endswith("exp_avg"):  # a tenth of the gradient
            assert (value - moments[1][name]).abs().max() < 1e-7


def test_two_versions_straight_equal_one_and_resume_and_one(run, tmp_path, start):
    """Bit for bit: weights, optimiser, learning rate and shuffling, each version with several steps."""
    flags = ("--epochs", "2", "--minibatches", "2", "--warmup-steps", "6", "--weight-decay", "0.1")
    for version in (0, 1):
        run.update(version, random_rows(version, groups=5), *flags)
    straight = _straight(start, flags)
    assert all_equal(straight.weights, run.weights(2))
    assert all_equal(straight.optimiser, load_file(run.policy(2) / "trainer/optimizer.safetensors"))
    assert [row["lr"] for v in (0, 1) for row in run.updates(v)] == straight.lr
    assert straight.lr == pytest.approx([1e-3 * min(1, (i + 1) / 7) for i in range(8)])
    state = json.loads((run.policy(2) / "trainer/state.json").read_text())
    assert state["position"] == 8 and state["rng"] == straight.rng


def _straight(start: Path, flags):
    """Both versions in one process, nothing written or read in between."""
    from types import SimpleNamespace

    from stages.common import cli
    from stages.common.config import Update
    from stages.common.timing import Timings
    from stages.update import model as models
    from stages.update.__main__ import loss_settings, parser
    from stages.update.batch import plan
    from stages.update.logprobs import Compute
    from stages.update.optim import export_state, make_optimiser
    from stages.update.state import load_state
    from stages.update.train import Progress, Trainer, train_version

    needed = "--policy p --credit c --rollouts r --out o --updates u --version 0 --seed 7 --work w --temperature 0.8"
    settings = cli.settings_from(parser().parse_args([*needed.split(), "--lr", "1e-3", *flags]), Update)
    torch.set_num_threads(1)
    model = models.load(start, settings)
    optimiser = make_optimiser(model, settings)
    trainer = Trainer(model, optimiser, settings, loss_settings(settings, None), Compute(0.8, settings.logits_chunk))
    rng = load_state(start, read_manifest(start), 7).rng
    position, lr = 0, []
    for version in (0, 1):
        rows = sorted(random_rows(version, groups=5), key=lambda r: r.node_id)
        steps = plan(rows, settings.epochs, settings.minibatches, rng)
        progress = train_version(trainer, rows, steps, Progress(position), Timings())
        position = progress.position
        lr += [row["lr"] for row in progress.table]
    weights = {k: v for k, v in model.state_dict().items() if k != "lm_head.weight"}
    return SimpleNamespace(
        weights=weights, optimiser=export_state(model, optimiser), lr=lr, rng=rng.bit_generator.state
    )


def test_the_same_input_gives_the_same_bytes(run, tmp_path, start):
    other = Run(tmp_path / "other", start)
    for r in (run, other):
        r.update(0, random_rows(4), "--epochs", "2")
    assert read_manifest(run.policy(1)).files == read_manifest(other.policy(1)).files
    read = lambda r: (r.folder / "updates-0.parquet").read_bytes()
    assert read(run) == read(other)


MANY = ("--epochs", "40", "--minibatches", "3")


def test_killed_and_run_again_is_bit_equal(run, tmp_path, start):
    rows = random_rows(5, groups=6)
    undisturbed = Run(tmp_path / "undisturbed", start)
    undisturbed.update(0, rows, *MANY)
    run.write(0, rows)
    command = [sys.executable, "-m", "stages.update", *run.argv(0, *MANY)]
    child = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE)
    until = time.monotonic() + 120
    while not list(run.folder.glob("work/*/step-*")) and child.poll() is None and time.monotonic() < until:
        time.sleep(0.002)
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    assert child.returncode == -signal.SIGKILL, "the run ended before it could be killed"
    assert not run.policy(1).exists() and not (run.folder / "updates-0.parquet").exists()
    run.policy(1).mkdir()  # as Snakemake makes the folder of an output before the job starts
    again = subprocess.run(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, check=True)
    assert "going on after optimiser step" in again.stderr
    assert read_manifest(run.policy(1), verify=True).files == read_manifest(undisturbed.policy(1)).files
    assert run.updates(0) == undisturbed.updates(0)


def test_a_checkpoint_of_other_input_is_not_used(run):
    """The same rows with other settings start over."""
    rows = random_rows(6)
    stale = run.folder / "work" / ("0" * 16) / "step-1"
    stale.mkdir(parents=True)
    (stale / "state.json").write_text("not even JSON")
    assert len(run.update(0, rows, "--epochs", "2")) == 2


@pytest.mark.parametrize("kind", ["no kept node", "no advantage"])
def test_without_an_informative_group_the_policy_is_passed_on(run, capsys, kind):
    run.update(0, random_rows(1))
    rows = [type(row)(**{**vars(row), "advantage": 0.0}) for row in random_rows(2)]
    assert run.update(1, rows if kind == "no advantage" else []) == []
    assert "no optimiser step, the policy is passed on" in capsys.readouterr().err
    one, two = read_manifest(run.policy(1)), read_manifest(run.policy(2), verify=True)
    assert two.version == 2 and two.hash == one.hash == two.parent
    assert all_equal(run.weights(1), run.weights(2))
    assert json.loads((run.policy(2) / "trainer/state.json").read_text())["position"] == 1
    made = random_rows(3)
    assert len(run.update(2, made)) == 1  # and training goes on from there


def test_a_version_without_a_step_never_imports_torch(run):
    run.write(0, [])
    code = "import sys; from stages.update.__main__ import main; main(sys.argv[1:]); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code, *run.argv(0)], cwd=ROOT, check=True)
    assert read_manifest(run.policy(1)).version == 1


def test_nan_in_the_weights_stops_with_node_ids(run):
    model = run.model(0)
    with torch.no_grad():
        model.model.norm.weight[3] = float("nan")
    model.save_pretrained(run.policy(0))
    from stages.common.policy import write_manifest

    write_manifest(run.policy(0), 0, None, {})
    rows = random_rows(1)
    with pytest.raises(UserError, match=r"log-probability of 0/t\d/\d, .* is NaN or infinite, so no step was"):
        run.update(0, rows)
    assert not run.policy(1).exists() and not (run.folder / "updates-0.parquet").exists()


def test_a_node_that_overflows_is_named(run):
    rows = random_rows(1)
    rows[6].sampling[:] = -200.0  # the engine called impossible what the trainer finds likely: rho is infinite
    with pytest.raises(UserError, match=f"{rows[6].node_id} is NaN or infinite"):
        run.update(0, rows, "--is-correction", "token_truncate", "--is-max", "inf")


def test_a_node_whose_gradient_alone_is_nan_is_named(start):
    """Loss and log-probabilities are finite; the rows of the step are run one by one to find who it was."""
    from stages.common.config import Update
    from stages.common.timing import Timings
    from stages.update import model as models
    from stages.update.batch import plan
    from stages.update.logprobs import Compute
    from stages.update.loss import LossSettings
    from stages.update.optim import make_optimiser
    from stages.update.train import Progress, Trainer, train_version

    rows, settings = random_rows(1, groups=4), Update()
    rows[7].completion[0] = 200  # no other row has this token
    model = models.load(start, settings)

    def spoil(_, args, output):
        if (args[0] == 200).any():
            output.register_hook(lambda grad: grad * float("nan"))

    model.get_input_embeddings().register_forward_hook(spoil)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    trainer = Trainer(model, make_optimiser(model, settings), settings, LossSettings(), Compute(1.0, 16))
    steps = plan(rows, 1, 1, np.random.default_rng(0))
    with pytest.raises(UserError, match=f"the gradient of {rows[7].node_id} is NaN or infinite, so step 0 was not"):
        train_version(trainer, rows, steps, Progress(0), Timings())
    assert all_equal(before, dict(model.named_parameters()))


def test_stale_optimiser_state_is_refused(run):
    run.update(0, random_rows(1))
    run.update(1, random_rows(2))
    from stages.common.policy import write_manifest

    for name in ("state.json", "optimizer.safetensors"):
        target = run.policy(2) / "trainer" / name
        content = (run.policy(1) / "trainer" / name).read_bytes()
        target.unlink()
        target.write_bytes(content)
    write_manifest(run.policy(2), 2, None, {})
    with pytest.raises(UserError, match="stale"):
        run.update(2, random_rows(3))


def test_a_trained_policy_without_its_state_is_refused(run):
    run.update(0, random_rows(1))
    (run.policy(1) / "trainer/state.json").unlink()
    with pytest.raises(UserError, match=r"state\.json"):
        run.update(1, random_rows(2))


def test_changed_weights_are_refused(run):
    path = run.policy(0) / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(UserError, match=r"model\.safetensors: has changed"):
        run.update(0, random_rows(1))


def test_the_wrong_version_is_refused(run):
    run.write(0, random_rows(1))
    with pytest.raises(UserError, match="is version 0, and --version says 3"):
        main([("3" if a == "0" and b == "--version" else a) for b, a in zip(["", *run.argv(0)], run.argv(0))])  # noqa: B905


def test_a_token_that_the_policy_lacks_is_refused(run):
    rows = random_rows(1)
    rows[3].completion[0] = 5000
    with pytest.raises(UserError, match=f"{rows[3].node_id} has token 5000"):
        run.update(0, rows)


def test_what_a_loss_needs_is_asked_for(run):
    for flags, match in (
        (("--loss", "dr_grpo"), "max-tokens"),
        (("--loss", "cispo"), "eps-high"),
        (("--beta", "0.1"), "--reference"),
        (("--schedule", "linear"), "schedule-steps"),
    ):
        with pytest.raises(UserError, match=match):
            run.update(0, random_rows(1), *flags)


@pytest.mark.parametrize("loss", ["grpo", "bnpo", "dapo", "dr_grpo", "gspo", "cispo"])
def test_every_loss_trains(run, loss):
    table = run.update(
        0,
        random_rows(1),
        "--loss",
        loss,
        "--max-tokens",
        "9",
        "--eps-high",
        "2.0",
        "--epochs",
        "2",
        "--minibatches",
        "2",
    )
    assert [row["step"] for row in table] == [0, 1, 2, 3]
    assert [row["epoch"] for row in table] == [0, 0, 1, 1]
    assert table[0]["ratio_mean"] == 1.0 and table[3]["ratio_mean"] != 1.0
    numbers = [value for row in table for key, value in row.items() if key != "by_turn" and value is not None]
    assert np.isfinite(numbers).all()


def test_early_stop_on_kl(run, capsys):
    rows = random_rows(1)
    table = run.update(0, rows, "--epochs", "30", "--target-kl", "0.02", "--lr", "1e-2")
    assert 1 <= len(table) < 30
    assert "stopped after" in capsys.readouterr().err
    assert json.loads((run.policy(1) / "trainer/state.json").read_text())["position"] == len(table)


def test_kl_is_to_the_initial_policy_or_to_the_start_of_the_version(run):
    rows = random_rows(1)
    flags = ("--beta", "0.1", "--lr", "3e-3", "--reference-policy", str(run.policy(0)))
    (first,) = run.update(0, rows, *flags)
    assert first["kl"] == 0.0  # the initial policy is the version's start
    (second,) = run.update(1, rows, *flags)
    assert second["kl"] > 1e-4
    with torch.no_grad():
        pairs = [(plain_logprobs(run.model(0), row, 0.8), plain_logprobs(run.model(1), row, 0.8)) for row in rows]
    d = torch.cat([a - b for a, b in pairs])
    assert second["kl"] == pytest.approx((d.exp() - d - 1).mean().item(), rel=1e-3)
    third = run.update(2, rows, "--beta", "0.1", "--lr", "3e-3", "--reference", "previous", "--epochs", "2")
    assert third[0]["kl"] < 1e-9 < third[1]["kl"]


def test_provenance_is_in_the_table(run):
    run.update(0, random_rows(1))
    made_by = tables.made_by(run.folder / "updates-0.parquet")
    assert made_by["stage"] == "update" and made_by["settings"]["lr"] == 1e-3 and "torch" in made_by["libraries"]
    assert pq.read_schema(run.folder / "updates-0.parquet").names == tables.UPDATES.schema.names
