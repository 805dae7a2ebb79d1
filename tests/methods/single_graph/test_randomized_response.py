"""Randomized response keeps epsilon for every outcome, and denoising improves the graph."""

import itertools
import math

import networkx as nx
import numpy as np
import pytest
import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.advice import Facts
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.graph.held_out import uniform_non_edges
from lightning_dpg.graph.spectral import Spectrum
from lightning_dpg.methods import RandomizedResponse, RandomizedResponsePrivCom
from lightning_dpg.methods.single_graph.randomized_response import (
    Setting,
    Structure,
    as_shares,
    best_setting,
    prior_probabilities,
    sampled,
    unreported_pairs,
)
from lightning_dpg.metrics.link_prediction import link_prediction
from lightning_dpg.privacy.ledger import Budget
from lightning_dpg.privacy.mechanisms import response_rates
from lightning_dpg.privacy.paid_weights import load_released
from tests.training import release_edges

MODULE = sampled.__module__


def eigenpairs(size, seed):
    generator = torch.Generator().manual_seed(seed)
    vectors = torch.linalg.qr(torch.randn(size, size, generator=generator).double()).Q[:, :12]
    values = torch.linspace(1, 0.2, 12).double()
    return Spectrum(values, vectors, torch.ones(size).double(), 0.1)


def test_best_setting_is_that_of_an_exhaustive_search():
    structure = Structure(eigenpairs(40, 1), eigenpairs(40, 2))
    pairs = torch.tensor(list(itertools.combinations(range(40), 2)))
    wanted = Setting(refined=False, rank=8, steps=2)
    rows = wanted.rows(structure)
    by_score = pairs[(rows @ rows.T)[pairs[:, 0], pairs[:, 1]].argsort(descending=True)]
    hidden, others = by_score[:60], by_score[60:]
    found = best_setting(structure, hidden, others)
    assert found == wanted

    def auc(setting):
        rows = setting.rows(structure).float()
        products = rows @ rows.T
        return link_prediction(*(products[p[:, 0], p[:, 1]] for p in (hidden, others)))[0]

    tried = itertools.product((True, False), (4, 8, 16), (1, 2))
    assert auc(found) == pytest.approx(max(auc(Setting(*setting)) for setting in tried))


def test_nothing_to_compare_is_no_failure():
    structure = Structure(eigenpairs(40, 1), eigenpairs(40, 2))
    nothing = torch.empty(0, 2, dtype=torch.long)
    assert best_setting(structure, nothing, nothing).rows(structure).isfinite().all()


def test_shares_add_up_to_one_over_pairs():
    rows = torch.randn(700, 3, generator=torch.Generator().manual_seed(0))  # two blocks
    products = as_shares(rows) @ as_shares(rows).T
    assert float(products.clamp(min=0).triu(1).sum()) == pytest.approx(1, rel=1e-4)


def test_unreported_pairs_are_the_others():
    pairs = torch.tensor(list(itertools.combinations(range(12), 2)))
    found = unreported_pairs(pairs[::2], 12, torch.Generator().manual_seed(0))
    others = {tuple(pair) for pair in pairs[1::2].tolist()}
    assert {tuple(pair) for pair in found.tolist()} <= others
    assert len(found)
    assert not len(unreported_pairs(pairs, 12, torch.Generator().manual_seed(0)))


def test_a_limited_number_of_hidden_reports_is_ranked(monkeypatch):
    hidden = torch.arange(400).view(200, 2)
    everything = sampled(hidden, torch.Generator())
    assert torch.equal(everything, hidden)
    monkeypatch.setattr(f"{MODULE}._MOST_HIDDEN", 100)
    found = sampled(hidden, torch.Generator().manual_seed(0))
    assert len(found) == 100
    assert {tuple(pair) for pair in found.tolist()} < {tuple(pair) for pair in hidden.tolist()}
    # The mean of 100 uniform numbers of 0 to 199 has a deviation of 5.8.
    assert float((found[:, 0] / 2).mean()) == pytest.approx(99.5, abs=24)


