"""Amounts of transfers: counts by bins and sums, by classes of payer and payee."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lightning_dpg.graph.counts import Integers
from lightning_dpg.graph.degrees import degrees_by_classes
from lightning_dpg.graph.pair_space import PairSpace
from lightning_dpg.graph.transfer_counts import (
    EndClasses,
    TransferCountsSource,
    amount_borders,
    largest_amount,
)
from lightning_dpg.graph.transfer_draws import (
    draw_amounts,
    fitted_to_strengths,
    fitted_to_sums,
    shrunk_shares,
)
from lightning_dpg.methods.planning import Reads
from lightning_dpg.methods.single_graph.attributed.unit import TransferFacts
from lightning_dpg.methods.single_graph.base import OneShotSynthesizer
from lightning_dpg.methods.single_graph.bter import degree_classes, merged_classes
from lightning_dpg.nn.resized_buffers import resize_own_buffers
from lightning_dpg.privacy.events import LedgerEntry
from lightning_dpg.privacy.sensitivity.transfers import (
    amount_count_sensitivity,
    amount_sum_sensitivity,
    strength_sensitivity,
)

_SHARES = {"amounts": 0.2, "amount_sums": 0.4, "strengths": 0.4}
# Transfers of a class of degrees per unit of noise and bin, below which classes are merged.
_TRANSFERS_PER_NOISE = 2
# Strengths and sums are fitted in turns.
_ROUNDS = 2


def degree_ends(degrees: Integers, space: PairSpace, least: float) -> EndClasses:
    """Return the classes of released degrees, merged until each has enough edges.

    Args:
        degrees: Released degrees, shape ``(num_ends,)``.
        space: Pairs of nodes (public).
        least: Least sum of the degrees of a class.
    """
    of_end, sizes = np.zeros(len(degrees), dtype=np.int64), list[int]()
    for part in space.parts:
        own = slice(part.start, part.stop)
        classes = degree_classes(degrees[own])
        sizes_of = np.bincount(classes, degrees[own], minlength=1).astype(np.float64)
        groups = merged_classes(sizes_of, least)
        of_end[own] = groups[classes]
        sizes.append(int(groups.max()) + 1)
    return EndClasses(of_end, (sizes[0], sizes[-1]))


def public_ends(classes: Tensor, space: PairSpace) -> EndClasses:
    """Return public classes of nodes, of shape ``(N,)`` and -1 for none, as classes of ends."""
    own = classes.cpu().numpy().astype(np.int64)
    of_end, sizes = np.zeros(space.num_ends, dtype=np.int64), list[int]()
    for part in space.parts:  # that of the in-degrees has the numbers of nodes once more
        nodes = np.arange(part.start, part.stop) % len(own)
        known, of_end[part.start : part.stop] = np.unique(own[nodes], return_inverse=True)
        sizes.append(len(known))
    return EndClasses(of_end, (sizes[0], sizes[-1]))


class Amounts(nn.Module):
    """Released amounts.

    Attributes:
        counts: Noisy counts by the classes of payer and payee and by bins, ``(A, B, bins)``.
        sums: Noisy sums in units by other classes of payer and payee, ``(C, D)``.
        count_classes: Class of each end in the counts, shape ``(num_ends,)``.
        sum_classes: Class of each end in the sums, shape ``(num_ends,)``.
        strengths: Noisy numbers of nodes by class of degree and bin of strength, ``(K, bins)``.
        scales: Scales of the noise in the counts, the sums and the strengths, shape ``(3,)``.
    """

    def __init__(self) -> None:
        super().__init__()
        self.counts: Tensor
        self.sums: Tensor
        self.count_classes: Tensor
        self.sum_classes: Tensor
        self.strengths: Tensor
        self.scales: Tensor
        self.register_buffer("counts", torch.empty(0, dtype=torch.double))
        self.register_buffer("sums", torch.empty(0, dtype=torch.double))
        self.register_buffer("count_classes", torch.empty(0, dtype=torch.long))
        self.register_buffer("sum_classes", torch.empty(0, dtype=torch.long))
        self.register_buffer("strengths", torch.empty(0, dtype=torch.double))
        self.register_buffer("scales", torch.zeros(3, dtype=torch.double))
        resize_own_buffers(self)

    @staticmethod
    def entries(facts: TransferFacts, epsilon: float) -> list[LedgerEntry]:
        """Plan all three reads, which spend epsilon."""
        assert facts.bounds.weight_max is not None
        largest = largest_amount(facts.bounds.weight_max)
        return [
            facts.entry(
                "amounts",
                "transfers by amount and classes of payer and payee",
                _SHARES["amounts"] * epsilon,
                amount_count_sensitivity,
                facts.changes,
            ),
            facts.entry(
                "amount_sums",
                "sums of amounts by classes of payer and payee, in 1/100",
                _SHARES["amount_sums"] * epsilon,
                amount_sum_sensitivity,
                facts.changes,
                largest,
                public={"largest amount": facts.bounds.weight_max},
            ),
            facts.entry(
                "strengths",
                "nodes by degree and sum of their amounts",
                _SHARES["strengths"] * epsilon,
                strength_sensitivity,
                1 if facts.kind == "bipartite" else 2,
            ),
        ]

    def release(
        self,
        method: OneShotSynthesizer,
        source: TransferCountsSource,
        weight_max: float,
        degrees: Integers,
        classes: Tensor | None,
        reads: Reads,
    ) -> None:
        """Release all three.

        Args:
            method: The method, which pays.
            source: Counts of the transfers (private).
            weight_max: Largest amount (public).
            degrees: Released degrees, shape ``(num_ends,)``.
            classes: Public classes of the nodes, shape ``(N,)``, by which sums are; None sums by those
                of the counts.
            reads: Planned reads.
        """
        space, of_counts, of_sums = method.space, reads["amounts"], reads["amount_sums"]
        bins = len(amount_borders(weight_max))
        by_degree = degree_ends(degrees, space, _TRANSFERS_PER_NOISE * of_counts.scale * bins)
        by_class = by_degree if classes is None else public_ends(classes, space)
        self.count_classes = torch.from_numpy(by_degree.of_end)
        self.sum_classes = torch.from_numpy(by_class.of_end)
        exact = torch.from_numpy(source.amounts(by_degree))
        self.counts = method.pay(of_counts, exact).double().view(*by_degree.sizes, bins)
        sums = torch.from_numpy(source.sums(by_class))
        self.sums = method.pay(of_sums, sums).double().view(by_class.sizes)
        by_node = torch.from_numpy(source.strengths(strength_nodes(space)))
        self.strengths = method.pay(reads["strengths"], by_node).double()
        scales = [reads[key].scale for key in _SHARES]
        self.scales = torch.tensor(scales, dtype=torch.double)

    def totals(self) -> list[tuple[float, float]]:
        """Return the released number of counted transfers, with its variance."""
        scale = float(self.scales[0])
        return [(float(self.counts.sum()), 2 * scale**2 * self.counts.numel())]

    def degrees(self, released: Integers, space: PairSpace, rng: np.random.Generator) -> Integers:
        """Change released degrees ``(num_ends,)`` to the released numbers of nodes by degree.

        Those of a directed graph stay: the numbers are by all edges of a node.
        """
        if space.kind == "directed":
            return released
        found, nodes, by_node = released.copy(), strength_nodes(space), self.strengths.cpu().numpy()
        variance = 2 * float(self.scales[2]) ** 2 * by_node.shape[1]
        found[nodes] = degrees_by_classes(released[nodes], by_node.sum(axis=1), variance, rng)
        return found

    def directions(self, ends: Integers) -> NDArray[np.float64]:
        """Return the share of transfers in the direction of pairs of ends, ``(M, 2)`` to ``(M,)``."""
        classes = self.count_classes.cpu().numpy()[ends]
        by_cell = self.counts.cpu().numpy().sum(axis=2).clip(min=1)
        one = by_cell[classes[:, 0], classes[:, 1]]
        return one / (one + by_cell[classes[:, 1], classes[:, 0]])

    def draw(
        self,
        pairs: Integers,
        is_first: NDArray[np.bool_],
        space: PairSpace,
        weight_max: float,
        rng: np.random.Generator,
    ) -> Integers:
        """Draw amounts in units.

        Args:
            pairs: Payer and payee of each transfer, shape ``(T, 2)``.
            is_first: Whether a transfer is the first one of its pair, shape ``(T,)``.
            space: Pairs of nodes (public).
            weight_max: Largest amount (public).
            rng: Source of random numbers.
        """
        ends = space.ends(torch.from_numpy(pairs)).numpy()
        counts, sums = self.counts.cpu().numpy(), self.sums.cpu().numpy()
        by_degree = EndClasses(self.count_classes.cpu().numpy(), counts.shape[:2])
        by_class = EndClasses(self.sum_classes.cpu().numpy(), sums.shape)
        of_counts, of_sums, of_strengths = self.scales.tolist()
        flat = shrunk_shares(counts.reshape(by_degree.num_cells, -1), of_counts)
        amounts, cells = (
            draw_amounts(flat, by_degree.cells(ends), weight_max, rng),
            by_class.cells(ends),
        )
        for _ in range(_ROUNDS):
            amounts = fitted_to_strengths(
                pairs,
                is_first,
                amounts,
                strength_nodes(space),
                self.strengths.cpu().numpy(),
                of_strengths,
                weight_max,
                space.num_nodes,
                rng,
            )
            amounts = fitted_to_sums(amounts, cells, sums.ravel(), of_sums, weight_max, rng)
        return amounts


def strength_nodes(space: PairSpace) -> slice:
    """Return the nodes whose strengths are counted: all, or the larger side of a bipartite graph."""
    if space.kind != "bipartite":
        return slice(0, space.num_nodes)
    part = max(space.parts, key=lambda part: part.stop - part.start)
    return slice(part.start, part.stop)
