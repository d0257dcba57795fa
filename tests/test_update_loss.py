"""The losses against numbers from outside, numerical gradients, and hand-computed cases."""

import json
from pathlib import Path

import pytest
import torch

from stages.update.loss import Denominator, LossSettings, Rows, policy_loss

GOLDEN = json.loads((Path(__file__).parent / "golden/losses.json").read_text())
CASES = {case["name"]: case for case in GOLDEN["cases"]}


def golden_rows(case: dict) -> Rows:
    given = {name: torch.tensor(value, dtype=torch.float64) for name, value in GOLDEN["inputs"].items()}
    corrected = case["settings"].get("is_correction")
    return Rows(
        logp=given["logp"].requires_grad_(),
        mask=torch.tensor(case.get("mask", GOLDEN["inputs"]["mask"])).bool(),
        advantage=torch.tensor(case.get("advantage", GOLDEN["inputs"]["advantage"]), dtype=torch.float64),
        old=None if case["on_policy"] else given["old"],
        sampling=given["sampling"] if corrected else None,
        ref=given["ref"] if case["settings"].get("beta") else None,
    )


def test_there_are_29_golden_cases():
    assert len(CASES) == 29


@pytest.mark.parametrize("name", CASES)
def test_golden_loss_and_gradient(name):
    case = CASES[name]
    rows = golden_rows(case)
    loss, metrics = policy_loss(rows, LossSettings(**case["settings"]), Denominator(case["rows"], case["tokens"]))
    loss.backward()
    assert loss.item() == pytest.approx(case["loss"], abs=1e-9)
    assert (rows.logp.grad - torch.tensor(case["grad"], dtype=torch.float64)).abs().max() < 1e-9
    assert metrics["loss"].sum().item() == pytest.approx(case["loss"], abs=1e-9)
    tokens = max(metrics["tokens"].sum().item(), 1)
    if "kl" in case and not case["settings"].get("kl_bias_correction", True):
        assert metrics["kl"].sum().item() / tokens == pytest.approx(case["kl"], abs=1e-7)
    for key in ("clip_low", "clip_high"):
        if key in case:
            assert metrics[key].sum().item() / tokens == pytest.approx(case[key], abs=1e-6)


LOSSES = ["grpo", "bnpo", "dapo", "dr_grpo", "gspo", "cispo", "luspo", "sapo"]


def settings(loss: str, **more) -> LossSettings:
    return LossSettings(loss=loss, max_len=7, eps_high=1.3 if loss == "cispo" else 0.28, **more)


def random_rows(seed: int, rows: int = 3, tokens: int = 5, **more) -> Rows:
    g = torch.Generator().manual_seed(seed)
    logp = -torch.rand(rows, tokens, generator=g, dtype=torch.float64) * 2
    noise = lambda scale: torch.randn(rows, tokens, generator=g, dtype=torch.float64) * scale
    mask = torch.rand(rows, tokens, generator=g) < 0.7
    given = {
        "logp": logp.requires_grad_(),
        "mask": mask,
        "advantage": torch.randn(rows, generator=g, dtype=torch.float64),
        "old": (logp + noise(0.3)).detach(),
        "sampling": (logp + noise(0.3)).detach(),
        "ref": (logp + noise(0.3)).detach(),
    }
    return Rows(**{**given, **more})


@pytest.mark.parametrize("loss", [name for name in LOSSES if name != "cispo"])
@pytest.mark.parametrize("correction", ["none", "token_truncate", "sequence_mask"])
@pytest.mark.parametrize("seed", range(3))
def test_numerical_gradient(loss, correction, seed):
    rows = random_rows(seed)
    chosen = settings(loss, beta=0.1, delta=1.4, is_correction=correction, is_max=1.2)

    def value(logp):
        part = Rows(logp, rows.mask, rows.advantage, rows.old, rows.sampling, rows.ref)
        return policy_loss(part, chosen, Denominator(3, 11))[0]

    assert torch.autograd.gradcheck(value, (rows.logp,), eps=1e-6, atol=1e-7)


def test_cispo_gradient_is_its_detached_weight():
    rows = random_rows(5)
    loss, _ = policy_loss(rows, settings("cispo"), Denominator(3, 11))
    loss.backward()
    w = (rows.logp - rows.old).exp().clamp(max=1.3).detach()
    assert torch.allclose(rows.logp.grad, -w * rows.advantage[:, None] * rows.mask / 11, atol=1e-12)


