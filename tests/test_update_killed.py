"""`kill -9` all through the writing of a policy or a checkpoint: the last version stays valid, a rerun is the same."""

import signal

import pytest

from stages.common.cli import UserError
from stages.common.policy import read_manifest
from tests.forks import Forks
from tests.update_helpers import Run, random_rows

EVERY = 2  # of the changes to the file system, each of which was tried once
CASES = {"whole": ("--epochs", "2"), "lora": ("--epochs", "2", "--lora-rank", "2")}


@pytest.fixture(scope="module")
def forks():
    with Forks() as server:
        yield server


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_killed_while_a_policy_is_written(forks, tmp_path, case):
    run, flags = Run(tmp_path), CASES[case]
    rows = random_rows(1)
    assert run.update(0, rows, *flags)
    run.write(1, rows)
    argv = run.argv(1, *flags)
    undisturbed = forks.run(argv)
    assert undisturbed.codes == [0], undisturbed.errors
    want, table = read_manifest(run.policy(2), verify=True), run.updates(1)
    before = read_manifest(run.policy(1), verify=True)
    names = {path.name for path in run.policy(1).parent.iterdir()}
    whole, moment = 0, len(case) % EVERY
    while True:
        for path in sorted(run.policy(2).rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()
        run.policy(2).rmdir()
        done = forks.run(argv, kill_at=moment)
        assert read_manifest(run.policy(1), verify=True) == before
        if done.codes == [0]:
            break  # fewer changes than that
        assert done.codes == [-signal.SIGKILL], done.errors
        try:
            assert read_manifest(run.policy(2), verify=True) == want
            whole += 1
        except UserError as error:
            assert "no finished policy" in str(error)
            assert not run.policy(2).exists()
        again = forks.run(argv)
        assert again.codes == [0], again.errors
        assert read_manifest(run.policy(2), verify=True) == want and run.updates(1) == table
        assert {path.name for path in run.policy(1).parent.iterdir()} == names, "a killed write left something"
        moment += EVERY
    assert moment >= 10 and moment > whole


@pytest.mark.slow
def test_killed_while_a_checkpoint_is_written(forks, tmp_path):
    """The checkpoint before it is used, or none, and the result is the same."""
    run, rows = Run(tmp_path), random_rows(2, groups=4)
    flags = ("--epochs", "3")
    run.write(0, rows)
    argv = run.argv(0, *flags)
    argv[argv.index("--work") + 1] = str(run.policy(1).parent / "work")  # where changes are counted
    assert forks.run(argv).codes == [0]
    want = read_manifest(run.policy(1))
    resumed = moment = 0
    while True:
        for path in sorted(run.policy(1).rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()
        run.policy(1).rmdir()
        if forks.run(argv, kill_at=moment).codes == [0] or run.policy(1).exists():
            break
        again = forks.run(argv)
        assert again.codes == [0], again.errors
        resumed += "going on after optimiser step" in again.errors[0]
        assert read_manifest(run.policy(1), verify=True).files == want.files
        assert not list((run.policy(1).parent / "work").iterdir())
        moment += EVERY
    assert resumed > 3
