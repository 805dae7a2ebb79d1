"""Graph autoencoders book their events, keep sensitivities, and release only the decoder."""

import functools
import math
from unittest.mock import patch

import networkx as nx
import numpy as np
import pytest
import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from scipy.stats import kstest, norm
from torch.distributions import Normal
from torch.distributions import kl_divergence as expected_divergence

from lightning_dpg.advice import Facts
from lightning_dpg.callbacks.privacy_accountant import PrivacyAccountant
from lightning_dpg.datamodules.graph_set import GraphSetDataModule
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.methods import (
    DPGGAN,
    DPGVAE,
    GGAN,
    GVAE,
    DPGGANAsPublished,
    DPGVAEAsPublished,
)
from lightning_dpg.methods.private_training import _times_read
from lightning_dpg.metrics.functional import triangles
from lightning_dpg.papers.yang2021 import dp_graph_vae
from lightning_dpg.papers.yang2021.dense_batch import dense_adjacency, dense_batch
from lightning_dpg.papers.yang2021.networks import (
    CONTEXT_DIM,
    GCNEncoder,
    GCNReadout,
    PairDecoder,
    RowEncoder,
    divergence_from_prior,
    graph_context,
    sample_adjacency,
    sample_prior,
)
from lightning_dpg.privacy.ledger import PrivacyLedger
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.paid_weights import load_released
from tests.closed_forms import gaussian_sigma
from tests.training import quiet_trainer


def random_graphs(count, size):
    upper = (torch.rand(count, size, size) < 0.4).float().triu(1)
    return upper + upper.mT


def normalized(adjacency):
    """D^(-1/2) A D^(-1/2) with nothing done to nodes without an edge."""
    scale = adjacency.sum(1).clamp(min=1) ** -0.5
    return scale[:, None] * adjacency * scale


def test_encoder_is_the_two_layer_gcn_of_the_paper():
    torch.manual_seed(0)
    encoder = GCNEncoder(6, 8, 3)
    features, adjacency = torch.randn(2, 7, 6), random_graphs(2, 7)
    means, log_variances = encoder(features, adjacency)
    for k in range(2):
        a = normalized(adjacency[k])
        hidden = torch.relu(a @ features[k] @ encoder.hidden.lin.weight.T + encoder.hidden.bias)
        for layer, value in ((encoder.mean, means), (encoder.log_variance, log_variances)):
            torch.testing.assert_close(value[k], a @ hidden @ layer.lin.weight.T + layer.bias)


def test_padding_changes_neither_posterior_nor_description():
    torch.manual_seed(0)
    encoder, describe = GCNEncoder(6, 8, 3), GCNReadout(6, 8, 3)
    features, adjacency = torch.randn(1, 7, 6), random_graphs(1, 7)
    padded = torch.nn.functional.pad(features, (0, 0, 0, 2), value=9.0)
    wider = torch.nn.functional.pad(adjacency, (0, 2, 0, 2))
    mask = torch.arange(9)[None] < 7
    torch.testing.assert_close(encoder(padded, wider)[0][:, :7], encoder(features, adjacency)[0])
    torch.testing.assert_close(
        describe(padded, wider, mask), describe(features, adjacency, mask[:, :7])
    )


def test_a_description_does_not_know_the_order_of_nodes():
    torch.manual_seed(0)
    describe, order = GCNReadout(6, 8, 3), torch.randperm(7)
    features, adjacency = torch.randn(1, 7, 6), random_graphs(1, 7)
    mask = torch.ones(1, 7, dtype=torch.bool)
    shuffled = describe(features[:, order], adjacency[:, order][:, :, order], mask)
    torch.testing.assert_close(describe(features, adjacency, mask), shuffled)


def test_logits_of_all_pairs_are_those_of_each_pair():
    torch.manual_seed(0)
    decoder, latent = PairDecoder(4, 5), torch.randn(6, 4)
    pairs = torch.combinations(torch.arange(6))
    logits = decoder.logits(latent[None])[0]
    torch.testing.assert_close(logits[pairs[:, 0], pairs[:, 1]], decoder.pair_logits(latent[pairs]))


def test_divergence_from_the_standard_normal():
    mean, log_variance = torch.randn(5, 3), torch.randn(5, 3)
    posterior = Normal(mean, (log_variance / 2).exp())
    expected = expected_divergence(posterior, Normal(0.0, 1.0)).sum(-1)
    torch.testing.assert_close(divergence_from_prior(mean, log_variance), expected)


def test_variances_are_bounded():
    encoder = RowEncoder(2, 4, 3)
    _, log_variance = encoder(1e6 * torch.randn(50, 2))
    assert float(log_variance.detach().max()) <= 2.0


