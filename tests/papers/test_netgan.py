"""NetGAN states that nothing is private, and learns from walks."""

import networkx as nx
import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import nn
from torch.nn import functional as F

from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.methods import CELL, NetGAN
from lightning_dpg.metrics.functional import edge_overlap, triangles
from lightning_dpg.papers.zheng2021.walk_lstm import (
    WalkCritic,
    WalkGenerator,
    _StraightThroughGumbel,
    sample_categorical,
)
from tests.training import quiet_trainer


def make_generator(num_nodes=9, walk_length=2):
    torch.manual_seed(0)
    generator = WalkGenerator(num_nodes, walk_length, 4, 6, 5).double()
    generator.prior.copy_(torch.randn(num_nodes))
    return generator


def dense_transition(generator, state):
    """Matrix of P(next | token) after each possible token, and P(first), of one latent."""
    first = generator.logits(state[0]).softmax(-1)[0]
    rows = []
    for token in range(len(first)):
        after = generator.step(torch.tensor([token]), state)
        rows.append(generator.logits(after[0]).softmax(-1)[0])
    return first, torch.stack(rows)


def test_pair_probability_equals_the_enumeration_of_all_pairs():
    generator = make_generator()
    z = generator.latent(3).double()
    expected = torch.zeros(9, 9, dtype=torch.float64)
    for latent in z:
        first, after = dense_transition(generator, generator.start(latent[None]))
        expected += first[:, None] * after / len(z)
    pairs = torch.combinations(torch.arange(9))
    actual = generator.pair_probability(pairs, z)
    expected = expected + expected.T
    torch.testing.assert_close(
        actual, expected[pairs[:, 0], pairs[:, 1]].to(actual), atol=1e-6, rtol=1e-5
    )


def test_transition_frequency_estimates_the_pair_probability_of_edges():
    generator = make_generator()
    z = generator.latent(1).double()
    pairs = torch.combinations(torch.arange(9))
    expected = generator.pair_probability(pairs, z)
    many = z.expand(20_000, -1)
    actual = generator.transition_frequency(pairs, many, torch.Generator().manual_seed(1)) / 20_000
    # Only the first token is drawn: its frequency has a standard error below sqrt(1/4/20000)
    torch.testing.assert_close(actual, expected, atol=4 * 0.5 / 20_000**0.5, rtol=0)


@pytest.mark.parametrize("width", [1, 63, 64, 200])
def test_sampler_follows_the_softmax(width):
    torch.manual_seed(0)
    logits = torch.randn(width, dtype=torch.float64) * 2
    draws = sample_categorical(logits.repeat(50_000, 1), torch.Generator().manual_seed(0))
    expected = 50_000 * logits.softmax(-1)
    chi2 = ((torch.bincount(draws, minlength=width) - expected).square() / expected).sum()
    freedom = width - 1
    assert chi2 <= freedom + 5 * (2 * freedom) ** 0.5 + 1e-9


def test_sampler_never_draws_an_impossible_index():
    logits = torch.full((1000, 130), -1e9)
    logits[:, 127] = 0.0
    assert (sample_categorical(logits) == 127).all()


def test_straight_through_gradient_is_that_of_the_dense_gumbel_softmax():
    torch.manual_seed(0)
    shapes = [(7, 6), (9, 6), (9,), (9, 5)]
    leaves = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    hidden, weight, bias, table = leaves
    critic_table = torch.randn(9, 5, dtype=torch.float64)
    uses = torch.randn(2, 7, 5, dtype=torch.float64)

    torch.manual_seed(1)
    own, seen = _StraightThroughGumbel.apply(hidden, weight, bias, table, critic_table, 0.7)
    actual = torch.autograd.grad((own * uses[0]).sum() + (seen * uses[1]).sum(), leaves)

    torch.manual_seed(1)
    logits = torch.addmm(bias, hidden, weight.T)
    gumbel = -torch.log(-torch.log(torch.rand_like(logits).clamp(1e-20, 1 - 1e-7)))
    soft = ((logits + gumbel) / 0.7).softmax(-1)
    hard = F.one_hot(soft.argmax(-1), 9).double()
    y = hard + soft - soft.detach()
    expected = torch.autograd.grad(
        ((y @ table) * uses[0]).sum() + ((y @ critic_table) * uses[1]).sum(), leaves
    )
    # table is used forwards with the hard token, so that its gradient is the dense one's as well
    for ours, dense in zip(actual, expected, strict=True):
        torch.testing.assert_close(ours, dense)


