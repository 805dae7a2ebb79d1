r"""Exact counts in each graph of a set: of walks, and of connected induced subgraphs with 3, 4 and 5 nodes.

A homomorphism maps the nodes of a pattern to nodes of a graph so that edges become edges. For a
connected pattern F, the homomorphisms into a graph are a sum over its connected node sets S,

.. math:: \hom(F, G) = \sum_S |\{\text{homomorphisms of F onto all nodes of } G[S]\}|,

in which a summand depends on the type of G[S] only. All patterns together are a linear system,
triangular in the order of nodes and edges, which turns homomorphisms into induced subgraphs. The
homomorphisms themselves are sums of products of sparse matrices: of paths of two edges, of
triangles on an edge, of cliques of four on a triangle.
"""

from collections.abc import Iterator
from functools import cache
from itertools import product

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from torch import Tensor

from lightning_dpg.errors import Refusal

GRAPHLETS: dict[int, dict[str, str]] = {
    3: {"path_3": "01 12", "triangle": "01 02 12"},
    4: {
        "claw": "01 02 03",
        "path_4": "01 12 23",
        "paw": "01 02 12 03",
        "cycle_4": "01 12 23 03",
        "diamond": "01 02 12 13 23",
        "clique_4": "01 02 03 12 13 23",
    },
    5: {
        "star": "01 02 03 04",
        "fork": "01 02 03 14",
        "path_5": "01 12 23 34",
        "cricket": "01 02 12 03 04",
        "bull": "01 02 12 03 14",
        "lollipop": "01 02 12 03 34",
        "banner": "01 12 23 03 04",
        "cycle_5": "01 12 23 34 04",
        "dart": "01 02 12 13 23 14",
        "butterfly": "01 02 12 03 04 34",
        "kite": "01 02 12 13 23 04",
        "house": "01 12 23 34 04 14",
        "biclique": "02 03 04 12 13 14",
        "book": "01 02 03 04 12 13 14",
        "flag": "01 02 03 12 13 23 04",
        "gem": "01 02 03 04 12 23 34",
        "braced_biclique": "02 03 04 12 13 14 23",
        "clique_4_and_triangle": "01 02 03 12 13 23 04 14",
        "wheel": "01 02 03 04 12 23 34 14",
        "almost_clique": "01 02 03 04 12 13 14 23 24",
        "clique_5": "01 02 03 04 12 13 14 23 24 34",
    },
}
"""Types by number of nodes, in the order of the counts, each with the edges of an example."""
_PATHS = 2_000_000  # in memory at a time


def graphlet_counts(edges: Tensor, graph_of: Tensor, num_graphs: int, size: int) -> Tensor:
    """Count the connected induced subgraphs of ``size`` nodes in each graph by type.

    Time and memory grow with the number of two-edge paths. For 5 nodes time also grows with the
    number of three-edge paths and of cliques of four.

    Args:
        edges: Edges of all graphs, rows ``i < j`` of shape ``(M, 2)``.
        graph_of: Graph of each node, shape ``(N,)``.
        num_graphs: Number of graphs G.
        size: Number of nodes of the subgraphs: 3, 4 or 5.

    Returns:
        Whole numbers of shape ``(G, F)``, types as in ``GRAPHLETS[size]``. Not noisy: release only
        through a mechanism.

    Raises:
        Refusal: If ``size`` is another one, or numbers on the way may not fit into 64 bits.
    """
    if size not in GRAPHLETS:
        raise Refusal(f"size must be one of {', '.join(map(str, GRAPHLETS))}, got {size}")
    matrix = adjacency_matrix(edges, len(graph_of))
    degree = np.diff(matrix.indptr).astype(np.float64)
    # Of all trees of a size the star has the most homomorphisms (Sidorenko, "A partially ordered
    # set of functionals corresponding to graphs", 1994), and a pattern no more than its trees.
    if (degree ** (size - 1)).sum() > 2.0**62:
        raise Refusal(f"degrees up to {int(degree.max())} are too large to count: truncate them")
    rooted = _homomorphisms(matrix, edges.cpu().numpy(), size)
    columns = np.stack([rooted[name] for name in _patterns(size)], axis=1)
    homs = membership_matrix(graph_of, num_graphs) @ columns
    return torch.from_numpy(_induced(homs, size)[:, -len(GRAPHLETS[size]) :])


def adjacency_matrix(edges: Tensor, num_nodes: int) -> csr_array:
    """Return the symmetric 0/1 matrix of integers with sorted rows, shape ``(N, N)``."""
    first, second = edges.cpu().numpy().T
    ends = np.concatenate([first, second]), np.concatenate([second, first])
    ones = np.ones(len(ends[0]), dtype=np.int64)
    matrix = csr_array((ones, ends), shape=(num_nodes, num_nodes))
    matrix.sort_indices()
    return matrix


