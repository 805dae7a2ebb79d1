"""Degrees of the same nodes in several kinds of relations, which depend on each other.

Each kind has released its degrees by itself. The order of the nodes in it is that of noisy degrees, and
noise of one kind knows nothing of another: ranks in two kinds are less correlated than the true ones.
All here is post-processing of released degrees.
"""

from collections.abc import Sequence

import numpy as np
from scipy.stats import rankdata

from lightning_dpg.graph.counts import Floats, Integers

_PUBLIC_SEED = 0  # of simulated noise, and of the order of equal nodes
_SIMULATED = 100_000  # nodes, or more
_LEAST = 1e-9  # variance, or correlation, that counts as none
_CHANCE = 4.0  # squared standard deviations
_LEAST_CHANGE = 0.05  # of a correlation: exchanging degrees costs those of hubs some accuracy
_DIGITS = 9  # of scores, beyond which machines may differ


def coupled_places(degrees: Sequence[Integers], scales: Sequence[float]) -> list[Integers]:
    r"""Find whose released degree each node takes, so that ranks are as correlated as true ones.

    Let z be the ranks of a node, standardized, with the correlations S. The rank of a noisy degree has a
    correlation :math:`\rho_k` with the true rank x, which noise on the released degrees shows. Noise of
    two kinds is independent, so that true ranks have the correlations
    :math:`R_{kl} = S_{kl} / (\rho_k \rho_l)` (Spearman, "The proof and measurement of association between
    two things", 1904). A correlation within two standard deviations of 0 is not raised, and all
    degrees stay where none would be raised by much.

    The new ranks are those of :math:`A z`. Of all maps with :math:`A S A^\top = R` this is the one whose
    result is nearest to the true ranks, where :math:`\operatorname{Cov}(z, x) = \operatorname{diag}(\rho) R`
    (an orthogonal Procrustes problem).

    Args:
        degrees: Released degrees of the nodes in each kind, K vectors of shape ``(N,)``.
        scales: Scale of the discrete Laplace noise that has ordered the nodes of each kind.

    Returns:
        For each kind the node whose degree each node takes, a permutation of shape ``(N,)``.
    """
    rng, size = np.random.default_rng(_PUBLIC_SEED), len(degrees[0])
    order, ranks = rng.permutation(size), np.stack([_standard_ranks(each) for each in degrees])
    known = np.array([_reliability(*each, rng) for each in zip(degrees, scales, strict=True)])
    seen = ranks @ ranks.T / size
    certain = 1 - _CHANCE / (size * np.maximum(seen**2, _LEAST))
    true = np.clip(seen * np.maximum(certain / np.outer(known, known), 1), -1, 1)
    for correlations in (seen, true):
        np.fill_diagonal(correlations, 1)
    if np.abs(true - seen).max() < _LEAST_CHANGE:
        return [np.arange(size)] * len(degrees)
    true = _power(true, 1.0)  # one that numbers can have
    true /= np.sqrt(np.outer(true.diagonal(), true.diagonal()))
    left, _, right = np.linalg.svd(_power(seen, -0.5) * known @ true @ _power(true, 0.5))
    scores = _power(true, 0.5) @ (left @ right).T @ _power(seen, -0.5) @ ranks
    found = []
    for each, score in zip(degrees, np.round(scores, _DIGITS), strict=True):
        places = np.empty(size, dtype=np.int64)
        places[np.lexsort((order, each, score))] = np.lexsort((order, each))
        found.append(places)
    return found


def _standard_ranks(values: Integers) -> Floats:
    """Return ranks of mean 0 and variance 1, or zeros of equal values; equal values share a rank."""
    ranks = rankdata(values)
    centered: Floats = (ranks - ranks.mean()) / (ranks.std() or 1.0)
    return centered


def _reliability(degrees: Integers, scale: float, rng: np.random.Generator) -> float:
    """Return the rank correlation of degrees with those that nodes get by the order of noisy ones."""
    ascending = np.sort(degrees)
    ranks, rounds = _standard_ranks(ascending), -(-_SIMULATED // len(degrees))
    if not scale or not ranks.any():
        return 1.0
    total = 0.0
    for _ in range(rounds):
        noisy = ascending + rng.laplace(scale=scale, size=len(ranks))
        total += float(ranks[np.argsort(noisy)] @ ranks) / len(ranks)
    return max(total / rounds, _LEAST)


def _power(matrix: Floats, exponent: float) -> Floats:
    """Return a power of a symmetric matrix, whose eigenvalues are raised above 0."""
    values, vectors = np.linalg.eigh(matrix)
    power: Floats = vectors * np.maximum(values, _LEAST) ** exponent @ vectors.T
    return power
