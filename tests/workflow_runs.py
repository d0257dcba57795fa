"""Runs the workflow as a user does, for tests."""

import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SMOKE = ROOT / "workflow/configs/smoke.yaml"


def command(folder, *more, config=SMOKE):
    """The snakemake command line for a run whose results go below `folder`."""
    argv = [sys.executable, "-m", "snakemake", "-s", str(ROOT / "Snakefile"), "--directory", str(folder)]
    argv += ["--cores", "2", "--configfile", str(config)]
    return [*argv, "--workflow-profile", str(ROOT / "profiles/default"), *more]


def heed_interrupts():
    """For `preexec_fn`: Ctrl-C counts, also where the tests run in the background of a shell, which ignores it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def snakemake(folder, *more, config=SMOKE):
    """Run it to its end, output captured."""
    return subprocess.run(command(folder, *more, config=config), capture_output=True, text=True, cwd=ROOT, timeout=1500)
