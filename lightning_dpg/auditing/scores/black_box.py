"""Score of the canaries for a black-box attacker, which sees the final release only."""

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.auditing.scores.attributes import (
    attribute_moment_score,
    attribute_weights_score,
)
from lightning_dpg.auditing.scores.choices import (
    branches_score,
    communities_score,
    dendrogram_score,
)
from lightning_dpg.auditing.scores.counts import degrees_score, num_edges_score, weight
from lightning_dpg.auditing.scores.graph_sets import (
    num_edges_per_graph_score,
    subgraph_counts_score,
)
from lightning_dpg.auditing.scores.observation import Observation
from lightning_dpg.auditing.scores.products import estimate_score
from lightning_dpg.auditing.scores.reports import (
    client_reports_score,
    edge_reports_score,
    scalar_reports_score,
)
from lightning_dpg.auditing.scores.rows import sums_score
from lightning_dpg.auditing.scores.votes import released_values
from lightning_dpg.auditing.scores.white_box import kept_share, white_box_score
from lightning_dpg.graph.edge_statistics import EdgeStatistics, as_vector, moment_of_form
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.graph.pair_numbers import pair_ranks
from lightning_dpg.methods.graph_set.base import GraphSetSynthesizer
from lightning_dpg.methods.node_classes import NodeClassifier
from lightning_dpg.methods.planning import by_key
from lightning_dpg.methods.single_graph.attribute_moments import RIDGE
from lightning_dpg.methods.synthesizer import Synthesizer
from lightning_dpg.papers.dubhashi2015.base import GraphCounts
from lightning_dpg.papers.jin2022.gromov_wasserstein_features import (
    CentralGromovWasserstein,
)
from lightning_dpg.papers.jin2022.ldp_gw import BOUNDS
from lightning_dpg.papers.jin2022.ldp_gw_as_published import LDPGromovWassersteinAsPublished
from lightning_dpg.papers.sajadmanesh2023.aggregation_perturbation import AggregationPerturbation
from lightning_dpg.privacy.events import LedgerEntry
from lightning_dpg.release.writer import plain_settings


