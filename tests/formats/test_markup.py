"""Each node and edge of GraphML, GEXF and GML is read, or the file is refused with none of its content.

The files have the forms of graph-tool, yEd, Gephi, Cytoscape and igraph. What they hold was counted
by hand.
"""

import gzip

import networkx as nx
import pytest

from lightning_dpg.formats.io import GraphFormatError, read
from lightning_dpg.formats.kinds import in_kind
from lightning_dpg.graph.graph import undirected_edges


@pytest.fixture
def found(tmp_path):
    def found(name, text, **options):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        reading = read(path, **options)
        names = reading.graph.node_names
        edges = {f"{names[i]}-{names[j]}" for i, j in undirected_edges(reading.graph).tolist()}
        table = reading.attributes()
        return names, edges, table and dict(table.columns), reading

    return found


def graphml(inside, keys="", default="undirected"):
    return f'<graphml>{keys}<graph edgedefault="{default}">\n{inside}\n</graph></graphml>'


ABC = '<node id="a"/><node id="b"/><node id="c"/>\n'
KEYS = """<key id="k0" for="node" attr.name="pos" attr.type="vector_double"/>
<key id="k1" for="node" attr.name="seen" attr.type="date"/>
<key id="k2" for="node" attr.name="x" attr.type="python_object"/>
<key id="k3" for="node" attr.name="age" attr.type="int"><default>7</default></key>
<key id="k4" for="all" attr.name="weight" attr.type="int"/>"""
TYPED = """<node id="a"><data key="k0">0.5, 1.5</data><data key="k1">2026-01-31</data></node>
<node id="b"><data key="k2">gASV</data><data key="k3">none</data><data key="gone">1</data></node>
<node id="c"><data key="k3"> 30 </data></node>
<edge source="a" target="b"><data key="k4">x</data></edge><edge source="b" target="c"/>"""
YED = """<?xml version="1.0"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns"
 xmlns:y="http://www.yworks.com/xml/graphml"><key for="node" id="d6" yfiles.type="nodegraphics"/>
<key attr.name="description" attr.type="string" for="node" id="d5"/>
<graph edgedefault="undirected" id="G"><node id="n0" yfiles.foldertype="group">
<data key="d5"/><data key="d6"><y:ShapeNode><y:edge/><y:NodeLabel>Ann</y:NodeLabel></y:ShapeNode></data>
<graph edgedefault="undirected" id="n0:"><node id="n0::n0"/><node id="n0::n1"/>
<edge id="n0::e0" source="n0::n0" target="n0::n1"/></graph></node>
<node id="n1"/><edge id="e0" source="n0::n0" target="n1"/><edge id="e1" source="n0" target="n1"/>
</graph><data key="d7"><y:Resources/></data></graphml>"""
GEPHI = """<gexf xmlns="http://gexf.net/1.3" xmlns:viz="http://gexf.net/1.3/viz" version="1.3">
<graph defaultedgetype="undirected" mode="dynamic"><attributes class="node" mode="dynamic">
<attribute id="0" title="score" type="float"/></attributes><attributes class="node" mode="static">
<attribute id="1" title="town" type="string"><default>Ulm</default></attribute></attributes>
<attributes class="edge"><attribute id="1" title="memo" type="string"/></attributes>
<nodes count="4"><node id="a" label="Ann"><viz:size value="9"/><attvalues>
<attvalue for="0" value="1" start="1"/><attvalue for="0" value="2" start="2"/></attvalues>
<nodes><node id="d"/></nodes><spells><spell start="1"/></spells></node>
<node id="b"><attvalues><attvalue for="1" value="Bonn"/></attvalues></node><node id="c" pid="b"/>
</nodes><edges><edge id="0" source="a" target="b" weight="2.0" type="mutual"/>
<edge id="1" source="b" target="a" start="2"><attvalues><attvalue for="1" value="rent"/></attvalues></edge>
<edge id="2" source="c" target="d"/></edges></graph></gexf>"""
IGRAPH = """Creator "igraph version 0.7.1 Mon Jan 5
"
Version 1
# a comment
graph
[
  directed 0
  node [ id 0 name "Ann &amp; co"
  ]
  node [ id 1 name "5 inch # x" graphics [ x 1 point [ x 2 ] point [ x 3 ] ] ]
  edge [ source 1 target 0 weight NaN ] edge [ source 0 target 1 weight inf ]
]
"""
CYTOSCAPE = """graph [ comment "x" directed 1 graph [ node [ root_index -7 id -7 label "A" ] ]
node [ id -2 label "B-2" ] edge [ root_index -3 target -7 source -2 label "DirectedEdge" ] ]"""
GML = (
    'graph [ node [ id 1 {} ] node [ id 2 {} ] node [ id 3 label "y" ] edge [ source 1 target 3 ] ]'
)


