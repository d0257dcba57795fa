"""What tests of the sandboxes share: the corpus of attacks, judging as this or another user, counting survivors."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from stages.execute import bwrap, runtime
from stages.execute.sandbox import become_subreaper

ROOT = Path(__file__).parents[1]
CORPUS = ROOT.parent / "shared" / "data" / "attacks.jsonl"
ORDINARY = 65534
FLAGS = ["--cpu-seconds", "1", "--wall-factor", "2.5"]
SETTINGS = ["zygote", "bwrap"]  # execute.sandbox

needs_corpus = pytest.mark.skipif(not CORPUS.is_file(), reason=f"no {CORPUS}: the attack corpus is not here")


def cases():
    return [json.loads(line) for line in CORPUS.read_text().splitlines()] if CORPUS.is_file() else []


@contextlib.contextmanager
def busy_cores():
    """An endless loop for each core."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count())]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def children(pid):
    """(pid, state) of all processes below one, zombies too."""
    try:
        own = [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        return [x for p in own for x in [(p, Path(f"/proc/{p}/stat").read_text().rpartition(") ")[2][0]), *children(p)]]
    except OSError:  # gone meanwhile
        return []


def wait_for_nothing():
    """What is left below this process, which inherits orphans (see :func:`judge`), when a second has passed."""
    for _ in range(20):
        left = children(os.getpid())
        if not left:
            return []
        time.sleep(0.05)
    return left


def stage_command(arguments, folder, user=False, within=()):
    """(command, environment) of `python -m stages.execute`, as an ordinary user if asked; `within` stands before it.

    That user has no access to the interpreter of the tests, so it gets the copy that sandboxes have.
    """
    if not user:
        return [*within, sys.executable, "-m", "stages.execute", *arguments], dict(os.environ)
    python = runtime.find("environment", bwrap.ROOT_UID)
    host = Path(python.binds[0][0]) if python.binds else Path(python.python)
    program = str(host / "bin" / Path(python.python).name) if host.is_dir() else str(host)
    env = {
        "PYTHONPATH": os.pathsep.join([*(p for p in sys.path if p.endswith("site-packages")), str(ROOT)]),
        "MURPHY_CACHE": str(folder / "cache"),
        "HOME": str(folder),
        "LD_LIBRARY_PATH": str(host / "lib"),  # of the copied interpreter
    }
    drop = ["setpriv", f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups"] if os.getuid() == 0 else []
    return [*drop, *within, program, "-m", "stages.execute", *arguments], {**os.environ, **env}


def judge(folder, lines, *flags, user=False):
    """Run `judge` on lines of the corpus; answers by id. What it leaves behind becomes a child of this process."""
    become_subreaper()
    with tempfile.TemporaryDirectory() as readable:  # pytest's own folders are closed to other users
        folder = Path(readable) if user else folder
        folder.chmod(0o777)
        source = folder / "cases.jsonl"
        source.write_text("".join(json.dumps(line) + "\n" for line in lines))
        command, env = stage_command(["judge", str(source), *FLAGS, *flags], folder, user)
        env["SBX_CANARY"] = "1"
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=550)
    assert done.returncode == 0, done.stderr[-3000:]
    return {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines())}


def disagreements(lines, answers):
    found = []
    for line in lines:
        answer = answers[line["id"]]
        wanted, reward = line["expected_verdict"], line["expected_reward"]
        right = wanted == "any" or answer["verdict"] in wanted.split("|")
        if not right or (reward is not None and abs(answer["reward"] - reward) > 1e-3):
            found.append((line["id"], wanted, reward, answer))
    return found
