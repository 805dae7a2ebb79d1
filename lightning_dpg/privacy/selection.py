"""Private selection: permute and flip with few candidates, a Markov chain with too many to list."""

import math
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lightning_dpg.errors import Refusal
from lightning_dpg.privacy.events import LedgerEntry
from lightning_dpg.privacy.mechanisms import RATE_DENOMINATOR, coins_exp
from lightning_dpg.privacy.noise import NoiseSource

Utilities = Callable[[Tensor, int], tuple[Tensor, Tensor]]

_BLOCK = 8192


class Candidate(Protocol):
    """A candidate of a Markov chain with reversible moves to its neighbors.

    Attributes:
        num_moves: Number of moves out of each candidate, the same for all of them (public). Each
            leads to another candidate, from which one move leads back, and all can be reached.
    """

    num_moves: int

    @property
    def utility(self) -> float:
        """Utility of this candidate (private)."""

    def gain(self, move: int) -> float:
        """Change of the utility by a move, a number below ``num_moves``."""

    def make(self) -> None:
        """Make the move of the last call of :meth:`gain`."""

    def state(self) -> Tensor:
        """Integers that identify the candidate, independent of the moves that led to it."""


def choose_in_turns(
    read: LedgerEntry, stops: Sequence[int], utilities: Utilities
) -> Callable[[Tensor, NoiseSource], Tensor]:
    r"""Select a candidate for each node, in turns, by utilities that may use earlier selections.

    A node walks through its candidates in random order and takes candidate c with probability
    :math:`e^{-r (q_{max} - q_c)}`, where :math:`r = \epsilon / \Delta` and q are the utilities; else
    it goes on to the next. The exponential mechanism is the same with candidates put back, and
    never chooses better.

    Taking the largest of :math:`q_c + E_c` with exponential noise of rate r has the same law. Let one
    utility :math:`q_c` grow by t. Then c is chosen no less often and all others no more often.
    Shifting the noise of c by t in the one case, and that of the chosen other in the other case,
    costs a factor of :math:`e^{-rt}` at most. Hence no probability changes by more than
    :math:`e^{rt}`. Step by step, a change of :math:`\Delta` in the L1 norm costs epsilon,
    without the factor 2 of utilities that change by up to :math:`\Delta` each. Given equal earlier
    choices the same holds for the choices of all turns together.

    The law maps the public choices of the first nodes, shape ``(S,)``, to the choices of all nodes,
    shape ``(stops[-1],)``, the first ones included.

    Args:
        read: Read whose sensitivity :math:`\Delta` is the largest L1 change of the counts of all
            turns together, given equal choices before each turn. An infinite epsilon takes a best
            candidate.
        stops: Numbers of nodes that have chosen after each turn, ascending.
        utilities: From the choices of the first ``a`` nodes and a stop ``b`` to the utilities of
            nodes a to b - 1: integer counts of shape ``(b - a, C)`` (private), cut to :math:`\Delta`
            times the number of nodes, and what is added to them, a function of public and released values.

    Raises:
        Refusal: If epsilon or the sensitivity is not positive.

    References:
        McKenna, Sheldon, "Permute-and-flip: a new mechanism for differentially private selection",
        2020, Algorithm 1.
        Ding et al., "The permute-and-flip mechanism is identical to report-noisy-max with
        exponential noise", 2021.
    """
    epsilon, sensitivity = read.event.pure_epsilon, read.sensitivity
    if not epsilon > 0 or sensitivity <= 0:
        raise Refusal(f"epsilon and sensitivity must be positive: {epsilon}, {sensitivity}")

    def draw(first: Tensor, noise: NoiseSource) -> Tensor:
        chosen = first.clone()
        for stop in stops:
            most, (counts, offsets) = math.ceil(sensitivity * stops[-1]), utilities(chosen, stop)
            multiple = _rate_multiple(epsilon / sensitivity, most + float(offsets.abs().max()))
            cut = counts.clamp(0, most)
            new = _permute_and_flip(cut.numpy(), offsets.numpy(), multiple, noise)
            chosen = torch.cat([chosen, torch.from_numpy(new)])
        return chosen

    return draw


