"""Graphs in markup: GraphML, GEXF and GML are read, GraphML is written.

Each node and edge of a file is read, however deep it is nested, or the file is refused. Attributes stay
the text that they are: a type that is not known, or a cell that does not fit its type, matters only to
whoever asks for the attribute.
"""

import gzip
import html
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, NoReturn, TypeAlias
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

import networkx as nx
from scipy.sparse import csr_array
from torch_geometric.data import Data

from lightning_dpg.formats.conversion import GraphReading, read_networkx
from lightning_dpg.formats.edge_columns import directed
from lightning_dpg.graph.attributes import LABELS, NodeAttributes, attributes_of
from lightning_dpg.graph.drawn_tables import edge_values
from lightning_dpg.graph.node_names import CLOSED, GraphFormatError, is_missing
from lightning_dpg.graph.pair_space import space_of

MARKUP = {".graphml": "GraphML", ".gexf": "GEXF", ".gml": "GML"}

_SIDES = "s"
"""Key of the sides of a bipartite graph in GraphML."""

_OWN = {"id", "source", "target", "type", "kind", "label", "start", "end", "directed"}
"""Attributes of an edge of GEXF that hold no value of it."""

_GML = re.compile(r'^[ \t]*#.*|\s+|("[^"]*")|([^\s\[\]"]+)|([\[\]])|(.)', re.MULTILINE)
"""A comment or space, a text, a word, a bracket, or anything else."""

_GML_FORM = "expected keys and values, such as graph [ node [ id 1 ] node [ id 2 ] ]"


class _Found:
    """What a file holds: the nodes with their attributes, and the edges.

    Args:
        path: The file, which errors name.
        form: Its format.
    """

    def __init__(self, path: Path, form: str) -> None:
        self.path, self.form, self.graphs = path, form, 0
        self.nodes: dict[str, dict[str, str]] = {}
        self.edges: list[tuple[str, str, dict[str, str]]] = []
        self.directions: list[bool] = []
        self.defaults: dict[str, str] = {}

    def refuse(self, problem: str, way: str, line: int | None = None) -> NoReturn:
        """Refuse the file, with none of its content, which is private."""
        place = "" if line is None else f", line {line}"
        raise GraphFormatError(f"{self.path}{place}: {problem}\n{way}") from None

    def add_node(self, name: str | None, line: int | None = None) -> dict[str, str]:
        """Add a node; return its attributes, which are none yet."""
        if name is None:
            self.refuse("a node without an id", "expected an id of each node", line)
        if name in self.nodes:
            self.refuse("an id for the second time", "expected one node per id", line)
        return self.nodes.setdefault(name, {})

    def add_edge(
        self, source: str | None, target: str | None, is_directed: bool, line: int | None = None
    ) -> dict[str, str]:
        """Add an edge; return its attributes, which are none yet."""
        if source is None or target is None:
            self.refuse("an edge without two ends", "expected ids of nodes: source, target", line)
        self.edges.append((source, target, {}))
        self.directions.append(is_directed)
        return self.edges[-1][2]

    def reading(self, undirected: bool) -> GraphReading:
        """Build the graph."""
        if self.graphs != 1:
            self.refuse(f"{self.graphs} graphs in one file", "expected one: write a file of each")
        unlisted = {end for edge in self.edges for end in edge[:2]} - self.nodes.keys()
        if unlisted:
            problem = f"ids of edges that are not in the file's node table: {len(unlisted):,}"
            node = "node [ id ... ]" if self.form == "GML" else '<node id="..."/>'
            self.refuse(problem, f"add each to the table: {node}")
        are_directed = bool(self.directions) and all(self.directions)
        if any(self.directions) and not undirected:
            if are_directed:
                raise directed(self.path)
            problem = f"edges with a direction: {sum(self.directions):,} of {len(self.edges):,}"
            way = "set undirected=True (--undirected) to drop the directions"
            self.refuse(problem, f"expected a direction of all edges, or of none\n{way}")
        name_of, form = self._names()
        graph = nx.MultiDiGraph() if are_directed else nx.MultiGraph()
        graph.add_nodes_from((name_of[node], own) for node, own in self.nodes.items())
        graph.add_edges_from((name_of[u], name_of[v], own) for u, v, own in self.edges)
        graph.graph["node_default"] = self.defaults
        return read_networkx(graph, undirected=undirected, origin=str(self.path), form=form)

    def _names(self) -> tuple[dict[str, str], str]:
        """Return the name of each node by its id, and what the names are."""
        ids = {node: node for node in self.nodes}
        if self.form != "GML":
            return ids, self.form
        labels = {node: own.get("label", "") for node, own in self.nodes.items()}
        if len({*labels.values()}) < len(labels) or any(map(is_missing, labels.values())):
            return ids, "GML; nodes by id"
        for own in self.nodes.values():
            del own["label"]
        return labels, "GML"


