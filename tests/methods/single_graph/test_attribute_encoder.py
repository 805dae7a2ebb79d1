"""AttributeEncoder: its ledger by hand, its noise, what it learns, resumes and restores."""

import math

import pytest
import torch
from pytorch_lightning.callbacks import ModelCheckpoint
from torch.func import functional_call
from torch.nn.functional import normalize, softplus

import lightning_dpg as dpg
from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.graph.graph import make_graph, undirected_edges
from lightning_dpg.graph.pair_space import BipartitePairs, space_of
from lightning_dpg.methods import AttributeEncoder, AttributeMoments
from lightning_dpg.methods.single_graph.attribute_encoder import (
    clipped_edge_gradients,
    clipped_edge_sum,
)
from lightning_dpg.methods.single_graph.attribute_moments import RIDGE
from lightning_dpg.metrics.link_prediction import link_prediction
from lightning_dpg.nn.attribute_logits import AttributeLogits, degree_levels
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.dpsgd import clipped_gradient_sum
from lightning_dpg.privacy.sensitivity.fitting import edge_gradient_sensitivity
from tests.attributed import AttributedDataModule, attributed_graph, tastes_and_products
from tests.training import quiet_trainer

KINDS = ("directed", "bipartite")
RECORDS = {"directed": "directed edge", "bipartite": "edge between the two sides"}
METHODS = {
    "encoder": lambda **options: AttributeEncoder(rank=6, public_pairs=256, **options),
    "moments": lambda **options: AttributeMoments(rank=6, **options),
}


def fit_kind(method, graph, attributes, epsilon=math.inf):
    torch.manual_seed(0)
    quiet_trainer(PrivacyAccountant(epsilon, DELTA)).fit(
        method, AttributedDataModule(graph, attributes)
    )
    return method


def auc_of(method, graph):
    """Edges against all other pairs that may be linked."""
    space = space_of(graph)
    edges, pairs = space.edges(graph), space.pairs(torch.arange(space.num_pairs))
    others = pairs[~torch.isin(space.numbers(pairs), space.numbers(edges))]
    return link_prediction(method.score(edges), method.score(others))[0]


@pytest.mark.parametrize("kind", KINDS)
def test_ledgers_are_those_written_by_hand(kind):
    graph, attributes = tastes_and_products(kind, left=30, right=12)
    counts = [
        ("num_edges", "pure", 1, "edge_count_sensitivity"),
        ("ordered_degrees", "pure", 2, "degree_l1_sensitivity"),
        ("degrees", "pure", 2, "degree_l1_sensitivity"),
    ]
    learned = {
        "encoder": ("attribute_gradient", "gaussian", 1.0, "edge_gradient_sensitivity"),
        "moments": ("attribute_moment", "gaussian", 1.000001, "edge_moment_sensitivity"),
    }
    for name, last in learned.items():
        options = {"iterations": 20} if name == "encoder" else {}
        method = fit_kind(METHODS[name](**options), graph, attributes, epsilon=2.0)
        entries = method.ledger.entries
        found = [(e.key, e.event.mechanism, e.sensitivity, e.proof) for e in entries]
        assert found == [*counts, last]
        assert {entry.record for entry in entries} == {RECORDS[kind]}
        assert [entry.event.pure_epsilon for entry in entries[:3]] == pytest.approx(
            [0.08, 0.08, 0.24]
        )
        assert entries == method.plan(Budget(2.0, DELTA), 1)
        assert entries[3].steps == (20 if name == "encoder" else 1)


@pytest.mark.parametrize("kind", KINDS)
def test_links_that_no_cosine_shows_are_learned_within_a_budget(kind):
    graph, attributes = tastes_and_products(kind)
    control = auc_of(fit_kind(METHODS["encoder"](iterations=0), graph, attributes), graph)
    assert control < 0.7  # degrees alone: the cosine is zero, or that of the wrong group
    # About .86 is the most: a part of the links does not follow the groups.
    encoder, moments = (
        fit_kind(method(), graph, attributes, epsilon=1.0) for method in METHODS.values()
    )
    assert auc_of(encoder, graph) > 0.8
    assert auc_of(moments, graph) > 0.8
    if kind == "directed":
        edges = space_of(graph).edges(graph)
        for method in (encoder, moments):
            assert link_prediction(method.score(edges), method.score(edges.flip(1)))[0] > 0.85


