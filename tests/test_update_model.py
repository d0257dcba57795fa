"""Loading for training: what the proof accepts and refuses, bfloat16, recomputed activations."""

import numpy as np
import pytest
import torch

from stages.common.cli import UserError
from stages.common.config import Update
from stages.update import model as models
from stages.update.batch import plan
from stages.update.logprobs import Compute
from stages.update.loss import LossSettings
from stages.update.step import add_gradient
from tests.update_helpers import random_rows, tiny

FLOAT32 = Compute(1.0, 16)


def gradient(model, compute=FLOAT32):
    rows = random_rows(1, groups=4)
    (step,) = plan(rows, 1, 1, np.random.default_rng(0))
    model.zero_grad()
    sums = add_gradient(model, rows, step, LossSettings(), compute, 64, {}, None, lambda _: None)
    return torch.cat([p.grad.flatten() for p in model.parameters()]), sums.overall()


@pytest.mark.parametrize("kind", ["llama", "qwen3"])
def test_bfloat16_points_where_float32_does(kind):
    model = tiny(kind)
    want, exact = gradient(model)
    got, rounded = gradient(model, Compute(1.0, 16, torch.bfloat16))
    assert got.dtype == torch.float32 and not torch.equal(got, want)
    assert torch.cosine_similarity(got, want, dim=0) > 0.99
    assert rounded["entropy"] == pytest.approx(exact["entropy"], rel=0.02)


def test_checkpointing_runs_each_layer_twice_and_gives_the_same_gradient(tmp_path):
    tiny().save_pretrained(tmp_path)
    calls, gradients = [], []
    for on in (False, True):
        model = models.load(tmp_path, Update(gradient_checkpointing=on))
        count = [0]
        model.get_decoder().layers[0].mlp.register_forward_pre_hook(
            lambda *_, count=count: count.__setitem__(0, count[0] + 1)
        )
        gradients.append(gradient(model)[0])
        calls.append(count[0])
    assert calls[1] == 2 * calls[0] > 0
    assert torch.allclose(gradients[0], gradients[1], atol=1e-7)


def test_dropout_is_off_in_training(tmp_path):
    model = tiny()
    model.config.attention_dropout = 0.5
    model.save_pretrained(tmp_path)
    loaded = models.load(tmp_path, Update())
    assert loaded.training
    assert torch.equal(gradient(loaded)[0], gradient(loaded)[0])
    assert gradient(loaded)[1]["ratio"] == gradient(tiny())[1]["ratio"]


@pytest.mark.parametrize("kind", ["llama", "qwen3"])
def test_plain_causal_models_pass_the_proof(kind):
    models.prove(tiny(kind), random_rows(1))


def test_a_head_that_scales_its_logits_is_refused():
    from transformers import CohereConfig, CohereForCausalLM

    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 4}
    model = CohereForCausalLM(CohereConfig(vocab_size=61, pad_token_id=2, initializer_range=0.3, **sizes))
    with pytest.raises(UserError, match="linear head"):
        models.prove(model, random_rows(1))


def test_a_broken_folder_is_named(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UserError, match=str(tmp_path)):
        models.load(tmp_path, Update())
