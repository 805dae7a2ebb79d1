"""Whether a release orders models as the real graph does, for classes of nodes and for links.

Eight models learn from a graph, and are tested on nodes and links that are held out of the real graph.
All settings are usual ones; the learning rate was chosen on models of the real graph. The real graph is
read: nothing here is private.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.data import Data
from torch_geometric.nn import GAT, GCN, MLP, GraphSAGE, LabelPropagation, SGConv
from torch_geometric.nn.models.linkx import SparseLinear
from torch_geometric.utils import to_torch_csr_tensor

from lightning_dpg.evaluation import public_nodes as of_rows
from lightning_dpg.evaluation.node_classification import (
    NamedGraph,
    on_nodes,
    public_nodes,
    splits_of,
)
from lightning_dpg.graph.graph import make_graph, undirected_edges
from lightning_dpg.graph.held_out import uniform_non_edges
from lightning_dpg.graph.pair_numbers import pair_keys
from lightning_dpg.metrics.node_classification import Network, fact_loss, seeded, train
from lightning_dpg.pages.page import Table
from lightning_dpg.pages.report import Report

AGAIN = "real graph again"
"""Row of the real graph with other initial weights: it says how far an order is one of chance."""
_OTHER_WEIGHTS = 1_000
_WIDTH = 16
"""Width of a hidden layer, and of the rows of nodes whose products score links."""
_SHARE, _MOST_LINKS, _BATCH = 0.1, 5_000, 20_000
_REPLICATES = 500

Items: TypeAlias = NDArray[np.float32]
"""Whether each of T held-out nodes or links is predicted, by edges and model, shape ``(2, 8, T)``. The edges
are those of the training, and then those of the real graph. An item is 1, 0, or one half for equal scores,
and nan where there was nothing to learn from."""

_setting = partial(Network, lr=0.05, weight_decay=5e-4, steps=60, every=5, patience=3)
_MODELS = {
    "logistic regression": _setting(lambda _, a, b: MLP([a, b])),
    "MLP": _setting(lambda _, a, b: MLP([a, _WIDTH, b], dropout=0.5, norm=None)),
    "label propagation": _setting(lambda *_: LabelPropagation(num_layers=10, alpha=0.9)),
    "LINK": _setting(lambda num_nodes, _, b: SparseLinear(num_nodes, b)),
    "SGC": _setting(lambda _, a, b: SGConv(a, b, K=2, cached=True)),
    "GCN": _setting(lambda _, a, b: GCN(a, _WIDTH, 2, b, dropout=0.5, cached=True)),
    "GraphSAGE": _setting(lambda _, a, b: GraphSAGE(a, _WIDTH, 2, b, dropout=0.5)),
    "GAT": _setting(lambda _, a, b: GAT(a, _WIDTH, 2, b, dropout=0.5)),
}
MODELS = tuple(_MODELS)
"""Names of the models: of attributes alone, of edges alone, and of both."""
_TASKS = {"classes": "accuracy", "links": "AUC"}


def held_out(real: Data, seed: int) -> tuple[Tensor, Tensor]:
    """Hold out a tenth of the real edges, at most 5,000, beside as many pairs without an edge.

    Args:
        real: The real graph (private).
        seed: Public seed.

    Returns:
        Edges, and a pair for each of them, both of shape ``(L, 2)``.
    """
    generator, edges = torch.Generator().manual_seed(seed), undirected_edges(real)
    count = min(math.ceil(_SHARE * len(edges)), _MOST_LINKS)
    links = edges[torch.randperm(len(edges), generator=generator)[:count]]
    others = uniform_non_edges(real, count, generator)
    return links, others[torch.randperm(count, generator=generator)]


class Trial(NamedTuple):
    """A graph of the training, and what is held out of the real graph."""

    public: of_rows.PublicNodes
    drawn: of_rows.Drawn
    real: Data
    """The real graph (private)."""
    links: Tensor
    """Held-out edges, shape ``(L, 2)``; no edge of either graph where links are learned."""
    others: Tensor
    """A pair without an edge for each of them."""
    graph: Data
    """Graph of the training, on the same nodes."""
    seed: int
    """Public seed of the initial weights and of the dropout."""

    def items(self) -> dict[str, Items]:
        """Train all models, and test them, by task."""
        found = {"classes": self._classes, "links": self._links}
        return {task: np.stack([*map(of, MODELS)], axis=1) for task, of in found.items()}

    def _classes(self, name: str) -> Items:
        public, (_, validation, test) = self.public, self.drawn.split
        known = self.drawn.evidence
        chooses = public.known(validation) if len(validation) else known
        loss, check = (lambda rows, at=at: fact_loss(rows[at.nodes], at) for at in (known, chooses))
        found = self._learned(name, (self.graph, self.real), public.num_classes, loss, check)
        return np.stack([(rows[test].argmax(1) == public.classes[test]).float() for rows in found])

    def _links(self, name: str) -> Items:
        num_nodes, generator = len(self.public.rows), torch.Generator().manual_seed(self.seed)
        edges, real_edges = map(self._untested, (self.graph, self.real))
        edges = edges[torch.randperm(len(edges), generator=generator)]
        chooses, learned = edges.tensor_split([math.ceil(_SHARE * len(edges))])
        if not len(learned):
            return np.full((2, len(self.links)), np.nan, dtype=np.float32)
        fixed = torch.randint(num_nodes, chooses.shape, generator=generator)

        def loss(rows: Tensor) -> Tensor:
            count = min(len(learned), _BATCH)
            places = torch.randint(len(learned), (count,), generator=generator)
            others = torch.randint(num_nodes, (count, 2), generator=generator)
            return _pair_loss(rows, learned[places], others)

        check = partial(_pair_loss, edges=chooses, others=fixed)
        graphs = [make_graph(each, num_nodes) for each in (learned, real_edges)]
        found = self._learned(name, graphs, _WIDTH, loss, check)
        margins = [_products(rows, self.links) - _products(rows, self.others) for rows in found]
        return np.stack([margin.sign().add(1).div(2) for margin in margins])

    def _untested(self, graph: Data) -> Tensor:
        """Return the edges of a graph without the tested pairs."""
        tested, edges = torch.cat([self.links, self.others]), undirected_edges(graph)
        own, held = (pair_keys(pairs.numpy(), graph.num_nodes) for pairs in (edges, tested))
        return edges[~torch.from_numpy(np.isin(own, held))]

    def _learned(
        self,
        name: str,
        graphs: Sequence[Data],
        size: int,
        loss: Callable[[Tensor], Tensor],
        check: Callable[[Tensor], Tensor],
    ) -> list[Tensor]:
        """Train a model on the first graph, and return its rows of nodes on each one."""
        x, known, network = self.public.rows.float(), self.drawn.evidence, _MODELS[name]
        with seeded(self.seed):
            models = [network.build(len(x), x.shape[1], size).eval() for _ in graphs]
            rows = [_reader(*pair) for pair in zip(models, graphs, strict=True)]
            if isinstance(models[0], LabelPropagation):
                x = torch.zeros(len(x), self.public.num_classes)
                x[known.nodes] = known.log_likelihoods.float().softmax(1)
            else:
                train(models[0], network, lambda: loss(rows[0](x)), lambda: check(rows[0](x)))
                models[1].load_state_dict(models[0].state_dict())
            with torch.no_grad():
                return [read(x) for read in rows]


def _reader(model: nn.Module, graph: Data) -> Callable[[Tensor], Tensor]:
    """Return the function from attributes of nodes to their rows on a graph."""
    edges, num_nodes = graph.edge_index, graph.num_nodes
    if isinstance(model, MLP):
        return model
    if isinstance(model, SparseLinear | GraphSAGE):  # faster by products with a matrix
        edges = to_torch_csr_tensor(edges, size=(num_nodes, num_nodes))
    return lambda x: model(edges) if isinstance(model, SparseLinear) else model(x, edges)


def _products(rows: Tensor, pairs: Tensor) -> Tensor:
    return (rows[pairs[:, 0]] * rows[pairs[:, 1]]).sum(1)


def _pair_loss(rows: Tensor, edges: Tensor, others: Tensor) -> Tensor:
    return F.softplus(-_products(rows, edges)).mean() + F.softplus(_products(rows, others)).mean()


class Tau(NamedTuple):
    """Kendall's tau of two orders, with an interval of 95 %; nan where a graph gives no order."""

    value: float
    low: float
    high: float

    def text(self) -> str:
        """Return the three numbers, for a cell."""
        return "-" if math.isnan(self.value) else "{:.2f} [{:.2f}, {:.2f}]".format(*self)


