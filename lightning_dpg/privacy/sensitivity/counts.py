"""Sensitivity of numbers of edges: of a graph, of graphs, between groups of nodes."""


def edge_count_sensitivity() -> int:
    """Sensitivity of the number of undirected edges under adding or removing an edge: 1.

    Each undirected edge is counted once, and neighboring graphs differ in one of them. So is each
    ordered pair of a directed graph, and each edge between the sides of a bipartite one.
    """
    return 1


def edges_per_graph_sensitivity(max_occurrences: int) -> int:
    """L1 sensitivity of the vector of edge counts of a set's graphs under adding an edge: k.

    Graphs of a set share no nodes, so each edge of the set is in one graph and counted in one
    cell. An edge of the private data is at most k edges of the set: one, if the set itself is the
    data, and at most k if its graphs were cut from a larger one. Adding or removing it moves at most
    k counts by 1, or fewer counts by k together.

    Args:
        max_occurrences: How many edges k of the set one private edge can be.

    Returns:
        k.
    """
    return max_occurrences


def pair_bit_sensitivity() -> int:
    """Number of node pairs whose bit changes when an undirected edge is added or removed: 1.

    The bits of the N (N - 1) / 2 pairs i < j say which are edges. Randomized response reports each
    on its own, so the two laws of all reports differ by the factor of that one bit. A directed
    graph has a bit for each of N (N - 1) ordered pairs, a bipartite one for each pair of a left and
    a right node, and an edge is one of them.
    """
    return 1


def edge_partition_sensitivity() -> int:
    """L1 sensitivity of the numbers of edges by classes of their ends under adding an edge: 1.

    The classes of the nodes are public or functions of earlier releases, so every pair of nodes
    belongs to one pair of classes, whether linked or not, and an edge is counted there alone. Where
    the ends of an edge have an order, as in a directed or a bipartite graph, so have the classes.
    """
    return 1


def branch_sensitivity() -> int:
    """L1, and L2, sensitivity of the numbers of edges that the branches of a dendrogram divide: 1.

    The dendrogram is a function of earlier releases. Each pair of nodes is divided by one branch, and
    an edge is counted there alone.
    """
    return 1
