"""What ``compare`` compares: single graphs, sets of graphs, or labels. All that differs between them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from lightning_dpg.benchmark import figures as pictures
from lightning_dpg.datamodules.graph_set import split_graphs
from lightning_dpg.datamodules.loading import known_graphs
from lightning_dpg.datamodules.tu import TUGraphDataModule, known_sets
from lightning_dpg.errors import CommandError
from lightning_dpg.graph.graph import make_graph, undirected_edges
from lightning_dpg.graph.io import GraphFormatError
from lightning_dpg.methods.graph_features.base import GraphFeatureRelease
from lightning_dpg.methods.graph_set.base import GraphSetSynthesizer
from lightning_dpg.metrics import label_queries, set_queries
from lightning_dpg.metrics import queries as graph_queries
from lightning_dpg.metrics.queries import Answer
from lightning_dpg.running import graph_arguments as graphs


class Kind(ABC):
    """A kind of data. What it loads is one graph; of a set, that of all its graphs.

    Attributes:
        noun: What one datum is called.
        controls: Configurations that are always there; the one that knows of the private data no
            more than their size comes first.
        exact_control: Control that also appears with an infinite budget, if any.
        queries: Names of all queries.
        higher_is_better: Those of them that ask for an agreement, and not for an error.
        counted: Those in which rows are held against the first control, and the wins counted.
        advice: What the controls are for, in Markdown.
        caption: What the pictures show.
    """

    noun: ClassVar[str]
    controls: ClassVar[tuple[str, ...]]
    exact_control: ClassVar[str | None] = None
    queries: ClassVar[tuple[str, ...]]
    higher_is_better: ClassVar[frozenset[str]]
    counted: ClassVar[tuple[str, ...]]
    advice: ClassVar[str]
    caption: ClassVar[str]

    @abstractmethod
    def load(self, name: str, undirected: bool) -> Data:
        """Load real data.

        Raises:
            CommandError: If they cannot be read, or are of the other kind.
        """

    def num_graphs(self, real: Data) -> int:
        """Number of graphs that real data hold."""
        return 1

    @abstractmethod
    def draw(self, method: Any, generator: torch.Generator) -> Any:
        """Draw synthetic data from a release, or whatever else is judged of it."""

    @abstractmethod
    def profile(self, real: Data) -> Any:
        """Measure real data."""

    @abstractmethod
    def compare(self, profile: Any, drawn: Any, classify: bool, seed: int) -> dict[str, Answer]:
        """Answer the queries, those about networks only if asked to.

        Args:
            profile: What was measured of the real data.
            drawn: What was drawn.
            classify: Whether to train networks.
            seed: Public seed of what the answers draw themselves.
        """

    @abstractmethod
    def painter(self, real: Data) -> Callable[[Data], NDArray[Any]]:
        """How graphs are painted that stand beside the given one, as red, green, blue and opacity."""


class SingleGraphs(Kind):
    """Single graphs."""

    noun = "graph"
    controls = ("erdos_renyi", "chung_lu")
    queries = graph_queries.QUERIES
    higher_is_better = graph_queries.HIGHER_IS_BETTER
    counted = graph_queries.QUERIES[:15]
    advice = (
        "`erdos_renyi` knows no more than the number of edges, `chung_lu` no more than degrees."
    )
    caption = (
        "Nodes in one order in all pictures, by communities of the real graph; of large ones those "
        "of highest degree."
    )

    def load(self, name: str, undirected: bool) -> Data:
        """Load a graph by its name or from a file."""
        try:
            return graphs.load(name, undirected)
        except CommandError:
            if name in known_sets():
                raise CommandError(
                    f"--graphs {name}: a set of graphs, while the methods learn single ones"
                ) from None
            raise

    def draw(self, method: Any, generator: torch.Generator) -> Data:
        """Draw a graph."""
        drawn: Data = method.sample(generator)
        return drawn

    def profile(self, real: Data) -> graph_queries.Profile:
        """Measure a graph."""
        return graph_queries.profile(real)

    def compare(
        self, profile: graph_queries.Profile, drawn: Data, classify: bool, seed: int
    ) -> dict[str, Answer]:
        """Answer all queries."""
        return graph_queries.compare(profile, drawn)

    def painter(self, real: Data) -> Callable[[Data], NDArray[Any]]:
        """Adjacency matrices, all in the order of the real graph's communities."""
        return pictures.one_matrix(real)


