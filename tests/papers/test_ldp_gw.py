"""Gromov-Wasserstein releases spend their budget, padding hides sizes, and bounds hold."""

import functools
import itertools
import math

import networkx as nx
import numpy as np
import ot
import pytest
import pytorch_lightning as pl
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from scipy.spatial.distance import cdist
from torch.nn.utils import parameters_to_vector

from lightning_dpg.apps.audit.scores.attackers import black_box_score
from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import SubgraphDataModule, TUGraphDataModule
from lightning_dpg.formats.io import from_networkx
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.methods import (
    CentralGromovWasserstein,
    GromovKernel,
    GromovWassersteinFeatures,
    LDPGromovWasserstein,
    LDPGromovWassersteinAsPublished,
)
from lightning_dpg.nn.node_encoders import GCN
from lightning_dpg.papers.jin2022.base import node_inputs, scaled
from lightning_dpg.papers.jin2022.clients import (
    LocalTraining,
    build_clients,
    clipped,
    dirichlet_clients,
    draw_train_mask,
    partition_dirichlet,
    weighted_update,
)
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.sensitivity.fitting import client_update_sensitivity
from tests.scoring import scored
from tests.training import quiet_trainer


def labelled(features):
    graphs = []
    for size in range(5, 10):
        for label, kind in enumerate((nx.path_graph, nx.cycle_graph)):
            graphs.append(from_networkx(kind(size)))
            graphs[-1].y = torch.tensor([label])
            if features:
                graphs[-1].x = torch.arange(2.0 * size).view(size, 2)
    return graphs


def fit_kernel(folder, graphs, **options):
    method = GromovKernel(**options)
    trainer = quiet_trainer(PrivacyAccountant(math.inf, 1e-5), default_root_dir=folder)
    trainer.fit(method, TUGraphDataModule(graphs))
    return method


def hops(graph):
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    return np.array([[float(lengths[i][j]) for j in graph] for i in graph])


@pytest.mark.parametrize("fused", [False, True])
def test_discrepancies_are_those_of_pot(fused, tmp_path):
    method = fit_kernel(tmp_path, labelled(fused), fused=fused)
    path, cycle = hops(nx.path_graph(6)), hops(nx.cycle_graph(8))
    if fused:
        x, y = np.arange(12.0).reshape(6, 2), np.arange(16.0).reshape(8, 2)
        expected = ot.gromov.fused_gromov_wasserstein2(ot.dist(x, y), path, cycle)
    else:
        expected = ot.gromov.gromov_wasserstein2(path, cycle)
    assert float(method.discrepancies[2, 7]) == pytest.approx(expected, abs=1e-8)
    assert math.isinf(method.ledger.epsilon(1e-5))
    for kernel in method.kernels(method.embedding, method.sizes):
        assert np.linalg.eigvalsh(kernel).min() > -1e-9


def test_fused_asks_for_features(tmp_path):
    with pytest.raises(MisconfigurationException, match="there are none"):
        fit_kernel(tmp_path, labelled(False), fused=True)


@settings(max_examples=50)
@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=60),
    st.integers(1, 12),
    st.floats(0.05, 100),
    st.integers(0, 100),
)
def test_clients_share_the_graphs(labels, num_clients, concentration, seed):
    labels = torch.tensor(labels)
    clients = dirichlet_clients(labels, num_clients, concentration, seed)
    assert len(clients) == num_clients
    assert torch.cat(clients).sort().values.tolist() == list(range(len(labels)))
    again = dirichlet_clients(labels, num_clients, concentration, seed)
    assert all(torch.equal(*pair) for pair in zip(clients, again, strict=True))


def test_concentration_decides_how_alike_clients_are():
    labels = torch.tensor([0, 1]).repeat(2000)

    def spread(concentration):
        clients = dirichlet_clients(labels, 10, concentration, 0)
        return torch.tensor([float(labels[c].float().mean()) for c in clients if len(c)]).std()

    assert spread(0.1) > 0.2
    assert spread(1000) < 0.03


