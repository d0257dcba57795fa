"""A turn cut into shards gives the rows of the whole turn, byte for byte: prompts, sampling, judging."""

import pytest

from stages.common import tables
from stages.common.cli import UserError
from stages.common.config import Generate
from stages.execute.__main__ import main as execute
from stages.generate import __main__ as stage
from tests.test_execute_stage import rollout
from tests.test_generate_stage import SETTINGS, feedback_row, make_task
from tests.tiny_policy import make_tiny_policy

NAMES = ["a", "b", "c", "d", "e", "f", "g"]
TASKS = [make_task(name, f"Add {name}.") for name in NAMES]


def prompts(folder, shard, shards, *more):
    argv = ["--policy", "p", "--tasks", str(folder / "tasks.parquet"), "--version", "0", "--out", "o"]
    argv += ["--shard", str(shard), *map(str, more)]
    args = stage._parser().parse_args(argv)
    return stage._prompts(args, Generate(shards=shards, tasks_per_version=6))


def gathered(folder, name, files):
    """All shards read as one table and written again."""
    table = tables.ALL[name]
    tables.write(folder / "gathered.parquet", table, tables.read(files, table))
    return (folder / "gathered.parquet").read_bytes()


@pytest.mark.parametrize("shards", [2, 5])
def test_shards_hold_the_prompts_of_the_whole_turn(tmp_path, shards):
    tables.write(tmp_path / "tasks.parquet", tables.TASKS, TASKS)
    [whole, cut] = ([prompts(tmp_path, s, k, "--turn", 1) for s in range(k)] for k in (1, shards))
    by_group = {prompt.group_id: prompt for prompt in whole[0]}
    assert len(by_group) == 6 and {p.group_id: p for part in cut for p in part} == by_group
    assert sum(map(len, cut)) == 6 and max(map(len, cut)) - min(map(len, cut)) <= 1

    def second(part, place):
        nodes = [rollout(f"{p.group_id}/{i}", None, p.task["task_id"]) for p in part for i in range(2)]
        judged = [feedback_row(node, i % 3 / 2) for i, node in enumerate(nodes)]
        place.mkdir()
        tables.write(place / "r.parquet", tables.ROLLOUTS, nodes)
        tables.write(place / "f.parquet", tables.FEEDBACK, judged)
        files = ["--turn", 2, "--rollouts", place / "r.parquet", "--feedback", place / "f.parquet"]
        return [p.parent_id for p in prompts(tmp_path, 0, 1, *files)], [n["node_id"] for n in nodes]

    for number, part in enumerate(cut):
        retried, own = second(part, tmp_path / f"part-{number}")
        assert set(retried) <= set(own), "the children of a node are sampled in the shard of the node"


def test_a_shard_that_is_not_there_is_refused(tmp_path):
    tables.write(tmp_path / "tasks.parquet", tables.TASKS, TASKS)
    with pytest.raises(UserError, match="--shard 2"):
        prompts(tmp_path, 2, 2, "--turn", 1)


def judge(folder, rollouts, out):
    files = {name: out.with_name(f"{name}-{out.name}") for name in ("verdicts", "feedback")}
    argv = ["run", "--tasks", str(folder / "tasks.parquet"), "--rollouts", *map(str, rollouts), "--workers", "2"]
    assert execute([*argv, *(x for name in files for x in (f"--{name}", str(files[name])))]) == 0
    return files


def test_shards_are_judged_as_the_whole_turn(tmp_path):
    tables.write(tmp_path / "tasks.parquet", tables.TASKS, TASKS)
    bodies = ["a + b", "a - b", "a * b", "3", "b", "a + b + 0", "[", "1 / 0", "{}['x']", "a + b + 1"]
    nodes = [
        rollout(f"0/{name}/{i}", f"def add(a, b):\n    return {body}\n", name)
        for name in NAMES[:3]
        for i, body in enumerate(bodies)
    ]
    seen = {}
    for shards in (1, 2, 5):
        made = []
        for shard in range(shards):
            path = tmp_path / f"{shards}-{shard}.parquet"
            tables.write(path, tables.ROLLOUTS, nodes[shard::shards])
            made.append(judge(tmp_path, [path], path))
        seen[shards] = {name: gathered(tmp_path, name, [m[name] for m in made]) for name in ("verdicts", "feedback")}
    assert seen[1] == seen[2] == seen[5]


@pytest.mark.slow
def test_one_two_and_five_shards_are_the_same_bytes_after_two_turns(tmp_path, monkeypatch):
    from stages.generate import engine

    started = []

    def once(*args):  # one engine for all shards: starting fourteen would only take time
        started[:] = started or [Engine(*args)]
        return started[0]

    Engine = engine.Engine
    monkeypatch.setattr(engine, "Engine", once)
    make_tiny_policy(tmp_path / "policy")
    tables.write(tmp_path / "tasks.parquet", tables.TASKS, TASKS)
    base = ["--policy", str(tmp_path / "policy"), "--tasks", str(tmp_path / "tasks.parquet"), "--version", "0"]
    base += [*SETTINGS, "--temperature", "0.7", "--batch", "group", "--tasks-per-version", "6"]
    seen = {}
    for shards in (1, 2, 5):
        files = {1: [], 2: [], "feedback": []}
        for shard in range(shards):
            first, again = (tmp_path / f"{turn}-{shards}-{shard}.parquet" for turn in (1, 2))
            own = [*base, "--shards", str(shards), "--shard", str(shard)]
            stage.main([*own, "--turn", "1", "--out", str(first)])
            feedback = judge(tmp_path, [first], first)["feedback"]
            stage.main(
                [*own, "--turn", "2", "--rollouts", str(first), "--feedback", str(feedback), "--out", str(again)]
            )
            files[1].append(first)
            files[2].append(again)
            files["feedback"].append(feedback)
        seen[shards] = [gathered(tmp_path, "rollouts", files[turn]) for turn in (1, 2)]
        seen[shards].append(gathered(tmp_path, "feedback", files["feedback"]))
        assert tables.read(files[2], tables.ROLLOUTS).num_rows == 6 * 3 * 3
    assert seen[1] == seen[2] == seen[5]
