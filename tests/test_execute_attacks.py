"""Programs that cheat, break a harness, or look odd but are right, each with the verdict that a right harness gives.

The corpus lies beside the checkout (../shared/data/attacks.jsonl); without it these tests are skipped. Run as root,
the sandboxes also run as if an ordinary user had started them.
"""

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

needs_corpus = pytest.mark.skipif(not CORPUS.is_file(), reason=f"no {CORPUS}: the attack corpus is not here")


def cases():
    return [json.loads(line) for line in CORPUS.read_text().splitlines()] if CORPUS.is_file() else []


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


@needs_corpus
def test_quick_cases(tmp_path):
    """All that end by themselves, and one of each way not to."""
    lines = [c for c in cases() if c["category"] != "time" or c["id"] in ("time-02", "time-09", "time-10")]
    assert len(lines) > 90
    assert disagreements(lines, judge(tmp_path, lines)) == []
    assert wait_for_nothing() == []


@needs_corpus
@pytest.mark.slow
@pytest.mark.parametrize("loaded", [False, True], ids=["quiet", "loaded"])
@pytest.mark.parametrize("user", [False, True], ids=["as-is", "ordinary-user"])
def test_whole_corpus(tmp_path, user, loaded):
    if user and os.getuid() != 0:
        pytest.skip("already an ordinary user")
    lines = cases()
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() * loaded)]
    try:
        answers = judge(tmp_path, lines, user=user)
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
    assert disagreements(lines, answers) == []
    assert wait_for_nothing() == []


@needs_corpus
def test_nothing_survives_and_nothing_waits(tmp_path):
    """Cases that leave processes behind, alone, with their own bound on time."""
    for line in cases():
        if line.get("post") != "no_survivors" or line["id"] == "exit-12":
            continue
        start = time.monotonic()
        assert disagreements([line], judge(tmp_path, [line])) == []
        # 3 s for interpreter, preflight and sandboxes on a busy machine
        assert time.monotonic() - start < line.get("max_seconds", 6) + 3
        assert wait_for_nothing() == []


def test_processes_are_counted_inside(tmp_path):
    """A loop of forks stops at the limit; nothing of it is left."""
    code = (
        "import os, time\n"
        "def f(x):\n"
        "    n = 0\n"
        "    for _ in range(60):\n"
        "        try:\n"
        "            if os.fork() == 0:\n"
        "                time.sleep(100); os._exit(0)\n"
        "        except OSError:\n"
        "            break\n"
        "        n += 1\n"
        "    return n\n"
    )
    line = {"id": "forks", "code": code, "tests": ["assert 5 < f(0) < 24"]}
    assert judge(tmp_path, [line])["forks"]["verdict"] == "passed"
    assert wait_for_nothing() == []


def test_the_same_program_gives_the_same_verdict_each_time(tmp_path):
    code = "def f(x):\n    return {str(i) for i in range(x)}\n"
    lines = [{"id": str(n), "code": code + f"# {n}\n", "tests": ["assert list(f(5)) == [1]"]} for n in range(20)]
    answers = judge(tmp_path, lines)
    assert len({(a["verdict"], a["message"]) for a in answers.values()}) == 1
