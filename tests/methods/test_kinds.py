"""Methods on directed and bipartite graphs: who learns them, what they draw, what a release keeps."""

import itertools
import math

import networkx as nx
import numpy as np
import pytest
import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException

import lightning_dpg as dpg
from lightning_dpg import methods
from lightning_dpg.apps.audit.canaries import find_sites
from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.errors import CommandError
from lightning_dpg.formats.io import write_graph
from lightning_dpg.graph.communities import (
    class_cells,
    count_neighbors,
    earlier_first,
    end_classes,
    turn_order,
)
from lightning_dpg.graph.pair_space import BipartitePairs, DirectedPairs, space_of
from lightning_dpg.graph.stubs import count_links
from lightning_dpg.main import main
from lightning_dpg.methods.base import PrivateModule
from lightning_dpg.metrics.queries import KIND_QUERIES, QUERIES
from lightning_dpg.preflight.data import KIND_METHODS
from lightning_dpg.privacy.ledger import Budget
from lightning_dpg.privacy.sensitivity.degrees import edge_partition_sensitivity
from lightning_dpg.privacy.sensitivity.neighbor_sums import earlier_neighbor_sensitivity
from tests.small_methods import METHODS, SHORT, made
from tests.training import quiet_trainer, release_edges

KINDS = ("directed", "bipartite")
# Those that read attributes have tests of their own.
ABLE = [
    (kind, name)
    for kind in KINDS
    for name in KIND_METHODS[kind].split(", ")
    if getattr(methods, name).capabilities.reads is dpg.interfaces.GraphRecords
]


def source(kind):
    if kind == "directed":
        return nx.gnp_random_graph(30, 0.15, seed=1, directed=True)
    return "davis"


def data_of(kind):
    data = EdgeListDataModule(source(kind), kind=kind)
    data.setup("fit")
    return data


@pytest.mark.parametrize("kind", KINDS)
def test_a_refusal_names_all_methods_that_learn_the_kind(kind):
    classes = [getattr(methods, name) for name in methods.__all__]
    able = {
        c.__name__ for c in classes if issubclass(c, PrivateModule) and kind in c.capabilities.kinds
    }
    able -= {
        c.__name__
        for c in classes
        if issubclass(c, PrivateModule) and c.capabilities.learns_transfers
    }  # with them only
    assert {*KIND_METHODS[kind].split(", ")} == able


@pytest.mark.parametrize(("kind", "name"), list(itertools.product(KINDS, METHODS)))
def test_other_methods_refuse_before_anything_is_booked(kind, name):
    data = data_of(kind)
    if (
        METHODS[name].capabilities.reads is not dpg.interfaces.GraphRecords
        or kind in METHODS[name].capabilities.kinds
    ):
        return
    method = made(name, SHORT | {"num_nodes": data.num_nodes})
    with pytest.raises(MisconfigurationException, match=KIND_METHODS[kind]) as error:
        method.accept_data(data)
    assert len(str(error.value).splitlines()) <= 5
    assert not method.ledger.entries


@pytest.mark.parametrize(("kind", "name"), ABLE)
def test_a_release_draws_graphs_of_its_kind_and_is_opened_again(kind, name, tmp_path):
    data = data_of(kind)
    release = dpg.fit(data, name, epsilon=2.0, progress=False)
    word = {"directed": "one directed edge", "bipartite": "one edge between the two sides"}[kind]
    assert word in release.guarantee
    drawn = release.sample(seed=3)
    assert space_of(drawn) == data.space
    assert drawn.node_names == data.graph.node_names
    edges = data.space.edges(drawn)
    assert torch.equal(data.space.pairs(data.space.numbers(edges)), edges)
    if name != "RandomizedResponse":  # whose reports are about as many
        assert len(edges) == int(release.method.num_edges)
    release.save(tmp_path / "out")
    again = dpg.open_release(tmp_path / "out").sample(seed=3)
    assert torch.equal(again.edge_index, drawn.edge_index)
    assert space_of(again) == data.space


