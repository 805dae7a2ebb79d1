"""Node encoders equal their formulas, and no row depends on another graph."""

import networkx as nx
import pytest
import torch
from torch_geometric.utils import to_dense_adj, to_undirected

from lightning_dpg.nn.node_encoders import GCN, GIN, RowNet, padded


@pytest.fixture
def two_graphs():
    """Features, edges and graph numbers of a path and a cycle, side by side."""
    torch.manual_seed(0)
    union = nx.disjoint_union(nx.path_graph(4), nx.cycle_graph(5))
    edge_index = to_undirected(torch.tensor(list(union.edges)).T)
    return torch.randn(9, 3), edge_index, torch.tensor([0] * 4 + [1] * 5)


def test_gcn_is_its_formula(two_graphs):
    features, edge_index, graph_of = two_graphs
    net = GCN(3, 7, 2)
    adjacency = to_dense_adj(edge_index, max_num_nodes=9)[0] + torch.eye(9)
    scale = adjacency.sum(1) ** -0.5
    adjacency = scale[:, None] * adjacency * scale
    hidden = (adjacency @ features @ net.first.lin.weight.T + net.first.bias).relu()
    scores = adjacency @ hidden @ net.second.lin.weight.T + net.second.bias
    rows = net(features, edge_index)
    torch.testing.assert_close(rows, scores.exp() / scores.exp().sum(1, keepdim=True))
    pooled = torch.stack([scores[:4].mean(0), scores[4:].mean(0)])
    torch.testing.assert_close(
        net.logits(features, edge_index, graph_of, 2), net.readout(pooled), rtol=1e-4, atol=1e-5
    )


def test_gin_adds_up_neighbors(two_graphs):
    features, edge_index, _ = two_graphs
    net = GIN(3, 7, 2)
    adjacency = to_dense_adj(edge_index, max_num_nodes=9)[0] + torch.eye(9)
    assert len(net.layers.convs) == 5
    hidden, layers = features, []
    for conv, norm in zip(net.layers.convs, net.layers.norms, strict=True):
        first, second = conv.nn.lins
        hidden = second(first(adjacency @ hidden).relu())
        hidden = _normal(hidden, norm).relu()
        layers.append(hidden)
    scores = net.output(net.layers.lin(torch.cat(layers, 1)))
    torch.testing.assert_close(net(features, edge_index), scores.softmax(1), rtol=1e-4, atol=1e-5)


def _normal(hidden, norm):
    centered = hidden - hidden.mean(1, keepdim=True)
    return centered / (centered.square().mean(1, keepdim=True) + norm.eps).sqrt()


@pytest.mark.parametrize("kind", [GCN, GIN, RowNet])
def test_rows_lie_in_bounds_and_depend_on_their_own_graph(kind, two_graphs):
    features, edge_index, _ = two_graphs
    net = kind(3, 6, 2)
    rows = net(100 * features, edge_index)
    assert rows.min() >= 0
    torch.testing.assert_close(rows.sum(1), torch.ones(9))
    other = features.clone()
    other[4:] = 7.0
    torch.testing.assert_close(net(other, edge_index)[:4], net(features, edge_index)[:4])


def test_padding_fills_up():
    rows = torch.arange(6.0).view(3, 2)
    expected = [[0, 1], [9, 9], [9, 9], [2, 3], [4, 5], [9, 9]]
    assert padded(rows, torch.tensor([1, 2]), 3, 9.0).tolist() == expected
