"""The sandbox D of the tests: one per worker, warm, with a child for each program's task. Standard library only."""

import json
import socket
from collections.abc import Sequence

from stages.execute.candidate_box import wait_until_ready
from stages.execute.sandbox import Sandbox, SandboxFailed, Wire


class TestsBox:
    """Starts D when it is first needed, and again after it was lost."""

    __test__ = False  # the name is no test of pytest's

    def __init__(self, command: Sequence[str], uid: int, packages: Sequence[str], preload: Sequence[str]):
        self._command, self._uid, self._packages, self._preload = command, uid, packages, preload
        self._box: Sandbox | None = None

    def child(self, task: dict) -> Wire:
        """A process that knows this task and evaluates its tests, one per message."""
        if self._box is None:
            self._box = Sandbox(self._command, "tests_side.py", self._uid)
            self._box.wire.send({"packages": self._packages, "preload": self._preload})
            wait_until_ready(self._box)
        ours, theirs = socket.socketpair()
        sent = self._box.wire.send({"task": json.dumps(task)}, [theirs.fileno()])
        theirs.close()
        if not sent:
            raise SandboxFailed("the tests' sandbox is gone")
        return Wire(ours)

    def close(self) -> None:
        """End D and all its children."""
        if self._box is not None:
            self._box.close()
            self._box = None
