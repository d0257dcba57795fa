"""SmolLM2 through trainer and engine: what the engine says of its samples, the trainer says too, at any temperature."""

import json
import subprocess
import sys

import numpy as np
import pytest

from stages.common.cli import UserError
from stages.common.policy import read_manifest, write_manifest
from stages.policy import smollm2
from tests.forks import ROOT

TEMPERATURES = (0.6, 1.0, 1.3)
TASKS = ("Write a Python function add_one(x) that returns x plus 1.", "Name three colours.", "def is_even(n):")
SAMPLE = """
import json, sys
from stages.common.config import Generate
from stages.common.timing import Timings
from stages.generate.engine import Engine, Request
policy, prompts, out, temperatures = json.loads(sys.argv[1])
settings = Generate(max_model_len=256, kv_cache_gib=1)
engine, found = Engine(policy, settings, Timings()), {}
for t in temperatures:
    engine._settings = settings.model_copy(update={"temperature": t})
    requests = [Request(f"{i}.{j}", ids, 32, 8 * i + j) for i, ids in enumerate(prompts) for j in range(4)]
    found[t] = [[r.prompt_ids, c.ids, c.logprobs] for r, c in zip(requests, engine.sample(requests))]
open(out, "w").write(json.dumps(found))
"""


@pytest.mark.slow
def test_trainer_and_engine_agree_after_an_update(tmp_path):
    try:
        gguf = smollm2.find_gguf()
    except UserError as error:
        pytest.skip(str(error))
    from transformers import AutoTokenizer

    from stages.common.config import Update
    from stages.update import model as models
    from stages.update.batch import Row
    from stages.update.logprobs import Compute
    from stages.update.step import logprobs_of
    from tests.update_helpers import Run

    run = Run.__new__(Run)
    run.folder = tmp_path
    run.policy(0).mkdir(parents=True)
    smollm2.write(gguf, run.policy(0))
    write_manifest(run.policy(0), 0, None, {"stage": "tests"})
    tokenizer = AutoTokenizer.from_pretrained(run.policy(0))
    chat = lambda text: tokenizer.apply_chat_template(
        [{"role": "user", "content": text}], add_generation_prompt=True, return_dict=False
    )
    prompts = [chat(text) for text in TASKS]
    replies = [tokenizer(text)["input_ids"] for text in ("```python\ndef add_one(x):\n    return x + 1\n```", "No.")]
    rows = [
        Row(f"0/a/{i}", "0/a", 1, 1.0 - 2 * i, np.array(prompts[0]), np.array(ids), -np.ones(len(ids), np.float32))
        for i, ids in enumerate(replies)
    ]
    run.update(0, rows, "--lr", "1e-5", "--is-correction", "none")
    assert read_manifest(run.policy(1)).hash != read_manifest(run.policy(0)).hash

    job = json.dumps([str(run.policy(1)), prompts, str(tmp_path / "samples.json"), TEMPERATURES])
    done = subprocess.run([sys.executable, "-c", SAMPLE, job], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    samples = json.loads((tmp_path / "samples.json").read_text())
    model = models.load(run.policy(1), Update(), trained=False)
    said = {}
    for t in TEMPERATURES:
        nodes = [
            Row(str(i), str(i), 1, 1.0, np.array(prompt), np.array(ids), np.array(logprobs))
            for i, (prompt, ids, logprobs) in enumerate(samples[str(t)])
        ]
        known = logprobs_of(model, nodes, range(len(nodes)), Compute(t, 128), 2048)
        apart = np.concatenate([np.abs(known[i] - node.sampling) for i, node in enumerate(nodes)])
        said[t] = np.concatenate([node.sampling for node in nodes]).mean()
        assert len(apart) > 100 and apart.mean() < 0.01
        assert abs(np.exp(-apart).mean() - 1) < 0.01
    assert said[0.6] > said[1.3] + 0.3, "the temperature made no difference"
