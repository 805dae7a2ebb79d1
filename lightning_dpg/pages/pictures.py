"""Graphs on equal nodes, and their sizes in words."""

from torch_geometric.data import Data

from lightning_dpg.metrics.alignment import align
from lightning_dpg.metrics.functional import degrees
from lightning_dpg.pages.page import plural


def aligned(graph: Data, real: Data) -> Data:
    """Put a graph on the node numbers of the real graph, if the nodes can be matched.

    Nodes that the real graph lacks have numbers behind its own.
    """
    alignment = align(graph, real)
    return graph if alignment is None else alignment.graph


def size_of(graph: Data) -> str:
    """Return the numbers of nodes and edges, and of nodes without an edge, as a text."""
    isolated = int((degrees(graph) == 0).sum())
    facts = f"{plural(graph.num_nodes, 'node')}, {plural(graph.num_edges // 2, 'edge')}"
    return f"{facts}, {plural(isolated, 'node')} without any" if isolated else facts
