"""Sets of graphs cut from one graph: ego graphs, or subgraphs on random nodes."""

from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.io import read_planetoid_data

from lightning_dpg.datamodules.batches import PoissonRecords
from lightning_dpg.datamodules.graph_set import GraphSetDataModule
from lightning_dpg.datamodules.held_out import public_coin
from lightning_dpg.datamodules.identity import identity_of
from lightning_dpg.datamodules.loading import GraphSource, load_reading
from lightning_dpg.errors import Refusal
from lightning_dpg.formats.conversion import GraphReading, NodeSet, with_edges
from lightning_dpg.formats.graph_places import data_root
from lightning_dpg.formats.row_names import refuse_rows
from lightning_dpg.graph.graph import adjacency, largest_component, make_graph, undirected_edges
from lightning_dpg.interfaces import Identity
from lightning_dpg.privacy.sampling import PoissonBatch


class SubgraphDataModule(GraphSetDataModule):
    """Subgraphs of one graph, which may share nodes; they keep its names and features.

    An ego graph has the class of its central node for a label, if the nodes of the graph have
    classes: ``y`` of a graph of PyTorch Geometric, or ``graphs/NAME.labels.txt.gz``.

    One edge of the whole graph could be in many subgraphs, and would then change all of them. It is
    kept in at most ``max_occurrences``: a public coin chooses among the subgraphs that hold both
    its ends. Batches draw edges of the whole graph, and hold all their occurrences.

    The nodes of ``kind: nodes`` are drawn without reading edges. The nodes of ``kind: ego`` are
    found by reading edges, which becomes an assumption of the guarantee: it protects no link of a
    center.

    >>> data = SubgraphDataModule("karate", size=8, num_subgraphs=3)
    >>> data.setup("fit")
    >>> data.sizes.tolist()
    [8, 8, 8]
    """

    def __init__(
        self,
        name: GraphSource = "les_miserables",
        *,
        kind: Literal["ego", "nodes"] = "nodes",
        num_subgraphs: int = 20,
        hops: int = 1,
        size: int = 20,
        max_occurrences: int = 1,
        steps_per_epoch: int | None = None,
        undirected: bool = False,
        largest_component: bool = False,
        num_graphs: int = 1,
        seed: int = 0,
    ) -> None:
        """Store the arguments; ``setup`` checks them and reads the graph.

        Args:
            name: Built-in graph, data set under ``$LIGHTNING_DPG_DATA``, also in
                ``planetoid/NAME``, path of a file, or from Python what
                :class:`EdgeListDataModule` takes.
            kind: Ego graphs of random nodes, or subgraphs on random sets of nodes.
            num_subgraphs: Number of subgraphs G.
            hops: Largest distance from the central node of an ego graph.
            size: Number of nodes of a subgraph on random nodes.
            max_occurrences: Largest number of subgraphs that keep one edge.
            steps_per_epoch: Batches per epoch of methods that do not say it themselves; 1 / q
                rounded up by default.
            undirected: Drop the directions of a directed graph instead of refusing it.
            largest_component: Cut subgraphs out of the largest connected component only. It is
                found by looking at the private edges, which becomes an assumption of the guarantee.
            num_graphs: Number of graphs to generate in ``predict``, from the seeds 0, 1, ...
            seed: Seed of the choice of nodes and of the coin (public).
        """
        super().__init__(
            [], steps_per_epoch=steps_per_epoch, undirected=undirected, num_graphs=num_graphs
        )
        self.whole = name
        self.kind = kind
        self.num_subgraphs = num_subgraphs
        self.hops = hops
        self.size = size
        self.max_occurrences = max_occurrences
        self.largest_component = largest_component
        self.seed = seed

    def identity(self) -> Identity:
        """Return the canonical content of the whole graph (private), after ``setup``."""
        return identity_of([self._whole])

    def read_graphs(self) -> list[Data]:
        """Return the subgraphs (private)."""
        reading = _load(self.whole, undirected=self.undirected)
        refuse_rows(reading)
        whole, self.summary = reading.graph, reading.summary
        self._whole = whole
        if reading.node_set in (NodeSet.LINES, NodeSet.LARGEST):
            self.assumptions.append(
                "the node set of the whole graph (although read off the private lines)"
            )
        if self.largest_component:
            total, whole = whole.num_nodes, largest_component(whole)
            self.assumptions.append(
                f"the largest component, {whole.num_nodes} of {total} nodes (although found by "
                "looking at the private edges)"
            )
        centers, node_sets = self._node_sets(whole)
        edge_sets = occurrences(whole, node_sets, self.max_occurrences, self.seed)
        graphs = []
        for nodes, edges in zip(node_sets, edge_sets, strict=True):
            names = [whole.node_names[node] for node in nodes]
            graph = make_graph(torch.from_numpy(np.searchsorted(nodes, edges)), len(nodes), names)
            if whole.x is not None:
                graph.x = whole.x[torch.from_numpy(nodes)]
            graphs.append(graph)
        if whole.y is not None:
            for center, graph in zip(centers.tolist(), graphs, strict=False):  # none of kind: nodes
                graph.y = whole.y[center : center + 1]
        self._nodes = torch.from_numpy(np.concatenate(node_sets))
        if self.kind == "ego":
            self.assumptions.append(_ego_assumption(len(centers), self.hops))
        self.assumptions.append(
            f"that an edge of the whole graph is kept in at most {self.max_occurrences} of the "
            f"{len(graphs)} subgraphs, by a public coin"
        )
        return graphs

    def edge_records(self, sample_rate: float) -> PoissonRecords:
        """Return records of edges of the whole graph, each with all its occurrences."""
        ends = self._nodes[self.edges].sort(dim=1).values
        _, record_of = torch.unique(ends, dim=0, return_inverse=True)
        return RepeatedEdgeRecords(self.edges, record_of, sample_rate)

    def _check_arguments(self) -> None:
        super()._check_arguments()
        if self.kind not in ("ego", "nodes"):
            raise Refusal(f"kind must be 'ego' or 'nodes', got {self.kind!r}")
        for argument in ("num_subgraphs", "hops", "size", "max_occurrences"):
            if getattr(self, argument) < 1:
                raise Refusal(f"{argument} must be positive, got {getattr(self, argument)}")

    def _node_sets(self, whole: Data) -> tuple[NDArray[np.int64], list[NDArray[np.int64]]]:
        """Return central nodes, none of ``kind: nodes``, and the sorted nodes of each subgraph."""
        rng = np.random.default_rng(self.seed)
        num_nodes = int(whole.num_nodes)
        if self.kind == "nodes":
            if self.size > num_nodes:
                raise Refusal(f"size {self.size} exceeds the {num_nodes} nodes of the graph")
            count = self.num_subgraphs
            parts = [np.sort(rng.choice(num_nodes, self.size, replace=False)) for _ in range(count)]
            return np.empty(0, dtype=np.int64), parts
        if self.num_subgraphs > num_nodes:
            raise Refusal(
                f"num_subgraphs {self.num_subgraphs} exceeds the {num_nodes} nodes of the graph"
            )
        centers = rng.choice(num_nodes, self.num_subgraphs, replace=False)
        return centers, ego_nodes(whole, centers, self.hops)