def membership_matrix(graph_of: Tensor, num_graphs: int) -> csr_array:
    """Return the 0/1 matrix ``(G, N)`` of graphs and nodes: a product sums over each graph."""
    num_nodes = len(graph_of)
    where = (graph_of.cpu().numpy(), np.arange(num_nodes))
    return csr_array((np.ones(num_nodes, dtype=np.int64), where), shape=(num_graphs, num_nodes))


def blocks(weights: NDArray[np.int64], limit: int) -> Iterator[slice]:
    """Yield slices of rows whose weights sum to at most ``limit``, or of a single row."""
    before = np.concatenate([[0], np.cumsum(weights)])
    start = 0
    while start < len(weights):
        stop = int(np.searchsorted(before, before[start] + limit, side="right")) - 1
        stop = max(stop, start + 1)
        yield slice(start, stop)
        start = stop


def _homomorphisms(
    matrix: csr_array, pairs: NDArray[np.int64], size: int
) -> dict[str, NDArray[np.int64]]:
    """Count homomorphisms of each pattern up to ``size``, shape ``(N,)``.

    They are counted by the image of one fixed node of the pattern.
    """
    degree = np.diff(matrix.indptr).astype(np.int64)
    second = matrix @ degree
    closed = _closed_edges(matrix, pairs)
    on_edge = closed.sum(axis=1)
    # Triangles on an edge, at both of its orientations
    triangles = _symmetric(pairs, on_edge, len(degree))
    at_node = triangles.sum(axis=1)
    homs = {"edge": degree, "path_3": degree**2, "triangle": at_node}
    if size == 3:
        return homs
    homs |= _paths_between(matrix, triangles, closed, size)
    homs |= _cliques(matrix, pairs, closed, size)
    homs |= {
        "claw": degree**3,
        "path_4": degree * second,
        "paw": degree * at_node,
        "diamond": (triangles**2).sum(axis=1),
    }
    if size == 4:
        return homs
    return homs | {
        "star": degree**4,
        "fork": degree**2 * second,
        "path_5": second**2,
        "cricket": degree**2 * at_node,
        "bull": degree * (triangles @ degree),
        "lollipop": second * at_node,
        "banner": degree * homs["cycle_4"],
        "butterfly": at_node**2,
        "dart": degree * homs["diamond"],
        "flag": degree * homs["clique_4"],
        "book": (triangles**3).sum(axis=1),
    }


def _closed_edges(matrix: csr_array, pairs: NDArray[np.int64]) -> csr_array:
    """Return the 0/1 matrix ``(M, N)`` of edges and nodes that form a triangle."""
    degree = np.diff(matrix.indptr)
    parts = [
        matrix[pairs[block, 0]].multiply(matrix[pairs[block, 1]]).tocsr()
        for block in blocks(degree[pairs].sum(axis=1), _PATHS)
    ]
    return vstack([csr_array((0, len(degree)), dtype=np.int64), *parts], format="csr")


def _paths_between(
    matrix: csr_array, triangles: csr_array, closed: csr_array, size: int
) -> dict[str, NDArray[np.int64]]:
    """Count homomorphisms of patterns in which paths of two or three edges share their ends."""
    degree = np.diff(matrix.indptr).astype(np.int64)
    paths = matrix @ degree if size == 4 else matrix @ (matrix @ degree)
    names = ["cycle_4"]
    if size == 5:
        names += ["cycle_5", "house", "biclique", "braced_biclique", "gem", "kite"]
    homs = {name: np.zeros(len(degree), dtype=np.int64) for name in names}
    closing = closed.T.tocsr()
    for block in blocks(paths, _PATHS):
        two = matrix[block] @ matrix
        squared = two.multiply(two)
        homs["cycle_4"][block] = squared.sum(axis=1)
        if size == 4:
            continue
        three, around = two @ matrix, triangles[block] @ matrix
        homs["cycle_5"][block] = three.multiply(two).sum(axis=1)
        homs["house"][block] = three.multiply(triangles[block]).sum(axis=1)
        homs["biclique"][block] = squared.multiply(two).sum(axis=1)
        # Edges both of whose ends are linked to both nodes
        rungs = closing[block] @ closed
        homs["braced_biclique"][block] = 2 * rungs.multiply(two).sum(axis=1)
        homs["gem"][block] = around.multiply(triangles[block]).sum(axis=1)
        diamonds = (matrix[block] @ triangles).multiply(matrix[block]).sum(axis=1)
        homs["kite"][block] = degree[block] * diamonds
    return homs


