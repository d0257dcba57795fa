"""What tests of the sandboxes share: the corpus of attacks, judging as this or another user, counting survivors."""

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CORPUS = ROOT.parent / "shared" / "data" / "attacks.jsonl"
ORDINARY = 65534
FLAGS = ["--cpu-seconds", "1", "--wall-factor", "2.5"]
SETTINGS = ["zygote", "bwrap"]  # execute.sandbox

needs_corpus = pytest.mark.skipif(not CORPUS.is_file(), reason=f"no {CORPUS}: the attack corpus is not here")


def cases():
    return [json.loads(line) for line in CORPUS.read_text().splitlines()] if CORPUS.is_file() else []


@contextlib.contextmanager
def busy_cores(wanted=True):
    """Twice as many endless loops as there are cores, so that a program gets a third of one."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * os.cpu_count() * wanted)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def sandbox_processes():
    """Processes, zombies too, of the uids that sandboxes run under, and zombies of ours."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            uid = folder.stat().st_uid
            name, _, rest = (folder / "stat").read_text().partition(") ")
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        mine = int(rest.split()[1]) == os.getpid()
        if 61001 <= uid < 61099 or "/usr/local/box" in command or (mine and rest[0] == "Z"):
            found.append((folder.name, name, rest[0], command[:80]))
    return found


def wait_for_nothing():
    """Other test runs on this machine may have sandboxes of their own; ours are gone within a second."""
    for _ in range(20):
        left = sandbox_processes()
        if not left:
            return []
        time.sleep(0.1)
    return left


def as_user(command, folder, readable_python):
    """The same command as an ordinary user, with an interpreter that this user can read."""
    site = [p for p in sys.path if p.endswith("site-packages")]
    env = {
        "PYTHONPATH": os.pathsep.join([*site, str(ROOT)]),
        "MURPHY_CACHE": str(folder / "cache"),
        "HOME": str(folder),
    }
    drop = ["setpriv", f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups"]
    return [*drop, readable_python, *command[1:]], {**os.environ, **env}


def judge(folder, lines, *flags, user=False):
    """Run `judge` on lines of the corpus; answers by id."""
    source = folder / "cases.jsonl"
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    command = [sys.executable, "-m", "stages.execute", "judge", str(source), *FLAGS, *flags]
    env = {**os.environ, "SBX_CANARY": "1"}
    if user:
        from stages.execute import bwrap, runtime

        python = runtime.find("environment", bwrap.ROOT_UID)
        host = Path(python.binds[0][0]) if python.binds else Path(python.python)
        readable = str(host / "bin" / Path(python.python).name) if host.is_dir() else str(host)
        folder.chmod(0o777)
        for parent in folder.parents:
            if parent.stat().st_uid == os.getuid() and parent != Path("/") and "pytest-of" in str(parent):
                parent.chmod(0o755)
        command, env = as_user(command, folder, readable)
        env["SBX_CANARY"] = "1"
        env["LD_LIBRARY_PATH"] = str(host / "lib")  # of the copied interpreter
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
