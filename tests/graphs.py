"""Small graphs for tests."""

import networkx as nx
import torch
from torch import Tensor

EXTREMES = {
    "no edge": nx.empty_graph(8),
    "complete": nx.complete_graph(8),
    "star": nx.star_graph(30),
    "clique and lonely nodes": nx.disjoint_union(nx.complete_graph(5), nx.empty_graph(7)),
    "two nodes": nx.path_graph(2),
    "one node": nx.empty_graph(1),
}


def edges_of(graph: nx.Graph) -> Tensor:
    """Edges of shape ``(M, 2)``, the smaller node first."""
    return torch.tensor(sorted(map(sorted, graph.edges)), dtype=torch.long).view(-1, 2)
