"""SQL views over a run's tables, as an init file for the `duckdb` command.

`python -m stages.report views results/demo` writes ``results/demo/murphy.sql``; then, in the run's folder,
``duckdb -init murphy.sql``. The views name files relative to the run's folder, so they survive zipping and moving it.
A table that the run does not have yet is an empty view; write the file again when it is there. `nodes` joins what is
known of each node, `timings` holds the phases of every stage.
"""

from pathlib import Path

from stages.common import runs
from stages.common.files import write_text

FILE = "murphy.sql"
NODES = """\
select rollouts.*, feedback.* exclude (version, turn, node_id, task_id),
       credit.* exclude (version, turn, node_id, parent_id, group_id, task_id, reward)
from rollouts
left join feedback using (version, turn, node_id)
left join credit using (version, node_id)"""


def statements(run: Path) -> dict[str, str]:
    """The views' names and the SQL that each is."""
    views = {}
    for name in runs.PARTITIONS:
        present = runs.files_of(run, name)
        views[name] = f"from '{runs.glob_of(name)}'" if present else runs.empty_select(name)
    return {**views, "timings": runs.timings_select(run), "nodes": NODES}


def script(run: Path) -> str:
    """The text of the init file."""
    head = "-- Views over the tables of this run; start in this folder: duckdb -init murphy.sql\n"
    views = statements(run)
    return head + "".join(f"\ncreate or replace view {name} as\n{sql};\n" for name, sql in views.items())


def write(run: Path) -> Path:
    """Write the init file into the run's folder; UserError where it is no run's folder."""
    run = runs.check_run(run)
    write_text(run / FILE, script(run))
    return run / FILE
