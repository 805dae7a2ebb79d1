"""Folders that PyTorch Geometric, the Hub, Croissant and Neo4j open without this package."""

import importlib.util
import json
import subprocess
import sys
from datetime import datetime

import numpy as np
import pytest
import torch
import yaml

import lightning_dpg as dpg
from lightning_dpg.errors import CommandError
from lightning_dpg.graph.attributes import NodeAttributes
from lightning_dpg.graph.drawn_tables import (
    DrawnRows,
    DrawnTransfers,
    attach_rows,
    attach_transfers,
)
from lightning_dpg.graph.pair_space import pair_space
from lightning_dpg.methods import ErdosRenyiSet
from lightning_dpg.release.card.topics import topics
from lightning_dpg.release.checksums import digest
from lightning_dpg.release.datasets import write_neo4j, write_pyg_dataset
from lightning_dpg.release.release import Release
from tests.cards import FACTS, statement

CONTENT = statement() | topics(statement(), FACTS)
ROWS = DrawnRows({"town": ["Ulm", 'a "b", c']}, np.array([[0], [1], [1]]))


def graph_of(kind, edges, num_left=None):
    space = pair_space(kind, 3, num_left)
    graph = space.graph(torch.tensor(edges), ["Ann", "Bob", "Cy"])
    public = NodeAttributes(
        torch.tensor([[1.5], [0.0], [2.0]]), ["age: years"], torch.tensor([4, -1, 7])
    )
    attach_rows(graph, ROWS, public)
    pairs, cents = space.edges(graph)[:1].repeat(2, 1), torch.tensor([150, 50])
    attach_transfers(
        graph, DrawnTransfers(pairs, cents, torch.tensor([60, 30]), datetime(2026, 1, 1))
    )
    return graph


GRAPHS = [
    graph_of("bipartite", [[0, 1], [0, 2]], 1),
    graph_of("directed", [[2, 0], [1, 0], [0, 1]]),
    graph_of("undirected", [[1, 2]]),
    graph_of("undirected", [[0, 1], [0, 2], [1, 2]]),
]