def test_bad_clients():
    with pytest.raises(ValueError, match="must be positive: 0"):
        dirichlet_clients(torch.tensor([0]), 0, 1.0, 0)


@settings(max_examples=50)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=5), st.floats(1e-3, 1e3))
def test_clipping(update, max_norm):
    update = torch.tensor(update, dtype=torch.float64)
    found = clipped(update, max_norm)
    expected = update if update.norm() <= max_norm else update / update.norm() * max_norm
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_an_update_that_is_no_number_counts_as_none(bad):
    assert clipped(torch.tensor([1.0, bad]), 1.0).tolist() == [0.0, 0.0]


LABELS = torch.tensor([0, 1] * 10)


def small_graphs(features=False):
    """Ten paths and ten stars of five to nine nodes, by turns."""
    graphs = []
    for size in range(10):
        for label, kind in enumerate((nx.path_graph, lambda n: nx.star_graph(n - 1))):
            graphs.append(from_networkx(kind(5 + size % 5)))
            graphs[-1].y = torch.tensor([label])
            if features:
                torch.manual_seed(size)
                graphs[-1].x = torch.randn(graphs[-1].num_nodes, 2)
    return graphs


UPDATES, REPORTS = "sum of client updates", "reports of embeddings"


def fit(kind=LDPGromovWasserstein, graphs=None, *, epsilon=math.inf, delta=1e-5, **options):
    pl.seed_everything(0, verbose=False)
    method = kind(**{"width": 4, "num_clients": 3, "local_epochs": 2, "rounds": 3} | options)
    trainer = quiet_trainer(PrivacyAccountant(epsilon, delta), max_epochs=1)
    data = TUGraphDataModule(small_graphs() if graphs is None else graphs)
    trainer.fit(method, data)
    return method


def booked(method):
    names = ("name", "mechanism", "epsilon", "steps")
    return [tuple(entry.to_dict()[name] for name in names) for entry in method.ledger.entries]


def test_reports_cost_the_whole_budget_and_are_made_once():
    method = fit(epsilon=3.0, delta=0.0)
    assert booked(method) == [(REPORTS, "pure", 3.0, 1)]
    assert method.ledger.relation == "local_graph"
    assert method.features.shape == (140, 4)
    # One sign in each row, and no signal: the middle and one entry far from it.
    assert (method.features != 0.5).sum(1).tolist() == [1] * 140
    assert not any("features" in text for text in method.assumptions if "kinds" not in text)
    method.training_step(method.records, 0)
    assert method.plan(Budget(3.0, 0.0), 1) == method.ledger.entries
    assert booked(method) == [(REPORTS, "pure", 3.0, 1)]


def test_padded_graphs_do_not_tell_their_sizes():
    method = fit(epsilon=3.0, max_nodes=9)
    assert method.sizes.tolist() == [9] * 20
    assert method.features.shape == (180, 4)
    assert method.released_arrays()["sizes"].tolist() == [9] * 20
    assert "that no graph has more than 9 nodes" in method.assumptions
    with pytest.raises(MisconfigurationException, match="public bound"):
        fit(epsilon=3.0, max_nodes=8)


def test_exact_rows_are_those_of_the_encoder_and_have_no_protection():
    graphs = small_graphs(features=True)
    method = fit(GromovWassersteinFeatures, graphs)
    assert math.isinf(method.ledger.epsilon(1e-5))
    data = TUGraphDataModule(graphs)
    data.setup("fit")
    edge_index = torch.cat([data.edges, data.edges.flip(1)]).T
    rows = method.network(node_inputs(data, data.edges), edge_index)
    torch.testing.assert_close(method.features, rows.detach().double())
    # Discrepancies by POT, from the released rows.
    parts = [part.numpy() for part in torch.split(method.features, data.sizes.tolist())]
    for i, j in itertools.islice(itertools.combinations(range(20), 2), 0, None, 17):
        first, second = (cdist(parts[k], parts[k]) for k in (i, j))
        value = ot.gromov.gromov_wasserstein2(first, second)
        assert float(method.discrepancies[i, j]) == pytest.approx(value, abs=1e-8)


