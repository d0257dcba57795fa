"""The learning rate over versions, and the optimiser's state by name."""

import pytest
import torch

from stages.common.cli import UserError
from stages.common.config import Update
from stages.update.optim import export_state, import_state, lr_at, make_optimiser, set_lr
from tests.update_helpers import all_equal, tiny


def test_schedules_by_hand():
    def rates(**more):
        return [lr_at(i, Update(lr=1.0, **more)) for i in range(7)]

    assert rates() == [1.0] * 7
    assert rates(warmup_steps=3) == pytest.approx([0.25, 0.5, 0.75, 1, 1, 1, 1])
    assert rates(schedule="linear", schedule_steps=4) == pytest.approx([1, 0.75, 0.5, 0.25, 0, 0, 0])
    linear = rates(warmup_steps=1, schedule="linear", schedule_steps=5)
    assert linear == pytest.approx([0.5, 1, 0.75, 0.5, 0.25, 0, 0])
    cosine = rates(schedule="cosine", schedule_steps=4)
    assert cosine == pytest.approx([1, 0.8535534, 0.5, 0.1464466, 0, 0, 0], abs=1e-7)


def test_only_matrices_decay():
    model = tiny()
    groups = make_optimiser(model, Update(weight_decay=0.3)).param_groups
    assert [group["weight_decay"] for group in groups] == [0.3, 0.0]
    assert all(p.dim() == 2 for p in groups[0]["params"]) and all(p.dim() == 1 for p in groups[1]["params"])
    assert sum(len(group["params"]) for group in groups) == len(list(model.parameters()))


def step(model, optimiser, seed):
    g = torch.Generator().manual_seed(seed)
    for p in model.parameters():
        p.grad = torch.randn(p.shape, generator=g)
    set_lr(optimiser, 1e-2)
    optimiser.step()


def test_state_comes_back_bit_for_bit():
    a = tiny()
    first = make_optimiser(a, Update())
    step(a, first, 1)
    b = tiny()
    b.load_state_dict(a.state_dict())
    second = make_optimiser(b, Update())
    import_state(b, second, export_state(a, first), "x")
    step(a, first, 2)
    step(b, second, 2)
    assert all_equal(dict(a.named_parameters()), dict(b.named_parameters()))
    assert all_equal(export_state(a, first), export_state(b, second))


def test_state_of_another_model_is_refused():
    a, b = tiny("llama"), tiny("qwen3")
    optimiser = make_optimiser(a, Update())
    step(a, optimiser, 1)
    with pytest.raises(UserError, match=r"here: .*other parameters"):
        import_state(b, make_optimiser(b, Update()), export_state(a, optimiser), "here")
    c = tiny(vocab=67)
    with pytest.raises(UserError, match="another shape"):
        import_state(c, make_optimiser(c, Update()), export_state(a, optimiser), "here")
