"""Scores of the canaries for an attacker who sees each noisy value, or the final release only."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.apps.audit.scores.columns import COUNTS, mixing_score, transfer_score
from lightning_dpg.apps.audit.scores.counts import (
    counts_score,
    degrees_score,
    links_score,
    ordered_degrees_score,
)
from lightning_dpg.apps.audit.scores.gradients import (
    attribute_gradient_score,
    attribute_moment_score,
    attribute_weights_score,
    client_updates_score,
    critic_gradient_score,
    moment_rows,
)
from lightning_dpg.apps.audit.scores.graph_sets import (
    num_edges_per_graph_score,
    pooled_statistics_score,
    subgraph_counts_score,
)
from lightning_dpg.apps.audit.scores.observation import Observation, weight
from lightning_dpg.apps.audit.scores.reports import (
    branches_score,
    client_reports_score,
    communities_score,
    dendrogram_score,
    edge_reports_score,
    scalar_reports_score,
)
from lightning_dpg.apps.audit.scores.rows import (
    edge_gradient_score,
    estimate_score,
    neighbor_sums_score,
    product_score,
    released_values,
    sums_score,
    vote_moment_score,
)
from lightning_dpg.graph.edge_statistics import (
    EdgeStatistics,
    as_vector,
    degree_cells,
    joint_degrees,
    moment_of_form,
)
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.graph.pair_numbers import pair_ranks
from lightning_dpg.graph.pair_space import UndirectedPairs
from lightning_dpg.methods.graph_set.base import GraphSetSynthesizer
from lightning_dpg.methods.node_classes import NodeClassifier
from lightning_dpg.methods.planning import by_key
from lightning_dpg.methods.single_graph.attribute_moments import RIDGE
from lightning_dpg.methods.single_graph.bter import degree_classes, wedge_counter
from lightning_dpg.methods.single_graph.node_degrees import counts_at_least
from lightning_dpg.methods.synthesizer import Synthesizer
from lightning_dpg.papers.jin2022.ldp_gw import BOUNDS
from lightning_dpg.papers.jin2022.ldp_gw_as_published import LDPGromovWassersteinAsPublished
from lightning_dpg.papers.sajadmanesh2023.aggregation_perturbation import AggregationPerturbation
from lightning_dpg.privacy.events import LedgerEntry
from lightning_dpg.privacy.paid_weights import load_released
from lightning_dpg.release.draws import plain_settings


def white_box_score(observation: Observation) -> Tensor:
    """Score each canary by a noisy value; all scores are 0 if no score matches its key.

    The audit adds the scores of all releases as log-likelihood ratios.

    Returns:
        Scores of shape ``(P,)``, higher for an edge.
    """
    score = SCORES.get(re.sub(r"_\d+$", "", observation.entry.key))
    return torch.zeros(len(observation.pairs)) if score is None else score(observation)


def black_box_score(method: Any, data: Any, pairs: Tensor, known_graph: Data) -> Tensor:
    """Score each canary by a release: its values are scored as when they were released.

    The keys of the ledger select the scores. Without a matching key, the score is the likelihood of
    each pair under the release, which also serves new methods.

    Args:
        method: The method after its fit, with its released tensors.
        data: The data module; only its public facts are read.
        pairs: Canaries of shape ``(P, 2)``, or of D edges each, shape ``(P, D, 2)``; a fair coin has
            decided on each.
        known_graph: Graph of all other edges, which the attacker knows.

    Returns:
        Scores of shape ``(P,)``, higher for an edge.
    """
    entries = {entry.key: entry for entry in method.ledger.entries}

    def seen(entry: LedgerEntry, noisy: Tensor) -> Observation:
        return Observation(method, entry, noisy, {}, data, pairs, known_graph)

    if isinstance(method, GraphSetSynthesizer) and len(method.num_edges):
        return num_edges_per_graph_score(seen(method.ledger.entries[0], method.num_edges))
    if "neighbor_sums_1" in entries:
        return _released_sums(seen(entries["neighbor_sums_1"], torch.empty(0)))
    if any(key.rstrip("0123456789_") in _SUBGRAPHS for key in entries):
        columns = [len(one.columns) for one in method.counts]
        blocks = torch.split(method.features, columns, dim=1) if columns else ()
        counted = {one.key: block for one, block in zip(method.counts, blocks, strict=True)}
        return subgraph_counts_score(seen(method.ledger.entries[-1], torch.empty(0)), counted)
    if isinstance(method, NodeClassifier):
        return _replayed(method, data, pairs, known_graph)
    draws_graphs = isinstance(method, Synthesizer)
    if draws_graphs and any(name.startswith("generator.") for name in method.released_state()):
        return _generator(method, pairs, known_graph)
    parts = [
        white_box_score(seen(entries[key], value(method)))
        for key, value in _RELEASED.items()
        if key in entries
    ]
    if hasattr(method, "reported"):
        numbers = pair_ranks(method.reported, known_graph.num_nodes)
        parts.append(edge_reports_score(seen(entries["edge_reports"], numbers)))
    if hasattr(method, "signs"):
        parts.append(estimate_score(method, entries.get("products"), pairs, known_graph))
    if "attribute_gradient" in entries:
        parts.append(attribute_weights_score(seen(entries["attribute_gradient"], torch.empty(0))))
    if parts:
        return sum(parts[1:], parts[0])
    if set(entries) == {"num_edges"}:
        return white_box_score(seen(entries["num_edges"], method.num_edges))
    if not draws_graphs:  # the method publishes no likelihood of pairs
        return torch.zeros(len(pairs))
    likelihood: Tensor = method.score(pairs)
    return likelihood


# Keys of the counts in the features of a kernel.
_SUBGRAPHS = frozenset({"edge_counts", "walks", "graphlets", "counts"})


def _released_moment(method: Any) -> Tensor:
    form, rows = method.scores.form.cpu(), method.scores.rows.cpu()
    return as_vector(moment_of_form(form, rows, RIDGE))


def _released_choice(method: Any) -> Tensor:
    chosen: Tensor = method.communities[method.degrees.argsort(descending=True, stable=True)]
    return chosen


def _released_signs(method: Any) -> Tensor:
    reports: Tensor = method.features.cpu()
    are_signs = isinstance(method, LDPGromovWassersteinAsPublished)
    return reports if are_signs else reports - sum(BOUNDS) / 2


# Noisy values that a release holds, by their keys in the ledger.
_RELEASED: dict[str, Callable[[Any], Tensor]] = {
    "branch_edges": lambda method: method.counts,
    "dendrogram": lambda method: method.dendrogram,
    "degrees": lambda method: method.degrees.cpu(),
    "attribute_moment": _released_moment,
    "communities": _released_choice,
    "embedding_reports": _released_signs,
    "scalar_reports": lambda method: method.law(method.ledger.budget).reports_of(method.features),
}


def _generator(method: Synthesizer, pairs: Tensor, known_graph: Data) -> Tensor:
    """Return the log-likelihood of pairs under a generator of walks, minus that by degrees."""
    degrees = torch.bincount(known_graph.edge_index[0], minlength=known_graph.num_nodes)
    scores = method.score(pairs).double().cpu().clamp(min=1e-300)
    likelihood: Tensor = scores.log()
    return likelihood - (degrees + 1.0)[pairs].log().sum(1)


def _released_sums(observation: Observation) -> Tensor:
    """Score the noisy sums of all hops; the first one has sums of public rows."""
    method, hops = observation.method, observation.method.hparams["hops"]
    if isinstance(method, AggregationPerturbation):
        x = method.encoder.encode(method.features(observation.data.records.attributes)).cpu()
        sums = list(method.sums.cpu().chunk(hops, 1))
    else:
        x, *sums = method.rows.cpu().chunk(1 + hops, 1)
    total = torch.zeros(len(observation.pairs), dtype=torch.double)
    for summed, noisy in zip([x, *sums], sums, strict=False):
        total += sums_score(observation._replace(noisy=noisy), summed)
    return total


def _replayed(method: NodeClassifier, data: Any, pairs: Tensor, known_graph: Data) -> Tensor:
    """Score the noisy values that the release of a classifier holds.

    The attacker runs the method on the known edges with the released values in place of noisy ones.
    Everything between them is a function of releases, and so it is as in the fit. Of the moment of
    attributes only a function is released, the metric, which the attacker takes as it is.
    """
    released = released_values(method)
    replay: Any = type(method)(**plain_settings(method))
    load_released(replay, method.released_state())
    total = torch.zeros(len(pairs), dtype=torch.double)

    def pay(read: LedgerEntry, value: Tensor) -> Tensor:
        if read.key not in released:
            return value
        noisy = released[read.key]
        observation = Observation(replay, read, noisy, {}, data, pairs, known_graph)
        total.add_(white_box_score(observation))
        return noisy

    replay.pay, replay.moments.follow_links = pay, lambda *_: None
    source = EdgeStatistics(undirected_edges(known_graph), method.space)
    replay.release(source, data.records.attributes.cpu(), by_key(method.ledger.entries))
    return total


def _degree_mixing(observation: Observation) -> Tensor:
    classes = torch.from_numpy(degree_classes(observation.method.degrees.cpu().numpy()))
    lower = observation.noisy[*np.tril_indices(len(observation.noisy))]
    return links_score(observation, lower, classes)


def _wedges(observation: Observation) -> Tensor:
    degrees = observation.method.degrees.cpu().numpy()
    counts, _ = wedge_counter(degrees, observation.entry.scale)
    space = UndirectedPairs(len(degrees))
    return counts_score(
        observation, lambda edges: counts(EdgeStatistics(torch.from_numpy(edges), space))
    )


def _degree_counts(one: Observation) -> Tensor:
    size, highest = one.known_graph.num_nodes, len(one.noisy)
    return counts_score(one, lambda edges: counts_at_least(edges, size, highest))


def _joint_degrees(observation: Observation) -> Tensor:
    size, largest_two = observation.known_graph.num_nodes, observation.method.largest_two
    scales = degree_cells(largest_two, size - 1)[:, 1] * int(observation.entry.sensitivity)
    rates = weight(observation.entry.event.pure_epsilon) / scales

    def counts(edges: np.ndarray) -> np.ndarray:
        degrees = np.bincount(edges.ravel(), minlength=size)
        return joint_degrees(edges, degrees, largest_two)

    return counts_score(observation, counts, rates)


SCORES: dict[str, Callable[[Observation], Tensor]] = {
    "num_edges": lambda one: counts_score(one, lambda edges: np.array([len(edges)])),
    "ordered_degrees": ordered_degrees_score,
    "degrees": degrees_score,
    "degree_mixing": _degree_mixing,
    "wedges": _wedges,
    "degree_counts": _degree_counts,
    "joint_degrees": _joint_degrees,
    "column_mixing": mixing_score,
    **dict.fromkeys(COUNTS, transfer_score),
    "communities": communities_score,
    "community_links": lambda one: links_score(one, one.noisy, one.method.communities),
    "community_wedges": lambda one: counts_score(one, one.method.wedges_by_labels),
    "class_links": lambda one: counts_score(one, one.method.links_by_classes),
    "dendrogram": dendrogram_score,
    "branch_edges": branches_score,
    "edge_reports": edge_reports_score,
    "products": product_score,
    "eigenvalues": product_score,
    "critic_gradient": critic_gradient_score,
    "edge_gradient": edge_gradient_score,
    "attribute_moment": attribute_moment_score,
    "attribute_gradient": attribute_gradient_score,
    "neighbor_sums": neighbor_sums_score,
    "clipped_attribute_moment": lambda one: vote_moment_score(
        one, moment_rows(one), moment_rows(one)
    ),
    **dict.fromkeys(
        ("vote_moment", "clipped_vote_moment"),
        lambda one: vote_moment_score(one, moment_rows(one), one.method.summed),
    ),
    "neighbor_votes": lambda one: sums_score(one, one.method.summed),
    "num_edges_per_graph": num_edges_per_graph_score,
    **dict.fromkeys(
        ("pooled_degrees", "pooled_triangles", "pooled_components"), pooled_statistics_score
    ),
    **dict.fromkeys(
        ("edge_counts", "walks", "graphlets"),
        lambda one: subgraph_counts_score(one, {one.entry.key: one.noisy}),
    ),
    "embedding_reports": client_reports_score,
    "scalar_reports": scalar_reports_score,
    "client_updates": client_updates_score,
}
"""Scores by the key of the ledger entry, without the number at its end."""
