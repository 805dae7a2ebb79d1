"""Link stealing: predict the links of the real graph from a release (reads the private graph).

The scores of an attack use the release and the knowledge that its docstring grants the attacker.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import beta, norm, rankdata
from torch import Tensor
from torch.nn.functional import normalize
from torch_geometric.data import Data

from lightning_dpg.graph.expected_degrees import edges_by_degrees
from lightning_dpg.graph.graph import adjacency, undirected_edges
from lightning_dpg.graph.held_out import degree_matched_non_edges, uniform_non_edges
from lightning_dpg.graph.pair_space import space_of, without_directions
from lightning_dpg.graph.spectral import diffused, spectrum
from lightning_dpg.metrics.functional import degrees
from lightning_dpg.nn.attribute_rows import attributes_alone

# Share by which the attributes of a node grow in a question to a model.
_GROWTH = 1e-2


class Predictions(NamedTuple):
    """What an attacker has of a release of classes.

    Attributes:
        posteriors: Released probabilities of the classes of the nodes, shape ``(N, C)``.
        predict: Function from the numbers of some nodes, shape ``(P,)``, and attributes for them, shape
            ``(P, F)``, to probabilities of their classes, shape ``(P, C)``.
    """

    posteriors: Tensor
    predict: Callable[[Tensor, Tensor], Tensor]


def similarity(posteriors: Tensor, pairs: Tensor) -> Tensor:
    """Score pairs of shape ``(P, 2)`` by the correlation of the classes of both nodes, ``(P,)``.

    Linked nodes have similar predictions, from their edges or from their attributes.

    * He, Jia, Backes, Gong, Zhang, "Stealing Links from Graph Neural Networks", 2021, attack 0 with the
      correlation distance.
    """
    rows = posteriors.double().cpu()
    rows = normalize(rows - rows.mean(1, keepdim=True))
    return (rows[pairs[:, 0]] * rows[pairs[:, 1]]).sum(1)


def influence(predictions: Predictions, attributes: Tensor, pairs: Tensor) -> Tensor:
    """Score pairs of shape ``(P, 2)`` by the influence of the first node on the second one, ``(P,)``.

    The attributes of the first node grow by a hundredth. The influence is the length of the change of
    the probabilities of the second one, over the growth. Where a model sums over neighbors to
    predict, it is large for neighbors. Where it predicts each node from its own attributes, it is 0.

    * Wu, Long, Zhang, Li, "LinkTeller: Recovering Private Edges from Graph Neural Networks via
      Influence Analysis", 2022, section IV.

    Args:
        predictions: The model, as an attacker asks it.
        attributes: Public attributes of all nodes, shape ``(N, F)``.
        pairs: Pairs of nodes.
    """
    scores = torch.zeros(len(pairs), dtype=torch.double)
    order = pairs[:, 0].argsort(stable=True)
    firsts, counts = torch.unique_consecutive(pairs[order, 0], return_counts=True)
    for first, places in zip(firsts, torch.split(order, counts.tolist()), strict=True):
        nodes = torch.cat([first[None], pairs[places, 1]])
        rows = attributes[nodes]
        before = predictions.predict(nodes, rows)
        grown = torch.cat([rows[:1] * (1 + _GROWTH), rows[1:]])
        change = predictions.predict(nodes, grown) - before
        scores[places] = change[1:].double().norm(dim=1) / _GROWTH
    return scores


FALSE_ALARMS = 0.01
CONFIDENCE = 0.95
SEED = 0
"""Public: seed of all choices."""
BY_ATTRIBUTES = "public attributes alone"
"""Attack that reads no release."""
BY_POSTERIORS = "similarity of classes"
"""Attack by released probabilities of the classes of nodes."""
Values = NDArray[np.float64]
_OTHERS_PER_EDGE = 10
_RANK = 32
_WALK = 4


class Published(NamedTuple):
    """The attacker's view: graphs on the nodes of the real graph, and optional scores of pairs.

    A release of classes has predictions, and no graphs. Attributes of the nodes are public, shape
    ``(N, F)``; the attacker has them without a release.
    """

    graphs: Sequence[Data]
    score: Callable[[Tensor], Tensor] | None = None
    attributes: Tensor | None = None
    predictions: Predictions | None = None


class Candidates(NamedTuple):
    """Edges and other pairs, which the attacker has to separate (private)."""

    edges: Tensor
    others: dict[str, Tensor]
    """Pairs without an edge: any, or such whose ends have the degrees of the edges."""


class Estimate(NamedTuple):
    """A measured share or area, and its confidence interval."""

    value: float
    low: float
    high: float


class Separation(NamedTuple):
    """Separation of edges from other pairs by scores; fair coins break ties."""

    auc: Estimate
    """Probability that an edge scores above another pair."""
    accuracy: Estimate
    """Share of right answers if half of the pairs are edges and the better half is called so."""
    found: Estimate
    """Share of the edges that are found while 1 % of the other pairs raise an alarm."""


def separation(edge_scores: Tensor, other_scores: Tensor) -> Separation:
    """Measure an attack without labels.

    The interval of the AUC follows DeLong et al., "Comparing the areas under two or more correlated
    receiver operating characteristic curves", 1988; the other intervals are Clopper-Pearson
    intervals given the threshold.

    Args:
        edge_scores: Scores of edges, shape ``(P,)`` with P at least 2.
        other_scores: Scores of pairs without an edge, shape ``(Q,)`` with Q at least 2.
    """
    count, (alarms, hits) = len(edge_scores), roc(edge_scores, other_scores)
    return Separation(
        area((edge_scores, other_scores)),
        proportion(share_right(alarms, hits) * count, count),
        proportion(float(np.interp(FALSE_ALARMS, alarms, hits)) * count, count),
    )


def roc(edge_scores: Tensor, other_scores: Tensor) -> tuple[Values, Values]:
    """Return shares of other pairs and of edges above each threshold; coins break ties between."""
    # scikit-learn takes almost a second to import.
    from sklearn.metrics import roc_curve

    scores = torch.cat([edge_scores, other_scores]).double().cpu().numpy()
    is_edge = np.arange(len(scores)) < len(edge_scores)
    alarms, hits, _ = roc_curve(is_edge, scores, drop_intermediate=False)
    return alarms, hits


def share_right(alarms: Values, hits: Values) -> float:
    """Return the share of right answers if half of the pairs are edges, and the better half is named.

    Args:
        alarms: Shares of other pairs above each threshold of :func:`roc`.
        hits: Shares of edges above it.
    """
    return float(np.interp(1.0, alarms + hits, hits))


def proportion(successes: float, trials: int) -> Estimate:
    """Return a proportion with its exact interval; ``successes`` may be an expected number."""
    tail, failures = (1 - CONFIDENCE) / 2, trials - successes
    low = beta.ppf(tail, successes, failures + 1) if successes > 0 else 0.0
    high = beta.ppf(1 - tail, successes + 1, failures) if failures > 0 else 1.0
    return Estimate(successes / trials, float(low), float(high))


def area(scores: tuple[Tensor, Tensor], less: tuple[Tensor, Tensor] | None = None) -> Estimate:
    """Measure the AUC of scores, with the interval of DeLong et al., see :func:`separation`.

    Args:
        scores: Scores of edges, shape ``(P,)``, and of other pairs, shape ``(Q,)``.
        less: Other scores of the same pairs, whose AUC is subtracted.
    """
    below, above = _ranks(*scores)
    if less is not None:
        of_less = _ranks(*less)
        below, above = below - of_less[0], above - of_less[1]
    value = float(below.mean())
    error = float(np.sqrt(below.var(ddof=1) / len(below) + above.var(ddof=1) / len(above)))
    reach = float(norm.ppf((1 + CONFIDENCE) / 2)) * error
    least = 0.0 if less is None else -1.0
    return Estimate(value, max(value - reach, least), min(value + reach, 1.0))


def _ranks(edge_scores: Tensor, other_scores: Tensor) -> tuple[Values, Values]:
    """Return the share of other pairs below each edge, and that of edges above each other pair."""
    edges, others = (scores.double().cpu().numpy() for scores in (edge_scores, other_scores))
    ranks = rankdata(np.concatenate([edges, others]))
    below = (ranks[: len(edges)] - rankdata(edges)) / len(others)
    above = 1 - (ranks[len(edges) :] - rankdata(others)) / len(edges)
    return below, above


def candidates(real: Data, edges: Tensor) -> Candidates:
    """Add ten pairs without an edge to each of the edges.

    Args:
        real: Real graph with at least two pairs without an edge.
        edges: Some of its edges, shape ``(P, 2)``.
    """
    generator = torch.Generator().manual_seed(SEED)
    space = space_of(real)
    available = space.num_pairs - len(space.edges(real))
    count = min(_OTHERS_PER_EDGE * len(edges), available)
    many = edges.repeat(_OTHERS_PER_EDGE, 1)
    others = {
        "any": uniform_non_edges(real, count, generator),
        "equal degrees": degree_matched_non_edges(real, many, generator),
    }
    return Candidates(edges, others)


def steal_links(published: Published, pairs: Candidates) -> dict[tuple[str, str], Separation]:
    """Measure the success of each attack on links against each kind of other pairs."""
    every = _all_of(pairs)
    scores: dict[str, Tensor] = {}
    if published.graphs:
        scores |= {
            "edges": edge_shares(published.graphs, every),
            "common neighbors": adamic_adar(published.graphs, every),
            "edges, then common neighbors": edges_then_neighbors(published.graphs, every),
        }
    if published.score is not None:
        with torch.no_grad():
            scores["scores of the generator"] = published.score(every).cpu()
    if published.predictions is not None:
        scores[BY_POSTERIORS] = similarity(published.predictions.posteriors, every)
        if published.attributes is not None:
            found = influence(published.predictions, published.attributes, every)
            scores["influence on predictions"] = found
    if published.attributes is not None:
        num_left = space_of(published.graphs[0]).num_left if published.graphs else None
        scores[BY_ATTRIBUTES] = attributes_alone(published.attributes, num_left)(every)
    return {
        (name, kind): separation(*each)
        for name, values in scores.items()
        for kind, each in _against_each(pairs, values).items()
    }


def beyond_attributes(
    posteriors: Tensor, attributes: Tensor, pairs: Candidates
) -> dict[str, Estimate]:
    """Measure how much larger the AUC is by released posteriors than by public attributes.

    Args:
        posteriors: Released probabilities of the classes of the nodes, shape ``(N, C)``.
        attributes: Public attributes, shape ``(N, F)``.
        pairs: Edges and other pairs.

    Returns:
        Difference for each kind of other pairs, as of two scores of the same pairs.
    """
    every = _all_of(pairs)
    by_posteriors = _against_each(pairs, similarity(posteriors, every))
    by_attributes = _against_each(pairs, attributes_alone(attributes)(every))
    return {kind: area(by_posteriors[kind], by_attributes[kind]) for kind in pairs.others}


def _all_of(pairs: Candidates) -> Tensor:
    return torch.cat([pairs.edges, *pairs.others.values()])


def _against_each(pairs: Candidates, values: Tensor) -> dict[str, tuple[Tensor, Tensor]]:
    """Return scores of the edges, and those of other pairs, for each kind of other pairs."""
    of_edges, *rest = torch.split(values, [len(pairs.edges), *map(len, pairs.others.values())])
    return {kind: (of_edges, part) for kind, part in zip(pairs.others, rest, strict=True)}


def with_degrees_alone(published: Published) -> Published:
    """Draw random graphs with the degrees of the published graphs, at both ends where they differ."""
    graphs = []
    for seed, graph in enumerate(published.graphs):
        generator = torch.Generator().manual_seed(SEED + seed)
        space = space_of(graph)
        edges = space.edges(graph)
        random_edges = edges_by_degrees(space, space.degrees(edges), len(edges), generator)
        graphs.append(space.graph(random_edges, graph.node_names))
    return Published(graphs, attributes=published.attributes)


def predict_links(graphs: Sequence[Data], hidden: Candidates) -> Estimate:
    """Measure the accuracy of a spectral predictor on hidden links and as many other pairs.

    Args:
        graphs: Graphs whose mean scores are used.
        hidden: Links that no graph was fitted on.
    """
    pairs = torch.cat([hidden.edges, hidden.others["any"]])
    scores = torch.stack([spectral_scores(graph, pairs) for graph in graphs]).mean(dim=0)
    return separation(scores[: len(hidden.edges)], scores[len(hidden.edges) :]).accuracy


def edge_shares(graphs: Sequence[Data], pairs: Tensor) -> Tensor:
    """Return the share of the graphs in which each pair ``(P, 2)`` is an edge, shape ``(P,)``."""
    spaces = [space_of(graph) for graph in graphs]
    linked = [
        torch.isin(space.numbers(pairs), space.numbers(space.edges(graph))).double()
        for space, graph in zip(spaces, graphs, strict=True)
    ]
    return torch.stack(linked).mean(dim=0)


def adamic_adar(graphs: Sequence[Data], pairs: Tensor) -> Tensor:
    r"""Score pairs by common neighbors, :math:`\sum_w 1 / \ln d_w`, mean over graphs.

    Directions are ignored. Two nodes on different sides of a bipartite graph have no common
    neighbor: there, paths of three edges are counted, weighted by both inner nodes.

    * Adamic, Adar, "Friends and neighbors on the web", 2003.

    Args:
        graphs: Graphs on the same nodes.
        pairs: Pairs of shape ``(P, 2)``.

    Returns:
        Scores of shape ``(P,)``.
    """
    first, second = pairs.numpy().T
    scores = []
    for graph in map(without_directions, graphs):
        linked = adjacency(graph)
        # A common neighbor has two neighbors or more.
        weighted = (linked * (1 / np.log(np.maximum(degrees(graph), 2)))).tocsr()
        from_first = weighted[first]
        if space_of(graph).num_left is not None:
            from_first = from_first @ weighted
        scores.append(from_first.multiply(linked[second]).sum(axis=1))
    return torch.from_numpy(np.mean(scores, axis=0))


def edges_then_neighbors(graphs: Sequence[Data], pairs: Tensor) -> Tensor:
    """Score pairs by the share of graphs in which they are edges; common neighbors break ties."""
    neighbors = adamic_adar(graphs, pairs)
    # Shares are multiples of one over the number of graphs.
    return edge_shares(graphs, pairs) + neighbors / (1 + neighbors.max()) / len(graphs)


def spectral_scores(graph: Data, pairs: Tensor) -> Tensor:
    """Score pairs of shape ``(P, 2)`` by a spectral embedding."""
    graph = without_directions(graph)
    rank = max(min(_RANK, graph.num_nodes - 2), 1)
    rows = diffused(spectrum(undirected_edges(graph), graph.num_nodes, rank), _WALK)
    return (rows[pairs[:, 0]] * rows[pairs[:, 1]]).sum(dim=1)


def aligned_by_degree(graph: Data, reference: Data, generator: torch.Generator) -> Data:
    """Match the node of the k-th largest degree to the node of the same rank in another graph.

    Yang et al., "Secure Deep Graph Generation with Link Differential Privacy", 2021, identify the
    nodes of a generated graph in this way: the attacker knows all degrees of ``reference``.

    Args:
        graph: Graph of N nodes.
        reference: Graph of N nodes.
        generator: Breaks ties between equal degrees.
    """
    ranked, space = [], space_of(reference)
    for each in (graph, reference):
        order = torch.randperm(each.num_nodes, generator=generator)
        degree = torch.from_numpy(degrees(without_directions(each)))[order]
        if space.num_left is not None:  # the sides are public
            degree += (order < space.num_left) * (1 + degree.max())
        ranked.append(order[degree.argsort(descending=True, stable=True)])
    numbers = torch.empty_like(ranked[0])
    numbers[ranked[0]] = ranked[1]
    return space.graph(numbers[space.edges(graph)])