class _Xml:
    """Parser of the elements of GraphML and GEXF, whatever namespace they are in.

    Args:
        found: Where nodes and edges go.
    """

    def __init__(self, found: _Found) -> None:
        self.found = found
        self.open: list[tuple[str, dict[str, str]]] = []  # elements around, with what they hold
        self.directed: list[bool] = []  # whether edges of the graphs around have a direction
        self.names: dict[tuple[str, str | None], str] = {}  # of attributes by element and key
        self.text = ""
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.characters
        self.parser.StartDoctypeDeclHandler = self.refuse_doctype

    def refuse_doctype(self, *_: object) -> NoReturn:
        """Refuse a document type: it can declare entities that grow without bounds."""
        line = self.parser.CurrentLineNumber
        self.found.refuse("a document type", "expected none: remove <!DOCTYPE ...>", line)

    def start(self, tag: str, values: dict[str, str]) -> None:
        """Read the beginning of an element."""
        found, line, own = self.found, self.parser.CurrentLineNumber, values
        tag, is_gexf = tag.rpartition(":")[2], found.form == "GEXF"
        around, held = self.open[-1] if self.open else ("", {})
        if not self.open and tag != found.form.lower():
            found.refuse("another kind of XML", f"expected {found.form}, as its name says", line)
        if around == "data":  # extensions of other programs, such as shapes
            tag = "data"
        elif tag == "graph":
            found.graphs += not self.directed
            default = values.get("defaultedgetype" if is_gexf else "edgedefault")
            self.directed.append(default == "directed")
        elif tag == "node":
            own = found.add_node(values.get("id"), line)
        elif tag == "edge":
            usual = "directed" if self.directed and self.directed[-1] else ""
            kind = values.get("type" if is_gexf else "directed", usual)
            is_directed = kind in ("directed", "true", "1")
            own = found.add_edge(values.get("source"), values.get("target"), is_directed, line)
            if is_gexf:
                own.update({key: text for key, text in values.items() if key not in _OWN})
        elif tag == "hyperedge":
            found.refuse("an edge of more than two ends", "expected edges of two nodes", line)
        elif tag == "key":
            name = None if "yfiles.type" in values else values.get("attr.name", values.get("id"))
            own = self.declared(values, name, values.get("for", "all"), "attr.type")
        elif tag == "attribute" and held.get("mode") != "dynamic":  # a node has many values
            own = self.declared(values, values.get("title"), held.get("class", ""), "type")
        elif tag == "attvalue" and len(self.open) > 1:
            self.keep(values.get("for", values.get("id")), values.get("value", ""), self.open[-2])
        self.open.append((tag, own))
        self.text = ""

    def end(self, _: str) -> None:
        """Read the end of an element."""
        tag, own = self.open.pop()
        around, held = self.open[-1] if self.open else ("", {})
        if tag == "graph":
            self.directed.pop()
        elif tag == "data" and around != "data":
            self.keep(own.get("key"), self.text, (around, held))
        elif tag == "default" and "name of nodes" in held:
            self.found.defaults[held["name of nodes"]] = self.text

    def characters(self, text: str) -> None:
        """Read text between elements."""
        self.text += text

    def declared(
        self, values: dict[str, str], name: str | None, of: str, kind: str
    ) -> dict[str, str]:
        """Remember the name of an attribute; lists and objects of programs have none."""
        if name is None or re.match("vector|list|python", values.get(kind, "")):
            return {}
        for element in ("node", "edge") if of == "all" else (of,):
            self.names[element, values.get("id")] = name
        return {"name of nodes": name} if of in ("node", "all") else {}

    def keep(self, key: str | None, text: str, holder: tuple[str, dict[str, str]]) -> None:
        """Keep the value of an attribute of a node or an edge, if the attribute is declared."""
        name = self.names.get((holder[0], key))
        if name is not None:
            holder[1][name] = text.strip()


_Items: TypeAlias = "list[tuple[str, str | _Items]]"


def _read_gml(found: _Found, text: str) -> None:
    """Read the nodes and edges of GML, those of graphs in nodes as well."""
    for key, graph in _gml_items(found, text):
        if key != "graph" or isinstance(graph, str):
            continue
        found.graphs += 1
        is_directed = dict(graph).get("directed") in ("1", "true")
        inside = [*graph]
        for part, items in inside:
            if isinstance(items, str):
                continue
            inside += items  # the loop goes on with them
            held = {name: value for name, value in items if isinstance(value, str)}
            if part == "node":
                found.add_node(held.pop("id", None)).update(held)
            elif part == "edge":
                ends = held.pop("source", None), held.pop("target", None)
                found.add_edge(*ends, is_directed).update(held)


