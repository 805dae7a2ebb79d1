"""Graphs from and to files and the objects of other libraries.

Reads edge lists, npz archives, GraphML, GEXF, networkx and PyTorch Geometric objects; writes edge
lists, npz archives and GraphML.
"""

import gzip
import logging
import os
import re
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO
from xml.etree.ElementTree import ParseError
from xml.sax.saxutils import quoteattr

import networkx as nx
import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, load_npz
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.graph.graph import adjacency, make_graph, undirected_edges

log = logging.getLogger(__name__)

_EXPECTED = "two node ids per line, separated by space, tab or comma"
_GAPS = np.isin(np.arange(256), list(b" \t,\r\n"))


class GraphFormatError(ValueError):
    """A graph that cannot be read; the message names the place and a way out in at most 5 lines."""


def read_graph(path: str | Path, *, undirected: bool = False, keep_gaps: bool = False) -> Data:
    """Read a graph from a file.

    Args:
        path: ``.npz`` (scipy's sparse matrices or NetGAN's ``adj_data``, ...), ``.graphml``,
            ``.gexf``, or an edge list under any other name, KONECT's too, gzip-compressed or not.
        undirected: Read the links of a directed graph as undirected edges instead of refusing it.
        keep_gaps: The ids of an edge list are the numbers from 0 to the largest one, those on no
            line are nodes without edges. Otherwise the nodes are the ids that occur.
    """
    path = Path(path)
    if not path.is_file():
        raise GraphFormatError(
            f"{path}: {'a folder' if path.is_dir() else 'no such file'}\n"
            "expected an edge list, .npz, .graphml or .gexf file"
        )
    kind = path.name.lower().removesuffix(".gz")
    if kind.endswith(".npz"):
        return _read_npz(path, undirected)
    if kind.endswith(".graphml"):
        return _read_xml(path, nx.read_graphml, undirected)
    if kind.endswith(".gexf"):
        return _read_xml(path, nx.read_gexf, undirected)
    return _read_edge_list(path, undirected, keep_gaps)


def from_networkx(graph: nx.Graph, *, undirected: bool = False, origin: str = "graph") -> Data:
    """Convert a networkx graph; names are the nodes as text, in the graph's order."""
    if graph.is_directed() and not undirected:
        raise _directed(origin)
    number = {node: i for i, node in enumerate(graph)}
    pairs = [(number[u], number[v]) for u, v in graph.edges()]
    return _checked(torch.tensor(pairs).view(-1, 2), [str(node) for node in number], origin)


def from_pyg(data: Data, *, undirected: bool = False) -> Data:
    """Convert a PyTorch Geometric graph, which must hold both orientations of each edge."""
    if data.edge_index is None:
        raise GraphFormatError("Data: no edge_index\nexpected a long tensor of shape (2, 2M)")
    num_nodes = int(data.num_nodes or 0)
    names = [str(name) for name in getattr(data, "node_names", None) or range(num_nodes)]
    pairs = data.edge_index.T.cpu()
    graph = _checked(pairs, names, "Data", both_orientations=True)
    distinct = (pairs[:, 0] * num_nodes + pairs[:, 1])[pairs[:, 0] != pairs[:, 1]].unique()
    if len(distinct) < graph.num_edges and not undirected:
        raise _directed("Data")
    return graph


def write_graph(graph: Data, path: str | Path) -> None:
    """Write a graph under its node names; the suffix says how.

    Args:
        graph: The graph. Nodes without edges are lost in an edge list, the other formats keep them.
        path: ``.edges`` (one line per edge, separated by a tab), ``.graphml`` or ``.npz`` (scipy's
            CSR matrix and ``node_names``).
    """
    path = Path(path)
    writers = {".edges": _write_edges, ".graphml": _write_graphml, ".npz": _write_npz}
    if path.suffix not in writers:
        raise ValueError(f"path must end with one of {', '.join(writers)}, got {path.name!r}")
    part = path.with_name(path.name + ".part")
    try:
        with part.open("wb") as file:
            writers[path.suffix](graph, file)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def _checked(
    pairs: Tensor, names: list[str], origin: str | Path, *, both_orientations: bool = False
) -> Data:
    """Graph of ``pairs``; says what was merged and refuses a graph without nodes or edges."""
    if len(names) < 2:
        raise GraphFormatError(f"{origin}: {len(names)} node(s)\nexpected two nodes or more")
    try:
        graph = make_graph(pairs, len(names), names)
    except ValueError as error:
        raise GraphFormatError(f"{origin}: {error}") from error
    if graph.num_edges == 0:
        raise GraphFormatError(f"{origin}: no edges\nexpected an edge between two different nodes")
    loops = int((pairs[:, 0] == pairs[:, 1]).sum())
    kept = graph.num_edges if both_orientations else graph.num_edges // 2
    # A PyG graph that lacks some mirrored links has fewer pairs than the graph made of it.
    merged = max(len(pairs) - loops - kept, 0)
    if merged or loops:
        log.info("%s: merged %d repeated edges, dropped %d self loops", origin, merged, loops)
    return graph


