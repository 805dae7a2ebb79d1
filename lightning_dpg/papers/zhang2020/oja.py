"""Oja's rule for the leading eigenvectors of a matrix, as an optimizer."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from lightning_dpg.errors import Refusal


class Oja(torch.optim.Optimizer):
    r"""Optimizer that turns an orthonormal basis toward the leading eigenvectors of a matrix.

    With the product of the matrix and the basis V, possibly noisy, in ``.grad``, a step is

    .. math:: M \leftarrow \mu M + \mathrm{grad}, \qquad V \leftarrow \mathrm{QR}(M)

    Without momentum this is orthogonal iteration. With momentum M is a mean over steps: noise
    averages out, and eigenvectors of negative eigenvalues cancel, because their sign alternates.
    The QR decomposition has a positive diagonal: equal columns keep their signs.

    * Oja, "A simplified neuron model as a principal component analyzer", 1982.
    * Hardt, Price, "The noisy power method: a meta algorithm with applications", 2014.

    Args:
        params: Bases of shape ``(N, K)`` with K columns, at most N.
        momentum: Weight :math:`\mu` of the past, from 0 to below 1.
    """

    def __init__(self, params: Iterable[nn.Parameter], momentum: float = 0.0) -> None:
        """Check the arguments."""
        if not 0 <= momentum < 1:
            raise Refusal(f"momentum must be in [0, 1), got {momentum}")
        super().__init__(params, {"momentum": momentum})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Take one step with each basis whose product is in ``.grad``."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for basis in group["params"]:
                if basis.grad is not None:
                    basis.copy_(orthonormal(self._mean(basis, basis.grad, group["momentum"])))
        return loss

    def _mean(self, basis: Tensor, product: Tensor, momentum: float) -> Tensor:
        """Return the product with momentum over earlier steps, shape ``(N, K)``."""
        if not momentum:
            return product
        state = self.state[basis]
        if "products" not in state:
            state["products"] = torch.zeros_like(basis)
        products: Tensor = state["products"].mul_(momentum).add_(product)
        return products


def orthonormal(matrix: Tensor) -> Tensor:
    """Return an orthonormal basis of the columns ``(N, K)``, by QR with a positive diagonal."""
    basis, triangle = torch.linalg.qr(matrix)
    signs = torch.where(triangle.diagonal() < 0, -1.0, 1.0).to(basis)
    return basis * signs