def test_kernels_are_positive_and_tell_paths_from_stars():
    method = fit(GromovWassersteinFeatures)
    for kernel in method.kernels(method.embedding, method.sizes):
        assert np.linalg.eigvalsh(kernel).min() > -1e-9
    assert method.accuracy(folds=5, repetitions=2).mean > 0.9


def test_neighbors_and_clusters_of_the_release_are_logged():
    method = fit(GromovWassersteinFeatures)
    method.predictions = functools.partial(method.predictions, repetitions=1)  # of ten
    logged = {}
    method.log_dict = lambda values, **_: logged.update(values)
    method.on_test_epoch_start()
    method.test_step(torch.arange(len(method.sizes)), 0)
    method.on_test_epoch_end()
    assert logged["test_accuracy_of_neighbors"] > 0.9
    assert logged["test_clusters_nmi"] > 0.3
    assert logged["test_accuracy_of_majority"] == 0.5


def test_unprotected_rounds_void_the_guarantee():
    method = fit(GromovWassersteinFeatures, weights="trained", report_epsilon=5.0)
    assert booked(method) == [(UPDATES, "non_private", 0.0, 3), (REPORTS, "pure", 5.0, 1)]
    assert method.rounds_made == 3
    assert int(method.train_mask.sum()) == 10
    assert method.plan(Budget(math.inf, 1e-5), 1) == method.ledger.entries


def test_what_was_found_by_looking_is_said(tmp_path):
    """Also by a guarantee that does not take features for public."""
    whole = nx.gnm_random_graph(40, 120, seed=0)
    data = SubgraphDataModule(whole, kind="ego", num_subgraphs=6, max_occurrences=6)
    method = LDPGromovWasserstein(width=4)
    trainer = quiet_trainer(PrivacyAccountant(3.0, 0.0), default_root_dir=tmp_path)
    trainer.fit(method, data)
    assert any("ego graphs, although found by looking" in text for text in method.assumptions)
    assert not any("their features" in text for text in method.assumptions)


def test_private_rounds_and_reports_spend_the_budget_together():
    method = fit(weights="private", epsilon=8.0, weights_share=0.25, rounds=2, max_update_norm=0.5)
    updates, reports = method.ledger.entries
    assert (updates.name, updates.event.mechanism, updates.steps) == (UPDATES, "gaussian", 2)
    assert reports.event.epsilon == 6.0
    assert {updates.relation, reports.relation} == {"local_graph"}
    parts = partition_dirichlet(LABELS, method.train_mask, 3, 1.0, 0)
    assert method.plan(Budget(8.0, 1e-5), 1) == method.ledger.entries
    assert updates.sensitivity == 2 * 0.5 * max(len(part) for part in parts) / 10
    assert method.ledger.epsilon(1e-5) == pytest.approx(8.0, rel=1e-3)
    assert any("trusted" in text for text in method.assumptions)


def test_curated_rounds_read_noisy_sums_alone():
    method = fit(CentralGromovWasserstein, weights="trained", epsilon=2.0, hops=2)
    assert method.rounds_made == 3
    assert method.plan(Budget(2.0, 1e-5), 1) == method.ledger.entries
    assert [entry[0] for entry in booked(method)] == [
        "sums over neighbors, hop 1",
        "sums over neighbors, hop 2",
    ]
    assert method.ledger.relation == "edge"
    assert method.ledger.epsilon(1e-5) == pytest.approx(2.0, rel=1e-3)
    assert method.rows.shape == (140, 3)
    inputs, edges = method.encoder_inputs(method.records)
    assert edges.numel() == 0
    entry = method.ledger.entries[0]
    noise_std = entry.sensitivity * entry.event.noise_multiplier
    torch.testing.assert_close(inputs, scaled(method.rows, 1, noise_std))


