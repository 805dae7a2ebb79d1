"""The records that data modules serve (private); see :mod:`lightning_dpg.interfaces`.

They are plain objects: Lightning, which copies data classes and tuples to a device, leaves them alone.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.datamodules.batches import PoissonRecords
from lightning_dpg.graph.pair_space import Kind, PairSpace, space_of
from lightning_dpg.interfaces import PrivateColumns, PrivateLabels, Transfers
from lightning_dpg.privacy.sampling import PoissonBatch


class LinkBatch(NamedTuple):
    """Node pairs to classify (private); each pair is a row as of the training edges.

    Attributes:
        edges: Held-out edges of shape ``(P, 2)``.
        non_edges: Pairs without an edge of shape ``(Q, 2)``, uniform or published.
        matched_non_edges: Pairs without an edge of shape ``(P, 2)`` whose ends have the same
            degrees as the ends of the held-out edges.
    """

    edges: Tensor
    non_edges: Tensor
    matched_non_edges: Tensor


class EdgeRecords(PoissonRecords):
    """The training records: one per edge, indexed once per batch (private).

    Args:
        edges: Records of shape ``(M, 2)``, each a row that occurs once: ``i < j``, or a pair of
            ``space``.
        sample_rate: Probability with which each record is drawn into a batch.
        space: Pairs that may be linked; by default all pairs ``i < j``.
    """

    def __init__(self, edges: Tensor, sample_rate: float, space: PairSpace | None = None) -> None:
        """Refuse records that could count one edge twice."""
        if space is None or space.kind == "undirected":
            record, form, is_pair = "undirected edge", "a row i < j", edges[:, 0] < edges[:, 1]
        else:
            record, form, is_pair = space.record, f"a {space.kind} pair", _are_pairs(edges, space)
        if not bool(is_pair.all()):
            raise ValueError(f"edges must hold each {record} once, as {form}")
        keys = (edges[:, 0] * 2**31 + edges[:, 1]).sort().values  # one number per pair
        if bool((keys[1:] == keys[:-1]).any()):
            raise ValueError(f"edges must hold each {record} once, but a row is repeated")
        self.edges = edges
        self.sample_rate = sample_rate

    def __len__(self) -> int:
        """Return the number of records M."""
        return len(self.edges)

    def __getitem__(self, indices: Tensor) -> PoissonBatch:
        """Return the batch of the records ``indices``, of shape ``(B, 2)``."""
        return PoissonBatch(self.edges[indices], self.sample_rate)


def _are_pairs(edges: Tensor, space: PairSpace) -> Tensor:
    """Return which rows are pairs of a directed or bipartite graph."""
    first, second = space.parts
    ends = space.ends(edges)
    inside = ends >= torch.tensor([first.start, second.start])
    inside &= ends < torch.tensor([first.stop, second.stop])
    return inside.all(1) & (edges[:, 0] != edges[:, 1])


class OneGraph:
    """The training records of one graph.

    Args:
        graph: Graph of the training edges, with all nodes (private); of the nodes alone beside ``whole``.
        edges: Its edges, shape ``(M, 2)``, rows that occur once (private): ``i < j``, ordered
            pairs of a directed graph, or left and right node of a bipartite one. None where a subclass
            reads them when they are asked for.
        assumptions: What a guarantee takes as public.
        private_columns: Private columns of the nodes, if there are any.
        private_labels: Labels of the nodes (private), if there are any.
        transfers: Transfers between the nodes (private), if their amounts or times are read; each is
            one of the pairs in ``edges``.
        whole: Returns the graph of the edges, if it is built only where it is asked for.
    """

    def __init__(
        self,
        graph: Data,
        edges: Tensor | None,
        assumptions: list[str],
        private_columns: PrivateColumns | None = None,
        private_labels: PrivateLabels | None = None,
        transfers: Transfers | None = None,
        whole: Callable[[], Data] | None = None,
    ) -> None:
        self.transfers = transfers
        self.private_columns = private_columns
        self.private_labels = private_labels
        self._nodes, self._whole = graph, whole
        if edges is not None:
            self.edges = edges
        self.num_nodes = int(graph.num_nodes)
        space = space_of(graph)
        self.kind: Kind = space.kind
        self.num_left = space.num_left
        self.node_names: list[str] = list(graph.node_names)
        self.assumptions = assumptions

    @cached_property
    def graph(self) -> Data:
        """Graph of the training edges, with all nodes."""
        return self._nodes if self._whole is None else self._whole()

    @property
    def classes(self) -> Tensor | None:
        """Class of each node, -1 where there is none, shape ``(N,)`` (public)."""
        classes: Tensor | None = self._nodes.y
        return classes


class AttributedGraph(OneGraph):
    """The training records of one graph whose nodes have public attributes.

    The graph has ``x`` of shape ``(N, F)`` and ``attribute_names`` (both public).
    """

    @property
    def attributes(self) -> Tensor:
        """Attributes of the N nodes, shape ``(N, F)`` (public)."""
        rows: Tensor = self._nodes.x
        return rows

    @property
    def attribute_names(self) -> list[str]:
        """Names of the F columns (public)."""
        return list(self._nodes.attribute_names)


class GraphSet:
    """The training records of a set of graphs.

    Args:
        graphs: The G graphs (private).
        edges: Edges of all of them (private), shape ``(M, 2)``, in the numbers of all nodes.
        sizes: Number of nodes of each graph (public), shape ``(G,)``.
        graph_of: Number of each node's graph (public), shape ``(N,)``.
        labels: Label of each graph (public), shape ``(G,)``; None without labels.
        max_occurrences: Largest number of rows of ``edges`` that are one edge of the private data.
        assumptions: What a guarantee takes as public.
        preparation: The assumptions because of the preparation of the data.
    """

    def __init__(
        self,
        graphs: Sequence[Data],
        edges: Tensor,
        sizes: Tensor,
        graph_of: Tensor,
        labels: Tensor | None,
        *,
        max_occurrences: int,
        assumptions: list[str],
        preparation: list[str],
    ) -> None:
        self.graphs = graphs
        self.edges = edges
        self.sizes = sizes
        self.graph_of = graph_of
        self.labels = labels
        self.max_occurrences = max_occurrences
        self.assumptions = assumptions
        self.preparation = preparation