def choose_by_chain(
    read: LedgerEntry, steps: int, watch: Callable[[int, float], None] | None = None
) -> Callable[[Candidate, NoiseSource], Tensor]:
    r"""Select a candidate by the exponential mechanism, through a Markov chain.

    Each step draws a random move and makes it with probability :math:`\min(1, e^{r g})`, where g
    is the gain and :math:`r = \epsilon / 2 \Delta` (Metropolis et al., 1953). The stationary law is
    that of the exponential mechanism, :math:`P(c) \propto e^{r q_c}`, which is epsilon-DP if no
    utility changes by more than :math:`\Delta` between neighbors: the numerator changes by a
    factor of :math:`e^{\epsilon / 2}` at most, and so does the sum of all.

    The ledger books the cost of that law. A chain of finitely many steps has another law at an
    unknown distance: callers state this as a condition. The number of steps is public and
    data-independent. Decisions use floating-point numbers, with coins of 53 bits.

    The law maps the start of the chain, a public choice that the chain moves, to the state of the
    last candidate.

    Args:
        read: Read whose sensitivity :math:`\Delta` is the largest change of a candidate's utility
            between neighbors. An infinite epsilon makes all moves without a loss.
        steps: Number of steps.
        watch: Function that receives steps and utility (private) during the run of the chain.

    Raises:
        Refusal: If epsilon is not positive.

    References:
        McSherry, Talwar, "Mechanism design via differential privacy", 2007.
    """
    epsilon, sensitivity = read.event.pure_epsilon, read.sensitivity
    if not epsilon > 0:
        raise Refusal(f"epsilon must be positive, got {epsilon}")
    rate = epsilon / (2 * sensitivity) if sensitivity else math.inf

    def draw(candidate: Candidate, noise: NoiseSource) -> Tensor:
        gain, make = candidate.gain, candidate.make
        for start in range(0, steps if candidate.num_moves else 0, _BLOCK):
            size = min(_BLOCK, steps - start)
            moves = noise.integers(candidate.num_moves, size)
            # A loss is accepted if an exponential variate of that rate exceeds it.
            uniform = (noise.integers(2**53, size) + 1) * 2.0**-53
            borne = np.log(uniform) / rate
            for move, least in zip(moves.tolist(), borne.tolist(), strict=True):
                if gain(move) >= least:
                    make()
            if watch is not None:
                watch(start + size, candidate.utility)
        return candidate.state()

    return draw


def _rate_multiple(rate: float, largest: float) -> int:
    """The rate times 2**40, less where utilities (public bound) would not fit 64 bits.

    Rounding the rate down only adds noise.
    """
    fitting = 2**61 // (int(largest) + 1)
    return fitting if math.isinf(rate) else min(int(rate * RATE_DENOMINATOR), fitting)


def _permute_and_flip(
    counts: NDArray[np.int64], offsets: NDArray[np.float64], multiple: int, noise: NoiseSource
) -> NDArray[np.int64]:
    """One candidate per row of utilities ``(B, C)`` at the rate multiple / 2**40, shape ``(B,)``.

    It draws fair integers only. Rounding the offsets, which are public, costs no privacy.
    """
    fixed = multiple * counts + np.rint(multiple * offsets).astype(np.int64)
    short = fixed.max(axis=1, keepdims=True) - fixed
    order = noise.integers(2**63, counts.size).reshape(counts.shape).argsort(axis=1)
    chosen = np.empty(len(counts), dtype=np.int64)
    waiting = np.arange(len(counts))
    for candidates in order.T:
        candidate = candidates[waiting]
        takes = _coins(noise, short[waiting, candidate])
        chosen[waiting[takes]] = candidate[takes]
        waiting = waiting[~takes]
    return chosen


def _coins(noise: NoiseSource, numerators: NDArray[np.int64]) -> NDArray[np.bool_]:
    """True with probability exp(-numerator / 2**40) each, for numerators of any size."""
    wholes, rests = np.divmod(numerators, RATE_DENOMINATOR)
    heads = coins_exp(noise, rests)
    while len(going := np.flatnonzero(heads & (wholes > 0))):
        heads[going] = coins_exp(noise, np.full(len(going), RATE_DENOMINATOR))
        wholes[going] -= 1
    return heads
