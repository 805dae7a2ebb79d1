r"""Classes of nodes from noisy sums of their neighbors' beliefs, by expectation and maximization.

The votes of node i, which has class y and degree d, are a normal vector with the mean
:math:`d\,m_y` and the variance :math:`\sigma^2 + d (1 + (d - 1) \rho) v_y` of each number. The noise
:math:`\sigma` is known, :math:`m_y` is the mean belief row of neighbors of class y, and
:math:`v_y = (1 - |m_y|^2) / k` the variance of one of its k numbers. The beliefs of two neighbors of
one node have the correlation :math:`\rho`: in a community all of them can be wrong together, and many
votes then say little more than a few. The degree is latent, with a lognormal law of known mean: no
degree is released. Neighbors of class y need not be of class y.

A mixture finds groups in any votes, for instance the nodes with a neighbor of one class. Where links
say nothing of classes, these groups are no classes, and they have nothing to do with the prior. Votes
therefore have to predict the prior, which was made without them, see :func:`agreement`.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

# Standard deviation of the logarithm of a degree.
_SPREAD = 1.2
# Quotient of successive degrees of the grid.
_RATIO = 1.5
_LEAST_DEGREE = 0.1
# Correlation of the beliefs of two neighbors of a node. Under noise, values from .1 to .6 were alike
# on Cora-ML and on synthetic graphs; without it, posteriors of dense graphs were far too sure.
_CORRELATION = 0.3
_LEAST_VARIANCE = 0.02
_LEAST_NOISE = 0.1  # an isolated node without noise would have no density
_STEPS = 8
# Probabilities of nodes by class and degree that are in memory at a time; they fit into a cache.
_CHUNK = 2**18
# Log likelihood of a degree, relative to the most likely one. The exponential of far smaller numbers
# takes ten times as long.
_NEGLIGIBLE = -100.0
_PUBLIC_SEED = 0
_PUSH = 1.0
# Share of what votes could predict of the prior from which on they agree with it, also where that is
# less than chance could explain: such a prior is hardly worth more than chance. Fixed on Cora-ML and
# on synthetic graphs with weak attributes; links by chance had shares up to .03, others .15 and more.
_AGREEING = 1 / 8
# Least gain with full trust, as a share of that with half of it. Links by chance had .7 where degrees
# depend on classes, all others 1 and more.
_FULL_TRUST = 0.95
_NATS_OF_ROUNDING = 1e-6  # of a flat prior, of which nothing can be predicted


class Votes(NamedTuple):
    """Noisy sums of belief rows over neighbors, released once or several times.

    Attributes:
        tables: Sums of shape ``(N, k)`` each, whose belief rows may differ.
        noise: Standard deviation of the noise of a number in each of them.
    """

    tables: Sequence[Tensor]
    noise: float


class Fused(NamedTuple):
    """Result of a fusion.

    Attributes:
        posteriors: Probabilities of the classes of all nodes, shape ``(N, C)``.
        log_likelihood: Of the votes and of what is known of classes, up to a constant.
    """

    posteriors: Tensor
    log_likelihood: float


def fuse(votes: Votes, log_prior: Tensor, mean_degree: float, restarts: int = 1) -> Fused:
    """Fuse votes with a prior; of several starts that of the largest likelihood counts.

    Votes that do not agree with the prior are left out, see :func:`agree`.

    Args:
        votes: The votes.
        log_prior: Log probabilities of the classes before the votes, up to a constant of each node,
            shape ``(N, C)``. Those of a known class are minus infinity for all other classes; a
            noisy report of a class has its log likelihoods added.
        mean_degree: Mean degree of all nodes.
        restarts: Number of starts. The first one is the prior, the others are the prior with
            public random log odds for each class.
    """
    source = torch.Generator().manual_seed(_PUBLIC_SEED)
    best: Fused | None = None
    for start in range(restarts):
        logs = log_prior
        if start:
            # One draw for each node, so that the classes of a start differ by chance.
            push = torch.randn(log_prior.shape, generator=source, dtype=torch.double)
            logs = log_prior + _PUSH * start * push
        found = _climb(votes, log_prior, torch.softmax(logs, 1), mean_degree)
        if best is None or found.log_likelihood > best.log_likelihood:
            best = found
    assert best is not None
    if not agree(best.posteriors, log_prior, chosen=_num_means(votes, log_prior)):
        return best._replace(posteriors=torch.softmax(log_prior, 1))
    return best


def agree(posteriors: Tensor, log_prior: Tensor, chosen: int) -> bool:
    """Return whether votes agree with the prior of nodes.

    They do if they predict more of it, in nats, than the number of means that the mixture has chosen,
    or the share ``_AGREEING`` of what can be predicted; and if they do not predict it much better when
    they are trusted by half, as votes do that depend on classes a little and by chance a lot.

    Args:
        posteriors: See :func:`agreement`.
        log_prior: See :func:`agreement`.
        chosen: Number of means.
    """
    full, most = agreement(posteriors, log_prior)
    half, _ = agreement(posteriors, log_prior, trust=0.5)
    is_more = full >= min(chosen, _AGREEING * most) - _NATS_OF_ROUNDING
    return is_more and full >= _FULL_TRUST * half - _NATS_OF_ROUNDING


def _num_means(votes: Votes, log_prior: Tensor) -> int:
    """Number of means by which the classes of a mixture differ."""
    return sum(table.shape[1] for table in votes.tables) * (log_prior.shape[1] - 1)


def agreement(posteriors: Tensor, log_prior: Tensor, trust: float = 1.0) -> tuple[float, float]:
    r"""How much of the prior of nodes votes predict, and the most that classes could, in nats.

    The prior p of a node is a noisy report of its class: by its own account, a node of class y has
    the mean prior :math:`T_y = \sum_i p_i(y) p_i / \sum_i p_i(y)`. With q the classes by the votes
    alone, to the power of the trust, the votes predict the prior :math:`q T`, and gain
    :math:`\sum_i \sum_y p_i(y) \log((q_i T)_y / \bar p_y)` over its mean :math:`\bar p`. Votes that
    are independent of the prior gain nothing.

    Args:
        posteriors: Probabilities of the classes by prior and votes, shape ``(N, C)``.
        log_prior: Log probabilities before the votes, as in :func:`fuse`. Known classes are left out,
            since the mixture was fitted to them.
        trust: Exponent of the likelihood of the votes.
    """
    free = torch.isfinite(log_prior).all(1)
    logs = log_prior[free]
    prior = torch.softmax(logs, 1)
    mean = prior.mean(0)
    reported = prior.T @ prior / prior.sum(0)[:, None].clamp(min=1e-300)
    likelihood = posteriors[free].clamp(min=1e-300).log() - logs
    by_votes = torch.softmax(trust * likelihood + mean.log(), 1)
    ratios = (reported / mean).clamp(min=1e-300)
    gain = (prior * (by_votes @ ratios).clamp(min=1e-300).log()).sum()
    most = (prior.sum(0)[:, None] * reported * ratios.log()).sum()
    return float(gain), float(most)


def degree_law(mean_degree: float, num_nodes: int) -> tuple[Tensor, Tensor]:
    """Grid of degrees and their probabilities, lognormal with the given mean, shape ``(G,)`` each."""
    degrees = [0.0, 1.0]
    while degrees[-1] * _RATIO < num_nodes:
        degrees.append(degrees[-1] * _RATIO)
    grid = torch.tensor(degrees, dtype=torch.double)
    center = math.log(max(mean_degree, _LEAST_DEGREE)) - _SPREAD**2 / 2
    bounds = (grid[1:] + grid[:-1]) / 2
    below = torch.special.ndtr((bounds.log() - center) / _SPREAD)
    below = torch.cat([torch.zeros(1), below, torch.ones(1)]).double()
    return grid, torch.diff(below)


def _climb(votes: Votes, log_prior: Tensor, beliefs: Tensor, mean_degree: float) -> Fused:
    """Alternate between the probabilities of nodes and the means of classes."""
    degrees, law = degree_law(mean_degree, len(log_prior))
    weights = max(mean_degree, _LEAST_DEGREE) * beliefs.sum(0)[:, None].clamp(min=1e-9)
    means = [_inside(beliefs.T @ table / weights) for table in votes.tables]
    for _ in range(_STEPS):
        beliefs, means, log_likelihood = _step(votes, log_prior, means, degrees, law)
    return Fused(beliefs, log_likelihood)


def _step(
    votes: Votes, log_prior: Tensor, means: list[Tensor], degrees: Tensor, law: Tensor
) -> tuple[Tensor, list[Tensor], float]:
    """Probabilities of nodes given the means, the means given them, and the log likelihood."""
    size = votes.tables[0].shape[1]
    spread = degrees * (1 + _CORRELATION * (degrees - 1).clamp(min=0))
    variances = [
        max(votes.noise, _LEAST_NOISE) ** 2
        + spread[:, None] * ((1 - mean.square().sum(1)) / size).clamp(min=_LEAST_VARIANCE)
        for mean in means
    ]  # (G, C) each
    beliefs, total = torch.empty_like(log_prior), 0.0
    forms = _forms(means, variances, degrees, law)
    sums = torch.zeros_like(forms)
    for nodes in torch.split(torch.arange(len(log_prior)), max(1, _CHUNK // len(forms))):
        columns = _columns(votes.tables, nodes)
        logs = (forms @ columns).view(len(degrees), -1, len(nodes))  # (G, C, P)
        largest = logs.amax(0)
        shares = logs.sub_(largest).clamp_(min=_NEGLIGIBLE).exp_()
        sizes = shares.sum(0)
        by_class = (largest + sizes.log()).T
        joint = log_prior[nodes] + by_class
        evidence = torch.logsumexp(joint, 1)
        total += float(evidence.sum())
        found = (joint - evidence[:, None]).exp()
        beliefs[nodes] = found
        shares *= found.T / sizes
        sums.addmm_(shares.flatten(0, 1), columns.T)
    return beliefs, _new_means(sums, variances, degrees), total


def _columns(tables: Sequence[Tensor], nodes: Tensor) -> Tensor:
    """A 1, and of each table the squared length of each node's votes, and the votes: ``(F, P)``."""
    parts = [torch.ones(1, len(nodes), dtype=torch.double)]
    for table in tables:
        votes = table[nodes].T
        parts += [votes.square().sum(0, keepdim=True), votes]
    return torch.cat(parts)


