"""Audits detect mistakes planted in the methods for sets of graphs.

The rows are those of ``test_planted_bugs.py``, which names the bugs that no audit can find.
"""

from functools import partial

import networkx as nx
import pytest
import torch

from lightning_dpg.datamodules.graph_set import GraphSetDataModule
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.methods import (
    DPGVAE,
    CentralGromovWasserstein,
    ErdosRenyiSet,
    LDPGromovWasserstein,
    LocalScalars,
    PooledSet,
    PrivateGraphKernel,
)
from tests.apps.audit.test_planted_bugs import Row, half, is_caught, off


def labelled(count, size):
    """Random graphs with labels that alternate."""
    graphs = []
    for seed in range(count):
        edges = list(nx.gnp_random_graph(size, 0.2, seed=seed).edges)
        graphs.append(make_graph(torch.tensor(edges, dtype=torch.long).view(-1, 2), size))
        graphs[-1].y = torch.tensor([seed % 2])
    return graphs


SET = partial(GraphSetDataModule, labelled(20, 10))
# One edge is the whole graph of a client with two nodes, and moves its density from 0 to 1.
PAIRS = [make_graph(torch.empty(0, 2).long(), 2)] * 80
CLIENTS = partial(GraphSetDataModule, [*PAIRS, make_graph(torch.tensor([[0, 1]]), 2)])
# A canary that moves a pooled statistic by its whole sensitivity: the edge 01 closes a triangle with
# each of the other nodes, and the edge 03 joins two halves.
WEDGES = nx.complete_bipartite_graph(2, 4)
HALVES = nx.disjoint_union(nx.complete_graph(3), nx.complete_graph(3))
KERNEL = lambda _: PrivateGraphKernel(features=["edges", "gk-c3"], max_degree=8)
VAE = {"sample_rate": 0.5, "latent_dim": 4, "feature_dim": 4, "hidden_dim": 8, "public_pairs": 64}
GW = {"width": 3, "num_clients": 4, "local_epochs": 1}

ROWS = {
    "ErdosRenyiSet half": Row(lambda _: ErdosRenyiSet(), 2, 20, 20, half(), read=SET),
    "PooledSet counts half": Row(
        lambda _: PooledSet(), 2, 20, 60, half("num_edges_per_graph"), read=SET
    ),
    "PooledSet degrees off": Row(lambda _: PooledSet(), 2, 2, 60, off("pooled_degrees"), read=SET),
    "PrivateGraphKernel edges half": Row(
        lambda _: PrivateGraphKernel(features=["edges"]), 1, 20, 40, half("edge_counts"), read=SET
    ),
    "PrivateGraphKernel graphlets off": Row(KERNEL, 2, 20, 10, off("graphlets_3"), read=SET),
    "CentralGromovWasserstein sums off": Row(
        lambda _: CentralGromovWasserstein(**GW),
        *(2, 20, 8, off("neighbor_sums_1")),
        delta=1e-5,
        read=SET,
    ),
    "LDPGromovWasserstein updates off": Row(
        lambda _: LDPGromovWasserstein(weights="private", rounds=1, **GW),
        *(1, 4, 40, off("client_updates")),
        delta=1e-5,
        read=SET,
    ),
    "LocalScalars reports half": Row(lambda _: LocalScalars(), 1, 40, 30, half(), read=CLIENTS),
    "DPGVAE counts half": Row(
        lambda _: DPGVAE(**VAE), 2, 20, 30, half("num_edges_per_graph"), 1e-5, SET
    ),
    "DPGVAE sums off": Row(lambda _: DPGVAE(**VAE), 2, 20, 8, off("neighbor_sums_1"), 1e-5, SET),
}
ROWS |= {
    f"PooledSet {name}s half": Row(
        lambda _, own=f"{name}_share": PooledSet(
            **{"degree_share": 0.02, "triangle_share": 0.02, "component_share": 0.02, own: 0.9}
        ),
        *(2, [canary], 240, half(f"pooled_{name}s")),
        read=partial(GraphSetDataModule, [graph]),
    )
    for name, canary, graph in (("triangle", [0, 1], WEDGES), ("component", [0, 3], HALVES))
}


@pytest.mark.parametrize("name", list(ROWS))
def test_a_planted_bug_is_caught(name):
    assert is_caught(ROWS[name])
