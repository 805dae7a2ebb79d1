"""Votes of neighbors: noise and beliefs by hand, kinds of linking, planted bugs, predictions."""

import networkx as nx
import numpy as np
import pytest
import torch

import lightning_dpg as dpg
from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule, Nodes
from lightning_dpg.errors import CommandError
from lightning_dpg.graph.edge_statistics import as_matrix, as_vector
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.methods import NeighborVotes, NodeNeighborVotes, neighbor_votes
from lightning_dpg.methods.neighbor_votes import VoteMoment, belief_rows
from lightning_dpg.nn.class_student import known_classes
from lightning_dpg.privacy.ledger import PrivacyBudgetExceeded
from lightning_dpg.privacy.meaning import epsilon_by_edges
from lightning_dpg.release.statement import privacy_statement
from tests.closed_forms import gaussian_sigma
from tests.training import quiet_trainer

N, CLASSES = 300, 3


def planted(shift=0, seed=0, inside=0.15, outside=0.01):
    """A graph whose classes link to the class ``shift`` further, with weak attributes of them."""
    source = torch.Generator().manual_seed(seed)
    classes = torch.arange(N) % CLASSES
    pairs = torch.combinations(torch.arange(N))
    first, second = classes[pairs].unbind(1)
    follows = ((second - first) % CLASSES == shift) | ((first - second) % CLASSES == shift)
    edges = pairs[torch.rand(len(pairs), generator=source) < torch.where(follows, inside, outside)]
    graph = make_graph(edges, N)
    words = 0.1 + 0.15 * (torch.arange(18) // 6 == classes[:, None])
    graph.x = (torch.rand(N, 18, generator=source) < words).float()
    graph.y, graph.attribute_names = classes, [f"word {number}" for number in range(18)]
    return graph


def fitted(graph, epsilon, method=NeighborVotes, observer=None, **settings):
    module = method(**{"rank": 8, "split_seed": 0} | settings)
    module.ledger.observer = observer
    data = EdgeListDataModule(graph, nodes=Nodes(attributes="from_graph"))
    quiet_trainer(PrivacyAccountant(epsilon, 1e-5)).fit(module, data)
    return module


def share_right(module, graph):
    """Share of the nodes of unknown class whose class is predicted."""
    unknown = module.known_labels() < 0
    predicted = module.classes[module.node_posteriors().argmax(1)]
    return float((predicted == graph.y)[unknown].float().mean())


def test_noise_has_its_scale_and_beliefs_are_those_of_released_values():
    graph, seen = planted(), {}
    module = fitted(graph, 1.0, observer=lambda key, noisy: seen.setdefault(key, noisy))
    scales = {entry.key: entry.scale for entry in module.ledger.entries}
    evidence = known_classes(module.known_nodes, module.known_classes, CLASSES)
    own = VoteMoment(8)
    own.features.fit(graph.x)
    rows = own.rows(graph.x)
    adjacency = torch.zeros(N, N, dtype=torch.double)
    adjacency[graph.edge_index[0], graph.edge_index[1]] = 1
    linked, scale = seen["attribute_moment"], scales["attribute_moment"]
    noise = {"attribute_moment": linked - as_vector(rows.T @ adjacency @ rows / 2)}
    degree = 2 * float(module.num_edges) / N
    own.follow_links(as_matrix(linked), scale, graph.x, degree)
    rows = own.rows(graph.x)
    beliefs = belief_rows(own.public_beliefs(graph.x, rows, evidence))
    noise["vote_moment"] = seen["vote_moment"] - rows.T @ adjacency @ beliefs
    posteriors = own.learn(seen["vote_moment"], scales["vote_moment"], rows, evidence, degree)
    votes = seen["neighbor_votes_1"]
    noise["neighbor_votes_1"] = votes - adjacency @ belief_rows(posteriors)
    for key, drawn in noise.items():
        # Four standard deviations of the estimate of one.
        assert float(drawn.std()) == pytest.approx(scales[key], rel=4 / (2 * drawn.numel()) ** 0.5)


@pytest.mark.parametrize("shift", [0, 1], ids=["homophily", "heterophily"])
def test_votes_tell_classes_whomever_the_classes_link_to(shift):
    graph = planted(shift)
    public = share_right(fitted(graph, 1e-3), graph)
    assert share_right(fitted(graph, float("inf")), graph) > max(0.9, public + 0.15)


def test_rewired_edges_tell_nothing():
    graph = planted()
    source = torch.Generator().manual_seed(0)
    edges = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]]
    stubs = edges.flatten()[torch.randperm(edges.numel(), generator=source)].view(-1, 2)
    stubs = stubs[stubs[:, 0] != stubs[:, 1]].sort(1).values.unique(dim=0)
    rewired = make_graph(stubs, N)
    rewired.x, rewired.y, rewired.attribute_names = graph.x, graph.y, graph.attribute_names
    public = share_right(fitted(rewired, 1e-3), rewired)
    assert abs(share_right(fitted(rewired, float("inf")), rewired) - public) < 0.1