def _directed(origin: str | Path) -> GraphFormatError:
    return GraphFormatError(
        f"{origin}: the graph is directed\nexpected an undirected graph\n"
        "set undirected=True (--data.undirected true) to drop the directions"
    )


def _read_npz(path: Path, undirected: bool) -> Data:
    expected = (
        "expected a square scipy sparse matrix (scipy.sparse.save_npz) or NetGAN's arrays\n"
        "adj_data, adj_indices, adj_indptr, adj_shape"
    )
    try:
        with np.load(path, allow_pickle=False) as archive:
            if "adj_indptr" in archive.files:
                parts = [archive[f"adj_{part}"] for part in ("data", "indices", "indptr")]
                matrix = csr_array(tuple(parts), shape=tuple(archive["adj_shape"]))
            else:
                matrix = csr_array(load_npz(path))
            matrix.check_format(full_check=True)
            stored = archive["node_names"] if "node_names" in archive.files else None
    except (KeyError, ValueError, OSError, EOFError, zlib.error) as error:
        problem = str(error).partition("\n")[0][:100]
        raise GraphFormatError(f"{path}: not a graph ({problem})\n{expected}") from error
    if matrix.shape[0] != matrix.shape[1]:
        raise GraphFormatError(f"{path}: a matrix of shape {matrix.shape}\n{expected}")
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    matrix.data = np.ones(matrix.nnz)
    if not undirected and (matrix != matrix.T).nnz:
        raise _directed(path)
    rows, columns = matrix.nonzero()
    names = range(matrix.shape[0]) if stored is None else stored.tolist()
    pairs = torch.from_numpy(np.stack([rows, columns], axis=1).astype(np.int64))
    names = [str(name).strip() for name in names]
    return _checked(pairs, names, path, both_orientations=not undirected)


def _read_xml(path: Path, reader: Callable[[Path], nx.Graph], undirected: bool) -> Data:
    try:
        graph = reader(path)
    except ParseError as error:
        raise GraphFormatError(
            f"{path}, line {error.position[0]}: {error}\nexpected well-formed XML"
        ) from error
    except (nx.NetworkXException, KeyError, ValueError, TypeError, OSError, EOFError) as error:
        problem = str(error).partition("\n")[0][:100]
        raise GraphFormatError(
            f"{path}: not a graph ({problem})\nexpected a GraphML or GEXF file, named so"
        ) from error
    return from_networkx(graph, undirected=undirected, origin=str(path))


def _read_edge_list(path: Path, undirected: bool, keep_gaps: bool) -> Data:
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise GraphFormatError(f"{path}: damaged gzip file ({error})") from error
    content = content.removeprefix(b"\xef\xbb\xbf")
    if b"\0" in content:
        raise GraphFormatError(f"{path}: not a text file\nexpected {_EXPECTED}")
    _check_konect_header(path, content, undirected)
    buffer = np.frombuffer(content, np.uint8)
    starts, ends, lines = _first_two_columns(buffer, content, path)
    if not len(lines):
        raise GraphFormatError(f"{path}: empty\nexpected {_EXPECTED}")
    ids, is_integer, is_negative = _parse_integers(buffer, starts, ends)
    other_lines = lines[~is_integer.all(axis=1)]
    # One line that differs from all others is a forgotten header or a slip, not two more names.
    if len(other_lines) and (keep_gaps or len(other_lines) == 1 < len(lines) - 1):
        raise _bad_line(path, content, other_lines[0], "two integers, as on the other lines")
    if len(other_lines):
        names, pairs = _parse_names(path, content, lines)
        return _checked(torch.tensor(pairs), names, path)
    negative = lines[is_negative.any(axis=1)]
    if len(negative):
        raise _bad_line(path, content, negative[0], "integer ids of 0 or more")
    if keep_gaps:
        names = [str(i) for i in range(int(ids.max()) + 1)]
        return _checked(torch.from_numpy(ids.astype(np.int64)), names, path)
    distinct, numbers = np.unique(ids.ravel(), return_inverse=True)
    names = [str(i) for i in distinct.tolist()]
    return _checked(torch.from_numpy(numbers.reshape(-1, 2)), names, path)


def _check_konect_header(path: Path, content: bytes, undirected: bool) -> None:
    """Refuse what a first line of KONECT's format, such as ``% bip weighted``, says of the links."""
    if re.match(rb"%\s*asym\s", content) and not undirected:
        raise _directed(path)
    if re.match(rb"%\s*bip\s", content):
        raise _bad_line(path, content, 0, "one numbering of all nodes, not one of either side")


def _bad_line(path: Path, content: bytes, line: int, expected: str) -> GraphFormatError:
    text = content.split(b"\n", line + 1)[line].decode(errors="replace").strip()
    shown = text if len(text) <= 60 else text[:60] + "..."
    return GraphFormatError(
        f"{path}, line {line + 1}: {shown!r}\nexpected {expected}\n"
        "correct the line, or begin it with # to skip it"
    )