def test_drawn_graphs_have_the_probabilities_and_their_gradient():
    torch.manual_seed(0)
    logits = torch.randn(1, 4, 4)
    logits = (logits + logits.mT).expand(20_000, 4, 4).clone().requires_grad_()
    pairs = torch.ones(4, 4, dtype=torch.bool).triu(1)
    pairs[:, 3] = False  # a place of padding
    adjacency = sample_adjacency(logits, pairs.expand_as(logits))
    assert set(adjacency.unique().round(decimals=4).tolist()) == {0.0, 1.0}
    assert torch.equal(adjacency, adjacency.mT)
    expected = torch.sigmoid(logits[0]) * (pairs | pairs.T)
    torch.testing.assert_close(adjacency.mean(0), expected, atol=0.02, rtol=0)
    (slope,) = torch.autograd.grad(adjacency.sum(), logits)
    p = torch.sigmoid(logits[0])
    torch.testing.assert_close(slope[0], 2 * p * (1 - p) * pairs)


def test_vectors_of_the_net_are_normal_and_spread_more_evenly_than_independent_ones():
    generator = torch.Generator().manual_seed(0)
    nets = torch.stack([sample_prior(13, 2, generator) for _ in range(2000)])
    assert kstest(nets[:, 0].flatten().numpy(), "norm").pvalue > 1e-3
    assert kstest(nets[:, :, 1].flatten()[::7].numpy(), "norm").pvalue > 1e-3
    share = norm.cdf(-1.0)
    counts = (nets[:, :, 0] < -1).double().sum(1)
    assert counts.mean() == pytest.approx(13 * share, rel=0.02)
    # Independent vectors would have the variance of a binomial number.
    assert counts.var() < 0.25 * 13 * share * (1 - share)
    same = (sample_prior(5, 3, torch.Generator().manual_seed(7)) for _ in range(2))
    assert torch.equal(*same)


def test_context_is_finite_for_empty_and_complete_graphs_and_for_single_nodes():
    context = graph_context(torch.tensor([1, 5, 5]), torch.tensor([0, 0, 10]))
    assert context.shape == (3, CONTEXT_DIM)
    assert context.isfinite().all()
    assert context[1, 1] == pytest.approx(math.log(0.5 / 10.5) / 3)
    assert context[2, 1] == -context[1, 1]


# Two latent vectors of 8 are one block of 16 draws, so that fewer edges draw the same ones.
SMALL = {"feature_dim": 4, "hidden_dim": 8, "latent_dim": 8, "sample_rate": 0.25}
FIELDS = ("name", "mechanism", "sensitivity", "epsilon", "sample_rate", "steps")
PRIVATE = [DPGVAE, DPGGAN]
PUBLISHED = [DPGVAEAsPublished, DPGGANAsPublished]


