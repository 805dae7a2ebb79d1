"""Scores of noisy sums over neighbors, their moments and products; the attacker knows all other edges."""

import math
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn.functional import normalize
from torch_geometric.data import Data

from lightning_dpg.apps.audit.scores.observation import Observation
from lightning_dpg.graph.edge_statistics import neighbor_sums
from lightning_dpg.graph.graph import adjacency, undirected_edges
from lightning_dpg.methods.graph_features import GraphFeatureRelease
from lightning_dpg.methods.neighbor_votes import clipped
from lightning_dpg.methods.node_classes import NodeClassifier
from lightning_dpg.papers.jin2022.base import public_features
from lightning_dpg.papers.yang2021.networks import CONTEXT_DIM, reparameterize
from lightning_dpg.privacy.dpsgd import clip_factor
from lightning_dpg.privacy.events import LedgerEntry
from lightning_dpg.privacy.meaning import CLIP

# A sample represents a larger number of edges.
_MOST_EDGES = 512
# Number of draws of latent vectors, which the attacker does not know.
_DRAWS = 4


def sums_score(observation: Observation, summed: Tensor) -> Tensor:
    r"""Score each pair by noisy sums over neighbors, :math:`R = A X + N`.

    An edge {i, j} adds :math:`x_j` to row i and :math:`x_i` to row j. Where no node is in two pairs,
    the scores are the log-likelihood ratios of normal noise.

    Args:
        observation: The release R of shape ``(N, d)``.
        summed: Summed rows, public or released, shape ``(N, d)``; scaled to norm 1 here.

    Returns:
        Scores of shape ``(P,)``.
    """
    rows = normalize(summed.double().cpu())
    pairs, known = observation.pairs.cpu(), undirected_edges(observation.known_graph)
    rest = observation.noisy.double().cpu() - neighbor_sums(known, rows)
    rest -= neighbor_sums(pairs, rows) / 2
    return (rest[pairs] * rows[pairs.flip(1)]).sum((1, 2)) / observation.std**2


def neighbor_sums_score(observation: Observation) -> Tensor:
    """Score each pair by the noisy sums of one hop, of public rows or of those of the hop before."""
    hop, method = int(observation.entry.key.rpartition("_")[2]), observation.method
    if hop > 1:
        summed = observation.earlier[f"neighbor_sums_{hop - 1}"]
    elif isinstance(method, NodeClassifier):
        summed = method.summed
    elif isinstance(method, GraphFeatureRelease):
        summed = public_features(observation.data)
    else:
        summed = method.features
    return sums_score(observation, summed)


