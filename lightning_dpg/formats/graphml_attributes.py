"""Attributes of nodes and of edges as elements of GraphML."""

from collections.abc import Iterator, Mapping, Sequence
from xml.sax.saxutils import quoteattr

from scipy.sparse import csr_array

from lightning_dpg.graph.attributes import LABELS, NodeAttributes


def graphml_keys(
    attributes: NodeAttributes | None, values: Mapping[str, Sequence[float | str]]
) -> Iterator[bytes]:
    """Yield the declarations of the attributes, with the default 0, of the classes and of values of edges.

    Args:
        attributes: Attributes of the nodes.
        values: Values of the edges by their names.
    """
    for name, cells in values.items():
        kind = "string" if cells and isinstance(cells[0], str) else "double"
        yield f'<key id="{name}" for="edge" attr.name="{name}" attr.type="{kind}"/>\n'.encode()
    if attributes is None:
        return
    for place, name in enumerate(attributes.names):
        yield (
            f'<key id="d{place}" for="node" attr.name={quoteattr(name)} attr.type="double">'
            "<default>0.0</default></key>\n"
        ).encode()
    if attributes.y is not None:
        key = f'<key id="{LABELS}" for="node" attr.name="{LABELS}" attr.type="long"/>\n'
        yield key.encode()


SIDES = "s"
"""Key of the sides of a bipartite graph in GraphML."""


def graphml_nodes(
    quoted: Sequence[str], attributes: NodeAttributes | None, sides: Sequence[int] | None
) -> Iterator[bytes]:
    """Yield the nodes, each with its side, if there are sides, and its attributes other than 0.

    Args:
        quoted: Names of the nodes in quotation marks.
        attributes: Their attributes.
        sides: Their sides, 0 or 1.
    """
    own_sides = [""] * len(quoted)
    if sides is not None:
        own_sides = [f'<data key="{SIDES}">{side}</data>' for side in sides]
    if attributes is None:
        for name, side in zip(quoted, own_sides, strict=True):
            yield f"<node id={name}{f'>{side}</node' if side else '/'}>\n".encode()
        return
    matrix = csr_array(attributes.x.numpy(force=True))
    classes = None if attributes.y is None else attributes.y.tolist()
    for node, name in enumerate(quoted):
        own = slice(matrix.indptr[node], matrix.indptr[node + 1])
        cells = [own_sides[node]] + [
            f'<data key="d{place}">{value}</data>'
            for place, value in zip(matrix.indices[own], matrix.data[own].tolist(), strict=True)
        ]
        if classes is not None and classes[node] >= 0:
            cells.append(f'<data key="{LABELS}">{classes[node]}</data>')
        yield f"<node id={name}>{''.join(cells)}</node>\n".encode()


def graphml_edges(
    quoted: Sequence[str],
    edges: Sequence[Sequence[int]],
    values: Mapping[str, Sequence[float | str]],
) -> Iterator[bytes]:
    """Yield the edges with their values.

    Args:
        quoted: Names of the nodes in quotation marks.
        edges: Numbers of both ends of each edge.
        values: Values of the edges by their names; an empty text is none.
    """
    for place, (i, j) in enumerate(edges):
        cells = [
            f'<data key="{name}">{column[place]}</data>'
            for name, column in values.items()
            if column[place] != ""
        ]
        end = f">{''.join(cells)}</edge>" if cells else "/>"
        yield f"<edge source={quoted[i]} target={quoted[j]}{end}\n".encode()
