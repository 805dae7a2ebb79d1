"""Transfers on the edges of a structure: their numbers, amounts and times."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lightning_dpg.graph.counts import Integers
from lightning_dpg.graph.degrees import degrees_by_classes
from lightning_dpg.graph.drawn_tables import DrawnTransfers
from lightning_dpg.graph.pair_space import PairSpace
from lightning_dpg.graph.transfer_counts import (
    EndClasses,
    TransferStatistics,
    Window,
    amount_borders,
    first_days,
    largest_amount,
)
from lightning_dpg.graph.transfer_draws import (
    Curves,
    Stamps,
    draw_amounts,
    draw_numbers,
    draw_stamps,
    fitted_to_strengths,
    fitted_to_sums,
    shrunk_shares,
    smoothed_days,
    smoothed_hours,
)
from lightning_dpg.methods.planning import Reads
from lightning_dpg.methods.single_graph.base import OneShotSynthesizer
from lightning_dpg.methods.single_graph.bter import degree_classes, merged_classes
from lightning_dpg.methods.single_graph.protected_unit import TransferFacts
from lightning_dpg.nn.resized_buffers import resize_own_buffers
from lightning_dpg.privacy.events import LedgerEntry
from lightning_dpg.privacy.sensitivity.transfers import (
    amount_count_sensitivity,
    amount_sum_sensitivity,
    event_count_sensitivity,
    pair_number_sensitivity,
    relation_contact_sensitivity,
    relation_gap_sensitivity,
    strength_sensitivity,
    transfer_contact_sensitivity,
    transfer_gap_sensitivity,
    transfer_number_sensitivity,
)

_TIME_SHARES = {"days": 0.25, "hours": 0.15, "gaps": 0.35, "new_pairs": 0.25}


class Times(nn.Module):
    """Released curves of times.

    Attributes:
        days: Noisy transfers by day, week or four weeks, see :func:`first_days`, shape ``(B,)``.
        hours: Noisy transfers by hour of the week, shape ``(168,)``.
        gaps: Noisy gaps by reply and bin, shape ``(R, B)``; R is 1 where pairs have a direction.
        new_pairs: Noisy pairs by the day, week or four weeks of their first transfer, shape ``(C,)``.
        scales: Scales of the noise in these, shape ``(4,)``.
    """

    def __init__(self) -> None:
        super().__init__()
        self.days: Tensor
        self.hours: Tensor
        self.gaps: Tensor
        self.new_pairs: Tensor
        for name in _TIME_SHARES:
            self.register_buffer(name, torch.empty(0, dtype=torch.double))
        self.scales: Tensor = nn.Buffer(torch.zeros(len(_TIME_SHARES), dtype=torch.double))
        resize_own_buffers(self)

    @staticmethod
    def entries(facts: TransferFacts, epsilon: float) -> list[LedgerEntry]:
        """Plan all reads, which spend epsilon."""
        is_all = facts.most is None
        gaps = (transfer_gap_sensitivity,) if is_all else (relation_gap_sensitivity, facts.most)
        contact = transfer_contact_sensitivity if is_all else relation_contact_sensitivity
        each = (event_count_sensitivity, facts.changes)
        reads = {
            "days": ("transfers by day, week or four weeks", *each),
            "hours": ("transfers by hour of the week", *each),
            "gaps": ("gaps between transfers of a pair", *gaps),
            "new_pairs": ("pairs by the day, week or four weeks of their first transfer", contact),
        }
        return [
            facts.entry(key, name, _TIME_SHARES[key] * epsilon, *proof)
            for key, (name, *proof) in reads.items()
        ]

    def release(self, method: OneShotSynthesizer, source: TransferStatistics, reads: Reads) -> None:
        """Release all curves; the released hours say how wide the bins of days are.

        Args:
            method: The method, which pays.
            source: Counts of the transfers (private).
            reads: Planned reads.
        """
        self._release(method, reads["hours"], source.hours())
        totals = {"days": float(self.hours.sum()), "new_pairs": float(method.num_edges)}
        for key, counts in (("days", source.days()), ("new_pairs", source.new_pairs())):
            first = first_days(len(counts), reads[key].scale, totals[key])
            self._release(method, reads[key], np.add.reduceat(counts, first))
        gaps = source.gaps()
        self._release(method, reads["gaps"], gaps if method.kind == "undirected" else gaps[:1])
        scales = [reads[key].scale for key in _TIME_SHARES]
        self.scales = torch.tensor(scales, dtype=torch.double)

    def _release(self, method: OneShotSynthesizer, read: LedgerEntry, counts: Integers) -> None:
        setattr(self, read.key, method.pay(read, torch.from_numpy(counts)).double())

    def totals(self) -> list[tuple[float, float]]:
        """Return two released numbers of counted transfers, with their variances."""
        scales = self.scales.tolist()
        return [
            (float(counts.sum()), 2 * scale**2 * counts.numel())
            for counts, scale in ((self.days, scales[0]), (self.hours, scales[1]))
        ]

    def draw(self, numbers: Integers, window: Window, rng: np.random.Generator) -> Stamps:
        """Draw the times of pairs with that many transfers each."""
        days, hours, gaps, new_pairs = (getattr(self, name).cpu().numpy() for name in _TIME_SHARES)
        scales = dict(zip(_TIME_SHARES, self.scales.tolist(), strict=True))
        smooth = smoothed_hours(hours, scales["hours"])
        by_day = smoothed_days(days, scales["days"], window, smooth)
        new_pairs = smoothed_days(new_pairs, scales["new_pairs"], window, smooth, by_day)
        curves = Curves(by_day, smooth, gaps, new_pairs)
        return draw_stamps(numbers, curves, window, rng)


_AMOUNT_SHARES = {"amounts": 0.2, "amount_sums": 0.4, "strengths": 0.4}
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
    for part in space.parts:  # the part of the in-degrees has the numbers of nodes once more
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
        self.counts: Tensor = nn.Buffer(torch.empty(0, dtype=torch.double))
        self.sums: Tensor = nn.Buffer(torch.empty(0, dtype=torch.double))
        self.count_classes: Tensor = nn.Buffer(torch.empty(0, dtype=torch.long))
        self.sum_classes: Tensor = nn.Buffer(torch.empty(0, dtype=torch.long))
        self.strengths: Tensor = nn.Buffer(torch.empty(0, dtype=torch.double))
        self.scales: Tensor = nn.Buffer(torch.zeros(3, dtype=torch.double))
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
                _AMOUNT_SHARES["amounts"] * epsilon,
                amount_count_sensitivity,
                facts.changes,
            ),
            facts.entry(
                "amount_sums",
                "sums of amounts by classes of payer and payee, in 1/100",
                _AMOUNT_SHARES["amount_sums"] * epsilon,
                amount_sum_sensitivity,
                facts.changes,
                largest,
                public={"largest amount": facts.bounds.weight_max},
            ),
            facts.entry(
                "strengths",
                "nodes by degree and sum of their amounts",
                _AMOUNT_SHARES["strengths"] * epsilon,
                strength_sensitivity,
                1 if facts.kind == "bipartite" else 2,
            ),
        ]

    def release(
        self,
        method: OneShotSynthesizer,
        source: TransferStatistics,
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
        scales = [reads[key].scale for key in _AMOUNT_SHARES]
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
        self.numbers: Tensor = nn.Buffer(torch.empty(0, dtype=torch.double))
        self.number_scale: Tensor = nn.Buffer(torch.tensor(0.0, dtype=torch.double))
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
        source: TransferStatistics,
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