def _cliques(
    matrix: csr_array, pairs: NDArray[np.int64], closed: csr_array, size: int
) -> dict[str, NDArray[np.int64]]:
    """Count homomorphisms of patterns in which three triangles or more share a node."""
    num_nodes = matrix.shape[0]
    degree = np.diff(matrix.indptr).astype(np.int64)
    names = ["clique_4"]
    if size == 5:
        names += ["wheel", "clique_4_and_triangle", "almost_clique", "clique_5"]
    homs = {name: np.zeros(num_nodes, dtype=np.int64) for name in names}
    for block in blocks(closed @ degree, _PATHS):
        ends, thirds = pairs[block].T, closed[block]
        # Common neighbors of an edge that are linked to a node, in a row per edge; then fourth
        # nodes of the cliques around a triangle
        linked = thirds @ matrix
        fourths = linked.multiply(thirds).tocsr()
        on_edge = fourths.sum(axis=1)
        for nodes in ends:
            np.add.at(homs["clique_4"], nodes, on_edge)
        if size == 4:
            continue
        squared = linked.multiply(linked)
        for nodes in ends:
            np.add.at(homs["wheel"], nodes, squared.multiply(matrix[nodes]).sum(axis=1))
        nodes = ends[0]
        np.add.at(homs["clique_4_and_triangle"], nodes, 2 * on_edge * thirds.sum(axis=1))
        np.add.at(homs["almost_clique"], nodes, 2 * fourths.multiply(fourths).sum(axis=1))
        # Triangles, each once, that two further nodes may make a clique of 5
        triples = fourths.tocoo()
        chosen = (triples.data > 1) & (triples.col > ends[1][triples.row])
        row, third = triples.row[chosen], triples.col[chosen]
        inside = thirds[row].multiply(matrix[third]).tocsr()
        np.add.at(homs["clique_5"], nodes[row], 6 * (inside @ matrix).multiply(inside).sum(axis=1))
    return homs


def _symmetric(pairs: NDArray[np.int64], values: NDArray[np.int64], num_nodes: int) -> csr_array:
    """Build the symmetric matrix of a value per edge, shape ``(N, N)``."""
    rows, columns = np.concatenate([pairs, pairs[:, ::-1]]).T
    both = np.concatenate([values, values])
    return csr_array((both, (rows, columns)), shape=(num_nodes, num_nodes))


def _patterns(size: int) -> dict[str, str]:
    """Return the connected graphs of 2 to ``size`` nodes: their edges by name."""
    types = [GRAPHLETS[nodes] for nodes in range(3, size + 1)]
    return {"edge": "01"} | {name: edges for of_size in types for name, edges in of_size.items()}


def _induced(homs: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Solve for the induced subgraphs of each pattern, shape ``(G, patterns)``."""
    onto, patterns = _onto(size), _patterns(size)
    nodes = [len({*edges} - {" "}) for edges in patterns.values()]
    links = [len(edges.split()) for edges in patterns.values()]
    counts = np.zeros_like(homs)
    # Patterns map onto sets of fewer nodes, or as many with more edges; these are known first.
    for row in sorted(range(len(patterns)), key=lambda row: (nodes[row], -links[row])):
        counts[:, row] = (homs[:, row] - counts @ onto[row]) // onto[row, row]
    return counts


@cache
def _onto(size: int) -> NDArray[np.int64]:
    """Count homomorphisms of a pattern (row) onto all nodes of another one (column)."""
    patterns = [
        np.array([[*map(int, edge)] for edge in e.split()]) for e in _patterns(size).values()
    ]
    onto = np.zeros((len(patterns), len(patterns)), dtype=np.int64)
    for column, target in enumerate(patterns):
        nodes = target.max() + 1
        linked = np.zeros((nodes, nodes), dtype=bool)
        linked[target[:, 0], target[:, 1]] = linked[target[:, 1], target[:, 0]] = True
        for row, pattern in enumerate(patterns):
            maps = _surjections(int(pattern.max()) + 1, int(nodes))
            onto[row, column] = linked[maps[:, pattern[:, 0]], maps[:, pattern[:, 1]]].all(1).sum()
    return onto


@cache
def _surjections(size: int, onto: int) -> NDArray[np.int64]:
    """List the maps of ``size`` nodes onto ``onto`` nodes, shape ``(maps, size)``."""
    maps = np.array(list(product(range(onto), repeat=size)))
    return maps[[len(set(images)) == onto for images in maps.tolist()]]


def walk_counts(edges: Tensor, graph_of: Tensor, num_graphs: int, length: int) -> Tensor:
    r"""Count walks :math:`1^T A^l 1` of each length :math:`l = 1, \dots, L` in each graph.

    Args:
        edges: Edges of all graphs, rows ``i < j`` of shape ``(M, 2)``.
        graph_of: Graph of each node, shape ``(N,)``.
        num_graphs: Number of graphs G.
        length: Largest length L.

    Returns:
        Whole numbers of shape ``(G, L)``. Not noisy: release only through a mechanism.

    Raises:
        Refusal: If all walks of a length are more than 2^62, which 64 bits might not hold.
    """
    matrix = adjacency_matrix(edges, len(graph_of))
    members = membership_matrix(graph_of, num_graphs)
    degree = np.diff(matrix.indptr).astype(np.float64)
    counts = np.empty((num_graphs, length), dtype=np.int64)
    walks = np.ones(len(graph_of), dtype=np.int64)
    for step in range(length):
        # The sum after the step, before anything can overflow
        if degree @ walks > 2.0**62:
            raise Refusal(
                f"more than 2^62 walks of length {step + 1}: lower the length or truncate"
            )
        walks = matrix @ walks
        counts[:, step] = members @ walks
    return torch.from_numpy(counts)
