"""``attack`` on a set fits parts of the set, and its numbers are correct."""

import json

import networkx as nx
import pytest
import torch

from lightning_dpg.datamodules.tu import write_tu_folder
from lightning_dpg.formats.io import from_networkx
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.main import main


def labelled_graphs():
    graphs = [from_networkx(nx.planted_partition_graph(2, 8, 0.9, 0.1, seed=k)) for k in range(4)]
    graphs.append(make_graph(torch.tensor([[1, 2]]), 5))  # nodes without a link at both ends
    for k, graph in enumerate(graphs):
        graph.y = torch.tensor([k % 2])
    return graphs


@pytest.fixture
def folder(here):
    (here / "set").mkdir()
    write_tu_folder(labelled_graphs(), here / "set")
    quiet = ["--trainer.enable_progress_bar", "false", "--trainer.default_root_dir", "runs"]
    options = ["--config", "erdos_renyi_set", "--data.name", "set", *quiet]
    assert main(["fit", *options]) == 0
    return here


def test_hidden_links_are_predicted(folder, capsys, printed):
    (run,) = folder.glob("runs/*/version_0")
    before = sorted(folder.rglob("*"))
    capsys.readouterr()
    assert "not private" in printed(main(["attack", "set", str(run)]))
    report = json.loads(printed(main(["attack", "set", str(run), "--json"])))
    assert sorted(folder.rglob("*")) == before
    edges = [graph.num_edges // 2 for graph in labelled_graphs()]
    assert report["graphs"] == 5
    assert report["edges"] == sum(edges)
    assert report["hidden"] == sum(round(count / 5) for count in edges)
    rows = report["link_prediction"]
    # Communities reveal hidden links, which uniform graphs of the same sizes cannot show.
    assert rows["real"]["value"] > 0.7 > rows["generated"]["value"]
    assert rows["degrees_alone"]["value"] < 0.7


def test_a_single_graph_is_no_set(folder, capfd):
    (run,) = folder.glob("runs/*/version_0")
    capfd.readouterr()
    assert main(["attack", "karate", str(run)]) == 2
    assert "karate: a single graph" in capfd.readouterr().err
