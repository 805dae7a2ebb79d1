"""Small graphs for tests."""

from pathlib import Path

import networkx as nx
import torch
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.formats.io import from_networkx

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


def labelled(graphs: list[nx.Graph]) -> list[Data]:
    """Graphs with the labels 0 and 1 in turns."""
    converted = [from_networkx(graph) for graph in graphs]
    for number, graph in enumerate(converted):
        graph.y = torch.tensor([number % 2])
    return converted


def write_tu_set(folder: Path, graphs: list[nx.Graph], labels: list[int] | None = None) -> None:
    """Write graphs of numbered nodes, and their labels, as a set of the TU collection."""
    union = nx.disjoint_union_all(graphs)
    files = {
        "A": [f"{u + 1}, {v + 1}" for a, b in union.edges for u, v in ((a, b), (b, a))],
        "graph_indicator": [number + 1 for number, graph in enumerate(graphs) for _ in graph],
    }
    folder.mkdir()
    for name, lines in (files if labels is None else files | {"graph_labels": labels}).items():
        (folder / f"tiny_{name}.txt").write_text("".join(f"{line}\n" for line in lines))