def released(edges, num_nodes, epsilon, **arguments):
    method = RandomizedResponse(num_nodes=num_nodes, **arguments)
    method.ledger.budget = Budget(epsilon, 0.0)
    release_edges(method, edges)
    return method


def planted(seed=0):
    """Five communities of 40 nodes, about 11 neighbors inside and 2 outside of the own one."""
    graph = nx.planted_partition_graph(5, 40, 0.28, 0.012, seed=seed)
    return torch.tensor(sorted(tuple(sorted(edge)) for edge in graph.edges)), 200


def entries(method):
    return [
        (e.name, e.event.mechanism, e.sensitivity, e.proof, e.event.pure_epsilon)
        for e in method.ledger.entries
    ]


@pytest.mark.parametrize("epsilon", [0.7, 6.0])
def test_no_outcome_tells_neighbours_apart_by_more_than_epsilon(epsilon):
    """Exact joint law of number and reports, for all graphs of 4 nodes and all single flips."""
    method = RandomizedResponse(num_nodes=4)
    method.report_epsilon.fill_(0.95 * epsilon)
    rates = []
    for count in range(7):  # the reports' law depends on the graph through this release only
        method.num_edges.fill_(count)
        rates.append(response_rates(0.95 * epsilon, method.thinning))
    reports = np.array(list(itertools.product((False, True), repeat=6)))
    worst = 0.0
    for graph in reports:
        for bit in range(6):
            other = graph.copy()
            other[bit] ^= True
            for true_rate, false_rate in rates[1:]:
                laws = []
                for bits in (graph, other):
                    chance = np.where(bits, true_rate, false_rate)
                    laws.append(np.where(reports, chance, 1 - chance).prod(1))
                of_count = 0.05 * epsilon  # the most that discrete Laplace noise gives away
                worst = max(worst, of_count + np.abs(np.log(laws[0] / laws[1])).max())
    assert worst <= epsilon * (1 + 1e-9)
    assert worst >= 0.9 * epsilon


def test_as_many_reports_as_edges_and_as_many_true_ones_as_can_be():
    edges, n = planted()
    pairs = n * (n - 1) // 2
    for epsilon in (1.0, 4.0, 8.0):
        methods = [released(edges, n, epsilon) for _ in range(20)]
        sizes = [len(m.reported) for m in methods]
        assert np.mean(sizes) == pytest.approx(len(edges), rel=0.1)
        true = [int((edges[:, None] == m.reported).all(2).any(1).sum()) for m in methods]
        # A true edge is at most exp(epsilon) times as likely as a false one.
        share = math.exp(0.95 * epsilon)
        best = share / (share * len(edges) + pairs - len(edges)) * len(edges)
        assert np.mean(true) / len(edges) == pytest.approx(min(best, 1), abs=0.03)


@pytest.mark.parametrize("denoise", ["none", "spectral"])
def test_without_noise_the_graph_itself_remains(denoise):
    edges, n = planted()
    method = released(edges, n, math.inf, denoise=denoise, rank=8)
    assert torch.equal(method.sample_edges(torch.Generator()), edges)
    assert method.ledger.reasons


@pytest.mark.parametrize(
    "arguments", [{"denoise": "spectral"}, {"denoise": "spectral", "degree_share": 0.1}]
)
def test_denoised_scores_find_edges_that_were_held_out(arguments):
    edges, n = planted()
    order = torch.randperm(len(edges), generator=torch.Generator().manual_seed(0))
    held_out, kept = edges[order[:100]], edges[order[100:].sort().values]
    others = uniform_non_edges(make_graph(edges, n), 100, torch.Generator().manual_seed(0))
    method = released(kept, n, 6.0, **arguments)
    auc, _ = link_prediction(method.score(held_out), method.score(others))
    # 0.85 is the most that the communities give; 0.79 with a deviation of 0.02 in the worse case.
    assert auc > 0.7
    reports = released(kept, n, 6.0)
    assert link_prediction(reports.score(held_out), reports.score(others))[0] < 0.65


