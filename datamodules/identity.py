"""Canonical content of graphs: equal for equal edges in any file, order and orientation."""

import json
from collections.abc import Collection, Sequence

import numpy as np
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.graph.attributes import AttributeTable, cells_of
from lightning_dpg.graph.node_names import natural_order
from lightning_dpg.graph.pair_space import space_of
from lightning_dpg.interfaces import Identity


def identity_of(graphs: Sequence[Data]) -> Identity:
    """Return the canonical content of one graph, or of a list of graphs (private).

    Edges link names: neither the numbers of nodes nor nodes without an edge change them.

    Args:
        graphs: Graphs with the attribute ``node_names``; their places are part of the content.
    """
    edges, nodes = zip(*(_canonical(graph) for graph in graphs), strict=True)
    named = [graph.node_names for graph in graphs if not _is_numbered(graph)]
    names = [own[place] for own in named for place in natural_order(own)]
    return Identity(b"\0".join(edges), b"\0".join(nodes), space_of(graphs[0]).record, names)


def with_transfers(
    identity: Identity, graph: Data, pairs: Tensor, amounts: Tensor | None, times: Tensor | None
) -> Identity:
    """Add amounts and times of transfers to the edges, which are private together with them.

    They are as in the source: another bound or window of the settings makes no other data, as long as
    the same rows are read.

    Args:
        identity: Canonical content of the graph.
        graph: The graph.
        pairs: Payer and payee of each row, also of a node to itself, which is left out; shape ``(T, 2)``.
        amounts: Amount of each row, shape ``(T,)``; None if they are not read.
        times: Time of each row, shape ``(T,)``; None if they are not read.
    """
    names, is_other = graph.node_names, pairs[:, 0] != pairs[:, 1]
    ends = pairs[is_other].numpy()
    linked = sorted(np.flatnonzero(np.bincount(ends.ravel())).tolist(), key=names.__getitem__)
    rank = np.zeros(len(names), dtype="<i8")
    rank[linked] = np.arange(len(linked))
    columns = {"amounts": amounts, "times": times}
    read = {
        name: values[is_other].numpy() for name, values in columns.items() if values is not None
    }
    rows = np.column_stack([rank[ends], *read.values()]).astype("<i8")
    rows = rows[np.lexsort(rows.T)]
    content = b"\0".join([b"", " ".join(read).encode(), rows.tobytes()])
    return identity._replace(edges=identity.edges + content, links=identity.edges)


def rows_of(table: AttributeTable, columns: Collection[str], nodes: Collection[str]) -> bytes:
    """Return the canonical content of private columns of nodes: equal in any order and form of both.

    Args:
        table: Attributes of nodes, with rows of other nodes as well.
        columns: Names of the private columns.
        nodes: Names of the nodes.

    Returns:
        The content (private); empty without columns.
    """
    if not columns:
        return b""
    names, known = sorted(columns), sorted(set(table.ids).intersection(nodes))
    cells = zip(known, *(cells_of(table, name, known) for name in names), strict=True)
    return json.dumps([names, *cells]).encode()


def _is_numbered(graph: Data) -> bool:
    """Return whether the names are the numbers from 0 to N - 1, which name no people."""
    return set(graph.node_names) == {str(number) for number in range(len(graph.node_names))}


def _canonical(graph: Data) -> tuple[bytes, bytes]:
    """Return the edges and nodes of one graph; directions and sides are part of its edges."""
    space = space_of(graph)
    names, edges = graph.node_names, space.edges(graph).numpy()
    linked = sorted(np.flatnonzero(np.bincount(edges.ravel())).tolist(), key=names.__getitem__)
    rank = np.zeros(len(names), dtype="<i8")
    rank[linked] = np.arange(len(linked))
    pairs = rank[edges]
    if space.kind == "undirected":
        pairs = np.sort(pairs, axis=1)
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    text = json.dumps([names[node] for node in linked]).encode()
    if space.kind != "undirected":
        text += space.kind.encode()
    length = np.array([len(pairs)], dtype="<i8").tobytes()
    return text + b"\0" + length + pairs.tobytes(), json.dumps(sorted(names)).encode()
