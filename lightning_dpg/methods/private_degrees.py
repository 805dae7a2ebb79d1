"""Private degrees: how many nodes have which degree, and which nodes these are."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lightning_dpg.graph.counts import fitting_counts
from lightning_dpg.methods.one_shot import OneShotSynthesizer
from lightning_dpg.privacy.mechanisms import discrete_laplace
from lightning_dpg.privacy.sensitivity import degree_l1_sensitivity

# Public: decides between nodes of equal noisy degrees.
_TIE_SEED = 0


def check_shares(**shares: float) -> None:
    """Refuse shares of a budget that are not positive, or leave nothing of it for the rest.

    Raises:
        ValueError: If they are or do.
    """
    if not min(shares.values()) > 0 or not sum(shares.values()) < 1:
        names = ", ".join(f"{name} {share:g}" for name, share in shares.items())
        raise ValueError(f"shares must be positive and add up to less than 1, got {names}")


def release_degrees(
    method: OneShotSynthesizer,
    edges: Tensor,
    epsilon: float,
    *,
    count_share: float,
    sequence_share: float,
) -> Tensor:
    """Release the number of edges, the degrees in descending order, and the degree of each node.

    Noise on the ordered degrees nearly vanishes where many nodes share a degree, because they have
    to descend: isotonic regression averages it. Noise on the degree of one node cannot be averaged;
    of those only the order is used. The node with the k-th largest noisy degree gets the k-th of
    the ordered ones.

    Args:
        method: Pays and draws the noise; its ``num_edges`` is set.
        edges: Training records of shape ``(M, 2)`` (private).
        epsilon: What the three releases together cost.
        count_share: Share of the number of edges, positive.
        sequence_share: Share of the ordered degrees, positive. The rest, for the degree of each
            node, must be positive, too.

    Returns:
        Integers of shape ``(N,)`` from 0 to N - 1 (noisy); their sum is twice ``num_edges``.

    References:
        Hay, Li, Miklau, Jensen, "Accurate estimation of the degree distribution of private
        networks", 2009, for the ordered degrees.
    """
    check_shares(count_share=count_share, sequence_share=sequence_share)
    node_share = 1 - count_share - sequence_share
    num_nodes = method.hparams["num_nodes"]
    method.release_num_edges(edges, count_share * epsilon)
    degrees = torch.bincount(edges.flatten(), minlength=num_nodes)
    ordered, by_node = (
        discrete_laplace(
            value,
            method.ledger,
            method.noise,
            name=name,
            epsilon=share * epsilon,
            sensitivity=degree_l1_sensitivity(),
            proof="degree_l1_sensitivity",
        )
        for name, value, share in (
            ("ordered degrees", degrees.sort(descending=True).values, sequence_share),
            ("degree of each node", degrees, node_share),
        )
    )
    noise_scale = degree_l1_sensitivity() / (sequence_share * epsilon)
    sequence = descending_degrees(ordered.numpy(), noise_scale, int(method.num_edges))
    ties = torch.randperm(num_nodes, generator=torch.Generator().manual_seed(_TIE_SEED))
    nodes = ties[by_node[ties].argsort(descending=True, stable=True)]
    released = torch.empty_like(degrees)
    released[nodes] = torch.from_numpy(sequence)
    return released


def descending_degrees(
    noisy: NDArray[np.int64], noise_scale: float, num_edges: int
) -> NDArray[np.int64]:
    """Degrees near to noisy ones that descend smoothly and have the right sum.

    Isotonic regression gives the nearest descending numbers, which are the means of runs of noisy
    ones. As steps they would skip most of the degrees that are rare, so the values between the
    middles of two runs are interpolated, within two standard errors of the mean of their own run.

    Args:
        noisy: Noisy degrees in descending order of the true ones, shape ``(N,)``.
        noise_scale: Scale of the Laplace noise.
        num_edges: Number of edges that the degrees add up to, at most N (N - 1) / 2.

    Returns:
        Descending integers from 0 to N - 1 of sum ``2 * num_edges``, shape ``(N,)``.
    """
    # scikit-learn takes almost a second to import, which generating graphs need not wait for.
    from sklearn.isotonic import isotonic_regression

    means = isotonic_regression(noisy.astype(np.float64), increasing=False)
    starts = np.flatnonzero(np.diff(means, prepend=np.inf))
    sizes = np.diff(starts, append=len(means))
    places, largest = np.arange(len(means)), len(means) - 1
    line = np.interp(places, starts + (sizes - 1) / 2, means[starts])
    error = np.sqrt(2 / np.repeat(sizes, sizes)) * noise_scale
    smooth = np.clip(line, means - 2 * error, means + 2 * error)

    counts = fitting_counts(smooth, np.full(len(smooth), largest), 2 * num_edges)
    return -np.sort(-counts)