@pytest.mark.parametrize("degree", [20, 50])
def test_scores_fit_dense_communities(degree):
    """Walks and ranks that suit sparse graphs drown four communities in noise of the graph's own."""
    inside = degree * 0.6 / 75
    graph = nx.planted_partition_graph(4, 75, inside, degree * 0.4 / 225, seed=1)
    edges = torch.tensor(sorted(tuple(sorted(edge)) for edge in graph.edges))
    order = torch.randperm(len(edges), generator=torch.Generator().manual_seed(0))
    held_out, kept = edges[order[:300]], edges[order[300:].sort().values]
    others = uniform_non_edges(make_graph(edges, 300), 3000, torch.Generator().manual_seed(0))
    method = released(kept, 300, 8.0, denoise="spectral")
    community = torch.arange(300) // 75
    known = [
        (community[pairs[:, 0]] == community[pairs[:, 1]]).float() for pairs in (held_out, others)
    ]
    found, _ = link_prediction(method.score(held_out), method.score(others))
    best, _ = link_prediction(*known)
    assert found > best - 0.03


def test_reports_estimate_degrees_together_where_noise_prevails():
    """A lattice has no degree but 6, and the hub of a star keeps its own."""
    lattice = nx.circulant_graph(300, [1, 2, 3])
    edges = torch.tensor(sorted(tuple(sorted(edge)) for edge in lattice.edges))
    noisy = released(edges, 300, 1.0, denoise="spectral").degrees
    assert float((noisy - noisy.mean()).abs().mean()) < 6  # 10 if each node had its own estimate
    star = torch.tensor([(0, i) for i in range(1, 300)])
    degrees = released(star, 300, 4.0, denoise="spectral").degrees
    assert float(degrees[0]) == pytest.approx(299, rel=0.1)


def test_a_draw_is_nearer_to_the_graph_than_the_reports_are():
    edges, n = planted()
    overlap = torch.zeros(2)
    for _ in range(5):
        method = released(edges, n, 3.0, denoise="spectral")
        raw = released(edges, n, 3.0)
        drawn = method.sample_edges(torch.Generator().manual_seed(0))
        for k, found in enumerate((drawn, raw.reported)):
            overlap[k] += (edges[:, None] == found).all(2).any(1).sum()
    assert overlap[0] > 1.06 * overlap[1]  # 1.147 in the mean, sd .015
    assert len(drawn) == int(method.num_edges)


def dense_prior(method):
    """Probabilities of all pairs before the reports, by the formulas on N x N matrices."""
    rows, ends = method.model.intensity.double(), method.degrees.double()
    upper = torch.ones(len(rows), len(rows)).triu_(1).bool()
    model, degrees = (rows @ rows.T).clamp(min=0)[upper], torch.outer(ends, ends)[upper]
    num_edges = int(method.num_edges)
    share = min(0.9, float(model.sum()) / num_edges)
    prior = share * model / model.sum() + (1 - share) * degrees / degrees.sum()
    for _ in range(8):
        prior = (prior * num_edges / prior.sum()).clamp(max=0.95)
    return prior


@pytest.mark.parametrize("degree_share", [0.0, 0.4])
def test_scores_and_probabilities_are_those_of_the_whole_matrices(degree_share, monkeypatch):
    monkeypatch.setattr("lightning_dpg.nn.low_rank._ENTRIES_AT_ONCE", 1500)
    edges, n = planted()
    method = released(edges, n, 4.0, denoise="spectral", degree_share=degree_share).double()
    pairs = torch.ones(n, n).triu_(1).nonzero()
    rows, ends = method.model.affinity, method.degrees / method.degrees.sum()
    products = rows @ rows.T
    if degree_share:
        products = 0.6 * products.clamp(min=0) + 0.8 * torch.outer(ends, ends)
    expected = products[pairs[:, 0], pairs[:, 1]]
    np.testing.assert_allclose(method.score(pairs), expected, rtol=1e-8, atol=1e-20)
    blocks = list(prior_probabilities(method.model, ends, int(method.num_edges)))
    assert len(blocks) == math.ceil(n / 7)
    np.testing.assert_allclose(torch.cat(blocks), dense_prior(method), rtol=1e-8)