@pytest.mark.parametrize("kind", KINDS)
def test_scores_without_steps_are_cosines_and_degrees_of_both_ends(kind):
    graph, attributes = tastes_and_products(kind, left=30, right=12)
    if kind == "bipartite":  # the sides share their columns
        attributes = torch.rand(42, 5, generator=torch.Generator().manual_seed(0))
    method = fit_kind(METHODS["encoder"](iterations=0), graph, attributes)
    space = space_of(graph)
    pairs, edges = space.pairs(torch.arange(space.num_pairs)), space.edges(graph)
    out, into = (torch.bincount(edges[:, side], minlength=42) for side in (0, 1))
    if kind == "bipartite":
        out, into = out[:30], torch.cat([torch.zeros(30), degree_levels(into[30:])])
        levels = torch.cat([degree_levels(out), torch.zeros(12)])
    else:
        levels, into = degree_levels(out), degree_levels(into)
    bases = [method.features.basis, (method.right_features or method.features).basis]
    first, second = (method.rows[pairs[:, side]] @ bases[side].T for side in (0, 1))
    expected = 8 * (first * second).sum(1) + (levels[pairs[:, 0]] + into[pairs[:, 1]]) / 2 - 6
    torch.testing.assert_close(method.score(pairs), expected.float(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_moments_without_noise_solve_the_regression_of_the_pairs(kind):
    graph, attributes = tastes_and_products(kind, left=30, right=12)
    method = fit_kind(METHODS["moments"](), graph, attributes)
    space, rows = space_of(graph), method.scores.rows.double()
    linked = torch.zeros(42, 42, dtype=torch.double)
    linked[*space.edges(graph).T] = 1
    ends = (slice(0, 30), slice(30, 42)) if kind == "bipartite" else (slice(None), slice(None))
    first, second = (rows[end] for end in ends)
    eye = RIDGE * torch.eye(6).double()
    left, right = (torch.linalg.inv(y.T @ y + eye) for y in (first, second))
    expected = left @ first.T @ linked[ends] @ second @ right
    torch.testing.assert_close(method.scores.form, expected, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", METHODS)
def test_a_release_of_another_kind_scores_and_draws_as_the_method_does(
    kind, name, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)  # where a trainer without a logger leaves the release
    graph, attributes = tastes_and_products(kind, left=30, right=12)
    options = {"iterations": 5} if name == "encoder" else {}
    data = AttributedDataModule(graph, attributes)
    method = METHODS[name](**options)
    trainer = quiet_trainer()
    release = dpg.fit(data, method, epsilon=2.0, delta=DELTA, progress=False, trainer=trainer)
    release.save(tmp_path / "out")
    assert f"one {RECORDS[kind]}" in release.guarantee
    again = dpg.open_release(tmp_path / "out")
    space = space_of(graph)
    pairs = space.pairs(torch.arange(space.num_pairs))
    torch.testing.assert_close(again.method.score(pairs), release.method.score(pairs))
    drawn = again.sample(seed=3)
    assert space_of(drawn) == space
    assert torch.equal(drawn.edge_index, release.sample(seed=3).edge_index)
    assert len(space.edges(drawn)) == int(release.method.num_edges)
    new = attributes[pairs[:5]].unbind(1)
    found = [one.score_attributes(*new) for one in (release.method, again.method)]
    torch.testing.assert_close(*found)
    assert len(found[0]) == 5


def test_public_pairs_are_uniform_pairs_of_the_space():
    graph, attributes = tastes_and_products("bipartite", left=4, right=3, outside=0.5)
    method = fit_kind(METHODS["encoder"](iterations=0), graph, attributes)
    drawn = method._uniform_pairs(12_000)
    counts = torch.bincount(BipartitePairs(7, 4).numbers(drawn), minlength=12)
    assert len(counts) == 12
    assert (counts - 1000).abs().max() < 5 * 1000**0.5


def problem(count=40, rank=5, seed=0, sides=1):
    source = torch.Generator().manual_seed(seed)
    model = AttributeLogits(rank, sides)
    with torch.no_grad():
        model.weight += torch.randn(sides * rank, rank, generator=source) / 3
        model.degree_weight.fill_(0.7)
    rows = normalize(torch.randn(count, 2, rank, generator=source), dim=2)
    return model, rows, torch.randn(count, 2, generator=source)


def edge_term(model):
    def loss(parameters, rows, levels):
        logits = functional_call(model, parameters, (rows[None], levels[None]))
        return softplus(-logits).squeeze()

    return loss


@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize("norm", [0.1, 1.0, 1e6])
def test_the_sum_is_that_of_automatic_differentiation(norm, sides):
    model, rows, levels = problem(2100, sides=sides)  # more than two chunks
    expected = clipped_gradient_sum(
        edge_term(model), dict(model.named_parameters()), (rows, levels), norm
    )
    found = clipped_edge_sum(model, rows, levels, norm)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-9, atol=1e-9)


def test_an_empty_batch_has_a_sum_of_zero():
    model, rows, levels = problem(0)
    assert all(not total.any() for total in clipped_edge_sum(model, rows, levels, 1.0).values())


@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize("norm", [0.3, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_each_edge_moves_the_sum_by_the_clipping_norm_at_most(norm, seed, sides):
    model, rows, levels = problem(seed=seed, sides=sides)

    def flat(part):
        total = clipped_edge_sum(model, rows[part], levels[part], norm)
        return torch.cat([value.flatten() for value in total.values()])

    everything, gradients = flat(slice(None)), clipped_edge_gradients(model, rows, levels, norm)
    moves = []
    for number in range(len(rows)):
        others = torch.arange(len(rows)) != number
        change = everything - flat(others)
        torch.testing.assert_close(change, gradients[number])
        moves.append(float(change.norm()))
    assert max(moves) <= edge_gradient_sensitivity(norm) * (1 + 1e-12)
    assert max(moves) > 0.99 * edge_gradient_sensitivity(norm)  # the bound is attained


def test_rows_whose_terms_cancel_are_clipped_as_well():
    # Large weights along the difference of two close rows: the two halves nearly cancel.
    model = AttributeLogits(2)
    rows = torch.tensor([[[1.0, 1e-4], [1.0, -1e-4]]])
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[0.0, 0.0], [0.0, 1e8]]))
    gradient = clipped_edge_gradients(model, rows, torch.zeros(1, 2), 1.0)
    assert 0.9 < gradient.norm() <= 1 + 1e-12


def test_a_gradient_that_is_not_finite_is_dropped():
    model, rows, levels = problem()
    with torch.no_grad():
        model.weight[0, 0] = torch.inf
    total = clipped_edge_sum(model, rows, levels, 1.0)
    assert all(value.isfinite().all() for value in total.values())


def test_two_sides_have_the_log_odds_of_two_matrices():
    model, rows, levels = problem(sides=2)
    first, second = (model.weight[part] for part in (slice(0, 5), slice(5, 10)))
    by_hand = torch.stack(
        [
            8 * (y[0] @ first) @ (y[1] @ second) + 0.7 * level.sum() - 6
            for y, level in zip(rows, levels, strict=True)
        ]
    )
    torch.testing.assert_close(model(rows, levels), by_hand)
    turned = model(rows.flip(1), levels.flip(1))
    assert (turned - by_hand).abs().max() > 0.1  # the order of the ends matters
    torch.testing.assert_close(
        AttributeLogits(5, 2)(rows, levels), AttributeLogits(5)(rows, levels)
    )


def test_levels_of_each_part_are_around_zero():
    degrees = torch.tensor([1, 4, 100, 200, 300])
    expected = torch.cat([degree_levels(part) for part in degrees.split([2, 3])])
    assert torch.equal(degree_levels(degrees, (0, 2)), expected)


def test_levels_are_half_logarithms_around_zero():
    levels = degree_levels(torch.tensor([0, 1, 4, 16]))
    torch.testing.assert_close(levels[2] - levels[1], torch.tensor(2.0).log())
    torch.testing.assert_close(levels[3] - levels[2], torch.tensor(2.0).log())
    assert levels.sum().abs() < 1e-6
    assert levels[0] < levels[1]


DELTA = 1e-5
SMALL = {"rank": 6, "public_pairs": 64}


def fit(method, data=None, epsilon=2.0, checkpoint=None, **options):
    trainer = quiet_trainer(PrivacyAccountant(epsilon, DELTA), **options)
    data = AttributedDataModule(*attributed_graph()) if data is None else data
    trainer.fit(method, data, ckpt_path=checkpoint)
    return method


def auc(score, graph, seed=0):
    edges, num_nodes = undirected_edges(graph), graph.num_nodes
    pairs = torch.combinations(torch.arange(num_nodes))
    linked = torch.isin(pairs @ torch.tensor([num_nodes, 1]), edges @ torch.tensor([num_nodes, 1]))
    return link_prediction(score(pairs[linked]), score(pairs[~linked]))[0]


def test_the_noise_of_a_step_has_the_booked_scale():
    # Without an edge a noisy sum is noise alone.
    data = AttributedDataModule(make_graph(torch.empty(0, 2).long(), 30), attributed_graph(30)[1])
    method = AttributeEncoder(**SMALL, noise_multiplier=3.0, max_grad_norm=0.5, iterations=60)
    seen = []
    method.ledger.observer = lambda key, noisy: seen.append((key, noisy))
    torch.manual_seed(0)
    fit(method, data, epsilon=50.0)
    sums = torch.stack([noisy for key, noisy in seen if key == "attribute_gradient"])
    assert sums.shape == (60, 6 * 6 + 1)
    assert float(sums.std()) == pytest.approx(3.0 * 0.5, rel=0.06)  # 4 standard errors
    assert abs(float(sums.mean())) < 0.13


def test_it_learns_more_than_attributes_tell():
    # Half of the words are the same in two groups that have no links with each other.
    graph, attributes = attributed_graph()
    attributes = torch.cat([attributes, 2 * torch.rand(120, 40).round()], 1)
    data = AttributedDataModule(graph, attributes)
    torch.manual_seed(0)
    untrained = fit(AttributeEncoder(rank=20, iterations=0), data, epsilon=math.inf)
    torch.manual_seed(0)
    trained = fit(AttributeEncoder(rank=20), data, epsilon=math.inf)
    assert auc(trained.score, graph) > auc(untrained.score, graph) + 0.02
    # New nodes have mean degree levels.
    pairs = torch.tensor([[0, 6], [0, 1], [2, 8]])
    unseen = trained.score_attributes(attributes[pairs[:, 0]], attributes[pairs[:, 1]])
    rows, levels = trained.features(attributes)[pairs], torch.zeros(3, 2)
    torch.testing.assert_close(unseen, trained.averaged(rows, levels))


def test_the_released_weights_are_means_of_the_second_half():
    method, weights = AttributeEncoder(**SMALL, iterations=10), []
    step = method.training_step

    def followed(batch, batch_idx):
        step(batch, batch_idx)
        weights.append(method.model.weight.detach().clone())

    method.training_step = followed
    fit(method)
    assert len(weights) == 10
    torch.testing.assert_close(
        method.averaged.module.weight.detach(), torch.stack(weights[5:]).mean(0)
    )


def test_a_resumed_run_goes_on_with_its_rows_degrees_and_noise(tmp_path):
    data = AttributedDataModule(*attributed_graph(), steps_per_epoch=5)
    keep = ModelCheckpoint(tmp_path / "kept", "{epoch}", save_top_k=-1)
    whole = AttributeEncoder(**SMALL, iterations=20)
    trainer = quiet_trainer(
        PrivacyAccountant(2.0, DELTA),
        keep,
        max_epochs=4,
        enable_checkpointing=True,
        default_root_dir=tmp_path / "first",
    )
    trainer.fit(whole, data)
    resumed = AttributeEncoder(**SMALL, iterations=20)
    # Without the journal of the first run, which booked the later steps as well.
    accountant = PrivacyAccountant(2.0, DELTA, lost_steps=0)
    trainer = quiet_trainer(accountant, max_epochs=4)
    trainer.fit(resumed, data, ckpt_path=tmp_path / "kept" / "epoch=1.ckpt")
    assert resumed.ledger.entries == whole.ledger.entries
    assert resumed.ledger.steps == 20
    assert torch.equal(resumed.degrees, whole.degrees)
    assert torch.equal(resumed.rows, whole.rows)
    assert int(resumed.averaged.n_averaged) == 10


def test_no_step_spends_on_the_degrees_alone_and_scores_by_cosines_and_degrees():
    method = fit(AttributeEncoder(**SMALL, iterations=0))
    keys = ["num_edges", "ordered_degrees", "degrees"]
    assert [entry.key for entry in method.ledger.entries] == keys
    assert method.ledger.entries == method.plan(Budget(2.0, DELTA), 1)
    pairs = torch.combinations(torch.arange(120))
    cosines, levels = method.rows[pairs].prod(1).sum(1), degree_levels(method.degrees)[pairs].sum(1)
    torch.testing.assert_close(method.score(pairs), 8 * cosines + levels / 2 - 6)
