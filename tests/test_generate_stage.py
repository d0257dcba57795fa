"""The generate stage with a real vLLM engine and a tiny policy: ids, log-probabilities, determinism, overflow."""

import subprocess
import sys

import pytest

from stages.common import tables
from stages.generate.__main__ import main
from tests.tiny_policy import make_tiny_policy

SETTINGS = ["--group-size", "3", "--max-tokens", "24", "--max-model-len", "640", "--kv-cache-gib", "1"]
TEMPERATURE = 0.7


def make_task(name, prompt):
    return {
        "task_id": name,
        "source": "test",
        "kind": "function",
        "prompt": prompt,
        "entry_point": "add",
        "prelude": None,
        "setup": None,
        "tests": [{"visible": True, "code": "assert add(1, 2) == 3", "stdin": None, "stdout": None}],
        "reference": None,
        "difficulty": None,
        "stub": None,
        "inplace": False,
        "exact": False,
        "tolerance": None,
        "packages": [],
        "cpu_seconds": None,
        "memory_mb": None,
    }


TASKS = [make_task("a", "Add two numbers."), make_task("b", "Add."), make_task("long", "Add " * 400)]


def feedback_row(node, reward):
    return {
        "node_id": node["node_id"],
        "task_id": node["task_id"],
        "reward": reward,
        "passed": 0,
        "total": 1,
        "hidden_passed": 0,
        "hidden_total": 0,
        "kind": "wrong_answer",
        "mode": "answer_blind",
        "feedback": "0 of 1 tests passed.",
    }


def generate(folder, out, *more):
    argv = [sys.executable, "-m", "stages.generate", "--policy", str(folder / "policy"), "--version", "0"]
    argv += ["--tasks", str(folder / "tasks.parquet"), "--out", str(out), "--temperature", str(TEMPERATURE)]
    return subprocess.run([*argv, *SETTINGS, *map(str, more)], capture_output=True, text=True)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("generate")
    make_tiny_policy(folder / "policy")
    tables.write(folder / "tasks.parquet", tables.TASKS, TASKS)
    done = generate(folder, folder / "1.parquet", "--turn", "1", "--timings", folder / "1.json")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def nodes(run):
    return tables.read(run / "1.parquet", tables.ROLLOUTS).to_pylist()


def test_groups_are_whole_and_ids_are_kept(run, nodes):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(run / "policy")
    sampled = [node for node in nodes if node["finish_reason"] != "context_overflow"]
    assert [n["node_id"] for n in sampled] == [f"0/{t}/{i}" for t in "ab" for i in range(3)]
    assert all(n["group_id"] == f"0/{n['task_id']}" and n["parent_id"] is None for n in sampled)
    for node in sampled:
        assert tokenizer.decode(node["prompt_ids"]) == node["prompt"]
        assert node["prompt"].count("<|im_start|>") == 2 and node["prompt"].endswith("assistant\n")
        assert len(node["completion_ids"]) == len(node["sampling_logprobs"]) <= 24
        ended = node["completion_ids"][-1] == tokenizer.eos_token_id
        assert node["finish_reason"] == ("stop" if ended else "length")
    assert len({n["seed"] for n in nodes}) == len(nodes)
    assert len({tuple(n["completion_ids"]) for n in sampled}) == len(sampled)


def test_a_prompt_without_room_is_marked(nodes):
    [node] = [node for node in nodes if node["task_id"] == "long"]
    assert node["finish_reason"] == "context_overflow"
    assert node["completion_ids"] == [] and node["code"] is None


def test_logprobs_are_those_of_a_forward_pass_at_the_sampling_temperature(run, nodes):
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(run / "policy", dtype=torch.float32)
    for node in nodes:
        if completion := node["completion_ids"]:
            ids = torch.tensor([node["prompt_ids"] + completion])
            with torch.no_grad():
                logits = model(ids).logits[0, len(node["prompt_ids"]) - 1 : -1] / TEMPERATURE
            want = torch.log_softmax(logits, -1).gather(1, torch.tensor(completion)[:, None])[:, 0]
            torch.testing.assert_close(torch.tensor(node["sampling_logprobs"]), want, atol=1e-4, rtol=0)


def test_a_later_turn_prompts_failed_nodes_and_the_same_run_gives_the_same_bytes(run, nodes):
    rewards = {"long": None}
    rows = [feedback_row(n, rewards.get(n["task_id"], 1.0 if n["sample"] else 0.0)) for n in nodes]
    tables.write(run / "f.parquet", tables.FEEDBACK, rows)
    more = ["--turn", "2", "--rollouts", run / "1.parquet", "--feedback", run / "f.parquet"]
    for name in ("2", "again"):
        done = generate(run, run / f"{name}.parquet", *more)
        assert done.returncode == 0, done.stderr
    assert (run / "2.parquet").read_bytes() == (run / "again.parquet").read_bytes()
    later = tables.read(run / "2.parquet", tables.ROLLOUTS).to_pylist()
    assert {n["parent_id"] for n in later} == {"0/a/0", "0/b/0"}
    assert {n["node_id"] for n in later if n["task_id"] == "a"} == {f"0/a/0.{i}" for i in range(3)}
    assert all(n["completion_ids"] and "0 of 1 tests passed." in n["prompt"] for n in later)


def test_a_turn_with_nothing_to_do_imports_no_engine(run, nodes):
    tables.write(run / "solved.parquet", tables.FEEDBACK, [feedback_row(n, 1.0) for n in nodes])
    script = (
        "import sys; from stages.generate.__main__ import main; main(sys.argv[1:]);"
        "assert not {'vllm', 'torch', 'transformers'} & set(sys.modules)"
    )
    argv = ["--policy", run / "policy", "--tasks", run / "tasks.parquet", "--version", 0, "--turn", 2]
    argv += ["--rollouts", run / "1.parquet", "--feedback", run / "solved.parquet", "--out", run / "none.parquet"]
    done = subprocess.run([sys.executable, "-c", script, *map(str, argv)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert tables.read(run / "none.parquet", tables.ROLLOUTS).num_rows == 0


def test_a_policy_without_a_chat_template_is_refused(run, tmp_path):
    make_tiny_policy(tmp_path / "policy")
    (tmp_path / "policy" / "chat_template.jinja").unlink()
    manifest = (tmp_path / "policy" / "manifest.json").read_text()
    lines = [line for line in manifest.splitlines() if "chat_template" not in line]
    (tmp_path / "policy" / "manifest.json").write_text("\n".join(lines))
    tables.write(tmp_path / "tasks.parquet", tables.TASKS, TASKS)
    done = generate(tmp_path, tmp_path / "1.parquet", "--turn", "1")
    assert done.returncode == 2 and "chat template" in done.stderr and not (tmp_path / "1.parquet").exists()


def test_a_missing_policy_and_missing_turns_are_named(run, tmp_path):
    done = generate(tmp_path, tmp_path / "1.parquet", "--turn", "1")
    assert done.returncode == 2 and "tasks.parquet: no such file" in done.stderr
    done = generate(run, tmp_path / "2.parquet", "--turn", "2")
    assert done.returncode == 2 and "turn 2 needs 1 --rollouts" in done.stderr


def test_help_is_complete(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    assert "--temperature" in text and "--max-model-len" in text and "completions sampled from each prompt" in text
