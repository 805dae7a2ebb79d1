"""The best setting equals an exhaustive search, and scores add up to one over pairs."""

import itertools

import pytest
import torch

from lightning_dpg.graph.spectral import Spectrum
from lightning_dpg.methods.single_graph.randomized_response import (
    Setting,
    Structure,
    as_shares,
    best_setting,
    sampled,
    unreported_pairs,
)
from lightning_dpg.metrics.link_prediction import link_prediction

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
