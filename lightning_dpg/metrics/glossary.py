"""Meaning of every query, in plain words: one table for reports, help texts and documentation."""

from lightning_dpg.metrics.kind_glossary import OF_KINDS
from lightning_dpg.metrics.node_glossary import OF_NODES
from lightning_dpg.metrics.query import GROUPS, Group, Query

__all__ = ["GLOSSARY", "GRAPH_GLOSSARY", "GROUPS", "NODE_GLOSSARY", "Group", "Query"]

_OF_GRAPHS = (
    Query("num_nodes", "nodes", "Number of nodes.", "lower", "size"),
    Query("num_edges", "edges", "Number of edges.", "lower", "size"),
    Query(
        "largest_component_size",
        "largest component",
        "Number of nodes in the largest connected part of the graph.",
        "lower",
        "size",
    ),
    Query(
        "num_components",
        "components",
        "Number of connected parts; a node without an edge is a part of its own.",
        "lower",
        "size",
    ),
    Query("avg_degree", "mean degree", "Mean number of neighbors of a node.", "lower", "degrees"),
    Query("max_degree", "largest degree", "Largest number of neighbors.", "lower", "degrees"),
    Query(
        "degree_variance",
        "variance of degrees",
        "Spread of the numbers of neighbors around their mean.",
        "lower",
        "degrees",
    ),
    Query(
        "degree_distribution_kl",
        "degree distribution",
        "Divergence of the degree distributions; 0 for equal ones, large where the synthetic graph "
        "lacks degrees of the real graph.",
        "lower",
        "degrees",
    ),
    Query(
        "degree_cosine",
        "similarity of degrees",
        "Cosine similarity of the numbers of nodes of each degree up to 50.",
        "higher",
        "degrees",
    ),
    Query(
        "power_law_exponent",
        "power-law exponent",
        "Exponent of a power law fitted to the degrees; it is small where a few nodes have very "
        "many neighbors.",
        "lower",
        "degrees",
    ),
    Query(
        "gini",
        "Gini coefficient",
        "Inequality of the degrees: 0 if all nodes have equally many neighbors.",
        "lower",
        "degrees",
    ),
    Query(
        "relative_edge_distribution_entropy",
        "entropy of edge ends",
        "Evenness of the degrees: 1 if all nodes have equally many neighbors.",
        "lower",
        "degrees",
    ),
    Query(
        "assortativity",
        "assortativity",
        "Correlation of the degrees at both ends of an edge: positive if hubs link to hubs.",
        "lower",
        "degrees",
    ),
    Query(
        "eigenvector_centrality_mae",
        "centrality of hubs",
        "Mean difference of the largest 1 % of the eigenvector centralities, whichever nodes have "
        "them.",
        "lower",
        "degrees",
    ),
    Query(
        "wedges",
        "pairs of neighbors",
        "Number of pairs of edges that meet in a node.",
        "lower",
        "degrees",
    ),
    Query(
        "claws",
        "triples of neighbors",
        "Number of triples of edges that meet in a node.",
        "lower",
        "degrees",
    ),
    Query(
        "diameter",
        "diameter",
        "Largest distance between two connected nodes, in edges.",
        "lower",
        "paths",
    ),
    Query(
        "avg_path_length",
        "mean distance",
        "Mean distance between two connected nodes, in edges.",
        "lower",
        "paths",
    ),
    Query(
        "distance_distribution_kl",
        "distance distribution",
        "Divergence of the distributions of distances; 0 for equal ones.",
        "lower",
        "paths",
    ),
    Query(
        "triangles",
        "triangles",
        "Number of triples of nodes that are all linked to each other.",
        "lower",
        "clustering",
    ),
    Query(
        "global_clustering",
        "global clustering",
        "Share of the pairs of edges with a common end that a third edge closes to a triangle.",
        "lower",
        "clustering",
    ),
    Query(
        "avg_clustering",
        "mean local clustering",
        "Mean over the nodes of the share of their neighbors' pairs that are linked.",
        "lower",
        "clustering",
    ),
    Query(
        "cluster",
        "triangles per claw",
        "Three times the number of triangles, per triple of edges that meet in a node.",
        "lower",
        "clustering",
    ),
    Query(
        "motif_cosine",
        "small patterns",
        "Cosine similarity of the counts of the 29 connected patterns of 3 to 5 nodes.",
        "higher",
        "clustering",
    ),
    Query(
        "modularity",
        "modularity",
        "Strength of the communities: the share of edges inside them, beyond chance.",
        "lower",
        "communities",
    ),
    Query(
        "community_nmi",
        "shared communities (NMI)",
        "Normalized mutual information of the communities found in both graphs; unrelated small "
        "communities also agree to some degree.",
        "higher",
        "communities",
    ),
    Query(
        "community_ami",
        "shared communities (AMI)",
        "Agreement of the communities found in both graphs beyond chance: 0 for unrelated ones.",
        "higher",
        "communities",
    ),
    Query(
        "community_f1",
        "shared communities (F1)",
        "Mean overlap of each community with the most similar one in the other graph.",
        "higher",
        "communities",
    ),
    Query(
        "edge_overlap",
        "repeated edges",
        "Share of the real edges that the synthetic graph has too; 1 is a copy of the real graph.",
        "higher",
        "copies",
    ),
)
_OF_SETS_AND_LABELS = (
    Query(
        "LCC",
        "largest component",
        "Number of nodes in the largest connected part, graph by graph.",
        "lower",
        "size",
    ),
    Query(
        "GINI",
        "Gini coefficient, as printed",
        "Inequality of the degrees, with the ranks of the paper, which begin with 0.",
        "lower",
        "degrees",
    ),
    Query(
        "right GINI",
        "Gini coefficient",
        "Inequality of the degrees: 0 if all nodes have equally many neighbors.",
        "lower",
        "degrees",
    ),
    Query(
        "REDE",
        "entropy of edge ends, as printed",
        "Evenness of the degrees, with the small constant that the paper adds.",
        "lower",
        "degrees",
    ),
    Query(
        "right REDE",
        "entropy of edge ends",
        "Evenness of the degrees: 1 if all nodes have equally many neighbors.",
        "lower",
        "degrees",
    ),
    Query(
        "degree_mmd",
        "degree distributions of the set",
        "Distance of the two sets by the degree distributions of their graphs; 0 for equal sets.",
        "lower",
        "degrees",
    ),
    Query(
        "CPL",
        "mean distance",
        "Mean distance between two connected nodes, graph by graph.",
        "lower",
        "paths",
    ),
    Query("TC", "triangles", "Number of triangles, graph by graph.", "lower", "clustering"),
    Query(
        "clustering_mmd",
        "clustering of the set",
        "Distance of the two sets by the local clustering in their graphs; 0 for equal sets.",
        "lower",
        "clustering",
    ),
    Query(
        "orbit_mmd",
        "patterns of the set",
        "Distance of the two sets by the patterns of 4 nodes in their graphs; 0 for equal sets.",
        "lower",
        "clustering",
    ),
    Query(
        "spectrum_mmd",
        "spectra of the set",
        "Distance of the two sets by the eigenvalues of the normalized Laplacian, which reflect "
        "components and communities; 0 for equal sets.",
        "lower",
        "communities",
    ),
    Query(
        "accuracy",
        "accuracy",
        "Share of graphs whose label a support vector machine predicts from the release.",
        "higher",
        "labels",
    ),
    Query(
        "gin_accuracy_real",
        "accuracy on real graphs",
        "Share of graphs whose label a network predicts from the real graphs: not private, a bound.",
        "higher",
        "labels",
    ),
    Query(
        "gin_accuracy",
        "accuracy from synthetic graphs",
        "Share of real graphs whose label a network predicts that learned from synthetic ones.",
        "higher",
        "labels",
    ),
    Query(
        "size_accuracy",
        "accuracy by size",
        "Share of real graphs whose label a classifier predicts from numbers of nodes and edges.",
        "higher",
        "labels",
    ),
    Query(
        "majority_accuracy",
        "share of the largest class",
        "Share of real graphs that a constant prediction of the most frequent label gets right.",
        "higher",
        "labels",
    ),
)

GRAPH_GLOSSARY: dict[str, Query] = {query.name: query for query in (*_OF_GRAPHS, *OF_KINDS)}
"""Every query that compares two graphs, by its name."""

NODE_GLOSSARY: dict[str, Query] = {query.name: query for query in OF_NODES}
"""Every score of node classification, by its name."""

GLOSSARY: dict[str, Query] = (
    GRAPH_GLOSSARY | {query.name: query for query in _OF_SETS_AND_LABELS} | NODE_GLOSSARY
)
"""Every query of graphs, sets of graphs, labels and classes of nodes, by its name."""
