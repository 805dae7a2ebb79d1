"""Keys of the ledger entries of version 0.1.0, which had names for people only."""

import re

_KEYS = {
    "number of edges": "num_edges",
    "number of edges of each graph": "num_edges_per_graph",
    "number of nodes": "num_nodes",
    "degree of each node": "degrees",
    "edges between classes of degrees": "degree_mixing",
    "wedges and closed wedges by degree": "wedges",
    "edges within and between communities": "community_links",
    "sum of the two largest degrees": "largest_degrees",
    "edges divided by each branch": "branch_edges",
    "edges": "edge_reports",
    "reports of embeddings": "embedding_reports",
    "gradient of edges": "edge_gradient",
    "gradient of nodes": "node_gradient",
    "sum of client updates": "client_updates",
}

_NUMBERED = {
    r"sums over neighbors, hop (\d+)": r"neighbor_sums_\1",
    r"walks of length (\d+)": r"walks_\1",
    r"graphlets of (\d+) nodes": r"graphlets_\1",
    r"graphlets of (\d+) nodes, noisy": r"graphlets_\1_noisy",
}


def key_of_name(name: str) -> str:
    """Key of a release that has only a name: by the tables, else its words joined by underscores."""
    if name in _KEYS:
        return _KEYS[name]
    for pattern, key in _NUMBERED.items():
        match = re.fullmatch(pattern, name)
        if match is not None:
            return match.expand(key)
    return re.sub(r"\W+", "_", name.lower()).strip("_") or name