@pytest.mark.parametrize("entries", [150, 2**22])
def test_a_draw_in_blocks_is_that_of_the_whole_matrices(entries, monkeypatch):
    """The formulas on N x N matrices in double precision, with the numbers of the same seed."""
    monkeypatch.setattr("lightning_dpg.nn.low_rank._ENTRIES_AT_ONCE", entries)
    edges, n = planted()
    method = released(edges, n, 4.0, denoise="spectral")
    num_edges, upper = int(method.num_edges), torch.ones(n, n).triu_(1).bool()
    prior = dense_prior(method)
    uniform = torch.rand(len(prior), generator=torch.Generator().manual_seed(7)).double()
    is_reported = torch.zeros(n, n, dtype=torch.bool)
    is_reported[method.reported[:, 0], method.reported[:, 1]] = True
    signs = 1 - 2 * is_reported[upper].double()
    ranks = uniform.logit(1e-7) - prior.logit() + signs * float(method.report_epsilon)
    expected = upper.nonzero()[ranks.argsort()[:num_edges].sort().values]
    drawn = method.sample_edges(torch.Generator().manual_seed(7))
    common = torch.cat([drawn, expected]).unique(dim=0, return_counts=True)[1] == 2
    assert int(common.sum()) >= num_edges - 1  # one at the limit may move by rounding
    assert len(drawn) == num_edges


@pytest.mark.parametrize("denoise", ["none", "spectral"])
def test_reports_are_held_in_32_bits_and_read_from_64(denoise):
    edges, n = planted()
    method = released(edges, n, 3.0, denoise=denoise, rank=8)
    state = method.released_state()
    assert state["reported"].dtype == torch.int32
    earlier = RandomizedResponse(num_nodes=n, denoise=denoise, rank=8)
    load_released(earlier, state | {"reported": state["reported"].long()})
    draws = [m.sample_edges(torch.Generator().manual_seed(5)) for m in (method, earlier)]
    assert torch.equal(*draws)
    assert draws[0].dtype == torch.long


def test_bad_arguments_are_refused():
    with pytest.raises(MisconfigurationException, match=r"at most 100000(.|\n)*PrivCom"):
        RandomizedResponse(num_nodes=100_001, denoise="spectral")
    RandomizedResponse(num_nodes=10**6)
    with pytest.raises(MisconfigurationException, match="spectral only"):
        RandomizedResponse(num_nodes=9, degree_share=0.1)
    with pytest.raises(MisconfigurationException, match="num_nodes"):
        RandomizedResponse()


@pytest.mark.parametrize(
    ("make", "share"),
    [(lambda n: RandomizedResponse(n, "spectral"), 0.95), (RandomizedResponsePrivCom, 0.8)],
)
def test_too_many_false_reports_are_refused_before_anything_is_spent(make, share):
    """The bound by hand: N (N - 1) / 2 / (1 + exp(e)) = 5e7, and no edge has a part in it."""
    method = make(33_696)
    least = math.log(33_696 * 33_695 / 2 / 5e7 - 1) / share
    with pytest.raises(MisconfigurationException, match="at most 50,000,000 fit") as error:
        method.accept_budget(Budget(0.99 * least, 0.0))
    assert f"privacy.epsilon to {math.ceil(100 * least) / 100:g} or more" in str(error.value)
    assert not method.ledger.entries and method.ledger.budget is None
    method.accept_budget(Budget(math.ceil(100 * least) / 100, 0.0))
    make(10_000).accept_budget(Budget(0.01, 0.0))  # all pairs fit
    method.accept_budget(Budget(math.inf, 0.0))


def test_reports_that_are_published_without_a_model_have_no_limit():
    RandomizedResponse(num_nodes=10**6).accept_budget(Budget(0.1, 0.0))


def test_advice_speaks_of_the_budget_that_the_reports_get():
    method = RandomizedResponse(num_nodes=9, count_share=0.2)
    assert "once in 56 times" in method.advice(Facts("links", 5.0))  # 1 + exp(4)
    assert method.advice(Facts("links", 1.0)) is None
    assert method.advice(Facts("links", math.inf)) is None
