"""Runs the update's command line in processes of its own that need not import torch again: several ranks, or one that
kills itself in the middle of writing.

    with Forks() as forks:
        forks.run(argv, ranks=2)

A server process imports everything once and forks for each run; what it forks is what torchrun would start.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass
class Done:
    """Exit status (negative: the signal) and messages, by rank."""

    codes: list[int]
    errors: list[str]


class Forks:
    """The client's side."""

    def __enter__(self):
        command = [sys.executable, "-m", "tests.forks"]
        self.server = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_):
        self.server.stdin.close()
        self.server.wait()
        self.server.stdout.close()

    def run(self, argv, ranks=1, kill_at=None) -> Done:
        """Run it; with `kill_at`, by SIGKILL at that change to the file system below the output (counted from 0)."""
        job = {"argv": [str(a) for a in argv], "ranks": ranks, "kill_at": kill_at}
        self.server.stdin.write(json.dumps(job) + "\n")
        self.server.stdin.flush()
        return Done(**json.loads(self.server.stdout.readline()))


CHANGES = ("os.rename", "os.link", "os.mkdir", "os.remove", "os.rmdir", "os.chmod", "shutil.rmtree")


def forked(work: Callable, *args: object) -> int:
    """Call `work` in a process of its own, with all that is imported here, which ends with what it returns; its pid."""
    sys.stdout.flush()
    if pid := os.fork():
        return pid
    code = 1
    try:
        code = work(*args) or 0
    except SystemExit as done:
        code = done.code or 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(int(code))


def _kill_at(moment: int, below: str) -> None:
    """SIGKILL this process right before it changes the file system below `below` for the `moment`th time."""
    seen = [0]

    def hook(event, args):
        writes = event == "open" and (args[1] is None or set(str(args[1])) & set("wax+"))
        if (event in CHANGES or writes) and below in os.path.abspath(str(args[0])):
            if seen[0] == moment:
                os.kill(os.getpid(), signal.SIGKILL)
            seen[0] += 1

    sys.addaudithook(hook)


def _child(job: dict, rank: int, port: int, errors: str) -> None:
    from stages.common import cli
    from stages.update.__main__ import main

    handle = os.open(errors, os.O_WRONLY | os.O_CREAT)
    os.dup2(handle, 2)
    os.dup2(handle, 1)
    if job["ranks"] > 1:
        os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(job["ranks"])}
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    if job["kill_at"] is not None:
        _kill_at(job["kill_at"], str(Path(job["argv"][job["argv"].index("--out") + 1]).parent))
    cli.run(main, job["argv"])


def _run(job: dict, folder: str) -> Done:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    files = [os.path.join(folder, f"{rank}.txt") for rank in range(job["ranks"])]
    children = {}
    for rank, file in enumerate(files):
        children[forked(_child, job, rank, port, file)] = rank
    codes = {}
    while len(codes) < len(children):
        pid, status = os.wait()
        codes[children[pid]] = os.waitstatus_to_exitcode(status)
        if codes[children[pid]]:  # as torchrun does
            for other, rank in children.items():
                if rank not in codes:
                    os.kill(other, signal.SIGTERM)
    errors = [Path(file).read_text() for file in files]
    for file in files:
        os.unlink(file)
    return Done([codes[rank] for rank in range(len(files))], errors)


def serve() -> None:
    """The server's side: a job per line in, a result per line out."""
    import peft  # noqa: F401
    import torch
    import torch.distributed.fsdp
    from transformers import AutoModelForCausalLM, LlamaForCausalLM  # noqa: F401

    import stages.update.session  # noqa: F401

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        for line in sys.stdin:
            done = _run(json.loads(line), folder)
            print(json.dumps(vars(done)), flush=True)


if __name__ == "__main__":
    serve()
