"""Tasks of the benchmark: a single graph, a set of graphs, or graph labels."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch_geometric.data import Data

from lightning_dpg.datamodules.graph_set import split_graphs
from lightning_dpg.datamodules.loading import known_graphs
from lightning_dpg.datamodules.tu import known_sets
from lightning_dpg.errors import CommandError, nearest
from lightning_dpg.graph.graph import make_graph, undirected_edges
from lightning_dpg.graph.pair_space import Kind, without_directions
from lightning_dpg.methods.graph_features import GraphFeatureRelease
from lightning_dpg.methods.graph_set.base import GraphSetSynthesizer
from lightning_dpg.metrics import kernel_svm, set_queries
from lightning_dpg.metrics import queries as graph_queries
from lightning_dpg.metrics.queries import KIND_QUERIES, Answer, compare_kinds
from lightning_dpg.run.data import load, load_set

ALL = "all"


class Task(ABC):
    """A task of the benchmark, with its data as one graph; a set is the union of its graphs.

    Attributes:
        noun: Word for one datum.
        baselines: Configurations that are always included; the first one uses only the size of the
            private data.
        exact_baseline: Baseline that also appears with an infinite budget, if any.
        local_baseline: Baseline that is included beside methods of local privacy, if any.
        queries: Names of all queries.
        higher_is_better: Queries that measure an agreement instead of an error.
        kind: Kind of single graphs.
        headline: Queries in tables and figures unless others are named.
        win_queries: Queries over which the wins against the first baseline are counted.
        advice: Knowledge of each baseline, in Markdown.
        caption: Content of the figures.
    """

    noun: ClassVar[str]
    baselines: ClassVar[tuple[str, ...]]
    exact_baseline: ClassVar[str | None] = None
    local_baseline: ClassVar[str | None] = None
    kind: ClassVar[Kind] = "undirected"
    queries: ClassVar[tuple[str, ...]]
    higher_is_better: ClassVar[frozenset[str]]
    headline: ClassVar[tuple[str, ...]]
    win_queries: ClassVar[tuple[str, ...]]
    advice: ClassVar[str]
    caption: ClassVar[str]

    @abstractmethod
    def load(self, name: Any, undirected: bool) -> Data:
        """Load real data by their name or from a file or folder, or take an object.

        Raises:
            CommandError: If they cannot be read, or belong to another task.
        """

    def num_graphs(self, real: Data) -> int:
        """Return the number of graphs in real data."""
        return 1

    @abstractmethod
    def draw(self, method: Any, generator: torch.Generator) -> Any:
        """Draw synthetic data from a release, or take other released values for the evaluation."""

    @abstractmethod
    def profile(self, real: Data) -> Any:
        """Measure real data."""

    @abstractmethod
    def compare(self, profile: Any, synthetic: Any, classify: bool, seed: int) -> dict[str, Answer]:
        """Answer the queries; queries that train networks are optional.

        Args:
            profile: Measurements of the real data.
            synthetic: Drawn data.
            classify: Whether to train networks.
            seed: Public seed of randomness in the answers.
        """


class SingleGraphTask(Task):
    """Publish a graph."""

    noun = "graph"
    baselines = ("erdos_renyi", "chung_lu")
    queries = graph_queries.QUERIES
    higher_is_better = graph_queries.HIGHER_IS_BETTER
    headline = (
        *("num_edges", "degree_distribution_kl", "triangles", "avg_clustering"),
        *("avg_path_length", "modularity", "community_nmi"),
    )
    win_queries = graph_queries.QUERIES[:15]
    advice = (
        "`erdos_renyi` knows no more than the number of edges, `chung_lu` no more than degrees."
    )
    caption = (
        "Nodes in one order in all figures, by communities of the real graph; of large ones those "
        "of highest degree."
    )

    def load(self, name: Any, undirected: bool) -> Data:
        """Load a graph by its name or from a file, or take an object."""
        try:
            return load(name, undirected, self.kind)
        except CommandError:
            if isinstance(name, str) and name in known_sets():
                raise CommandError(
                    f"{name}: a set of graphs, while the methods learn single ones"
                ) from None
            raise

    def draw(self, method: Any, generator: torch.Generator) -> Data:
        """Draw a graph."""
        sample: Data = method.sample(generator)
        return sample

    def profile(self, real: Data) -> graph_queries.Profile:
        """Measure a graph."""
        return graph_queries.profile(real)

    def compare(
        self, profile: graph_queries.Profile, synthetic: Data, classify: bool, seed: int
    ) -> dict[str, Answer]:
        """Answer all queries."""
        return graph_queries.compare(profile, synthetic)


class DirectedGraphTask(SingleGraphTask):
    """Publish a directed graph; the common queries ignore directions."""

    kind: ClassVar[Kind] = "directed"
    queries = (*graph_queries.QUERIES, *KIND_QUERIES["directed"])
    headline = (
        *("reciprocity", "out_degree_distribution_kl", "in_degree_distribution_kl", "triangles"),
        *("avg_path_length", "modularity", "community_nmi"),
    )
    caption = f"{SingleGraphTask.caption} Directions are not drawn."

    def profile(self, real: Data) -> Any:
        """Measure a graph, and keep it for the queries of its kind."""
        return graph_queries.profile(without_directions(real)), real

    def compare(
        self, profile: Any, synthetic: Data, classify: bool, seed: int
    ) -> dict[str, Answer]:
        """Answer the common queries, then those of the kind."""
        measured, real = profile
        answers = graph_queries.compare(measured, without_directions(synthetic))
        return answers | compare_kinds(real, synthetic)


class BipartiteGraphTask(DirectedGraphTask):
    """Publish a bipartite graph."""

    kind = "bipartite"
    queries = (*graph_queries.QUERIES, *KIND_QUERIES["bipartite"])
    headline = (
        *("num_edges", "left_degree_distribution_kl", "right_degree_distribution_kl"),
        *("butterflies", "avg_path_length", "modularity", "community_nmi"),
    )
    caption = SingleGraphTask.caption


class SetTask(Task):
    """Sets of graphs, each held as one graph with ``sizes`` of shape ``(G,)``.

    Labels, if any, are ``y`` of shape ``(G,)``.
    """

    def load(self, name: Any, undirected: bool) -> Data:
        """Load a set by its name or from a folder, or take a list."""
        try:
            return load_set(name, undirected)
        except CommandError:
            if isinstance(name, str) and name in known_graphs():
                raise CommandError(
                    f"{name}: a single graph, while the methods learn sets of graphs"
                ) from None
            raise

    def num_graphs(self, real: Data) -> int:
        """Return the number of graphs of the set."""
        return len(real.sizes)


class GraphSetTask(SetTask):
    """Publish a set of graphs."""

    noun = "set"
    baselines = ("erdos_renyi_set",)
    exact_baseline = "erdos_renyi_set"
    queries = set_queries.SET_QUERIES
    higher_is_better = set_queries.SET_HIGHER_IS_BETTER
    headline = (*set_queries.TABLE_1, "motif_cosine", "gin_accuracy")
    win_queries = set_queries.TABLE_1
    advice = (
        "`erdos_renyi_set` knows of each graph no more than its nodes and a noisy or the exact "
        "number of its edges. Statistics are compared graph by graph; GINI and REDE are those that "
        "were printed, and beside them the right ones. Accuracies are those of classifiers that "
        "learned from the graphs of the first run, on the originals."
    )
    caption = (
        "All graphs of a set in one matrix, whose order is the same in all figures: by communities "
        "of the real graphs; of large sets nodes of highest degree."
    )

    def draw(self, method: Any, generator: torch.Generator) -> Data:
        """Draw a replacement of each original graph."""
        sample: Sequence[Data] = method.sample_set(generator)
        sizes = torch.tensor([graph.num_nodes for graph in sample])
        starts = (sizes.cumsum(0) - sizes).tolist()
        edges = [undirected_edges(g) + start for g, start in zip(sample, starts, strict=True)]
        union = make_graph(torch.cat(edges), int(sizes.sum()))
        union.sizes = sizes
        return union

    def profile(self, real: Data) -> set_queries.SetProfile:
        """Measure a set."""
        return set_queries.profile_set(split_graphs(real, real.sizes.tolist()))

    def compare(
        self, profile: set_queries.SetProfile, synthetic: Data, classify: bool, seed: int
    ) -> dict[str, Answer]:
        """Answer the queries."""
        graphs = split_graphs(synthetic, synthetic.sizes.tolist())
        return set_queries.compare_sets(profile, graphs, classify=classify)


class LabelTask(SetTask):
    """Predict the labels of the graphs of a set from released features."""

    noun = "labelled set"
    baselines = ("node_kernel", "size_kernel")
    exact_baseline = "size_kernel"
    local_baseline = "local_scalars"
    queries = kernel_svm.LABEL_QUERIES
    higher_is_better = frozenset(kernel_svm.LABEL_QUERIES)
    headline = kernel_svm.LABEL_QUERIES
    win_queries = ("accuracy",)
    advice = (
        "`node_kernel` knows of each graph no more than its nodes, which are public, `size_kernel` "
        "also a noisy or the exact number of its edges. Beside methods of local privacy there is "
        "`local_scalars`, which spends the whole budget on the density. Accuracies are those of "
        "support vector machines in ten folds; run K draws its folds with the seed K."
    )
    caption = "All real graphs of a set in one matrix. Features have no figure."

    def load(self, name: Any, undirected: bool) -> Data:
        """Load a set with labels."""
        union = super().load(name, undirected)
        if union.y is None:
            shown = name if isinstance(name, str) else "the set"
            raise CommandError(f"{shown}: its graphs have no labels, which are to be told")
        return union

    def draw(self, method: Any, generator: torch.Generator) -> Any:
        """Return the kernels of the release, and the mask of graphs for the evaluation."""
        return method.kernels(method.embedding, method.sizes), method.test_mask

    def profile(self, real: Data) -> Sequence[Data]:
        """Return the graphs with their labels."""
        return split_graphs(real, real.sizes.tolist())

    def compare(self, profile: Any, synthetic: Any, classify: bool, seed: int) -> dict[str, Answer]:
        """Compute accuracies."""
        grams, mask = synthetic
        graphs = [profile[number] for number in np.flatnonzero(mask)]
        kernels = [gram[np.ix_(mask, mask)] for gram in grams]
        return kernel_svm.compare_labels(graphs, kernels, classify=classify, seed=seed)


def chosen_queries(names: Sequence[str] | None, task: Task) -> tuple[str, ...]:
    """Return the queries of tables and figures.

    Args:
        names: Names of queries, among them perhaps ``all``; None for the headline queries.
        task: The task.

    Raises:
        CommandError: If a name is no query of the task.
    """
    if names is None:
        return task.headline
    for name in names:
        if name != ALL and name not in task.queries:
            near = nearest(str(name), (*task.queries, ALL))
            raise CommandError(
                f"queries: {name!r} is no query of a {task.noun}{near}\n"
                f"{ALL}, or: {', '.join(task.queries)}"
            )
    return task.queries if ALL in names else tuple(dict.fromkeys(names))


SINGLE_GRAPHS = SingleGraphTask()
GRAPH_SETS = GraphSetTask()
GRAPH_LABELS = LabelTask()


OF_KIND: dict[str, Task] = {
    task.kind: task for task in (SINGLE_GRAPHS, DirectedGraphTask(), BipartiteGraphTask())
}


def task_of(method: type, kind: str = "undirected") -> Task:
    """Find the task of a method.

    Args:
        method: Its class.
        kind: Kind of the graphs, where the method learns single ones.
    """
    if issubclass(method, GraphFeatureRelease):
        return GRAPH_LABELS
    return GRAPH_SETS if issubclass(method, GraphSetSynthesizer) else OF_KIND[kind]
