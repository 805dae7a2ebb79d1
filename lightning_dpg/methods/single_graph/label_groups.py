"""Law of labels, links and drawn edges of block samplers, at the level of edges and of nodes."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor

from lightning_dpg.errors import Refusal
from lightning_dpg.graph.block_rates import expected_links, true_links
from lightning_dpg.graph.communities import untangle
from lightning_dpg.graph.label_blocks import GroupedLabels
from lightning_dpg.graph.pair_space import PairSpace
from lightning_dpg.graph.stubs import count_links, link_pairs, pair_stubs, stub_mixing
from lightning_dpg.methods.single_graph.base import Pays
from lightning_dpg.privacy.guard import check_guard, guard_epsilon, guarded
from lightning_dpg.privacy.ledger import Budget, LedgerEntry, PrivacyLedger, Relation
from lightning_dpg.privacy.mechanisms import discrete_laplace, pure_entry

# Nodes count in groups by this power of their degrees. Tuned on Citeseer and synthetic graphs.
_POWER = 0.7
# e to a larger rate is no number of use; a smaller rate costs less than is booked.
_LARGEST_RATE = 30.0


def label_law(
    edges: NDArray[np.int64], degrees: Tensor, num_labels: int, num_edges: int, rate: float
) -> GroupedLabels:
    """Law of the labels of all nodes, which count in groups by a power of their released degrees."""
    weights = degrees.double().numpy() ** _POWER
    return GroupedLabels(edges, weights, num_labels, num_edges, min(rate, _LARGEST_RATE))


def check_sampler(num_communities: int | None, sweeps: int, guard: float | None) -> None:
    """Refuse settings of a block sampler that are out of range.

    Raises:
        Refusal: If one is not.
    """
    if num_communities is not None and num_communities < 1:
        raise Refusal(f"num_communities must be positive, got {num_communities}")
    if sweeps < 1:
        raise Refusal(f"sweeps must be positive, got {sweeps}")
    if guard is not None:
        check_guard(guard)


def guard_of(given: float | None, num_nodes: int | None) -> float:
    """Epsilon of the guard: the given one, or that of the number of nodes.

    Raises:
        MisconfigurationException: If neither is known.
    """
    if given is not None:
        return given
    if num_nodes is None:
        raise MisconfigurationException(
            "num_nodes is needed: the number of (public) nodes of the graph"
        )
    return guard_epsilon(num_nodes)


def is_paid_by_guard(guard: float, epsilon: float) -> bool:
    """Whether the guard alone costs no more than the budget, so that it is what a run pays for.

    Args:
        guard: Epsilon of the guard, for the record of the method.
        epsilon: Epsilon of the budget.
    """
    return guard <= epsilon < math.inf


@contextmanager
def guarded_edges(
    method: Pays, edges: Tensor, guard: float, entry: LedgerEntry | None
) -> Iterator[Tensor]:
    """Put a guard before all reads within the block.

    A guard is either what a run pays for, or stands behind what it pays for. In the first case it is
    booked before it is drawn, as one release of randomized response, and what is read behind it costs
    nothing more: the ledger gets none of these reads. They were of no use there as entries of their
    own. Their epsilons hold if the chain is stationary only, and neither a run that is stopped between
    them nor a sum over runs may count them one by one without this condition.

    Args:
        method: The method, whose ledger pays.
        edges: Edges of shape ``(M, 2)`` (private).
        guard: Epsilon of the guard for one edge; infinite for none.
        entry: Entry of the guard if it is what the run pays for; None if the reads pay.

    Yields:
        Edges of shape ``(M', 2)`` behind the guard (private).
    """
    if entry is not None:
        method.ledger.spend(entry)
    space, ledger = method.space, method.ledger
    numbers = guarded(space.numbers(edges), space.num_pairs, method.noise, guard)
    if entry is not None:
        ledger.publish(entry.key, numbers)
        method.ledger = PrivacyLedger(ledger.relation)
    try:
        yield space.pairs(numbers)
    finally:
        method.ledger = ledger


def guard_entry(
    epsilon: float, sensitivity: int, proof: str, relation: Relation, record: str
) -> LedgerEntry:
    """Entry of a guard that pays for all reads behind it.

    Args:
        epsilon: Its cost, for the record.
        sensitivity: Number of pairs of nodes that differ between neighbors.
        proof: Function whose docstring proves it.
        relation: Neighboring relation.
        record: Unit of protection in words.
    """
    return pure_entry(
        "edge_reports", "edges", epsilon, sensitivity, proof, relation=relation, record=record
    )


def sampler_parts(epsilon: float, degree_share: float, block_share: float) -> dict[str, Budget]:
    """Budgets of the degrees, the blocks and the labels."""
    rest = 1 - degree_share - block_share
    return Budget(epsilon, 0.0).split(degrees=degree_share, blocks=block_share, labels=rest)


def release_links(
    method: Pays,
    edges: Tensor,
    entry: LedgerEntry,
    communities: Tensor,
    degrees: Tensor,
    num_edges: int,
    false: float,
) -> Tensor:
    """Release the numbers of edges within and between groups of nodes.

    Args:
        method: The method, which pays and draws the noise.
        edges: Edges of shape ``(M, 2)`` behind the guard (private).
        entry: Planned entry of the release.
        communities: Released group of each node, shape ``(N,)``.
        degrees: Released degree of each node, shape ``(N,)``, without the guard's false edges.
        num_edges: Released number of edges, without false ones.
        false: Probability with which the guard flipped each pair of nodes.

    Returns:
        Numbers of edges of shape ``(K, K)``, in the lower triangle.
    """
    classes = communities.numpy()
    cells = np.tril_indices(classes.max() + 1)
    counts = count_links(classes, edges.numpy())
    noisy = discrete_laplace(
        torch.from_numpy(counts[cells]),
        method.ledger,
        method.noise,
        key=entry.key,
        name=entry.name,
        epsilon=entry.epsilon,
        sensitivity=int(entry.sensitivity),
        proof=entry.proof,
        record=entry.record,
    )
    expected = expected_links(classes, degrees.numpy())
    sizes, rate = np.bincount(classes), entry.epsilon / entry.sensitivity
    counts[cells] = true_links(noisy.numpy(), expected, sizes, false, rate, num_edges)
    return torch.from_numpy(counts)


def linked_groups(
    space: PairSpace,
    communities: Tensor,
    degrees: Tensor,
    links: Tensor,
    generator: torch.Generator,
) -> Tensor:
    """Link half-edges of the released degrees at random, by the edge counts of groups."""
    rng = np.random.default_rng(int(torch.randint(2**62, (1,), generator=generator)))
    classes, size = communities.cpu().numpy(), len(degrees)
    stubs = np.repeat(np.arange(size), degrees.cpu().numpy())
    pairs = pair_stubs(stubs, classes[stubs], links.cpu().numpy(), rng)
    pairs = untangle(pairs, classes, rng)
    none = np.empty((0, 2), dtype=np.int64)
    return space.from_ends(torch.from_numpy(link_pairs(pairs, none, size, rng)))


def group_scores(pairs: Tensor, communities: Tensor, degrees: Tensor, links: Tensor) -> Tensor:
    """Expected number of edges of pairs ``(P, 2)``, repeated edges allowed: ``(P,)``.

    Nodes of released degree 0 count as of degree 1: noise often makes a small degree 0, and the
    groups would not order the pairs of such nodes.
    """
    classes, degrees = communities.cpu(), degrees.cpu()
    totals = torch.bincount(classes, degrees, minlength=len(links))
    mixing = stub_mixing(links.cpu().numpy(), totals.long().numpy())
    rates = torch.from_numpy(mixing) / torch.outer(totals, totals).clamp(min=1)
    first, second = classes[pairs].T
    return rates[first, second] * degrees[pairs].clamp(min=1).double().prod(dim=1)
