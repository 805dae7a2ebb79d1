"""Guard: randomized response that stands before every other read of the edges."""

import math

import torch
from torch import Tensor

from lightning_dpg.errors import Refusal
from lightning_dpg.privacy.noise import NoiseSource

_EPSILON = 8.0
_NODES = 10_000

LARGEST_GUARD = 30.0
"""Largest finite epsilon of a guard: coins of 53 bits do not resolve a much smaller flip rate."""


def guard_epsilon(num_nodes: int) -> float:
    r"""Epsilon at which a guard adds few false edges: :math:`8 + 2 \ln (N / 10{,}000)`, 8 at least.

    It adds :math:`N^2 / 2 \cdot e^{-\epsilon}` false edges, which this keeps at most at 17,000.

    Args:
        num_nodes: Number of nodes N (public).
    """
    return _EPSILON + 2 * math.log(max(num_nodes / _NODES, 1.0))


def check_guard(epsilon: float) -> None:
    """Refuse an epsilon whose flips are too rare to be drawn: such a guard would prove nothing.

    Raises:
        Refusal: If epsilon is not positive, or finite and above :data:`LARGEST_GUARD`.
    """
    if not 0 < epsilon <= LARGEST_GUARD and epsilon != math.inf:
        raise Refusal(
            f"the epsilon of a guard must be from above 0 to {LARGEST_GUARD:g}, or .inf for no "
            f"guard, got {epsilon}"
        )


def flip_rate(epsilon: float) -> float:
    """Probability with which a guard flips a bit; 0 for an infinite epsilon."""
    return 1 / (1 + math.exp(epsilon)) if epsilon < 700 else 0.0


def guarded(present: Tensor, num_bits: int, noise: NoiseSource, epsilon: float) -> Tensor:
    r"""Flip each of ``num_bits`` bits with probability :math:`1 / (1 + e^\epsilon)`.

    The result is private still, and later releases pay for their reads of it. Two facts hold together:

    * Whatever is computed from the result alone is epsilon-DP by post-processing, since one edge is one
      bit and its two answers have odds of :math:`e^\epsilon` (Warner, 1965). This is one number for
      all later reads together: a part of them, too, may cost all of it.
    * What is :math:`\epsilon'`-DP as a function of the result is :math:`\epsilon'`-DP as a function of
      the edges: with equal flips, the results of two graphs that differ in one edge differ in that
      edge alone. Averages of laws within a factor :math:`e^{\epsilon'}` are within that factor.

    The flips do not depend on the edges.

    Args:
        present: Numbers of the bits that are 1, shape ``(M,)``, ascending and different (private).
        num_bits: Number of bits (public).
        noise: Secret source of the flips.
        epsilon: Cost of the result, positive and at most :data:`LARGEST_GUARD`; an infinite one flips
            nothing.

    Returns:
        Numbers of the bits that are 1 after the flips, ascending (private).
    """
    check_guard(epsilon)
    flips = noise.bernoulli(num_bits, flip_rate(epsilon))
    numbers, times = torch.unique(torch.cat([present, flips]), return_counts=True)
    return numbers[times == 1]