def edge_gradient_score(observation: Observation) -> Tensor:
    """Score each pair by the noisy gradient of a step, of an encoder and a decoder of edges.

    Subtract the expected contribution of the known edges, and divide the rest among the canaries.
    The release is a sum of clipped gradients of the networks, in their order, shape ``(K,)``.

    Returns:
        Approximate log-likelihood ratios of shape ``(P,)``.
    """
    noisy, entry, pairs = observation.noisy, observation.entry, observation.pairs
    nodes = torch.arange(observation.known_graph.num_nodes, device=noisy.device)
    networks, rows = observation.method.networks, observation.method.inputs(nodes)
    edges, rate = undirected_edges(observation.known_graph), entry.event.sample_rate
    norm = entry.sensitivity
    part = edges[:: -(-len(edges) // _MOST_EDGES) or 1]
    directions = mean_clipped_gradients(networks, rows[pairs], norm)
    others = mean_clipped_gradients(networks, rows[part], norm)
    weight = len(edges) / max(len(part), 1)
    expected = rate * weight * others.sum(0)
    # The batch of the other edges is unknown as well; their coins have another variance.
    others *= math.sqrt(weight * (1 - rate) / (0.5 - rate / 4))
    return observation.by_gradients(noisy, directions, expected, others)


def mean_clipped_gradients(networks: nn.ModuleDict, rows: Tensor, max_grad_norm: float) -> Tensor:
    """Average :func:`clipped_gradients` over some draws of the latent vectors."""
    width = next(networks["decoder"].parameters()).shape[1] - CONTEXT_DIM
    source = torch.Generator().manual_seed(0)
    normal = torch.randn(_DRAWS, len(rows), 2, width, generator=source).to(rows)
    draws = [clipped_gradients(networks, rows, draw, max_grad_norm) for draw in normal]
    return torch.stack(draws).mean(0)


def clipped_gradients(
    networks: nn.ModuleDict, rows: Tensor, normal: Tensor, max_grad_norm: float
) -> Tensor:
    """Return clipped gradients of the negated log odds of pairs.

    Args:
        networks: ``encoder`` and ``decoder``.
        rows: Rows of the pairs' ends, shape ``(P, 2, d)``.
        normal: Standard normal variates for the latent vectors, shape ``(P, 2, k)``.
        max_grad_norm: Clipping norm C.

    Returns:
        One row for each pair, shape ``(P, K)``.
    """

    def loss(parameters: dict[str, dict[str, Tensor]], ends: Tensor, normal: Tensor) -> Tensor:
        mean, log_variance = functional_call(networks["encoder"], parameters["encoder"], (ends,))
        latent = reparameterize(mean, log_variance, normal)
        latent = torch.cat([latent, ends[..., -CONTEXT_DIM:]], -1)
        first, second = functional_call(networks["decoder"], parameters["decoder"], (latent,))
        return -(first @ second)

    values = {
        name: {key: value.detach() for key, value in network.named_parameters()}
        for name, network in networks.items()
    }
    gradients = vmap(grad(loss), in_dims=(None, 0, 0))(values, rows, normal)
    flat = torch.cat([g.flatten(1) for name in networks for g in gradients[name].values()], dim=1)
    return flat * clip_factor(flat.square().sum(1), max_grad_norm)[:, None]


def released_values(method: Any) -> dict[str, Tensor]:
    """Return the noisy values in the release of a method that counts votes, by their keys.

    Tables of the same beliefs are released as their mean, which stands for each of them. The moment
    of attributes is not among them: a release holds the metric that follows from it.
    """
    values = {
        "num_edges": getattr(method, "num_edges", None),
        "vote_moment": method.moments.moment,
        "clipped_vote_moment": method.moments.moment,
    }
    keys = [entry.key for entry in method.ledger.entries]
    tables = [key for key in keys if key.startswith("neighbor_votes_")]
    for place, key in enumerate(tables):
        values[key] = method.votes[min(place, len(method.votes) - 1)]
    return {key: values[key] for key in keys if key in values}


def vote_moment_score(observation: Observation, rows: Tensor, beliefs: Tensor) -> Tensor:
    r"""Score each canary by a noisy moment :math:`\sum_i z_i s_i^T` of rows and votes of neighbors.

    Subtract the moment of the known edges, and divide the rest among the canaries.

    Args:
        observation: The moment, shape ``(r, k)``; its entry names the length to which votes are
            clipped, if they are.
        rows: Public rows z of the nodes, shape ``(N, r)``.
        beliefs: Belief rows that votes s are sums of, shape ``(N, k)``.

    Returns:
        Approximate log-likelihood ratios of shape ``(P,)``.
    """
    entry, canaries = observation.entry, observation.pairs
    clip = float(entry.public.get(CLIP, torch.inf))
    known = neighbor_sums(undirected_edges(observation.known_graph), beliefs)
    before = rows.T @ clipped(known, clip)
    directions = []
    for edges in canaries.view(len(canaries), -1, 2):
        ends = edges.unique()
        votes = known[ends] + neighbor_sums(torch.searchsorted(ends, edges), beliefs[ends])
        change = clipped(votes, clip) - clipped(known[ends], clip)
        directions.append((rows[ends].T @ change).flatten())
    return observation.by_changes(before, torch.stack(directions))


# Finite value for a score without noise.
_LEAST_PRODUCT_STD = 1e-3


def product_score(observation: Observation) -> Tensor:
    """Return log-likelihood ratios of edges, given a noisy product or noisy eigenvalues.

    They are exact for a product with the adjacency matrix where no node is in two canaries. The
    one-sided product has the shape ``(N, K)``, the two-sided product ``(K, K)``. Single
    eigenvalues, which the published variant releases, get no score.

    Args:
        observation: The release of ``products`` or ``eigenvalues``.
    """
    if observation.noisy.dim() < 2:
        return torch.zeros(len(observation.pairs))
    method, noisy = observation.method, observation.noisy.cpu()
    is_product = observation.entry.key == "products"
    block = (method.shown_block() if is_product else method.vectors.detach()).cpu()
    half = _half_canaries(observation.pairs, observation.known_graph)
    expected = method.matrix.times(half, block)
    surplus = noisy - expected if is_product else block @ (noisy - block.T @ expected)
    change = method.matrix.decay * _change(surplus, block, observation.pairs)
    std = observation.entry.scale
    return change / max(std, _LEAST_PRODUCT_STD) ** 2


def estimate_score(
    method: Any, entry: LedgerEntry | None, pairs: Tensor, known_graph: Data
) -> Tensor:
    """Score each pair by the released low-rank estimate of the adjacency matrix.

    Args:
        method: The method, with rows and signs of the estimate and its eigenvectors.
        entry: Entry of the products from which it follows, if they have noise.
        pairs: Canaries of shape ``(P, 2)``.
        known_graph: Graph of all other edges.
    """
    rows, signs, basis = method.rows.cpu(), method.signs.cpu(), method.vectors.detach().cpu()
    std = entry.scale if entry else 0.0
    expected = torch.from_numpy(_half_canaries(pairs, known_graph) @ basis.numpy())
    surplus = (rows * signs) @ (rows.T @ basis) - expected
    return _change(surplus, basis, pairs) / max(std, _LEAST_PRODUCT_STD) ** 2


def _half_canaries(pairs: Tensor, known_graph: Data) -> csr_array:
    """Return the mean adjacency matrix ``(N, N)`` if each canary is an edge with probability 1/2."""
    matrix = adjacency(known_graph)
    first, second = pairs.numpy().T
    canaries = csr_array((np.full(len(pairs), 0.5), (first, second)), shape=matrix.shape)
    return matrix + canaries + canaries.T


def _change(surplus: Tensor, block: Tensor, pairs: Tensor) -> Tensor:
    """Return the product of a surplus ``(N, K)`` and the change by each pair, shape ``(P,)``.

    The edge {i, j} adds row j of the block to row i of the product, and row i to row j.
    """
    first, second = pairs.T
    return (surplus[first] * block[second] + surplus[second] * block[first]).sum(dim=1)
