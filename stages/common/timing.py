"""Where a stage's time went: phases in seconds, with counts, written as JSON beside the tables.

``results/<run>/timings/<stage>/*.json`` holds a list of ``{"phase", "seconds", "count", "unit"}``. Times are not
reproducible, so they never enter a table that is compared.
"""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from stages.common.files import write_text


@dataclass
class Phase:
    """One phase of a stage; `count` `unit`s (tokens, tests, rows) were dealt with in `seconds`."""

    phase: str
    seconds: float
    count: int = 0
    unit: str = ""


@dataclass
class Timings:
    """Collects phases; :meth:`write` puts them into a file."""

    phases: list[Phase] = field(default_factory=list)

    @contextmanager
    def phase(self, name: str, unit: str = "") -> Iterator[Phase]:
        """Time a block as one phase; the block may set `count` on what it is given."""
        record = Phase(name, 0.0, 0, unit)
        start = time.perf_counter()
        try:
            yield record
        finally:
            record.seconds = round(time.perf_counter() - start, 3)
            self.phases.append(record)

    def write(self, path: Path | None) -> None:
        """Write the phases to `path`, or nowhere when it is None."""
        if path is not None:
            write_text(Path(path), json.dumps([asdict(p) for p in self.phases], indent=1) + "\n")
