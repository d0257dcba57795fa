"""LoRA: new adapters change nothing, adapters train and the base does not, merged equals base plus adapter."""

import json

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from stages.common.cli import UserError
from stages.common.policy import read_manifest
from tests.tiny_policy import make_tiny_policy
from tests.update_helpers import Run, all_equal, random_rows

LORA = ("--lora-rank", "4", "--lora-alpha", "8", "--lr", "1e-2")


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    folder = tmp_path_factory.mktemp("policy")
    make_tiny_policy(folder, hidden=32)
    return folder


@pytest.fixture
def run(tmp_path, start):
    return Run(tmp_path, start)


def test_adapters_train_and_the_base_does_not(run):
    (row,) = run.update(0, random_rows(1), *LORA)
    assert row["ratio_mean"] == 1.0 and row["grad_norm"] > 0
    assert all_equal(load_file(run.policy(1) / "trainer/base/model.safetensors"), run.weights(0))
    assert read_manifest(run.policy(1)).hash != read_manifest(run.policy(0)).hash
    changed = {k for k, v in run.weights(1).items() if not torch.equal(v, run.weights(0)[k])}
    linear = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
    assert changed and all(any(part in name for part in linear) for name in changed)
    moments = load_file(run.policy(1) / "trainer/optimizer.safetensors")
    assert moments and all("lora_" in name for name in moments)
    config = json.loads((run.policy(1) / "adapter/adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == "../trainer/base"  # no path of this machine


def test_the_merged_policy_is_the_base_with_its_adapter(run):
    run.update(0, random_rows(1), *LORA)
    base = AutoModelForCausalLM.from_pretrained(run.policy(1) / "trainer/base", dtype=torch.float32)
    ids = torch.arange(12)[None] * 5
    adapted = PeftModel.from_pretrained(base, str(run.policy(1) / "adapter"))
    with torch.no_grad():
        want, got = adapted(input_ids=ids).logits, run.model(1)(input_ids=ids).logits
        start = run.model(0)(input_ids=ids).logits
    assert (want - got).abs().max() < 1e-5 < 1e-2 < (want - start).abs().max()


def test_the_next_version_goes_on_with_the_adapter(run):
    """After two versions the base is still the first policy, and the adapter carries both."""
    for version in (0, 1):
        run.update(version, random_rows(version), *LORA)
    assert all_equal(load_file(run.policy(2) / "trainer/base/model.safetensors"), run.weights(0))
    one, two = (load_file(run.policy(v) / "adapter/adapter_model.safetensors") for v in (1, 2))
    assert one.keys() == two.keys() and not all_equal(one, two)
    assert load_file(run.policy(2) / "trainer/optimizer.safetensors").popitem()
    assert json.loads((run.policy(2) / "trainer/state.json").read_text())["position"] == 2
    assert run.updates(1)[0]["ratio_mean"] == 1.0


def test_the_same_run_gives_the_same_bytes_anywhere(run, tmp_path, start):
    other = Run(tmp_path / "elsewhere", start)
    for r in (run, other):
        for version in (0, 1):
            r.update(version, random_rows(version), *LORA, "--epochs", "2")
    assert read_manifest(run.policy(2)).files == read_manifest(other.policy(2)).files


def test_rank_and_switch_may_not_change_within_a_run(run):
    run.update(0, random_rows(1), *LORA)
    with pytest.raises(UserError, match="rank 4 and alpha 8"):
        run.update(1, random_rows(2), "--lora-rank", "2")
    with pytest.raises(UserError, match="LoRA"):
        run.update(1, random_rows(2))


def test_a_version_without_a_step_keeps_the_adapter(run):
    run.update(0, random_rows(1), *LORA)
    run.update(1, [], *LORA)
    assert (run.policy(2) / "adapter/adapter_model.safetensors").exists()
    assert read_manifest(run.policy(2)).hash == read_manifest(run.policy(1)).hash
    assert len(run.update(2, random_rows(2), *LORA)) == 1
