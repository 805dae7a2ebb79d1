"""Katz products, inverses and Laplacian rows equal dense linear algebra."""

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import pinvh
from scipy.sparse import csr_array

from lightning_dpg.papers.zhang2020 import privcom_as_published as katz_module
from lightning_dpg.papers.zhang2020.katz import inverse_katz, katz, katz_product
from lightning_dpg.papers.zhang2020.privcom_as_published import heaviest_pairs, laplacian_rows

KARATE = nx.to_numpy_array(nx.karate_club_graph(), weight=None)


@pytest.mark.parametrize(("decay", "terms"), [(1.0, 1), (0.05, 3), (0.1, 5), (0.2, 4)])
def test_eigenvalues_and_products_are_those_of_the_power_series(decay, terms):
    series = sum(np.linalg.matrix_power(decay * KARATE, k) for k in range(1, terms + 1))
    values = np.linalg.eigvalsh(KARATE)
    expected = np.linalg.eigvalsh(series)
    assert np.sort(katz(values, decay, terms)) == pytest.approx(expected, abs=1e-9)
    block = np.random.default_rng(0).normal(size=(34, 3))
    product = katz_product(csr_array(KARATE), block, decay, terms)
    assert product == pytest.approx(series @ block)


def test_many_terms_are_the_closed_form():
    decay = 0.5 / np.linalg.eigvalsh(KARATE)[-1]
    closed = np.linalg.inv(np.eye(34) - decay * KARATE) - np.eye(34)
    values = np.linalg.eigvalsh(closed)
    assert np.sort(katz(np.linalg.eigvalsh(KARATE), decay, 61)) == pytest.approx(values, abs=1e-9)
    # (I - (I + H)^-1) / beta is the adjacency matrix again.
    back = (1 - 1 / (1 + values)) / decay
    assert inverse_katz(values, decay, 61) == pytest.approx(back, abs=1e-6)


@given(
    st.lists(st.floats(-200, 200), min_size=1, max_size=5),
    st.sampled_from([1, 3, 5]),
    st.floats(0.001, 1.0),
)
def test_inverse_of_an_odd_number_of_terms(values, terms, decay):
    values = np.array(values)
    again = inverse_katz(katz(values, decay, terms), decay, terms)
    assert again == pytest.approx(values, rel=1e-6, abs=1e-6)


def test_even_numbers_of_terms_have_no_inverse():
    with pytest.raises(ValueError, match="odd"):
        inverse_katz(np.array([1.0]), 0.1, 2)


@pytest.mark.parametrize("alpha", [5e-6, 0.1])
def test_laplacian_rows_are_the_pseudo_inverse_of_the_paper(alpha):
    n = 12
    rows = torch.randn(n, 3, generator=torch.Generator().manual_seed(0)).double()
    center = np.eye(n) - 1 / n
    katz_matrix = (rows @ rows.T).numpy()
    laplacian = -2 * pinvh(center @ katz_matrix @ center + alpha * np.eye(n))
    found = laplacian_rows(rows, alpha)
    weights = -(found @ found.T).numpy()
    off = ~np.eye(n, dtype=bool)
    assert weights[off] == pytest.approx(-laplacian[off], rel=1e-5, abs=1e-5 / alpha)


@pytest.mark.parametrize("block", [1, 40, 2**22])
def test_heaviest_pairs_are_those_of_the_whole_matrix(block, monkeypatch):
    monkeypatch.setattr(katz_module, "_BLOCK", block)
    generator = torch.Generator().manual_seed(0)
    rows, signs = torch.randn(20, 3, generator=generator), torch.tensor([1.0, -1, 1])
    products = ((rows * signs) @ rows.T).triu(1)
    for count in (7, 190):
        expected = [
            (int(k) // 20, int(k) % 20)
            for k in products.flatten().argsort(descending=True)[:count]
            if products.flatten()[k] > 0
        ]
        found = heaviest_pairs(rows, signs, count)
        assert [tuple(pair) for pair in found.tolist()] == sorted(expected)
