"""Muon: momentum steps whose matrices are made orthogonal, which teaches a small model several times faster than Adam.

Source: K. Jordan et al., "Muon: An optimizer for hidden layers in neural networks" (2024), with its five quintic
Newton-Schulz steps. PyTorch's own version computes in bfloat16, which many CPUs only emulate; this one is float32 and
does all matrices of one shape together. For the weight matrices of hidden layers only, not embeddings or norms.
"""

from collections.abc import Iterable

import torch

_QUINTIC = (3.4445, -4.7750, 2.0315)
_STEPS = 5


def orthogonal(matrices: torch.Tensor) -> torch.Tensor:
    """The nearest orthogonal matrices, roughly: singular values of `matrices` [n, rows <= columns] go to 0.7 .. 1.2.

    X <- a X + (b X Xt + c (X Xt)^2) X, from X scaled to Frobenius norm 1.
    """
    a, b, c = _QUINTIC
    x = matrices / (matrices.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(_STEPS):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x


class Muon(torch.optim.Optimizer):
    """Nesterov momentum, made orthogonal, times lr * sqrt(max(1, rows / columns)). Parameters must be matrices."""

    def __init__(self, params: Iterable[torch.nn.Parameter], lr: float, momentum: float = 0.95) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        """One update of every parameter that has a gradient."""
        for group in self.param_groups:
            shapes: dict[tuple[int, int], list[tuple[torch.nn.Parameter, torch.Tensor]]] = {}
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                mean = state.setdefault("mean", torch.zeros_like(parameter))
                mean.lerp_(parameter.grad, 1 - group["momentum"])
                update = parameter.grad.lerp(mean, group["momentum"])
                wide = update if update.shape[0] <= update.shape[1] else update.T
                shapes.setdefault(tuple(wide.shape), []).append((parameter, wide))
            for pairs in shapes.values():
                for (parameter, _), done in zip(pairs, orthogonal(torch.stack([w for _, w in pairs])), strict=True):
                    rows, columns = parameter.shape
                    update = done if rows <= columns else done.T
                    parameter.add_(update, alpha=-group["lr"] * max(1.0, rows / columns) ** 0.5)
