"""Families of synthetic graphs on which methods for links are measured.

A graph is named ``FAMILY:NODES:DEGREE``, such as ``blocks:4000:40``; its seed is fixed.
"""

import math
from collections.abc import Callable

import networkx as nx
import numpy as np

SEED = 1
_MIXED = 0.3  # part of the edges of uneven blocks with both ends anywhere
_INSIDE = 0.8  # part of the edges of equal blocks within a block


def blocks(num_nodes: int, degree: int, num_blocks: int = 10) -> nx.Graph:
    """Draw equal blocks: four fifths of the edges are within one, and degrees hardly vary."""
    size = num_nodes // num_blocks
    inside = min(_INSIDE * degree / size, 1)
    outside = (1 - _INSIDE) * degree / (num_nodes - size)
    return nx.planted_partition_graph(num_blocks, size, inside, outside, seed=SEED)


def uneven_blocks(num_nodes: int, degree: int) -> nx.Graph:
    """Draw blocks whose sizes follow a power law, of nodes whose expected degrees do, too."""
    rng = np.random.default_rng(SEED)
    sizes: list[int] = []
    while sum(sizes) < num_nodes:
        sizes.append(int(min(num_nodes // 8, 20 / (1 - rng.random()))))
    labels = np.repeat(np.arange(len(sizes)), sizes)[:num_nodes]
    weights = np.minimum((1 - rng.random(num_nodes)) ** (-1 / 1.5), math.sqrt(num_nodes) / 2)
    weights *= degree / weights.mean()
    num_edges = num_nodes * degree / 2
    pairs: set[tuple[int, int]] = set()

    def draw(nodes: np.ndarray, count: int) -> None:
        shares = weights[nodes] / weights[nodes].sum()
        ends = [nodes[rng.choice(len(nodes), count, p=shares)].tolist() for _ in range(2)]
        pairs.update((min(a, b), max(a, b)) for a, b in zip(*ends, strict=True) if a != b)

    draw(np.arange(num_nodes), int(num_edges * _MIXED))
    for label in range(labels.max() + 1):
        nodes = np.flatnonzero(labels == label)
        share = weights[nodes].sum() / weights.sum()
        draw(nodes, round(num_edges * (1 - _MIXED) * share))
    graph = nx.empty_graph(num_nodes)
    graph.add_edges_from(pairs)
    return graph


FAMILIES: dict[str, Callable[[int, int], nx.Graph]] = {
    "blocks": blocks,
    "30 blocks": lambda num_nodes, degree: blocks(num_nodes, degree, 30),
    "uneven blocks": uneven_blocks,
    "attachment": lambda num_nodes, degree: nx.barabasi_albert_graph(
        num_nodes, degree // 2, seed=SEED
    ),
    "geometric": lambda num_nodes, degree: nx.random_geometric_graph(
        num_nodes, math.sqrt(degree / (math.pi * num_nodes)), seed=SEED
    ),
    "caveman": lambda num_nodes, degree: nx.relaxed_caveman_graph(
        num_nodes // (degree + 1), degree + 1, 0.3, seed=SEED
    ),
    "small world": lambda num_nodes, degree: nx.watts_strogatz_graph(
        num_nodes, degree, 0.3, seed=SEED
    ),
    "clustered attachment": lambda num_nodes, degree: nx.powerlaw_cluster_graph(
        num_nodes, degree // 2, 0.8, seed=SEED
    ),
}
"""Function of the number of nodes and the mean degree, by name of the family."""


def drawn(name: str) -> nx.Graph:
    """Draw a graph by its name.

    Args:
        name: ``FAMILY:NODES:DEGREE``.
    """
    family, num_nodes, degree = name.split(":")
    graph = FAMILIES[family](int(num_nodes), int(degree))
    simple = nx.empty_graph(graph.number_of_nodes())
    simple.add_edges_from((a, b) for a, b in graph.edges if a != b)
    return simple