def test_three_tokens_by_hand():
    # ratios .5, 1, 2 with A = 1 and eps .2: min(w, 1.2) gives .5, 1, 1.2; the last one no longer moves
    logp = torch.log(torch.tensor([[0.25, 0.5, 0.8]])).requires_grad_()
    rows = Rows(
        logp, torch.ones(1, 3, dtype=torch.bool), torch.tensor([1.0]), torch.log(torch.tensor([[0.5, 0.5, 0.4]]))
    )
    loss, metrics = policy_loss(rows, LossSettings(), Denominator(1, 3))
    loss.backward()
    assert loss.item() == pytest.approx(-(0.5 + 1 + 1.2) / 3, abs=1e-6)
    assert logp.grad.tolist()[0] == pytest.approx([-0.5 / 3, -1 / 3, 0.0], abs=1e-6)
    assert (metrics["clip_low"].item(), metrics["clip_high"].item()) == (0, 1)
    assert metrics["ratio"].item() == pytest.approx(3.5, abs=1e-6)
    assert metrics["ratio_max"].item() == pytest.approx(2.0, abs=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("level", ["token", "sequence"])
def test_parts_of_a_step_add_up(loss, level):
    whole = random_rows(9, rows=7)
    chosen = settings(loss, beta=0.04, importance_level=level, is_correction="token_truncate")
    count = Denominator(7, int(whole.mask.sum()))
    policy_loss(whole, chosen, count)[0].backward()
    for cut in (1, 2, 5):
        parts = whole.logp.detach().clone().requires_grad_()
        for a in range(0, 7, cut):
            b = slice(a, a + cut)
            rows = Rows(parts[b], whole.mask[b], whole.advantage[b], whole.old[b], whole.sampling[b], whole.ref[b])
            policy_loss(rows, chosen, count)[0].backward()
        assert torch.allclose(parts.grad, whole.logp.grad, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("correction", ["token_truncate", "sequence_truncate", "token_mask", "sequence_mask"])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_masked_positions_may_hold_anything(loss, correction, bad):
    rows = random_rows(2)
    chosen = settings(loss, beta=0.1, is_correction=correction)
    clean, numbers = policy_loss(rows, chosen, Denominator(3, 11))
    clean.backward()
    spoil = lambda t: t.detach().masked_fill(~rows.mask, bad)
    dirty = Rows(
        spoil(rows.logp).requires_grad_(), rows.mask, rows.advantage, *map(spoil, (rows.old, rows.sampling, rows.ref))
    )
    loss_value, dirty_numbers = policy_loss(dirty, chosen, Denominator(3, 11))
    loss_value.backward()
    assert loss_value.item() == clean.item()
    assert torch.equal(dirty.logp.grad, rows.logp.grad)
    assert (dirty.logp.grad[~rows.mask] == 0).all()
    assert all(torch.equal(numbers[key], dirty_numbers[key]) for key in numbers)


@pytest.mark.parametrize("loss", LOSSES)
def test_nothing_in_the_mask_is_zero_and_finite(loss):
    rows = random_rows(4, mask=torch.zeros(3, 5, dtype=torch.bool))
    value, metrics = policy_loss(rows, settings(loss, beta=0.1), Denominator(0, 0))
    value.backward()
    assert value.item() == 0 and (rows.logp.grad == 0).all()
    assert all(torch.isfinite(m).all() for m in metrics.values())


def test_metrics_show_the_ratio_before_truncation():
    rows = random_rows(3, sampling=random_rows(3).logp.detach() - 5.0, mask=torch.ones(3, 5, dtype=torch.bool))
    _, metrics = policy_loss(rows, settings("dapo", is_correction="token_truncate"), Denominator(3, 15))
    assert metrics["is_ratio_max"].max() > 50
    assert metrics["is_clipped"].sum() == 15
    assert metrics["logp_diff"].sum() / 15 > 4


def test_beta_changes_loss_and_gradient():
    results = []
    for beta in (0.0, 0.04):
        rows = random_rows(6)
        loss, _ = policy_loss(rows, settings("dapo", beta=beta), Denominator(3, 11))
        loss.backward()
        results.append((loss.item(), rows.logp.grad))
    assert results[0][0] != results[1][0]
    assert not torch.allclose(results[0][1], results[1][1])


def test_bias_corrected_kl_has_another_gradient_of_the_same_value_on_policy():
    results = []
    for corrected in (True, False):
        rows = random_rows(7, old=None)
        loss, _ = policy_loss(rows, settings("dapo", beta=0.5, kl_bias_correction=corrected), Denominator(3, 11))
        loss.backward()
        results.append((loss.item(), rows.logp.grad))
    assert results[0][0] == pytest.approx(results[1][0], abs=1e-12)
    assert not torch.allclose(results[0][1], results[1][1])


def test_what_a_loss_needs_is_asked_for():
    with pytest.raises(ValueError, match="eps_high"):
        LossSettings(loss="cispo")
    with pytest.raises(ValueError, match="max_len"):
        LossSettings(loss="dr_grpo")
    with pytest.raises(ValueError, match="reference"):
        policy_loss(random_rows(1, ref=None), settings("dapo", beta=0.1), Denominator(3, 11))