class RepeatedEdgeRecords(PoissonRecords):
    """Training records of edges that may occur several times in a set (private).

    Args:
        edges: Edges of shape ``(M, 2)``.
        record_of: Number of the record of each edge, shape ``(M,)``, from 0 to R - 1.
        sample_rate: Probability with which each record is drawn into a batch.
    """

    def __init__(self, edges: Tensor, record_of: Tensor, sample_rate: float) -> None:
        self.edges = edges[record_of.argsort(stable=True)]
        self.counts = torch.bincount(record_of)
        self.ends = self.counts.cumsum(0)
        self.sample_rate = sample_rate

    def __len__(self) -> int:
        """Return the number of records R."""
        return len(self.counts)

    def __getitem__(self, indices: Tensor) -> PoissonBatch:
        """Return all edges of the records ``indices``, of shape ``(B, 2)``."""
        counts = self.counts[indices]
        # Both index sequences count down to the end of each record.
        shift = (self.ends[indices] - counts.cumsum(0)).repeat_interleave(counts)
        return PoissonBatch(self.edges[torch.arange(len(shift)) + shift], self.sample_rate)


def ego_nodes(graph: Data, centers: NDArray[np.int64], hops: int) -> list[NDArray[np.int64]]:
    """Return nodes at most ``hops`` links from each center, ascending (reads the private graph)."""
    count = len(centers)
    shape = (count, int(graph.num_nodes))
    reached = csr_array((np.ones(count), (np.arange(count), centers)), shape=shape)
    links = adjacency(graph)
    for _ in range(hops):
        reached = (reached + reached @ links).sign()
    reached.sort_indices()
    return [part.astype(np.int64) for part in np.split(reached.indices, reached.indptr[1:-1])]


