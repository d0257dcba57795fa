"""Two processes train what one does: weights, state, metrics, files; and an error on one of them stops both."""

import subprocess
import sys
import time

import pytest
from safetensors.torch import load_file

from stages.common.policy import read_manifest
from stages.update.pack import dealt, packs
from tests.forks import ROOT, Forks
from tests.tiny_policy import make_tiny_policy
from tests.update_helpers import Run, all_equal, random_rows

SEVERAL = ("--epochs", "2", "--minibatches", "2", "--tokens-per-batch", "40")
CASES = {
    "plain": SEVERAL,
    "one pack": (),
    "checkpointing": (*SEVERAL, "--gradient-checkpointing"),
    "reference": (*SEVERAL, "--beta", "0.1", "--reference", "previous"),
    "clipped": (*SEVERAL, "--max-grad-norm", "0.05"),
    "lora": (*SEVERAL, "--lora-rank", "4"),
}


@pytest.fixture(scope="module")
def forks():
    with Forks() as server:
        yield server


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    folder = tmp_path_factory.mktemp("policy")
    make_tiny_policy(folder, hidden=32)
    return folder


def update(forks, run, version, rows, *flags, ranks=2):
    run.write(version, rows)
    done = forks.run(run.argv(version, *flags), ranks)
    assert done.codes == [0] * ranks, "\n".join(done.errors)
    return run.updates(version)


def trainer(run, version):
    return load_file(run.policy(version) / "trainer/optimizer.safetensors")


def assert_alike(one, two, version, lr, moment=1e-6):
    """The same first moments (of a step, a tenth of the gradient), and weights where a gradient is not rounding."""
    moments = trainer(one, version), trainer(two, version)
    assert moments[0].keys() == moments[1].keys()
    for name, value in moments[0].items():
        if name.endswith("exp_avg"):
            assert (value - moments[1][name]).abs().max() < moment
    weights = one.weights(version), two.weights(version)
    close = total = 0
    for name, value in weights[0].items():
        apart = (value - weights[1][name]).abs()
        assert apart.max() < 10 * lr  # where the gradient is rounding, AdamW may step either way
        close += int((apart < 1e-6).sum())
        total += apart.numel()
    assert close > 0.98 * total


@pytest.mark.parametrize("case", CASES)
def test_two_ranks_equal_one(forks, tmp_path, start, case):
    rows = random_rows(3, groups=5)
    one, two = Run(tmp_path / "one", start), Run(tmp_path / "two", start)
    a = one.update(0, rows, *CASES[case])
    b = update(forks, two, 0, rows, *CASES[case])
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        for name in ("loss", "entropy", "ratio_mean", "ratio_max", "is_ratio_max", "grad_norm"):
            assert x[name] == pytest.approx(y[name], rel=1e-4, abs=1e-5)
        assert (x["kl"] or 0.0) == pytest.approx(y["kl"] or 0.0, rel=1e-3, abs=1e-6)
        for name in ("rows", "tokens", "forward_tokens", "lr", "step", "epoch"):
            assert x[name] == y[name]
        assert [t["turn"] for t in x["by_turn"]] == [t["turn"] for t in y["by_turn"]]
    assert_alike(one, two, 1, 1e-3, 1e-7 if len(a) == 1 else 1e-6)
    names = [set(read_manifest(r.policy(1), verify=True).files) for r in (one, two)]
    assert names[0] == names[1]
    assert not list(two.folder.glob("work/*"))


@pytest.mark.parametrize("flags", [SEVERAL, (*SEVERAL, "--lora-rank", "4")], ids=["whole", "lora"])
def test_what_two_ranks_saved_one_goes_on_with_and_the_other_way_round(forks, tmp_path, start, flags):
    runs = {name: Run(tmp_path / name, start) for name in ("11", "12", "21")}
    for name, run in runs.items():
        for version, ranks in enumerate(map(int, name)):
            update(forks, run, version, random_rows(version, groups=5), *flags, ranks=ranks)
    for name in ("12", "21"):
        assert_alike(runs["11"], runs[name], 2, 1e-3)
        states = [(r.policy(2) / "trainer/state.json").read_text() for r in (runs["11"], runs[name])]
        parts = [text.split('"weights"')[0] for text in states]
        assert parts[0] == parts[1] and '"position": 8' in parts[0]


def test_two_ranks_give_the_same_bytes_twice(forks, tmp_path, start):
    runs = [Run(tmp_path / name, start) for name in "ab"]
    for run in runs:
        update(forks, run, 0, random_rows(4, groups=5), *SEVERAL)
    assert read_manifest(runs[0].policy(1)).hash == read_manifest(runs[1].policy(1)).hash
    assert all_equal(trainer(runs[0], 1), trainer(runs[1], 1))


def test_an_error_on_one_rank_stops_all_with_its_message(forks, tmp_path, start):
    run = Run(tmp_path, start)
    rows = random_rows(1, groups=4)
    rows[6].sampling[:] = -200.0  # rho of this row is infinite
    run.write(0, rows)
    began = time.monotonic()
    done = forks.run(run.argv(0, "--is-max", "inf", "--tokens-per-batch", "1"), 2)
    text = "".join(done.errors)
    assert 2 in done.codes and 0 not in done.codes
    assert text.count("error: ") == 1 and f"{rows[6].node_id} is NaN or infinite" in text
    assert time.monotonic() - began < 30
    assert not run.policy(1).exists() and not (run.folder / "updates-0.parquet").exists()


@pytest.mark.slow
def test_the_command_starts_its_own_ranks_and_so_does_torchrun(tmp_path, start):
    """From the outside: a setting, or torchrun by hand; an error's message and exit status come through."""
    rows = random_rows(2, groups=4)
    one, two = Run(tmp_path / "one", start), Run(tmp_path / "two", start)
    for run in (one, two):
        run.write(0, rows)
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "stages.update"]
    commands = (["-m", "stages.update", *one.argv(0, "--processes", "2")], [*torchrun, *two.argv(0)])
    children = [subprocess.Popen([sys.executable, *c], cwd=ROOT, stderr=subprocess.PIPE, text=True) for c in commands]
    errors = [child.communicate()[1] for child in children]
    assert [child.returncode for child in children] == [0, 0], "\n".join(errors)
    assert read_manifest(one.policy(1)).hash == read_manifest(two.policy(1)).hash

    rows[0].sampling[:] = -200.0
    one.write(0, rows)
    done = subprocess.run([sys.executable, *commands[0], "--is-max", "inf"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.count("error: ") == 1, done.stderr
    assert f"{rows[0].node_id} is NaN or infinite" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("count", [2, 3, 7])
@pytest.mark.parametrize("budget", [1, 40, 10_000])
def test_every_row_is_dealt_once_and_no_rank_runs_more_often(count, budget):
    rows = random_rows(5, groups=6)
    hands = [dealt(rows, range(len(rows)), budget, rank, count) for rank in range(count)]
    assert len({len(hand) for hand in hands}) == 1
    given = [at for hand in hands for pack in hand if pack is not None for at in pack.rows]
    assert sorted(given) == list(range(len(rows)))
    whole = sum(len(pack.tokens) for pack in packs(rows, range(len(rows)), budget))
    longest = sum(max(len(pack.tokens) if pack else 0 for pack in together) for together in zip(*hands, strict=True))
    assert longest < 2 * max(whole / count, 24)  # 24: a row cannot be cut
    assert dealt(rows, [], budget, 0, count) == []