def test_half_of_the_noise_is_refused(monkeypatch):
    honest = neighbor_votes.calibrate_noise_multiplier
    plan = NeighborVotes.plan

    def halved(self, budget, steps):
        with monkeypatch.context() as patch:
            patch.setattr(
                neighbor_votes, "calibrate_noise_multiplier", lambda *a, **k: honest(*a, **k) / 2
            )
            return plan(self, budget, steps)

    monkeypatch.setattr("lightning_dpg.methods.base.check_plan", lambda *arguments: None)
    monkeypatch.setattr(NeighborVotes, "plan", halved)
    with pytest.raises(PrivacyBudgetExceeded):
        fitted(planted(), 1.0)


@pytest.mark.parametrize("method", ["neighbor_votes", "neighbor_votes_node"])
def test_a_release_predicts_classes_of_new_nodes_and_draws_no_graph(method, tmp_path):
    release = dpg.fit(planted(), method, epsilon=4.0, split_seed=0, rank=8)
    again = dpg.open_release(release.save(tmp_path / "out"))
    new = np.eye(18)[:5]
    assert np.array_equal(again.predict(new), release.predict(new))
    assert set(again.predict()) <= set(range(CLASSES))
    assert again.predict_proba(new).shape == (5, CLASSES)
    for call in (again.sample, lambda: again.edge_score([[0, 1]])):
        with pytest.raises(CommandError, match="draws no graph"):
            call()
    with pytest.raises(CommandError, match="one column for each attribute of the fit"):
        again.predict(np.eye(3))
    with np.load(tmp_path / "out" / "features.npz") as arrays:
        assert np.array_equal(arrays["posteriors"], release.predict_proba())


def test_a_release_without_a_student_of_all_columns_predicts_as_it_did():
    """Older releases have none."""
    graph, again = planted(), NeighborVotes(rank=8)
    module = fitted(graph, 1.0)
    state = {
        name: value for name, value in module.state_dict().items() if "moments.column_" not in name
    }
    again.load_state_dict(state)
    moments = again.moments
    rows = moments.rows(graph.x)
    odds = torch.cat([rows, rows @ moments.expected], 1) @ moments.student.weight
    expected = torch.softmax(moments.student.factor * (odds + moments.student.bias), 1)
    torch.testing.assert_close(again.predict_proba(graph.x), expected.float())
    assert not torch.allclose(module.predict_proba(graph.x), expected.float())


def test_fit_takes_the_attribute_that_holds_the_classes():
    graph = nx.karate_club_graph()
    nx.set_node_attributes(graph, {node: float(node % 5) for node in graph}, "age")
    release = dpg.fit(graph, "neighbor_votes", epsilon=1.0, labels="club")
    assert len(release.method.known_nodes) == 34
    assert release.method.classes.tolist() == [0, 1]
    with pytest.raises(CommandError, match="uses no attributes"):
        dpg.fit(graph, "bter", epsilon=1.0, labels="club")


def test_data_without_classes_are_refused():
    graph = planted()
    graph.y = None
    with pytest.raises(CommandError, match="the data have none"):
        dpg.fit(
            EdgeListDataModule(graph, nodes=Nodes(attributes="from_graph")),
            NodeNeighborVotes,
            epsilon=1.0,
        )


def test_a_statement_says_epsilon_by_the_edges_of_a_node():
    module = fitted(planted(), 8.0, NodeNeighborVotes, max_edges=20)
    found = epsilon_by_edges(module.ledger.entries, 1e-5)
    mu = 1 / gaussian_sigma(8.0, 1e-5)
    for count, epsilon in found.items():
        # The moment moves by m + min(m, 20 / 3) in place of 80 / 3.
        own = mu * (count + min(count, 20 / 3)) / (80 / 3)
        assert gaussian_sigma(epsilon, 1e-5) == pytest.approx(1 / own, rel=1e-4)
    assert list(found) == [1, 5, 10, 20, 50]
    assert found[20] == pytest.approx(8.0, rel=1e-4)
    sentence = privacy_statement(module)["guarantee"]
    assert "at most 20 edges of one node" in sentence
    assert "1, 5, 10, 20, 50 edges have" in sentence