def _first_two_columns(
    buffer: NDArray[np.uint8], content: bytes, path: Path
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Where the first two words of each line that is neither blank nor a comment start and end.

    Returns:
        Starts and ends, both ``(L, 2)``, and the lines' numbers ``(L,)``, counted from 0.
    """
    is_word = np.zeros(len(buffer) + 2, dtype=bool)
    is_word[1:-1] = ~_GAPS[buffer]
    changes = np.flatnonzero(is_word[1:] != is_word[:-1])
    starts, ends = changes[::2], changes[1::2]
    line = np.searchsorted(np.flatnonzero(buffer == ord("\n")), starts)
    # The last word has no follower; a line number that does not exist stands in for it.
    line = np.append(line, -1)
    first = np.flatnonzero(np.diff(line[:-1], prepend=-1))
    first = first[~np.isin(buffer[starts[first]], list(b"#%"))]
    alone = first[line[first + 1] != line[first]]
    if len(alone):
        raise _bad_line(path, content, int(line[alone[0]]), _EXPECTED)
    pair = np.stack([first, first + 1], axis=1)
    return starts[pair], ends[pair], line[first]


def _parse_integers(
    buffer: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Absolute values of the words, which are integers, and which begin with a minus sign."""
    is_negative = (buffer[starts] == ord("-")) & (ends - starts > 1)
    starts = starts + is_negative
    lengths = ends - starts
    values = np.zeros(starts.shape, dtype=np.uint64)
    most_digits = 19  # 64 bits hold them all
    is_integer = lengths <= most_digits
    for place in range(min(int(lengths.max()), most_digits)):
        inside = place < lengths
        # Bytes below "0" wrap round to large numbers.
        digits = buffer[np.minimum(starts + place, len(buffer) - 1)] - np.uint8(ord("0"))
        is_integer &= (digits < 10) | ~inside
        values = np.where(inside, values * np.uint64(10) + digits, values)
    return values, is_integer, is_negative


def _parse_names(
    path: Path, content: bytes, lines: NDArray[np.int64]
) -> tuple[list[str], list[tuple[int, int]]]:
    """Names in alphabetical order and the pairs of their numbers.

    Names may hold spaces when the first line holds a tab or a comma.
    """
    rows = content.split(b"\n")
    separator = next((mark for mark in (b"\t", b",") if mark in rows[lines[0]]), None)
    expected = "two node ids, separated by " + {b"\t": "a tab", b",": "a comma"}.get(
        separator or b"", "spaces"
    )
    pairs = []
    for line in lines.tolist():
        words = [word.strip() for word in rows[line].split(separator, 2)[:2]]
        if len(words) < 2 or not all(words):
            raise _bad_line(path, content, line, expected)
        try:
            pairs.append((words[0].decode(), words[1].decode()))
        except UnicodeDecodeError as error:
            raise _bad_line(path, content, line, "text in UTF-8") from error
    names = sorted({name for pair in pairs for name in pair})
    number = {name: i for i, name in enumerate(names)}
    return names, [(number[u], number[v]) for u, v in pairs]


def check_edge_list_names(names: Sequence[str]) -> None:
    """Refuse node names that a reader of the edge list would split, skip or take for two numbers.

    Raises:
        ValueError: Naming the first of them.
    """
    unfit = re.compile(r"[#%]|\s|.*[\t\r\n\0]|.*\s$|$|\d+[ ,]+-?\d", re.DOTALL)
    bad = next((name for name in names if unfit.match(name)), None)
    if bad is not None:
        raise ValueError(f"an edge list cannot hold the node name {bad!r}; write .graphml or .npz")


def _write_edges(graph: Data, file: BinaryIO) -> None:
    names = graph.node_names
    check_edge_list_names(names)
    file.writelines(
        f"{names[i]}\t{names[j]}\n".encode() for i, j in undirected_edges(graph).tolist()
    )


def _write_graphml(graph: Data, file: BinaryIO) -> None:
    names = [quoteattr(name) for name in graph.node_names]
    file.write(
        b'<?xml version="1.0" encoding="utf-8"?>\n'
        b'<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
        b'<graph edgedefault="undirected">\n'
    )
    file.writelines(f"<node id={name}/>\n".encode() for name in names)
    file.writelines(
        f"<edge source={names[i]} target={names[j]}/>\n".encode()
        for i, j in undirected_edges(graph).tolist()
    )
    file.write(b"</graph>\n</graphml>\n")


def _write_npz(graph: Data, file: BinaryIO) -> None:
    matrix = adjacency(graph)
    np.savez_compressed(
        file,
        data=matrix.data,
        indices=matrix.indices,
        indptr=matrix.indptr,
        shape=np.array(matrix.shape),
        format=np.array(b"csr"),
        node_names=np.array(graph.node_names),
    )