def test_columns_of_noise_are_shrunk_away():
    torch.manual_seed(0)
    noise, signal = torch.randn(4000, 1), 3 * torch.randn(4000, 1)
    found = scaled(torch.cat([5 + 0 * noise, 2 * noise, signal + 2 * noise], 1), 1, 2.0)
    assert found[:, 0].tolist() == pytest.approx([1.0] * 4000)
    assert found[:, 1].abs().max() < 0.3
    # The best linear guess of the signal, in units of what it is read from.
    best = signal + 2 * noise
    best *= 9 / 13 / best.square().mean().sqrt()
    torch.testing.assert_close(found[:, 2:], best, rtol=0.1, atol=0.1)


def test_a_round_without_protection_is_the_weighted_mean_of_the_clients():
    graphs = small_graphs()
    mean = fit(GromovWassersteinFeatures, weights="trained", report_epsilon=5.0, rounds=1)
    pl.seed_everything(0, verbose=False)
    start = LDPGromovWasserstein(width=4, num_clients=3, local_epochs=2)
    start.build(1, 2)
    data = TUGraphDataModule(graphs)
    data.setup("fit")
    weights, total = parameters_to_vector(start.network.parameters()).detach(), 0
    parts = partition_dirichlet(LABELS, mean.train_mask, 3, 1.0, 0)
    for part in parts:
        subset = TUGraphDataModule([graphs[k] for k in part])
        subset.setup("fit")
        net = GCN(1, 4, 2)
        net.load_state_dict(start.network.state_dict())
        optimizer = torch.optim.Adam(net.parameters(), 0.003)
        edge_index = torch.cat([subset.edges, subset.edges.flip(1)]).T
        for _ in range(2):
            optimizer.zero_grad()
            logits = net.logits(
                node_inputs(subset, subset.edges), edge_index, subset.graph_of, len(part)
            )
            torch.nn.functional.cross_entropy(logits, subset.labels).backward()
            optimizer.step()
        total += len(part) / 10 * (parameters_to_vector(net.parameters()).detach() - weights)
    found = parameters_to_vector(mean.network.parameters())
    torch.testing.assert_close(found, weights + total, rtol=1e-4, atol=1e-6)


@settings(max_examples=15)
@given(st.integers(0, 19), st.integers(0, 1000), st.floats(0.01, 1.0))
def test_one_graph_moves_the_sum_of_updates_by_its_sensitivity(number, seed, max_norm):
    """The graph is exchanged for any other, with another number of nodes and other features."""
    torch.manual_seed(seed)
    parts = partition_dirichlet(LABELS, torch.ones(20, dtype=torch.bool), 4, 0.5, seed)
    sums = []
    network = GCN(3, 4, 2)
    for other in (False, True):
        graphs = small_graphs(features=True)
        if other:
            graphs[number] = from_networkx(nx.gnp_random_graph(12, 0.5, seed=seed))
            graphs[number].x = 100 * torch.randn(12, 2)
            graphs[number].y = LABELS[number : number + 1]
        data = TUGraphDataModule(graphs)
        data.setup("fit")
        clients = build_clients(
            parts,
            node_inputs(data, data.edges),
            data.edges,
            data.graph_of,
            LABELS,
            torch.device("cpu"),
        )
        sums.append(weighted_update(network, clients, LocalTraining(2, 0.5, max_norm)))
    largest = max(len(part) for part in parts) / 20
    distance = float((sums[0] - sums[1]).norm())
    assert distance <= client_update_sensitivity(max_norm, largest) * (1 + 1e-5)
    assert distance > 0


def test_half_of_each_label_trains_the_encoder():
    labels = torch.tensor([0] * 10 + [1] * 4)
    chosen = draw_train_mask(labels, 0.5, 3)
    assert (int(chosen[:10].sum()), int(chosen[10:].sum())) == (5, 2)
    assert torch.equal(chosen, draw_train_mask(labels, 0.5, 3))
    assert not torch.equal(chosen, draw_train_mask(labels, 0.5, 4))