def _gml_items(found: _Found, text: str) -> _Items:
    """Return the keys and values of a text; a value in brackets is a list of them."""
    whole: _Items = []
    lists, key = [whole], ""
    for token in _GML.finditer(text):
        quoted, word, bracket, odd = token.groups()
        if odd or (quoted and "\n" in quoted and len(lists) > 1):
            line = text.count("\n", 0, token.start()) + 1
            found.refuse("a quote that is left open", f"expected {CLOSED}", line)
        if key and (quoted or word):
            lists[-1].append((key, html.unescape(quoted[1:-1]) if quoted else word))
            key = ""
        elif key and bracket == "[":
            inner: _Items = []
            lists[-1].append((key, inner))
            lists.append(inner)
            key = ""
        elif bracket == "]" and not key and len(lists) > 1:
            lists.pop()
        elif word:
            key = word
        elif quoted or bracket:
            line = text.count("\n", 0, token.start()) + 1
            found.refuse("no key before a value, or no value", _GML_FORM, line)
    if key or len(lists) > 1:
        found.refuse("the file ends within a list", _GML_FORM)
    return whole


def read_markup(path: Path, form: str, *, undirected: bool) -> GraphReading:
    """Read a graph of GraphML, GEXF or GML, also compressed by gzip.

    Args:
        path: The file.
        form: One of the formats in :data:`MARKUP`.
        undirected: Whether to drop the directions of edges instead of refusing them.

    Raises:
        GraphFormatError: If it cannot be read as a whole.
    """
    found = _Found(path, form)
    try:
        with gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb") as file:
            if form == "GML":
                _read_gml(found, file.read().decode("utf-8-sig"))
            else:
                _Xml(found).parser.ParseFile(file)
    except GraphFormatError:
        raise
    except expat.ExpatError as error:
        found.refuse("not well-formed", "expected XML whose elements all end", error.lineno)
    except (LookupError, ValueError):
        found.refuse("an encoding that cannot be read", "save the file as UTF-8")
    except (OSError, EOFError, zlib.error) as error:
        problem = getattr(error, "strerror", None) or "a damaged gzip file"
        found.refuse(problem, f"expected a {form} file, as its name says")
    return found.reading(undirected)


def write_graphml(graph: Data, file: BinaryIO) -> None:
    """Write a graph with the attributes of its nodes and the values of its edges.

    Attributes that are 0 are left to their default, and so are classes that are missing.
    """
    space, attributes, values = space_of(graph), attributes_of(graph), edge_values(graph)
    file.write(
        b'<?xml version="1.0" encoding="utf-8"?>\n'
        b'<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    )
    for name, cells in values.items():
        kind = "string" if cells and isinstance(cells[0], str) else "double"
        file.write(_key(name, "edge", name, kind))
    if attributes is not None:
        for place, name in enumerate(attributes.names):
            file.write(_key(f"d{place}", "node", name, "double", "<default>0.0</default>"))
        if attributes.y is not None:
            file.write(_key(LABELS, "node", LABELS, "long"))
    if space.num_left is not None:  # networkx's attribute
        file.write(_key(_SIDES, "node", "bipartite", "int"))
    default = "directed" if space.kind == "directed" else "undirected"
    file.write(f'<graph edgedefault="{default}">\n'.encode())
    names = [quoteattr(name) for name in graph.node_names]
    sides = None if space.num_left is None else graph.sides.tolist()
    for name, own in zip(names, _data_of_nodes(len(names), attributes, sides), strict=True):
        file.write(_element("node", f"id={name}", own))
    for place, (i, j) in enumerate(space.edges(graph).tolist()):
        data = {name: column[place] for name, column in values.items() if column[place] != ""}
        file.write(_element("edge", f"source={names[i]} target={names[j]}", data))
    file.write(b"</graph>\n</graphml>\n")


def _key(key: str, element: str, name: str, kind: str, default: str = "") -> bytes:
    """Return the declaration of an attribute."""
    end = f">{default}</key>" if default else "/>"
    return (
        f'<key id="{key}" for="{element}" attr.name={quoteattr(name)} attr.type="{kind}"{end}\n'
    ).encode()


def _element(tag: str, ids: str, data: Mapping[str, object]) -> bytes:
    """Return a node or an edge with its attributes by their keys."""
    inside = "".join(f'<data key="{key}">{value}</data>' for key, value in data.items())
    return f"<{tag} {ids}{f'>{inside}</{tag}>' if inside else '/>'}\n".encode()


def _data_of_nodes(
    num_nodes: int, attributes: NodeAttributes | None, sides: Sequence[int] | None
) -> Iterator[dict[str, object]]:
    """Yield the values of each node by their keys."""
    matrix = None if attributes is None else csr_array(attributes.x.numpy(force=True))
    classes = None if attributes is None or attributes.y is None else attributes.y.tolist()
    for node in range(num_nodes):
        data: dict[str, object] = {} if sides is None else {_SIDES: sides[node]}
        if matrix is not None:
            own = slice(matrix.indptr[node], matrix.indptr[node + 1])
            keys = (f"d{place}" for place in matrix.indices[own])
            data.update(zip(keys, matrix.data[own].tolist(), strict=True))
        if classes is not None and classes[node] >= 0:
            data[LABELS] = classes[node]
        yield data