@pytest.mark.parametrize(
    ("name", "text", "nodes", "edges", "columns", "dropped"),
    [
        (
            "tool.graphml",
            graphml(TYPED, KEYS),
            "a b c",
            "a-b b-c",
            {"seen": ["2026-01-31", None, None], "age": ["7", "none", "30"]},
            "weight",
        ),
        (
            "yed.graphml",
            YED,
            "n0 n0::n0 n0::n1 n1",
            "n0-n1 n0::n0-n0::n1 n0::n0-n1",
            {"description": ["", None, None, None]},
            "",
        ),
        (
            "prefix.graphml",
            f'<g:graphml xmlns:g="x"><g:graph>{ABC}<g:edge source="a" target="c"/></g:graph></g:graphml>',
            "a b c",
            "a-c",
            None,
            "",
        ),
        (
            "gephi.gexf",
            GEPHI,
            "a b c d",
            "a-b c-d",
            {"town": ["Ulm", "Ulm", "Bonn", "Ulm"]},
            "memo, weight",
        ),
        ("igraph.gml", IGRAPH, "0 1", "0-1", {"name": ["Ann & co", "5 inch # x"]}, "weight"),
        ("one.gml", GML.format("", 'label "x"'), "1 2 3", "1-3", {"label": [None, "x", "y"]}, ""),
        (
            "twice.gml",
            GML.format('label "x"', 'label "x"'),
            "1 2 3",
            "1-3",
            {"label": ["x", "x", "y"]},
            "",
        ),
        ("labels.gml", GML.format('label "x"', 'label "ü"'), "x y ü", "x-y", None, ""),
    ],
)
def test_all_of_a_file_is_read(found, name, text, nodes, edges, columns, dropped):
    for file, content in ((name, text), (f"{name}.gz", gzip.compress(text.encode()))):
        names, links, table, reading = found(file, content)
        assert (names, links) == (nodes.split(), set(edges.split()))
        assert table == columns
        assert reading.summary.partition("; dropped from the edges: ")[2] == dropped


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("g.graphml", graphml(ABC) + "\n<x>", "line 5: not well-formed"),
        ("g.graphml", graphml(ABC).replace("<graph ", '<graph id="x"/><graph '), "2 graphs in one file"),
        ("g.graphml", "<graphml/>", "0 graphs in one file"),
        ("g.graphml", '<graph label="x"/>', "line 1: another kind of XML"),
        ("g.graphml", graphml(ABC + "<hyperedge/>"), "line 3: an edge of more than two ends"),
        ("g.graphml", graphml(ABC + '<edge source="secret"/>'), "line 3: an edge without two ends"),
        ("g.graphml", graphml(ABC + "<node/>"), "line 3: a node without an id"),
        ("g.graphml", graphml(ABC + ABC), "line 3: an id for the second time"),
        ("g.graphml", graphml(ABC + '<edge source="a" target="secret"/>'), "not in the file's node"),
        (
            "g.graphml",
            '<!DOCTYPE x [<!ENTITY a "secret"><!ENTITY b "&a;&a;">]>' + graphml("&b;"),
            "line 1: a document type",
        ),
        ("g.gexf", b'<?xml version="1.0" encoding="none"?><gexf/>', "cannot be read"),
        ("g.gexf", b'<?xml version="1.0" encoding="utf-32"?><gexf/>', ""),
        ("g.gexf.gz", b"no gzip", "a damaged gzip file"),
        ("g.gexf.gz", gzip.compress(GEPHI.encode())[:-20], "a damaged gzip file"),
        ("g.gml", b"graph [ \xff ]", "an encoding"),
        ("g.gml", "graph [\n node [ id 1 label \"secret ]\n node [ id 2 label \"x\" ] ]", "line 2: a quote"),
        ("g.gml", 'graph [ node [ id 1 label "5" secret" ] ]', "line 1: a quote that is left open"),
        ("g.gml", "graph [ node [ id 1 ]", "the file ends within a list"),
        ("g.gml", "graph [ node [ id ] ]", "line 1: no key before a value, or no value"),
        ("g.gml", "[" * 9999, "line 1: no key"),
        ("g.gml", "a [" * 9999, "the file ends within a list"),
        ("g.gml", "graph [ ] graph [ ]", "2 graphs in one file"),
        ("g.gml", "graph [ node [ id 1 ] node [ label 2 ] ]", "a node without an id"),
        ("g.gml", "graph [ node [ id 1 ] edge [ source 1 target secret ] ]", "not in the file's node"),
    ],
)  # fmt: skip
def test_what_is_not_read_is_refused_without_its_content(found, name, text, said):
    with pytest.raises(GraphFormatError) as error:
        found(name, text)
    message = str(error.value)
    assert f"{name}" in message and said in message
    assert "secret" not in message and 2 <= len(message.splitlines()) <= 5
    assert error.value.__suppress_context__ or error.value.__context__ is None