def tau_of(items: Items, reference: Items) -> Tau:
    """Compare two orders of models by their mean scores.

    The interval is that of a bootstrap of seeds, and of the held-out items of each seed, which are equal
    for all models and both graphs. It does not hold the choice of the models.

    Args:
        items: Scores of held-out items by seed and model, shape ``(S, M, T)``.
        reference: Those of models that learned from the real graph.
    """
    both, generator = np.stack([items, reference]), np.random.default_rng(0)
    if np.isnan(both).any():
        return Tau(math.nan, math.nan, math.nan)
    num_seeds, count = both.shape[1], both.shape[3]
    means = [both.mean((1, 3))]
    for _ in range(_REPLICATES):
        seeds = generator.integers(num_seeds, size=(num_seeds,))
        drawn = [both[:, seed][..., generator.integers(count, size=count)] for seed in seeds]
        means.append(np.mean([each.mean(2) for each in drawn], axis=0))
    # Tau-b is the correlation of the signs of differences, ten times as fast as scipy's.
    taus = [np.corrcoef(np.sign(m[:, :, None] - m[:, None]).reshape(2, -1))[0, 1] for m in means]
    return Tau(*map(float, (taus[0], *np.nanquantile(taus[1:], (0.025, 0.975)))))


class RankedRow(NamedTuple):
    """Models that learned from one graph."""

    task: str
    """``classes`` or ``links``."""
    graph: str
    scores: tuple[float, ...]
    """Accuracy or AUC of each model with the edges of its graph, mean of the seeds."""
    tau: Tau
    """Of their order, and of that of the models of the real graph."""
    tau_on_real_edges: Tau
    """Likewise, all models with the edges of the real graph after the training."""


