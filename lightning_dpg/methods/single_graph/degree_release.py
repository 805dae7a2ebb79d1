"""Private degrees: the degree sequence, and the degree of each node."""

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression
from torch import Tensor

from lightning_dpg.graph.counts import fitting_counts
from lightning_dpg.graph.degrees import graphical
from lightning_dpg.graph.edge_statistics import GraphStatisticsSource
from lightning_dpg.methods.planning import Reads, check_shares
from lightning_dpg.methods.single_graph.base import num_edges_entry
from lightning_dpg.methods.synthesizer import Synthesizer
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry, Pure
from lightning_dpg.privacy.sensitivity.degrees import degree_l1_sensitivity

# Public seed that orders nodes of equal noisy degrees.
_TIE_SEED = 0
# Public seed of the noise that estimates the effect of noise, and of the values in gaps.
_PUBLIC_SEED = 0
# Tuned on synthetic graphs: planted, power-law, caveman, geometric, LFR and affiliation graphs.
_DITHER = 0.7
_SIMULATIONS = 20
_ROUNDS = 2
_TINY = float(np.finfo(np.float64).tiny)


def degree_entries(
    budget: Budget, record: str = "", /, *, count_share: float = 0.2, sequence_share: float = 0.25
) -> list[LedgerEntry]:
    """Plan the reads of :func:`release_degrees`, which spend a whole epsilon.

    Args:
        budget: Budget of these reads.
        record: Unit of protection in words; by default an undirected edge.
        count_share: Share of the number of edges, positive.
        sequence_share: Share of the ordered degrees, positive. The rest, for the degree of each
            node, must be positive, too.
    """
    check_shares(count_share=count_share, sequence_share=sequence_share)
    node_share = 1 - count_share - sequence_share
    parts = budget.split(count=count_share, order=sequence_share, nodes=node_share)
    degrees = {
        "order": ("ordered_degrees", "ordered degrees"),
        "nodes": ("degrees", "degree of each node"),
    }
    return [
        num_edges_entry(parts["count"].epsilon, record),
        *(
            LedgerEntry.proved(
                *words, Pure(parts[part].epsilon), degree_l1_sensitivity, record=record
            )
            for part, words in degrees.items()
        ),
    ]


def release_degrees(
    method: Synthesizer, source: GraphStatisticsSource, reads: Reads
) -> tuple[Tensor, Tensor]:
    """Release the number of edges, the degrees in descending order, and the degree of each node.

    Isotonic regression averages out most noise on the ordered degrees where many nodes share a
    degree. Noise on the degree of one node cannot be averaged; this release decides which node has
    the k-th largest degree, and it estimates the degrees of rare hubs, whose noisy degrees hardly
    change places, see :func:`descending_degrees`.

    Half the sum of noisy degrees is another estimate of the number of edges, and on a small graph the better
    one. The number is the mean of all three releases by the inverse of their variances. The degrees of an
    undirected graph are then moved to the nearest that a simple graph can have, see :func:`graphical`.

    A directed graph has out-degrees and then in-degrees, a bipartite graph the degrees of the left nodes
    and then of the right ones. Both parts are released together
    and then treated one by one.

    Args:
        method: The method, which pays.
        source: Counts of the training records (private).
        reads: Planned reads, among them :func:`degree_entries`.

    Returns:
        The number of edges, and integers of shape ``(num_ends,)`` from 0 to the largest possible
        degrees (noisy). Of an undirected graph their sum is twice the number of edges; otherwise
        each part has that sum.

    References:
        Hay, Li, Miklau, Jensen, "Accurate estimation of the degree distribution of private
        networks", 2009, for the ordered degrees.
    """
    space, counted = method.space, method.pay(reads["num_edges"], torch.tensor(source.num_edges()))
    degrees = source.degrees()
    slices = [slice(part.start, part.stop) for part in space.parts]
    in_order = torch.cat([degrees[part].sort(descending=True).values for part in slices])
    of_order, of_nodes = reads["ordered_degrees"], reads["degrees"]
    ordered, by_node = method.pay(of_order, in_order), method.pay(of_nodes, degrees)
    # Variances and values of twice the number of edges; factors that all have are left out.
    noise = [4 * reads["num_edges"].scale ** 2]
    noise += [len(degrees) * read.scale**2 for read in (of_order, of_nodes)]
    sums = [2.0 * float(counted), float(ordered.double().sum()), float(by_node.double().sum())]
    weights = [min(noise) / each for each in noise] if all(noise) else [1.0, 0.0, 0.0]
    twice = float(np.average(sums, weights=weights))
    num_edges = torch.tensor(min(max(round(twice / 2), 0), space.num_pairs))
    released = []
    for part, entries in zip(space.parts, slices, strict=True):
        noisy, total = by_node[entries], part.ends_per_edge * int(num_edges)
        ties = torch.randperm(len(noisy), generator=torch.Generator().manual_seed(_TIE_SEED))
        nodes = ties[noisy[ties].argsort(descending=True, stable=True)]
        sequence = descending_degrees(
            ordered[entries].numpy(),
            of_order.scale,
            noisy[nodes].numpy(),
            of_nodes.scale,
            total,
            part.largest,
        )
        if len(space.parts) == 1:
            sequence = graphical(sequence)
        released.append(degrees.new_empty(len(noisy)))
        released[-1][nodes] = torch.from_numpy(sequence)
    return num_edges, torch.cat(released)