def test_accuracy_leaves_training_graphs_out():
    """The discrepancies give away the labels of the training graphs, and of no other graph."""
    method = fit(GromovWassersteinFeatures, weights="trained")
    same = LABELS[:, None] == LABELS
    leaked = torch.where(same, 0.0, 1.0).double()
    tested = ~method.train_mask
    leaked[tested] = leaked[:, tested] = 0.5
    method.discrepancies = leaked
    assert method.accuracy(folds=5, repetitions=3).mean <= 0.6


def test_the_published_method_claims_the_epsilon_of_the_reports():
    method = fit(LDPGromovWassersteinAsPublished)
    assert method.plan(Budget(math.inf, 1e-5), 1) == method.ledger.entries
    assert method.claimed_epsilon(1e-5) == pytest.approx(1 / 5)
    assert method.ledger.entries[-1].event.epsilon == pytest.approx(1 / 5)
    assert math.isinf(method.ledger.epsilon(1e-5))
    assert sorted(method.features.unique().tolist()) == [-1, 0, 1]
    assert fit(epsilon=3.0).claimed_epsilon(1e-5) is None


PUBLISHED = {"weights": "random", "report_epsilon": 6.0}


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (LDPGromovWasserstein, {}),
        (LDPGromovWasserstein, {"max_nodes": 12}),
        (LDPGromovWassersteinAsPublished, PUBLISHED),
    ],
)
def test_audit_reads_the_likelihood_of_the_reports(kind, options):
    """Against the law of the encoder written out, and never beyond the epsilon of the release."""
    epsilon, is_private = 6.0, kind is LDPGromovWasserstein
    budget = epsilon if is_private else math.inf
    method = fit(kind, epsilon=budget, reports_per_row=2, **options)
    data = method.trainer.datamodule
    known = union_of(data)
    pairs = torch.tensor([[0, 2], [1, 4], [5, 7]])  # two of the first graph, one of the second
    found = black_box_score(method, data, pairs, known)
    starts = method.sizes.cumsum(0) - method.sizes
    for pair, score in zip(pairs, found.tolist(), strict=True):
        graph = int(data.graph_of[pair[0]])
        size, sent = int(data.sizes[graph]), int(method.sizes[graph])
        with_it = torch.cat([data.edges, pair[None]])
        signs = method.features[starts[graph] : starts[graph] + size]
        signs = torch.sign(signs - (0.5 if is_private else 0.0))
        rise, expected = math.exp(epsilon / (2 * sent)), 0.0
        for edges, direction in ((with_it, 1), (data.edges, -1)):
            edge_index = torch.cat([edges, edges.flip(1)]).T
            rows = method.network(node_inputs(data, edges), edge_index).detach().double()
            plus = (1 + rows[data.graph_of == graph] * (rise - 1)) / (rise + 1)
            told = torch.where(signs > 0, plus, 1 - plus).log() * (signs != 0)
            expected += direction * float(told.sum())
        assert score == pytest.approx(expected, abs=1e-8)
        assert 0 < abs(score) <= epsilon
    seen = scored(
        method, "embedding_reports", torch.sign(method.features - 0.5), pairs, known, data
    )
    if not options:
        torch.testing.assert_close(seen, found)


def union_of(data):
    return make_graph(data.edges, len(data.graph_of))


def test_audit_finds_an_edge_in_sums_of_little_noise():
    method = fit(CentralGromovWasserstein, weights="trained", epsilon=1000.0, hops=2)
    data = method.trainer.datamodule
    there = data.edges[3]
    rest = make_graph(torch.cat([data.edges[:3], data.edges[4:]]), len(data.graph_of))
    scores = black_box_score(method, data, torch.stack([there, torch.tensor([0, 2])]), rest)
    assert scores[0] > 5
    assert scores[1] < -5


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (LDPGromovWasserstein, {}, "no law for an infinite epsilon"),
        (
            GromovWassersteinFeatures,
            {"weights": "trained", "train_fraction": 0.01},
            "takes 0 of 20",
        ),
    ],
)
def test_bad_settings(kind, options, message):
    with pytest.raises((ValueError, MisconfigurationException), match=message):
        fit(kind, **options)