@dataclass(frozen=True, eq=False, repr=False)
class Ranking(Report):
    """Order of eight models that learned from each graph, beside their order on the real graph.

    Attributes:
        real: Name of the real graph.
        seeds: Public seeds, each with nodes and links that are held out.
        rows: A row for each task and graph.
        guarantees: Guarantees of the releases.
    """

    title: ClassVar[str] = "Order of models on a release"

    real: str
    seeds: Sequence[int]
    rows: tuple[RankedRow, ...]
    guarantees: Sequence[str]

    def sections(self) -> list[Table]:
        """Return a table for each task."""
        head = ("graph of the training", *MODELS, "tau", "tau on real edges")
        return [
            Table(
                f"{task} of {self.real}: {score} in %, mean of {len(self.seeds)} seeds",
                "Kendall's tau of the order of the models and of that on the real graph, with an interval of 95 %.",
                head,
                [
                    (
                        row.graph,
                        *(f"{100 * each:.1f}" for each in row.scores),
                        *(tau.text() for tau in row[3:]),
                    )
                    for row in self.rows
                    if row.task == task
                ],
                self.guarantees,
            )
            for task, score in _TASKS.items()
        ]

    @property
    def values(self) -> dict[str, Any]:
        """All numbers; a tau stands before the ends of its interval."""
        rows = [
            row._asdict() | {"scores": dict(zip(MODELS, row.scores, strict=True))}
            for row in self.rows
        ]
        return {"task": "ranking", "real": self.real, "seeds": [*self.seeds], "rows": rows}


def ranked(items: Mapping[str, Sequence[dict[str, Items]]]) -> tuple[RankedRow, ...]:
    """Compare the order of models on each graph with that on the real graph.

    Args:
        items: Items of all tasks by graph and seed.
    """
    rows = []
    for task in _TASKS:
        found = {
            graph: np.stack([each[task] for each in seeds], 1) for graph, seeds in items.items()
        }
        for graph, (own, on_real) in found.items():
            taus = map(tau_of, (own, on_real), found[of_rows.REAL_GRAPH])
            rows.append(RankedRow(task, graph, tuple(map(float, own.mean((0, 2)))), *taus))
    return tuple(rows)


def rank_models(
    name: str,
    real: Data,
    graphs: Sequence[NamedGraph],
    *,
    num_seeds: int | None = None,
    train_fraction: float | None = None,
) -> Ranking:
    """Compare the orders of models on synthetic graphs and on controls with that on the real graph.

    Args:
        name: Name of the real graph.
        real: The real graph (private).
        graphs: Synthetic graphs on the same nodes; the first one has attributes and classes.
        num_seeds: Number of splits, 5 by default.
        train_fraction: Share of the nodes of each class for training, 20 nodes by default.

    Raises:
        CommandError: If there are no attributes or classes, or if a graph has other nodes.
    """
    nodes = public_nodes(graphs[0])
    real, *placed = (
        on_nodes(*each, nodes.names) for each in ((name, real), *(one[:2] for one in graphs))
    )
    public = of_rows.PublicNodes(nodes, placed[0].num_edges // 2)
    seeds, splits, _ = splits_of(nodes, (), (), num_seeds, 0, train_fraction)
    items: dict[str, list[dict[str, Items]]] = {}
    for seed, split in zip(seeds, splits, strict=True):
        drawn = of_rows.Drawn(split, seed, public.known(split.train))
        trial = partial(Trial, public, drawn, real, *held_out(real, seed))
        learned = {
            of_rows.NO_GRAPH: public.no_graph,
            of_rows.SIMILARITY_GRAPH: public.similarity_graph,
            of_rows.DEGREES_ALONE: of_rows.rewired(real, seed),
            **dict(zip((one.name for one in graphs), placed, strict=True)),
            AGAIN: real,
            of_rows.REAL_GRAPH: real,
        }
        for each, graph in learned.items():
            weights = seed + _OTHER_WEIGHTS * (each == AGAIN)
            items.setdefault(each, []).append(trial(graph, weights).items())
    guarantees = dict.fromkeys(f"{one.name}: {one.guarantee}" for one in graphs if one.guarantee)
    return Ranking(name, seeds, ranked(items), [*guarantees])
