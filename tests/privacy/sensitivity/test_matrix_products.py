"""Bounds on matrix products hold for all neighbors of small graphs."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lightning_dpg.privacy.sensitivity.matrix_products import (
    edge_product_sensitivity,
    edge_rayleigh_sensitivity,
    katz_sensitivity,
    node_edge_count_sensitivity,
    paper_sensitivity,
    rounded_up,
)


def random_basis(rng, n, rank, clip):
    """An orthonormal basis of uneven rows, some of them shortened."""
    basis = np.linalg.qr(rng.normal(size=(n, rank)) * rng.exponential(size=(n, 1)) ** 2)[0]
    lengths = np.linalg.norm(basis, axis=1, keepdims=True)
    return basis * np.minimum(1, clip / np.maximum(lengths, 1e-12))


def random_adjacency(rng, n):
    matrix = np.triu(rng.random((n, n)) < rng.uniform(0.1, 0.9), 1).astype(float)
    return matrix + matrix.T


def edge_flips(matrix):
    for i, j in itertools.combinations(range(len(matrix)), 2):
        flipped = matrix.copy()
        flipped[i, j] = flipped[j, i] = 1 - matrix[i, j]
        yield flipped


def node_removals(matrix):
    for node in range(len(matrix)):
        removed = matrix.copy()
        removed[node] = removed[:, node] = 0
        yield removed


graphs = given(st.integers(6, 8), st.integers(1, 3), st.sampled_from([0.3, 0.6, 1.0]), st.randoms())


@settings(max_examples=25)
@graphs
def test_row_norms_are_exact_for_the_product_by_all_flips(n, rank, clip, random):
    rng = np.random.default_rng(random.getrandbits(32))
    matrix, basis = random_adjacency(rng, n), random_basis(rng, n, rank, clip)
    moved = [np.linalg.norm((matrix - other) @ basis) for other in edge_flips(matrix)]
    assert max(moved) == pytest.approx(edge_product_sensitivity(torch.from_numpy(basis)))


@settings(max_examples=25)
@graphs
def test_rayleigh_matrix_moves_by_its_bound_at_most(n, rank, clip, random):
    rng = np.random.default_rng(random.getrandbits(32))
    matrix, basis = random_adjacency(rng, n), random_basis(rng, n, rank, clip)
    moved = [np.linalg.norm(basis.T @ (matrix - other) @ basis) for other in edge_flips(matrix)]
    bound = edge_rayleigh_sensitivity(torch.from_numpy(basis))
    assert max(moved) <= bound * (1 + 1e-12)
    assert max(moved) >= bound / math.sqrt(2) * (1 - 1e-12)
    if rank == 1:
        assert max(moved) == pytest.approx(bound)


@settings(max_examples=25)
@given(st.integers(4, 8), st.randoms())
def test_a_node_moves_the_number_of_edges_by_its_bound_at_most(n, random):
    matrix = random_adjacency(np.random.default_rng(random.getrandbits(32)), n)
    degree = max(1, int(matrix.sum(0).max()))
    moved = [(matrix - other).sum() / 2 for other in node_removals(matrix)]
    assert max(moved) == int(matrix.sum(0).max()) <= node_edge_count_sensitivity(degree)


def katz_matrix(matrix, decay, terms):
    powers = itertools.accumulate([decay * matrix] * terms, np.matmul)
    return sum(powers)


@settings(max_examples=25)
@given(st.integers(6, 8), st.sampled_from([1, 3, 5]), st.floats(0.1, 2.0), st.randoms())
def test_katz_matrices_move_by_their_bound_at_most(n, terms, strength, random):
    rng = np.random.default_rng(random.getrandbits(32))
    matrix, basis = random_adjacency(rng, n), random_basis(rng, n, 2, 1.0)
    for other in edge_flips(matrix):
        degree = max(1, int(max(matrix.sum(0).max(), other.sum(0).max())))
        decay = strength / degree
        change = katz_matrix(matrix, decay, terms) - katz_matrix(other, decay, terms)
        bound = katz_sensitivity(decay, terms, degree) * (1 + 1e-9)
        assert np.linalg.norm(change) <= bound
        assert np.linalg.norm(change @ basis) <= bound
        assert np.linalg.norm(basis.T @ change @ basis) <= bound


def test_katz_of_one_term_moves_as_the_adjacency_matrix_does():
    assert katz_sensitivity(1.0, 1, 50) == pytest.approx(math.sqrt(2))


@settings(max_examples=15)
@given(st.integers(4, 8), st.integers(1, 3), st.integers(0, 2), st.randoms())
def test_under_the_decay_of_the_paper_any_two_graphs_are_closer_than_one(n, rank, hops, random):
    rng = np.random.default_rng(random.getrandbits(32))
    decay = 1 / ((n - 1) * (n**1.5 * rank**0.5 + 1))
    basis = random_basis(rng, n, rank, 1.0)
    ends = [np.zeros((n, n)), 1 - np.eye(n), random_adjacency(rng, n)]
    products = [katz_matrix(end, decay, 2 * hops + 1) @ basis for end in ends]
    for first, second in itertools.combinations(products, 2):
        assert np.linalg.norm(first - second) <= 1 / math.sqrt(n * rank) <= paper_sensitivity()
        squares = np.square(first).sum(0) - np.square(second).sum(0)
        assert np.abs(squares).max() <= paper_sensitivity()


@given(st.floats(1e-9, 1e9))
def test_rounding_never_lowers_and_adds_a_thousandth_at_most(value):
    rounded = rounded_up(value)
    assert value * (1 - 1e-11) <= rounded <= value * 1.0011
    assert rounded_up(rounded) == rounded == float(f"{rounded:.4g}")


def test_equal_lengths_round_alike():
    tau = 0.5 * math.sqrt(4 / 1224)
    values = {rounded_up(math.hypot(tau * (1 + e), tau)) for e in (-1e-16, 0, 1e-16, 3e-16)}
    assert len(values) == 1
    assert rounded_up(0.0) == 0.0