@pytest.mark.parametrize(("kind", "name"), ABLE)
def test_the_plan_is_spent_exactly(kind, name):
    data = data_of(kind)
    method = made(name, {"num_nodes": data.num_nodes})
    method.accept_data(data)
    budget = Budget(1.0, 0.0)
    planned = method.plan(budget, 1)
    method.ledger.budget = budget
    release_edges(method, data.records.edges)
    assert method.ledger.entries == planned
    assert {entry.record for entry in planned} == {data.space.record}
    assert method.ledger.epsilon(0.0) == pytest.approx(1.0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("suffix", ["edges", "graphml", "npz"])
def test_files_of_a_release_are_read_back_as_the_same_graph(kind, suffix, tmp_path):
    data = data_of(kind)
    release = dpg.fit(data, "erdos_renyi", epsilon=2.0, progress=False)
    release.save(tmp_path / "out")
    drawn = release.sample(seed=0)
    read = EdgeListDataModule(str(tmp_path / "out" / f"synthetic-0.{suffix}"), kind=kind)

    def links(graph):
        edges = data.space.edges(graph) if graph is drawn else read.space.edges(graph)
        return {(graph.node_names[i], graph.node_names[j]) for i, j in edges.tolist()}

    assert links(read.graph) == links(drawn)
    if suffix != "edges":  # which has no nodes without edges
        assert read.space == data.space
        assert read.graph.node_names == drawn.node_names
    unit = (tmp_path / "out" / "MODEL_CARD.md").read_text()
    assert "undirected edge" not in unit
    found = release.to_networkx(seed=0)
    assert found.is_directed() == (kind == "directed")
    assert {tuple(map(str, edge)) for edge in found.edges} == links(drawn)


@pytest.mark.parametrize("kind", KINDS)
def test_degrees_without_noise_are_those_of_both_ends(kind):
    data = data_of(kind)
    method = made("ChungLu", {"num_nodes": data.num_nodes})
    method.accept_data(data)
    method.ledger.budget = Budget(float("inf"), 0.0)
    edges = data.records.edges
    release_edges(method, edges)
    first, second = edges.T
    degrees = torch.zeros(2, data.num_nodes, dtype=torch.long)
    for i, j in edges.tolist():
        degrees[0, i] += 1
        degrees[1, j] += 1
    expected = degrees.flatten() if kind == "directed" else degrees.sum(0)
    assert torch.equal(method.degrees, expected)
    scores = method.score(edges)
    assert torch.equal(scores, (degrees[0][first] * degrees[1][second]).double())


@pytest.mark.parametrize("kind", KINDS)
def test_randomized_response_reports_each_pair_at_its_rates(kind):
    """Rates over all ordered or allowed pairs, those in the opposite direction among them."""
    data = data_of(kind)
    method = made("RandomizedResponse", {"num_nodes": data.num_nodes, "count_share": 0.01})
    method.accept_data(data)
    edges, space = data.records.edges, data.space
    epsilon, runs = 2.0, 400
    hits = torch.zeros(space.num_pairs)
    kept = 0.0
    for _ in range(runs):
        method.ledger = type(method.ledger)(method.relation)
        method.ledger.budget = Budget(epsilon, 0.0)
        release_edges(method, edges)
        hits[space.numbers(method.reported)] += 1
        kept += method.thinning / runs
    is_edge = torch.zeros(space.num_pairs, dtype=torch.bool)
    is_edge[space.numbers(edges)] = True
    true_rate = 1 / (1 + math.exp(-0.99 * epsilon))
    for chosen, rate in ((is_edge, true_rate * kept), (~is_edge, (1 - true_rate) * kept)):
        trials = runs * int(chosen.sum())
        assert abs(float(hits[chosen].sum()) - trials * rate) < 5 * (trials * rate) ** 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_models_of_reports_refuse_other_kinds(kind):
    data = data_of(kind)
    options = {"num_nodes": data.num_nodes, "denoise": "spectral"}
    with pytest.raises(MisconfigurationException, match="denoise to none"):
        made("RandomizedResponse", options).accept_data(data)


def co_clusters(kind, sizes=(60, 60), inside=0.6, outside=0.01, seed=0):
    """A planted graph whose blocks are found however nodes come, and the block of each name."""
    rng = np.random.default_rng(seed)
    block = np.repeat(np.arange(len(sizes)), sizes)
    names = [f"a{i}" for i in range(len(block))]
    others = [f"b{i}" for i in range(len(block))] if kind == "bipartite" else names
    chance = np.where(block[:, None] == block, inside, outside)
    i, j = np.nonzero(rng.random(chance.shape) < chance)
    pairs = [(names[u], others[v]) for u, v in zip(i, j, strict=True) if names[u] != others[v]]
    return pairs, dict(zip([*names, *others], [*block, *block], strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_privgraph_finds_planted_blocks_and_keeps_degrees_and_links(kind):
    pairs, block = co_clusters(kind)
    data = EdgeListDataModule(pairs, kind=kind)
    data.setup("fit")
    method = made("PrivGraph", {"num_nodes": data.num_nodes, "num_communities": 9})
    method.accept_data(data)
    method.ledger.budget = Budget(20.0, 0.0)
    release_edges(method, data.records.edges)
    truth = np.array([block[name] for name in data.graph.node_names])
    found = method.communities.numpy()
    largest = [np.bincount(truth[found == community]).max() for community in np.unique(found)]
    assert sum(largest) > 0.8 * len(truth)
    drawn = method.sample_edges(torch.Generator().manual_seed(0))
    space = data.space
    assert torch.equal(space.pairs(space.numbers(drawn)), drawn)
    assert len(torch.unique(drawn, dim=0)) == len(drawn) == int(method.num_edges)
    assert torch.equal(space.degrees(drawn), method.degrees)
    real = data.records.edges
    inside, kept = ((found[e[:, 0]] == found[e[:, 1]]).mean() for e in (real, drawn))
    assert abs(inside - kept) < 0.1
    same = torch.tensor([[i, j] for i, j in real[:200].tolist() if truth[i] == truth[j]])
    assert method.score(same).mean() > 3 * method.score(other_pairs(space, truth)).mean()


def other_pairs(space, truth):
    pairs = space.pairs(torch.arange(space.num_pairs))
    return pairs[torch.from_numpy(truth[pairs[:, 0]] != truth[pairs[:, 1]])]


@pytest.mark.parametrize("space", [DirectedPairs(3), BipartitePairs(5, 2)], ids=lambda s: s.kind)
def test_sensitivities_of_privgraph_by_enumeration(space):
    """All graphs, and all that lack one edge: one cell of one node, and one cell of the blocks."""
    degrees = torch.tensor([3, 1, 2, 2, 1, 0, 2, 1][: space.num_ends])
    order = turn_order(space, degrees, 1)
    assert sorted(order.tolist()) == list(range(space.num_nodes))
    chosen = torch.tensor([0, 1])
    blocks = torch.tensor([0, 1, 1, 0, 1][: space.num_nodes])
    classes = end_classes(space, blocks, 2).numpy()
    rows, columns = class_cells(space, 2)

    def counts(edges):
        turns = [
            count_neighbors(earlier_first(edges, order), chosen[:start], stop, 2).flatten()
            for start, stop in ((1, 2), (2, space.num_nodes))
        ]
        table = np.zeros((4, 4), dtype=np.int64)
        found = count_links(classes, np.concatenate([space.ends(edges).numpy(), [[0, 0]]]))
        table[: len(found), : len(found)] = found
        table[classes[0], classes[0]] -= 1  # of the pair that keeps the table from being empty
        assert table.sum() == table[rows, columns].sum()  # no edge is in another cell
        return torch.cat(turns), torch.from_numpy(table)

    everything = space.pairs(torch.arange(space.num_pairs))
    for number in range(2**space.num_pairs):
        chosen_pairs = torch.tensor([number >> k & 1 for k in range(space.num_pairs)]).bool()
        edges = everything[chosen_pairs]
        whole = counts(edges)
        for gone in range(len(edges)):
            rest = counts(edges[torch.arange(len(edges)) != gone])
            assert int((whole[0] - rest[0]).abs().sum()) <= earlier_neighbor_sensitivity()
            assert int((whole[1] - rest[1]).abs().sum()) == edge_partition_sensitivity()


@pytest.mark.parametrize("kind", KINDS)
def test_evaluate_reads_a_release_of_the_kind(kind, tmp_path, capsys):
    data = data_of(kind)
    release = dpg.fit(data, "chung_lu", epsilon=float("inf"), progress=False)
    release.save(tmp_path / "out")
    table = tmp_path / f"real.{'edges' if kind == 'directed' else 'graphml'}"
    write_graph(data.graph, table)
    assert main(["evaluate", str(table), str(tmp_path / "out")]) in (0, None)
    said = capsys.readouterr().out
    assert main(["evaluate", str(table), str(tmp_path / "out"), "--kind", kind]) in (0, None)
    assert capsys.readouterr().out == said
    found = dpg.evaluate(data.graph, release).answers["synthetic-0"]
    for name in KIND_QUERIES[kind]:
        assert name in said
    assert tuple(found) == (*QUERIES, *KIND_QUERIES[kind])
    if kind == "directed":
        assert found["num_directed_edges"].score == 0
        expected = nx.overall_reciprocity(source(kind))
        assert found["reciprocity"].real == pytest.approx(expected)
    with pytest.raises(CommandError, match="kind"):
        dpg.evaluate("karate", release, kind="undirected")


@pytest.mark.parametrize("kind", KINDS)
def test_held_out_links_are_scored(kind, tmp_path):
    data = EdgeListDataModule(source(kind), kind=kind, test_fraction=0.2)
    method = made("ChungLu", {})
    trainer = quiet_trainer(PrivacyAccountant(4.0, 0.0), default_root_dir=tmp_path)
    trainer.fit(method, data)
    (found,) = trainer.test(method, data, verbose=False)
    assert 0 <= found["nonprivate/test_auc"] <= 1
    assert 0.2 < found["nonprivate/test_matched_auc_degree_product"] < 0.8


def test_an_audit_of_other_kinds_is_refused():
    with pytest.raises(CommandError, match="undirected"):
        find_sites(data_of("directed"))