def opened(folder):
    spec = importlib.util.spec_from_file_location("dataset", folder / "dataset.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.SyntheticGraphs()


def is_equal(value, other):
    is_tensor = isinstance(value, torch.Tensor)
    return torch.equal(value, other) if is_tensor else value == other


@pytest.mark.parametrize("graphs", [GRAPHS[:1], GRAPHS[1:2], GRAPHS[2:]])
def test_graphs_are_read_as_they_were(graphs, tmp_path):
    write_pyg_dataset(graphs, CONTENT, tmp_path)
    dataset = opened(tmp_path)
    assert len(dataset) == len(graphs)
    for graph, read in zip(graphs, dataset, strict=True):
        wanted = graph.to_dict()
        del wanted["drawn_rows"], wanted["drawn_transfers"]  # in x, edge_attr and edge_time as well
        assert wanted.keys() == read.to_dict().keys() > {"edge_index", "x", "y", "edge_attr"}
        assert all(is_equal(value, read[name]) for name, value in wanted.items())


def test_the_sets_of_a_release_are_drawn_whole(tmp_path):
    method = ErdosRenyiSet()
    method.sizes, method.num_edges = torch.tensor([3, 5, 4]), torch.tensor([2, 6, 3])
    release = Release(method, CONTENT)
    dataset = opened(release.to_pyg_dataset(tmp_path / "new" / "set", n=2, seed=5))
    sets = [method.sample_set(torch.Generator().manual_seed(seed)) for seed in (5, 6)]
    expected = [graph.edge_index for graphs in sets for graph in graphs]
    assert [graph.num_nodes for graph in dataset] == [3, 5, 4] * 2
    assert all(map(torch.equal, (graph.edge_index for graph in dataset), expected))


def test_a_folder_with_files_is_refused_before_anything_is_drawn(tmp_path):
    (tmp_path / "notes").write_text("mine")
    release = Release(ErdosRenyiSet(), CONTENT)  # draws nothing: it has no sizes
    for write in (release.to_pyg_dataset, release.to_neo4j):
        for place in (tmp_path, tmp_path / "notes"):
            with pytest.raises(CommandError, match="it is not empty\ngive a new folder"):
                write(place)
        with pytest.raises(CommandError, match="has no texts"):
            Release(release.method, statement()).to_neo4j(tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]


@pytest.mark.parametrize(
    ("licence", "head"),
    [
        ("cc-by-4.0", {"license": "cc-by-4.0"}),
        ("ours: <b>", {"license": "other", "license_name": "ours: <b>"}),
    ],
)
def test_data_card_and_croissant_say_what_the_statement_says(licence, head, tmp_path):
    about = CONTENT["administrative"] | {"licence": licence, "operator": "Bank *of* Utopia"}
    write_pyg_dataset(GRAPHS, CONTENT | {"administrative": about}, tmp_path)
    _, front, body = (tmp_path / "README.md").read_text().split("---\n", 2)
    found = yaml.safe_load(front)
    assert head.items() <= found.items()
    assert found["size_categories"] == ["n<1K"] and found["task_categories"] == ["graph-ml"]
    assert CONTENT["guarantee"] in body and "operator: Bank \\*of\\* Utopia" in body
    assert "Assumed to be public: The node set is public." in body
    croissant = json.loads((tmp_path / "croissant.json").read_text())
    # What version 1.0 of the specification requires of a dataset and of a file.
    required = {
        "@context",
        "@type",
        "conformsTo",
        "name",
        "description",
        "license",
        "url",
        "creator",
    }
    assert required | {"datePublished", "distribution"} < croissant.keys()
    assert croissant["conformsTo"] == "http://mlcommons.org/croissant/1.0"
    assert CONTENT["guarantee"] in croissant["description"]
    files = {file["@id"]: file for file in croissant["distribution"]}
    assert files.keys() == {path.name for path in tmp_path.iterdir()} - {"croissant.json"}
    for name, file in files.items():
        assert file["@type"] == "cr:FileObject" and file["contentUrl"] == file["name"] == name
        assert file["sha256"] == digest(tmp_path / name)
        assert file["contentSize"] == f"{(tmp_path / name).stat().st_size} B"


def test_tables_of_neo4j_have_typed_heads(tmp_path):
    write_neo4j(GRAPHS[0], CONTENT, tmp_path)
    assert (tmp_path / "nodes.csv").read_text().splitlines() == [
        "node:ID,:LABEL,town:string,age_ years:double,y:long",
        "Ann,Left,Ulm,1.5,4",
        'Bob,Right,"a ""b"", c",0.0,',
        'Cy,Right,"a ""b"", c",2.0,7',
    ]
    assert (tmp_path / "relationships.csv").read_text().splitlines() == [
        ":START_ID,:END_ID,:TYPE,amount:double,first_time:localdatetime",
        "Ann,Bob,RELATED,2.0,2026-01-01T00:00:30",
        "Ann,Cy,RELATED,0.0,",
    ]
    assert json.loads((tmp_path / "privacy.json").read_text()) == CONTENT


ALONE = """
import sys

class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "lightning_dpg":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Refused())
sys.path.append(sys.argv[1])
from dataset import SyntheticGraphs
graph = SyntheticGraphs()[1]
assert "lightning_dpg" not in sys.modules
print(graph.num_nodes, *graph.edge_index.flatten().tolist())
"""


def test_a_process_without_this_package_opens_the_folder_of_a_fit(tmp_path):
    release = dpg.fit("karate", "chung_lu", epsilon=1.0, book="none")
    folder = release.to_pyg_dataset(tmp_path / "data", n=2)
    words = [sys.executable, "-I", "-c", ALONE, str(folder)]
    said = subprocess.run(words, check=True, capture_output=True, text=True, cwd=folder).stdout
    expected = release.sample(seed=1)
    assert [*map(int, said.split())] == [34, *expected.edge_index.flatten().tolist()]