def descending_degrees(
    ordered: NDArray[np.int64],
    ordered_scale: float,
    by_node: NDArray[np.int64],
    node_scale: float,
    total: int,
    largest: int,
) -> NDArray[np.int64]:
    """Estimate descending degrees with a given sum from noisy degrees.

    The k-th largest degree has two estimates, which are averaged by the inverse of their variances:
    the result of :func:`smooth_descent`, and the k-th largest noisy degree of a node. Noise spreads
    the latter; public noise on the current average estimates its bias and variance.

    Both estimates leave gaps, degrees without a node. So all degrees are moved at random, by a part
    of their uncertainty if their places in the order are certain. The most is the variation of a
    random degree around its expectation.

    Args:
        ordered: Noisy degrees in descending order of the true ones, shape ``(N,)``.
        ordered_scale: Scale of the Laplace noise in them.
        by_node: Noisy degrees of the nodes in descending order, shape ``(N,)``.
        node_scale: Scale of the Laplace noise in them.
        total: Sum of the degrees, at most N times ``largest``.
        largest: Largest possible degree.

    Returns:
        Descending integers from 0 to ``largest`` of sum ``total``, shape ``(N,)``.
    """
    smooth, error = smooth_descent(ordered, ordered_scale)
    values = smooth
    for _ in range(_ROUNDS):
        bias, variance = sorting_effect(np.maximum(values, 0), node_scale)
        weight = error**2 / np.maximum(error**2 + variance, _TINY)
        values = smooth + weight * (by_node - bias - smooth)
    uncertain = error * node_scale / np.sqrt(np.maximum(error**2 / 2 + node_scale**2, _TINY))
    noise = np.random.default_rng(_PUBLIC_SEED).standard_normal(len(values))
    values = values + _DITHER * np.minimum(np.sqrt(np.maximum(values, 0)), uncertain) * noise
    return -np.sort(-fitting_counts(values, np.full(len(values), largest), total))


def smooth_descent(
    noisy: NDArray[np.int64], noise_scale: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Smooth noisy descending numbers, and estimate standard errors.

    Isotonic regression gives the nearest descending numbers, which are means of runs of noisy
    numbers. These steps would skip most rare degrees, so the values between the middles of two runs
    are interpolated, within two standard errors of the mean of their own run.

    Args:
        noisy: Noisy numbers in descending order of the true ones, shape ``(N,)``.
        noise_scale: Scale of the Laplace noise.

    Returns:
        Numbers and standard errors, each of shape ``(N,)``.
    """
    means = isotonic_regression(noisy.astype(np.float64), increasing=False).x
    starts = np.flatnonzero(np.diff(means, prepend=np.inf))
    sizes = np.diff(starts, append=len(means))
    line = np.interp(np.arange(len(means)), starts + (sizes - 1) / 2, means[starts])
    error = np.sqrt(2 / np.repeat(sizes, sizes)) * noise_scale
    return np.clip(line, means - 2 * error, means + 2 * error), error


def sorting_effect(
    values: NDArray[np.float64], noise_scale: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Estimate the bias and the variance of sorted noisy values by rank.

    Args:
        values: Values of shape ``(N,)`` (public or released).
        noise_scale: Scale of the discrete Laplace noise.

    Returns:
        Mean differences and variances by descending rank, each of shape ``(N,)``.
    """
    ascending, rng = np.sort(values), np.random.default_rng(_PUBLIC_SEED)
    total, squares = np.zeros_like(values), np.zeros_like(values)
    for _ in range(_SIMULATIONS):
        # Exponential numbers rounded down are geometric, and their difference is discrete Laplace.
        one, other = np.floor(noise_scale * rng.standard_exponential((2, len(values))))
        difference = np.sort(ascending + (one - other)) - ascending
        total += difference
        squares += difference**2
    bias = total[::-1] / _SIMULATIONS
    return bias, np.maximum(squares[::-1] / _SIMULATIONS - bias**2, 0)
