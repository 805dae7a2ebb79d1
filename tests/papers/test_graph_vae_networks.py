"""Networks of the graph autoencoder equal formulas written out."""

import math

import pytest
import torch
from scipy.stats import kstest, norm
from torch.distributions import Normal
from torch.distributions import kl_divergence as expected_divergence

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