MIXED = ABC + '<edge source="a" target="b"/><edge source="b" target="c" directed="true"/>'
MIXED_GEXF = """<gexf><graph><nodes><node id="a"/><node id="b"/><node id="c"/></nodes><edges>
<edge source="a" target="b"/><edge source="b" target="c" type="directed"/></edges></graph></gexf>"""


@pytest.mark.parametrize(("name", "text"), [("g.graphml", graphml(MIXED)), ("g.gexf", MIXED_GEXF)])
def test_directions_of_some_edges_are_dropped_if_asked(found, name, text):
    with pytest.raises(GraphFormatError, match=r"direction: 1 of 2(.*\n)+.*undirected=True"):
        found(name, text)
    *_, reading = found(name, text, undirected=True)
    assert len(undirected_edges(reading.graph)) == 2
    with pytest.raises(GraphFormatError, match="undirected"):
        in_kind(reading, "directed")


def test_directions_of_all_edges(found):
    names, edges, _, reading = found("g.gml", CYTOSCAPE, undirected=True)
    assert (names, edges) == (["A", "B-2"], {"A-B-2"})
    assert in_kind(reading, "directed").graph.edge_index.tolist() == [[1], [0]]
    with pytest.raises(GraphFormatError, match="the graph is directed"):
        found("g.gml", CYTOSCAPE)
    one_way = ABC + '<edge source="c" target="a" directed="false"/>'
    assert found("g.graphml", graphml(one_way, default="directed"))[1] == {"a-c"}


@pytest.mark.parametrize("suffix", ["graphml", "gexf", "gml"])
def test_what_networkx_writes(found, tmp_path, suffix):
    graph = nx.les_miserables_graph()
    nx.set_node_attributes(graph, {node: len(node) for node in graph}, "letters")
    getattr(nx, f"write_{suffix}")(graph, tmp_path / "g.x")
    names, edges, *_ = found(f"g.{suffix}", (tmp_path / "g.x").read_bytes())
    assert set(names) == set(graph) and len(edges) == graph.size() == 254
