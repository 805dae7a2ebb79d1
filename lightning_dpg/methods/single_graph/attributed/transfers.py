"""Transfers on the edges of a structure: their numbers, amounts and times."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from lightning_dpg.graph.counts import Integers
from lightning_dpg.graph.drawn_tables import DrawnTransfers
from lightning_dpg.graph.pair_space import PairSpace
from lightning_dpg.graph.transfer_counts import TransferCountsSource
from lightning_dpg.graph.transfer_draws import draw_numbers
from lightning_dpg.methods.planning import Reads
from lightning_dpg.methods.single_graph.attributed.amounts import Amounts
from lightning_dpg.methods.single_graph.attributed.times import Times
from lightning_dpg.methods.single_graph.attributed.unit import TransferFacts
from lightning_dpg.methods.single_graph.base import OneShotSynthesizer
from lightning_dpg.nn.resized_buffers import resize_own_buffers
from lightning_dpg.privacy.events import LedgerEntry
from lightning_dpg.privacy.sensitivity.transfers import (
    pair_number_sensitivity,
    transfer_number_sensitivity,
)

_LEAST_VARIANCE = 1e-9  # of estimates without noise
_NUMBER_SHARE = 0.15
"""Share of the numbers of transfers in the epsilon of the times, or of the amounts without times."""


class TransferPart(nn.Module):
    """Released transfers.

    Attributes:
        amounts: Their amounts, if they have any.
        times: Their times, if they have any.
        numbers: Noisy number of pairs by the number of their transfers, shape ``(B,)``; empty if a pair
            counts as one transfer.
        number_scale: Scale of the noise in it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.amounts, self.times = Amounts(), Times()
        self.numbers: Tensor
        self.number_scale: Tensor
        self.register_buffer("numbers", torch.empty(0, dtype=torch.double))
        self.register_buffer("number_scale", torch.tensor(0.0, dtype=torch.double))
        resize_own_buffers(self)

    @staticmethod
    def entries(facts: TransferFacts, epsilons: Mapping[str, float]) -> list[LedgerEntry]:
        """Plan all reads.

        Args:
            facts: What is public, and the unit.
            epsilons: Epsilon of ``amounts`` and ``times``, as far as the data have them.
        """
        rest, numbers = dict(epsilons), list[LedgerEntry]()
        if facts.has_numbers:
            part = "times" if "times" in rest else "amounts"
            proof = transfer_number_sensitivity if facts.most is None else pair_number_sensitivity
            name, epsilon = "pairs by the number of their transfers", _NUMBER_SHARE * rest[part]
            numbers = [facts.entry("pair_numbers", name, epsilon, proof)]
            rest[part] *= 1 - _NUMBER_SHARE
        return [
            *numbers,
            *(Amounts.entries(facts, rest["amounts"]) if "amounts" in rest else ()),
            *(Times.entries(facts, rest["times"]) if "times" in rest else ()),
        ]

    def release(
        self,
        method: OneShotSynthesizer,
        source: TransferCountsSource,
        facts: TransferFacts,
        degrees: Integers,
        classes: Tensor | None,
        reads: Reads,
    ) -> None:
        """Release all that is planned.

        Args:
            method: The method, which pays.
            source: Counts of the transfers (private).
            facts: What is public, and the unit.
            degrees: Released degrees, shape ``(num_ends,)``.
            classes: Public classes of the nodes, shape ``(N,)``; None without classes.
            reads: Planned reads.
        """
        if facts.has_numbers:
            read = reads["pair_numbers"]
            self.numbers = method.pay(read, torch.from_numpy(source.numbers())).double()
            self.number_scale = torch.tensor(read.scale, dtype=torch.double)
        if facts.bounds.weight_max is not None:
            largest = facts.bounds.weight_max
            self.amounts.release(method, source, largest, degrees, classes, reads)
        if facts.window is not None:
            self.times.release(method, source, reads)

    def draw(
        self,
        edges: Tensor,
        space: PairSpace,
        facts: TransferFacts,
        num_edges: int,
        rng: np.random.Generator,
    ) -> DrawnTransfers:
        """Draw transfers on the edges of a synthetic graph.

        Args:
            edges: Its edges, shape ``(M, 2)``.
            space: Pairs of nodes (public).
            facts: What is public, and the unit.
            num_edges: Released number of edges.
            rng: Source of random numbers.
        """
        weight_max, window = facts.bounds.weight_max, facts.window
        numbers = np.ones(len(edges), dtype=np.int64)
        if facts.has_numbers:
            totals = [] if weight_max is None else self.amounts.totals()
            totals += [] if window is None else self.times.totals()
            noisy = self.numbers.cpu().numpy()
            mean, scale = _mean_of(totals) / max(num_edges, 1), float(self.number_scale)
            numbers = draw_numbers(noisy, scale, facts.most, mean, len(edges), rng)
        stamps = None if window is None else self.times.draw(numbers, window, rng)
        places = np.repeat(np.arange(len(edges)), numbers) if stamps is None else stamps.pairs
        pairs = edges.cpu().numpy()[places]
        if facts.kind == "undirected":
            share = np.full(len(edges), 0.5)
            if weight_max is not None:
                share = self.amounts.directions(space.ends(edges.cpu()).numpy())
            if stamps is None:  # each transfer has a direction by itself
                is_back = rng.random(len(pairs)) >= share[places]
            else:
                replies = np.cumsum(stamps.is_reply)  # the first transfer of a pair is no reply
                before = replies[np.cumsum(numbers) - numbers]
                is_back = rng.random(len(edges)) >= share
                is_back = is_back[places] ^ ((replies - before[places]) % 2 == 1)
            pairs = np.where(is_back[:, None], pairs[:, ::-1], pairs)
        found = torch.from_numpy(pairs)
        amounts = None
        if weight_max is not None:
            is_first = np.zeros(len(pairs), dtype=np.bool_)
            is_first[np.cumsum(numbers) - numbers] = True
            drawn = self.amounts.draw(pairs, is_first, space, weight_max, rng)
            amounts = torch.from_numpy(drawn)
        return DrawnTransfers(
            found,
            amounts,
            None if stamps is None else torch.from_numpy(stamps.times),
            None if facts.bounds.window is None else facts.bounds.window[0],
        )


def _mean_of(estimates: Sequence[tuple[float, float]]) -> float:
    """Return the mean of estimates, each weighted by the inverse of its variance."""
    weights = [1 / max(variance, _LEAST_VARIANCE) for _, variance in estimates]
    values = [value for value, _ in estimates]
    weighted = math.fsum(w * v for w, v in zip(weights, values, strict=True))
    return weighted / math.fsum(weights)