def two_cliques(sizes=(8, 10, 12, 14)):
    return [nx.disjoint_union(*[nx.complete_graph(n // 2)] * 2) for n in sizes]


def fit(module, epsilon=4.0, delta=1e-4, graphs=None, checkpoint=None, **options):
    trainer = quiet_trainer(
        PrivacyAccountant(epsilon, delta),
        **{"max_epochs": 2} | options,
    )
    data = GraphSetDataModule(two_cliques() if graphs is None else graphs)
    trainer.fit(module, data, ckpt_path=checkpoint)
    return module


def small(method, **options):
    torch.manual_seed(0)
    return method(**SMALL | options)


def sampled(module, seed=0):
    graphs = module.sample_set(torch.Generator().manual_seed(seed))
    return [undirected_edges(graph).tolist() for graph in graphs]


@pytest.mark.parametrize("method", PRIVATE)
def test_ledger_of_a_run_is_the_list_written_by_hand(method):
    shares = {"count_share": 0.25, "aggregation_share": 0.5}
    module = fit(small(method, max_grad_norm=1.0, hops=2, **shares))
    booked = [tuple(entry.to_dict()[field] for field in FIELDS) for entry in module.ledger.entries]
    assert booked == [
        ("number of edges of each graph", "pure", 1, 1.0, 1.0, 1),
        ("sums over neighbors, hop 1", "gaussian", 2**0.5, 0.0, 1.0, 1),
        ("sums over neighbors, hop 2", "gaussian", 2**0.5, 0.0, 1.0, 1),
        ("gradient of edges", "gaussian", 1.0, 0.0, 0.25, 8),
    ]
    # Two hops on half of the budget's zCDP parameter: a quarter for each, which is twice the noise.
    hops = [entry.event.noise_multiplier for entry in module.ledger.entries[1:3]]
    assert hops == pytest.approx([2 * gaussian_sigma(4.0, 1e-4)] * 2)
    assert 0.999 * 4.0 < module.ledger.headline(1e-4)[0] <= 4.0


def halves(module, edges):
    """Private and public half of the gradient, with the public randomness fixed."""
    module.ledger = PrivacyLedger(module.relation)
    module._noise = NoiseSource(unsafe_seed=1)
    torch.manual_seed(3)
    module.zero_grad()
    module.dpsgd._unread = len(edges), _times_read(module)  # as if they were drawn
    with patch.object(dp_graph_vae, "secret_generator", lambda: torch.Generator().manual_seed(2)):
        module._private_term(edges)
    private = gradient(module)
    module.zero_grad()
    module._public_terms()
    return private, gradient(module)


def gradient(module):
    zero = torch.zeros(1)
    return torch.cat(
        [(zero if p.grad is None else p.grad).flatten() for p in module.parameters()]
    ).double()


@pytest.mark.parametrize("method", PRIVATE)
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_one_edge_moves_the_private_half_by_c_and_the_public_half_not_at_all(method, scale):
    module = fit(small(method, max_grad_norm=0.5), max_epochs=1)
    module.log = lambda *args, **kwargs: None
    with torch.no_grad():
        for parameter in module.parameters():
            parameter *= scale
    edges = module.records.edges[::12]
    size = module.dpsgd.sample_rate * int(module.num_edges.sum())
    moved = []
    for count in range(len(edges)):
        fewer, public = halves(module, edges[:count])
        more, same = halves(module, edges[: count + 1])
        assert torch.equal(public, same)
        moved.append(float((more - fewer).norm()) * size)
    assert max(moved) <= 0.5 * (1 + 1e-4)
    assert max(moved) > 0.1  # something is learned


@pytest.mark.parametrize("method", PRIVATE)
def test_public_half_reads_no_edge_at_all(method):
    module = fit(small(method), max_epochs=1)
    module.log = lambda *args, **kwargs: None
    _, public = halves(module, torch.empty(0, 2, dtype=torch.long))
    module.trainer.datamodule = None  # and no records of it
    _, same = halves(module, torch.empty(0, 2, dtype=torch.long))
    assert torch.equal(public, same)


@pytest.mark.parametrize("method", PUBLISHED)
def test_one_edge_moves_the_published_sum_by_more_than_c(method):
    """Theorem 1 of the paper says at most C; the norm of a node's gradient is no bound."""
    torch.manual_seed(0)
    module = method(feature_dim=16, latent_dim=16, sample_rate=1.0)
    graph = nx.gnp_random_graph(12, 0.4, seed=0)
    fit(module, math.inf, None, [graph], max_epochs=1)
    with torch.no_grad():
        for parameter in module.encoder.parameters():
            parameter *= 4  # no noise protects the encoder, so that any weights are possible
    blocks = dense_batch(module.sizes, torch.tensor([0]))
    normal = torch.randn(1, 12, 16)

    def clipped_sum(edges):
        adjacency = dense_adjacency(edges, module.sizes, blocks)
        mean, log_variance = module.encoder(module.features[blocks.nodes], adjacency)
        latent = mean + (log_variance / 2).exp() * normal
        total = module._node_sum(blocks, adjacency, latent.detach(), 0.1)
        return torch.cat([gradient.flatten() for gradient in total.values()])

    edges = module.records.edges
    whole = clipped_sum(edges)
    moved = [
        float((whole - clipped_sum(torch.cat([edges[:i], edges[i + 1 :]]))).norm())
        for i in range(len(edges))
    ]
    assert max(moved) > 1.2 * 0.1


@pytest.mark.parametrize("method", PUBLISHED)
def test_the_published_variant_claims_by_its_formula_and_guarantees_nothing(method):
    module = small(method, noise_multiplier=5.0)
    assert not isinstance(module, (DPGVAE, DPGGAN))
    fit(module, math.inf, 1e-5, max_epochs=3)
    assert module.ledger.epsilon(1e-5) == math.inf
    assert [e.event.mechanism for e in module.ledger.entries] == ["non_private"]
    expected = 2 * 0.25 * math.sqrt(12 * math.log(1e5)) / 5.0
    assert module.claimed_epsilon(1e-5) == pytest.approx(expected)
    assert any("exact numbers of edges" in text for text in module.assumptions)
    with pytest.raises(MisconfigurationException, match="AsPublished protects nothing"):
        fit(small(method))


@pytest.mark.parametrize("method", [GVAE, GGAN, DPGVAE, DPGGAN])
def test_decoder_sizes_and_numbers_of_edges_are_all_that_generates(method):
    epsilon = 4.0 if method in PRIVATE else math.inf
    module = fit(small(method), epsilon)
    released = module.released_state()
    assert {name.split(".")[0] for name in released} == {
        "decoder",
        "offset",
        "sizes",
        "num_edges",
    }
    other = small(method)
    load_released(other, released)
    del other.encoder
    module.trainer = None
    assert sampled(other) == sampled(module)
    assert sampled(other) != sampled(other, seed=1)


def test_graphs_have_the_released_numbers_of_edges():
    module = fit(small(DPGVAE))
    assert [len(edges) for edges in sampled(module)] == module.num_edges.tolist()


def test_draws_follow_the_odds_of_the_decoder():
    """Given their number, pairs have about the law of independent ones; the worst case is small."""
    module = small(GVAE)
    torch.manual_seed(1)
    logits = torch.randn(5, 5)
    module.decoder.logits = lambda latent: (logits + logits.mT)[None]
    generator = torch.Generator().manual_seed(0)
    draws = torch.cat([module.draw(5, 4, generator) for _ in range(3000)])
    rows, columns = torch.triu_indices(5, 5, 1)
    counts = torch.bincount(5 * draws[:, 0] + draws[:, 1], minlength=25)[5 * rows + columns]
    odds = (logits + logits.mT)[rows, columns].exp().double().numpy()

    def ways(odds, count):
        """Sum over all sets of ``count`` pairs of the product of their odds."""
        return functools.reduce(np.polymul, ([o, 1.0] for o in odds))[-1 - count]

    others = [ways(np.delete(odds, pair), 3) for pair in range(10)]
    np.testing.assert_allclose(counts / 3000, odds * others / ways(odds, 4), atol=0.06)
    module.offset.data.fill_(-1.0)  # without a number of edges each pair is drawn alone
    total = sum(len(module.draw(5, None, generator)) for _ in range(1000))
    expected = (odds / (odds + math.e)).sum()
    assert total / 1000 == pytest.approx(float(expected), abs=0.1)


@pytest.mark.parametrize("method", [GVAE, GGAN])
def test_without_privacy_it_learns_cliques_and_draws_them_from_the_prior(method):
    graphs = two_cliques(range(10, 20, 2)) * 4
    torch.manual_seed(0)
    module = method(kl_weight=0.1, learning_rate=0.02, sample_rate=0.5)
    fit(module, math.inf, None, graphs, max_epochs=50)
    assert [entry.event.mechanism for entry in module.ledger.entries] == ["non_private"]
    drawn = module.sample_set(torch.Generator().manual_seed(0))
    uniform = [nx.gnm_random_graph(len(g), g.number_of_edges(), seed=0) for g in graphs]
    expected = sum(sum(nx.triangles(graph).values()) / 3 for graph in uniform)
    assert sum(map(triangles, drawn)) > 1.2 * expected


def test_a_resumed_run_releases_nothing_twice(tmp_path):
    options = {"default_root_dir": tmp_path, "enable_checkpointing": True}
    first = fit(small(DPGGAN, noise_multiplier=3.0), max_epochs=1, **options)
    checkpoint = first.trainer.checkpoint_callback.best_model_path
    second = fit(small(DPGGAN, noise_multiplier=3.0), checkpoint=checkpoint, **options)
    assert [entry.steps for entry in second.ledger.entries] == [1, 1, 8]
    assert torch.equal(second.sums.rows, first.sums.rows)
    assert torch.equal(second.num_edges, first.num_edges)
    assert float(second.sums.noise_multiplier) == float(first.sums.noise_multiplier)


def test_an_infinite_budget_trains_without_noise_and_without_a_guarantee():
    module = fit(small(DPGGAN), math.inf, None)
    assert module.ledger.reasons
    assert float(module.dpsgd.noise_multiplier) == 0
    assert module.num_edges.tolist() == [12, 20, 30, 42]


def test_large_blocks_are_refused():
    with pytest.raises(MisconfigurationException, match="lower"):
        fit(small(GVAE), math.inf, None, [nx.path_graph(8200)])


def test_shares_that_leave_nothing_are_refused_before_anything_is_spent():
    module = small(DPGVAE, count_share=0.5, aggregation_share=0.45)
    with pytest.raises(
        MisconfigurationException, match=r"lower count_share 0.5, or lower aggregation_share 0.45"
    ):
        fit(module, epsilon=1.0, delta=1e-5)
    assert not module.ledger.entries


@pytest.mark.parametrize("method", PRIVATE)
def test_budgets_are_told_of_the_method_that_does_better(method):
    lines = [method.advice(Facts("graphs", e, kind="set")) for e in (0.1, 1.0, 10.0, math.inf)]
    better = ["ErdosRenyiSet", "PooledSet", "PooledSet", None]
    for line, name in zip(lines, better, strict=True):
        assert line is None if name is None else name in line
