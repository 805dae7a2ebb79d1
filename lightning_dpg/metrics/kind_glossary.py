"""Meaning of the queries of directed and bipartite graphs, in plain words."""

from lightning_dpg.metrics.query import Query

OF_KINDS = (
    Query(
        "num_directed_edges",
        "directed edges",
        "Number of ordered pairs of nodes that are linked, in a directed graph.",
        "lower",
        "size",
    ),
    Query(
        "reciprocity",
        "reciprocity",
        "Share of directed edges whose opposite is there, too.",
        "lower",
        "clustering",
    ),
    Query(
        "out_degree_distribution_kl",
        "out-degree distribution",
        "Divergence of the distributions of the numbers of edges that leave a node; 0 for equal ones.",
        "lower",
        "degrees",
    ),
    Query(
        "in_degree_distribution_kl",
        "in-degree distribution",
        "Divergence of the distributions of the numbers of edges that reach a node; 0 for equal ones.",
        "lower",
        "degrees",
    ),
    Query(
        "butterflies",
        "butterflies",
        "Number of two left nodes with two common right neighbors, in a bipartite graph.",
        "lower",
        "clustering",
    ),
    Query(
        "left_degree_distribution_kl",
        "degree distribution of the left side",
        "Divergence of the degree distributions of the left nodes; 0 for equal ones.",
        "lower",
        "degrees",
    ),
    Query(
        "right_degree_distribution_kl",
        "degree distribution of the right side",
        "Divergence of the degree distributions of the right nodes; 0 for equal ones.",
        "lower",
        "degrees",
    ),
)