def test_critic_cell_is_the_lstm_of_torch():
    torch.manual_seed(0)
    critic = WalkCritic(8, 5, 4)
    reference = nn.LSTM(5, 4, batch_first=True)
    with torch.no_grad():
        reference.weight_ih_l0.copy_(critic.cell.input.weight)
        reference.bias_ih_l0.copy_(critic.cell.input.bias)
        reference.weight_hh_l0.copy_(critic.cell.hidden.weight)
        reference.bias_hh_l0.zero_()
    walks = torch.randint(8, (6, 5))
    _, (hidden, _) = reference(critic.embed(walks))
    torch.testing.assert_close(critic(critic.embed(walks)), critic.score(hidden[0]).squeeze(-1))


def test_no_tensor_is_as_large_as_walks_times_tokens_times_nodes():
    """A hundred thousand nodes and walks of 8 tokens: one token's logits are 6.4 MB a walk pair."""
    generator = WalkGenerator(100_000, 8, embedding_dim=4, hidden_dim=4)
    critic = WalkCritic(100_000, 4, 4, frozen=True)
    largest = 0

    def record(tensor):
        nonlocal largest
        largest = max(largest, tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(record, lambda tensor: tensor):
        loss = critic(generator(generator.latent(16), 1.0, critic.table)).sum()
    loss.backward()
    assert largest <= 16 * 100_000
    assert generator.sample(generator.latent(16)).shape == (16, 8)


def fit_cell(method, data, folder, epsilon, steps):
    trainer = quiet_trainer(
        PrivacyAccountant(epsilon, 1e-6),
        max_epochs=steps,
        default_root_dir=folder,
    )
    trainer.fit(method, data)
    return trainer


def test_it_learns_communities_and_says_that_nothing_is_private(tmp_path):
    pl.seed_everything(0)
    graph = nx.planted_partition_graph(5, 30, 0.3, 0.01, seed=0)
    data = EdgeListDataModule(graph)
    method = CELL(num_nodes=150, rank=5)
    trainer = fit_cell(method, data, tmp_path, float("inf"), 40)
    assert trainer.global_step == 40
    assert method.ledger.reasons == ["training: CELL adds no noise"]
    sample = method.sample(torch.Generator().manual_seed(0))
    assert sample.num_edges == 2 * graph.number_of_edges()
    community = torch.arange(150) // 30
    rows, columns = sample.edge_index
    assert float((community[rows] == community[columns]).float().mean()) > 0.7  # .87 there
    assert triangles(sample) > 0.3 * sum(nx.triangles(graph).values()) / 3
    assert edge_overlap(sample, data.train_graph) < 0.9
    assert int(torch.bincount(rows, minlength=150).min()) > 0


def test_too_many_nodes_are_refused():
    with pytest.raises(MisconfigurationException, match="at most 6000, got 6001"):
        CELL(num_nodes=6001)


SMALL = {"generator_dim": 20, "critic_dim": 16, "embedding_dim": 16, "num_samples": 3000}


def fit(epsilon, delta=None, **options):
    torch.manual_seed(0)
    module = NetGAN(77, walk_length=4, batch_size=32, **SMALL | options)
    trainer = quiet_trainer(PrivacyAccountant(epsilon, delta))
    data = EdgeListDataModule(steps_per_epoch=6, val_fraction=0.1)
    trainer.fit(module, data)
    return module, trainer


def test_it_books_that_nothing_is_protected_and_logs_both_stopping_criteria():
    module, trainer = fit(float("inf"))
    assert [e.event.mechanism for e in module.ledger.entries] == ["non_private"]
    assert module.ledger.epsilon(1e-6) == float("inf")
    edges = len(trainer.datamodule.edges)
    assert len(undirected_edges(module.sample(torch.Generator().manual_seed(0)))) == edges
    logged = {name: float(value) for name, value in trainer.callback_metrics.items()}
    assert 0 <= logged["nonprivate/edge_overlap"] <= 1
    assert logged["nonprivate/val"] == pytest.approx(
        logged["nonprivate/val_auc"] + logged["nonprivate/val_ap"]
    )


def test_scores_are_expected_transitions_of_its_walks():
    module, _ = fit(float("inf"), num_samples=60_000)
    pairs = torch.combinations(torch.arange(77))
    score = module.score(pairs)
    walks = module._fakes(20_000, torch.Generator().manual_seed(1))
    ends = torch.stack([walks[:, :-1].flatten(), walks[:, 1:].flatten()]).sort(0).values
    counts = torch.zeros(77, 77).index_put_(tuple(ends), torch.tensor(1.0), accumulate=True)
    counted = counts[pairs[:, 0], pairs[:, 1]]
    # Poisson counts: the difference of count and expectation has the square root as its scale.
    assert ((counted - score) / (score + 1).sqrt()).square().mean() < 1.5