def _ego_assumption(num_centers: int, hops: int) -> str:
    """Return what is assumed public because sizes of ego graphs are released."""
    what = (
        "all links of the centers, whose degrees plus one are the released sizes (the guarantee is "
        "about all other links)"
        if hops == 1
        else f"who is at most {hops} links away from a center, which the released sizes count (the "
        "guarantee is about links that bring no node that near, nor any farther)"
    )
    return (
        f"the nodes of the {num_centers} ego graphs, although found by looking at the private edges, "
        f"and with them {what}"
    )


def occurrences(
    graph: Data, node_sets: list[NDArray[np.int64]], most: int, seed: int
) -> list[NDArray[np.int64]]:
    """Choose the edges of each subgraph without letting an edge affect another one.

    An edge belongs to the subgraphs that hold both its ends. It is kept in ``most`` consecutive
    ones, from a number on that a coin chooses, which depends on the seed and on the names of the
    ends only.

    Args:
        graph: The whole graph (private).
        node_sets: Nodes of each of the G subgraphs, ascending (public).
        most: Largest number of subgraphs that keep an edge.
        seed: Seed of the coin (public).

    Returns:
        For each subgraph its edges, nodes of the whole graph, shape ``(M_g, 2)``.
    """
    edges = undirected_edges(graph)
    count, sizes = len(node_sets), [len(nodes) for nodes in node_sets]
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    members = csr_array(
        (np.ones(indptr[-1]), np.concatenate(node_sets), indptr), shape=(count, graph.num_nodes)
    ).T.tocsr()
    both = (members[edges[:, 0].numpy()] * members[edges[:, 1].numpy()]).tocoo()
    edge, subgraph = both.coords
    start = (public_coin(graph.node_names, edges, seed) * count).long().numpy()
    order = np.lexsort(((subgraph - start[edge]) % count, edge))
    edge, subgraph = edge[order], subgraph[order]
    rank = np.arange(len(edge)) - np.searchsorted(edge, edge)
    edge, subgraph = edge[rank < most], subgraph[rank < most]
    by_subgraph = np.argsort(subgraph, kind="stable")
    parts = np.searchsorted(subgraph[by_subgraph], np.arange(1, count))
    return np.split(edges.numpy()[edge[by_subgraph]], parts)


def _load(source: GraphSource, *, undirected: bool) -> GraphReading:
    """Load a graph with the features and the classes of its nodes, if it has any."""
    root, classes = data_root(), None
    if root is not None and isinstance(source, str) and Path(source).name == source:
        raw = root / "planetoid" / source / "raw"
        labels = root / "graphs" / f"{source}.labels.txt.gz"
        if raw.is_dir():
            source = read_planetoid_data(str(raw), source)
        elif labels.is_file():
            classes = torch.from_numpy(np.loadtxt(labels, dtype=np.int64))
    reading = with_edges(load_reading(source, undirected=undirected))
    if classes is not None and classes.shape == (reading.nodes.num_nodes,):
        reading.nodes.y = classes
    return reading