class Sets(Kind):
    """Sets of graphs, each held as one graph with ``sizes`` of shape ``(G,)``.

    Labels, if any, are ``y`` of shape ``(G,)``.
    """

    def load(self, name: str, undirected: bool) -> Data:
        """Load a set by its name or from a folder."""
        data = TUGraphDataModule(name, undirected=undirected)
        try:
            data.setup("fit")
        except GraphFormatError as error:
            if name in known_graphs():
                raise CommandError(
                    f"--graphs {name}: a single graph, while the methods learn sets of graphs"
                ) from None
            text = str(error).replace("--data.undirected true", "--undirected")
            raise CommandError(text) from error
        union = make_graph(data.edges, len(data.graph_of))
        union.sizes, union.y = data.sizes, data.labels
        return union

    def num_graphs(self, real: Data) -> int:
        """Number of graphs of the set."""
        return len(real.sizes)

    def painter(self, real: Data) -> Callable[[Data], NDArray[Any]]:
        """Adjacency matrices of some graphs of the set, side by side."""
        return pictures.some_matrices(real.sizes)


class GraphSets(Sets):
    """Sets of graphs, of which others are drawn."""

    noun = "set"
    controls = ("erdos_renyi_set",)
    exact_control = "erdos_renyi_set"
    queries = set_queries.SET_QUERIES
    higher_is_better = set_queries.SET_HIGHER_IS_BETTER
    counted = set_queries.TABLE_1
    advice = (
        "`erdos_renyi_set` knows of each graph no more than its nodes and a noisy or the exact "
        "number of its edges. Statistics are compared graph by graph; GINI and REDE are those that "
        "were printed, and beside them the right ones. Accuracies are those of classifiers that "
        "learned from the graphs of the first run, on the originals."
    )
    caption = (
        f"Of a set, {pictures.TILES} graphs spread over it, the same in all pictures; the nodes of "
        "each in the order of its own communities."
    )

    def draw(self, method: Any, generator: torch.Generator) -> Data:
        """Draw a graph in place of each of the originals."""
        drawn: Sequence[Data] = method.sample_set(generator)
        sizes = torch.tensor([graph.num_nodes for graph in drawn])
        starts = (sizes.cumsum(0) - sizes).tolist()
        edges = [undirected_edges(g) + start for g, start in zip(drawn, starts, strict=True)]
        union = make_graph(torch.cat(edges), int(sizes.sum()))
        union.sizes = sizes
        return union

    def profile(self, real: Data) -> set_queries.SetProfile:
        """Measure a set."""
        return set_queries.profile_set(labelled_parts(real))

    def compare(
        self, profile: set_queries.SetProfile, drawn: Data, classify: bool, seed: int
    ) -> dict[str, Answer]:
        """Answer the queries."""
        graphs = split_graphs(drawn, drawn.sizes.tolist())
        return set_queries.compare_sets(profile, graphs, classify=classify)


class GraphLabels(Sets):
    """Labels of the graphs of a set, as told from what a learner has released of them."""

    noun = "labelled set"
    controls = ("node_kernel", "size_kernel")
    exact_control = "size_kernel"
    queries = label_queries.LABEL_QUERIES
    higher_is_better = frozenset(label_queries.LABEL_QUERIES)
    counted = ("accuracy",)
    advice = (
        "`node_kernel` knows of each graph no more than its nodes, which are public, `size_kernel` "
        "also a noisy or the exact number of its edges. Accuracies are those of support vector "
        "machines in ten folds; run K draws its folds with the seed K."
    )
    caption = f"Of the real graphs, {pictures.TILES} spread over the set. Features have no picture."

    def load(self, name: str, undirected: bool) -> Data:
        """Load a set with labels."""
        union = super().load(name, undirected)
        if union.y is None:
            raise CommandError(f"--graphs {name}: its graphs have no labels, which are to be told")
        return union

    def draw(self, method: Any, generator: torch.Generator) -> Any:
        """Kernels of what was released, and which graphs may be judged by them."""
        return method.kernels(method.embedding, method.sizes), method.test_mask

    def profile(self, real: Data) -> Sequence[Data]:
        """The graphs, each with its label."""
        return labelled_parts(real)

    def compare(self, profile: Any, drawn: Any, classify: bool, seed: int) -> dict[str, Answer]:
        """Accuracies."""
        grams, judged = drawn
        graphs = [profile[number] for number in np.flatnonzero(judged)]
        kernels = [gram[np.ix_(judged, judged)] for gram in grams]
        return label_queries.compare_labels(graphs, kernels, classify=classify, seed=seed)


def labelled_parts(real: Data) -> list[Data]:
    """The graphs of a set, each with its label, if any."""
    parts = split_graphs(real, real.sizes.tolist())
    if real.y is not None:
        for graph, label in zip(parts, torch.split(real.y, 1), strict=True):
            graph.y = label
    return parts


SINGLE_GRAPHS = SingleGraphs()
GRAPH_SETS = GraphSets()
GRAPH_LABELS = GraphLabels()


def kind_of(method: type) -> Kind:
    """The kind of data that a method learns."""
    if issubclass(method, GraphFeatureRelease):
        return GRAPH_LABELS
    return GRAPH_SETS if issubclass(method, GraphSetSynthesizer) else SINGLE_GRAPHS