def black_box_score(method: Any, data: Any, pairs: Tensor, known_graph: Data) -> Tensor:
    """Score each canary by a release.

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
    if isinstance(method, GraphSetSynthesizer) and len(method.num_edges):
        return num_edges_per_graph_score(method, method.num_edges, pairs, known_graph)
    if "embedding_reports" in entries:
        reports = method.features.cpu()
        are_signs = isinstance(method, LDPGromovWassersteinAsPublished)
        signs = reports if are_signs else reports - sum(BOUNDS) / 2
        return client_reports_score(method, data, signs, pairs, known_graph)
    if "scalar_reports" in entries:
        law = method.law(method.ledger.budget)
        return scalar_reports_score(
            method, data, law.reports_of(method.features), pairs, known_graph
        )
    if "neighbor_sums_1" in entries:
        return _neighbor_sums(method, data, pairs, known_graph)
    if any(key.rstrip("0123456789_") in _SUBGRAPHS for key in entries):
        return _subgraph_counts(method, pairs, known_graph)
    if isinstance(method, NodeClassifier):
        return _replayed(method, data, pairs, known_graph)
    draws_graphs = isinstance(method, Synthesizer)
    if not draws_graphs:  # the method publishes no likelihood of pairs
        return torch.zeros(len(pairs))
    if any(name.startswith("generator.") for name in method.released_state()):
        return _generator(method, pairs, known_graph)
    parts = _released(method, pairs, known_graph)
    if parts:
        return sum(parts[1:], parts[0])
    if set(entries) == {"num_edges"}:
        return num_edges_score(
            method.num_edges, pairs, known_graph, entries["num_edges"].event.pure_epsilon
        )
    likelihood: Tensor = method.score(pairs)
    return likelihood


# Keys of the counts in the features of a kernel.
_SUBGRAPHS = frozenset({"edge_counts", "walks", "graphlets", "counts"})


def _released(method: Any, pairs: Tensor, known_graph: Data) -> list[Tensor]:
    """Score the released tensors of a method of one graph, found by the keys of its entries."""
    entries, parts = {entry.key: entry for entry in method.ledger.entries}, []
    if "branch_edges" in entries:
        tree, entry = method.dendrogram, entries["branch_edges"]
        parts.append(branches_score(tree, entry, method.counts, pairs, known_graph))
    if "dendrogram" in entries:
        parts.append(dendrogram_score(entries["dendrogram"], method.dendrogram, pairs, known_graph))
    if hasattr(method, "reported"):
        numbers = pair_ranks(method.reported, known_graph.num_nodes)
        epsilon, share = entries["edge_reports"].event.pure_epsilon, kept_share(method)
        parts.append(edge_reports_score(epsilon, share, numbers, pairs, known_graph.num_nodes))
    if hasattr(method, "signs"):
        entry = entries.get("products")
        std = entry.scale if entry else 0.0
        rows, signs, basis = method.rows.cpu(), method.signs.cpu(), method.vectors.detach().cpu()
        parts.append(estimate_score(rows, signs, basis, std, pairs, known_graph))
    if "degrees" in entries:
        cost = weight(entries["degrees"].event.pure_epsilon)
        parts.append(cost * degrees_score(method.degrees.cpu(), pairs, known_graph))
    if "attribute_moment" in entries:
        entry, rows = entries["attribute_moment"], method.scores.rows.cpu()
        noisy = as_vector(moment_of_form(method.scores.form.cpu(), rows, RIDGE))
        parts.append(attribute_moment_score(rows, entry, noisy, pairs, known_graph))
    if "attribute_gradient" in entries:
        entry = entries["attribute_gradient"]
        parts.append(attribute_weights_score(method, entry, pairs, known_graph))
    if "communities" in entries:
        chosen = method.communities[method.degrees.argsort(descending=True, stable=True)]
        parts.append(communities_score(method, entries["communities"], chosen, pairs, known_graph))
    return parts


def _generator(method: Synthesizer, pairs: Tensor, known_graph: Data) -> Tensor:
    """Return the log-likelihood of pairs under a generator of walks, minus that by degrees."""
    degrees = torch.bincount(known_graph.edge_index[0], minlength=known_graph.num_nodes)
    scores = method.score(pairs).double().cpu().clamp(min=1e-300)
    likelihood: Tensor = scores.log()
    return likelihood - (degrees + 1.0)[pairs].log().sum(1)


def _neighbor_sums(
    method: CentralGromovWasserstein | AggregationPerturbation,
    data: Any,
    pairs: Tensor,
    known_graph: Data,
) -> Tensor:
    """Score the noisy sums of all hops; the first one has sums of public rows."""
    total = torch.zeros(len(pairs), dtype=torch.double)
    entry, hops = method.ledger.last_entry("neighbor_sums_1"), method.hparams["hops"]
    if isinstance(method, AggregationPerturbation):
        x = method.encoder.encode(method.features(data.records.attributes)).cpu()
        sums = list(method.sums.cpu().chunk(hops, 1))
    else:
        x, *sums = method.rows.cpu().chunk(1 + hops, 1)
    for summed, noisy in zip([x, *sums], sums, strict=False):
        total += sums_score(summed, noisy, entry, pairs.cpu(), known_graph)
    return total


def _replayed(method: NodeClassifier, data: Any, pairs: Tensor, known_graph: Data) -> Tensor:
    """Score the noisy values that the release of a classifier holds.

    The attacker runs the method on the known edges with the released values in place of noisy ones.
    Everything between them is a function of releases, and so it is as in the fit. Of the moment of
    attributes only a function is released, the metric, which the attacker takes as it is.
    """
    released = released_values(method)
    replay: Any = type(method)(**plain_settings(method))
    replay.load_released_state(method.released_state())
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


def _subgraph_counts(method: GraphCounts, pairs: Tensor, known_graph: Data) -> Tensor:
    """Score all features of a kernel; 0 where they count subgraphs of a sample."""
    if method.counting.is_sampled or not method.counts:
        return torch.zeros(len(pairs))
    columns = [len(one.columns) for one in method.counts]
    parts = torch.split(method.features, columns, dim=1)
    noisy = {one.key: part for one, part in zip(method.counts, parts, strict=True)}
    return subgraph_counts_score(method, noisy, pairs, known_graph)