def _forms(
    means: Sequence[Tensor], variances: Sequence[Tensor], degrees: Tensor, law: Tensor
) -> Tensor:
    """Log likelihoods of each degree and class, as linear forms of :func:`_columns`: ``(G C, F)``."""
    size = means[0].shape[1]
    constant = law.clamp(min=1e-300).log()[:, None].expand_as(variances[0])
    parts = []
    for mean, variance in zip(means, variances, strict=True):
        lengths = degrees[:, None] * mean.norm(dim=1)
        constant = constant - lengths.square() / (2 * variance) - size / 2 * variance.log()
        pull = degrees[:, None, None] * mean / variance[..., None]
        parts += [-1 / (2 * variance[..., None]), pull]
    return torch.cat([constant[..., None], *parts], 2).flatten(0, 1)


def _new_means(sums: Tensor, variances: Sequence[Tensor], degrees: Tensor) -> list[Tensor]:
    """Means of the classes from weighted sums of :func:`_columns`, shape ``(G C, F)``."""
    sums = sums.view(*variances[0].shape, -1)
    count, tables = sums[..., 0], torch.chunk(sums[..., 1:], len(variances), 2)
    new = []
    for table, variance in zip(tables, variances, strict=True):
        pull = degrees[:, None] / variance
        total = (pull[..., None] * table[..., 1:]).sum(0)
        weight = (pull * degrees[:, None] * count).sum(0)
        new.append(_inside(total / weight[:, None].clamp(min=1e-12)))
    return new


def _inside(means: Tensor) -> Tensor:
    """Means of rows that are at most 1 long."""
    return means / means.norm(dim=1, keepdim=True).clamp(min=1.0)
