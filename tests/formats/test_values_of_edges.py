"""Weights and times of edges are dropped, and the owner's line names them, from every source."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_array, save_npz
from torch_geometric.data import Data

from lightning_dpg.datamodules.loading import load_reading

LINE = "dropped from the edges: "


def of_csv(folder, weighted):
    rows = ["from_id,to_id,amount,at", "a,b,3.5,2026-01-01", "b,c,1,2026-01-02"]
    path = folder / "pay.csv"
    path.write_text("\n".join(rows if weighted else [",".join(r.split(",")[:2]) for r in rows]))
    return str(path)


def of_text(folder, weighted):
    path = folder / "pay.edges"
    path.write_text("0 1 7\n1 2 8\n" if weighted else "0 1\n1 2\n")
    return str(path)


def of_table(folder, weighted):
    table = pd.DataFrame(
        {"source": ["a", "b"], "amount": [3, 1], "target": ["b", "c"], "at": [1, 2]}
    )
    return table if weighted else table[["source", "target"]]


def of_networkx(folder, weighted):
    graph = nx.path_graph(3)
    if weighted:
        graph.edges[0, 1].update(amount=3.5, at=7)
    return graph


def of_graphml(folder, weighted):
    nx.write_graphml(of_networkx(folder, weighted), folder / "pay.graphml")
    return str(folder / "pay.graphml")


def of_pyg(folder, weighted):
    values = {"edge_attr": torch.ones(4, 2), "edge_weight": torch.ones(4)} if weighted else {}
    index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    return Data(edge_index=index, num_nodes=3, x=torch.ones(3, 1), **values)


def of_matrix(folder, weighted):
    value = 0.5 if weighted else 1
    return csr_array(np.array([[0, value, 0], [value, 0, 1], [0, 1, 0]]))


def of_npz(folder, weighted):
    save_npz(folder / "pay.npz", of_matrix(folder, weighted))
    return str(folder / "pay.npz")


@pytest.mark.parametrize(
    ("source", "names"),
    [
        (of_csv, "amount, at"),
        (of_text, "column 3"),
        (of_table, "amount, at"),
        (of_networkx, "amount, at"),
        (of_graphml, "amount, at"),
        (of_pyg, "edge_attr, edge_weight"),
        (of_matrix, "entries other than 1"),
        (of_npz, "entries other than 1"),
    ],
)
def test_the_line_names_values_that_are_dropped(tmp_path, source, names):
    plain = load_reading(source(tmp_path, False)).summary
    assert LINE not in plain
    weighted = load_reading(source(tmp_path, True)).summary
    assert weighted.endswith(f"; {LINE}{names}")
