"""Graphs whose links follow public attributes, and a data module that serves both."""

import torch
from torch.nn.functional import one_hot
from torch_geometric.data import Data

from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.graph.pair_space import apart, pair_space


class AttributedDataModule(EdgeListDataModule):
    """One graph with given attributes of its nodes, in their order, or with its own ones."""

    def __init__(self, graph, attributes=None, **settings):
        super().__init__(graph, **settings)
        self.given = attributes

    def _read_graph(self):
        """The graph, which need not hold an edge as files do."""
        return apart(self.source) if isinstance(self.source, Data) else super()._read_graph()

    @property
    def records(self):
        records = super().records
        if self.given is None:
            return records
        records.attributes = self.given
        records.attribute_names = [f"word {n}" for n in range(self.given.shape[1])]
        return records


def attributed_graph(num_nodes=120, groups=6, inside=0.35, outside=0.01, words=8, seed=0):
    """A planted partition whose groups share words; the attributes have noise of their own.

    Returns:
        The graph, and attributes of shape ``(num_nodes, groups * words)``.
    """
    source = torch.Generator().manual_seed(seed)
    group = torch.arange(num_nodes) % groups
    pairs = torch.combinations(torch.arange(num_nodes))
    rate = torch.where(group[pairs[:, 0]] == group[pairs[:, 1]], inside, outside)
    edges = pairs[torch.rand(len(pairs), generator=source) < rate]
    shared = one_hot(group, groups).repeat_interleave(words, 1)
    drawn = torch.rand(num_nodes, groups * words, generator=source)
    return make_graph(edges, num_nodes), (drawn < 0.1 + 0.3 * shared).float()


def twins(count):
    """Data of ``count`` pairs of nodes with equal attributes, a word for each pair, and no edge."""
    words = torch.eye(count).repeat_interleave(2, 0)
    nothing = torch.empty(0, 2, dtype=torch.long)
    return AttributedDataModule(make_graph(nothing, 2 * count), words)


def classified(graph, attributes, classes):
    """Data of a graph whose nodes have attributes and public classes."""
    graph.x, graph.y = attributes, classes
    graph.attribute_names = [f"word {n}" for n in range(attributes.shape[1])]
    return AttributedDataModule(graph)


def classified_groups(num_nodes=60, groups=3):
    """Set-up data of an attributed graph where half of the nodes show their group as their class."""
    graph, attributes = attributed_graph(num_nodes, groups, words=4)
    nodes = torch.arange(num_nodes)
    data = classified(graph, attributes, torch.where(nodes < num_nodes // 2, nodes % groups, -1))
    data.setup("fit")
    return data


def classified_twins(count):
    """Twins that all show one of two classes."""
    data = twins(count)
    return classified(data.source, data.given, torch.arange(count).repeat_interleave(2) % 2)


def tastes_and_products(kind, left=150, right=60, groups=6, inside=0.4, outside=0.02, seed=0):
    """A graph whose links lead from each group to the next one, so that no cosine shows them.

    Of the directed graph, members of group k send links to members of group k + 1. Of the bipartite
    one, persons with the taste k buy products of the category k + 1: the sides share no column.

    Returns:
        The graph, and attributes of shape ``(num_nodes, F)``.
    """
    source = torch.Generator().manual_seed(seed)
    sizes = (left, right) if kind == "bipartite" else (left + right,)
    group = torch.cat([torch.arange(size) % groups for size in sizes])
    space = pair_space(kind, left + right, left)
    pairs = space.pairs(torch.arange(space.num_pairs))
    follows = (group[pairs[:, 0]] + 1) % groups == group[pairs[:, 1]]
    drawn = torch.rand(len(pairs), generator=source) < torch.where(follows, inside, outside)
    shared = one_hot(group, groups).float()
    blur = 0.3 * torch.rand(shared.shape, generator=source)
    parts = (shared + blur).split(sizes)
    return space.graph(pairs[drawn]), torch.block_diag(*parts)  # one block of a directed graph
