import math

import torch

from lightning_dpg.graph.edge_statistics import as_matrix, as_vector, bilinear_form


def symmetric(rank, seed=0):
    matrix = torch.randn(rank, rank, generator=torch.Generator().manual_seed(seed)).double()
    return matrix + matrix.T


def test_the_vector_has_the_length_of_the_matrix_and_leads_back():
    for rank in (1, 2, 5):
        matrix = symmetric(rank)
        vector = as_vector(matrix)
        assert len(vector) == rank * (rank + 1) // 2
        torch.testing.assert_close(vector.norm(), matrix.norm())
        torch.testing.assert_close(as_matrix(vector), matrix)


def test_noise_on_the_vector_is_smaller_beside_the_diagonal():
    noise = torch.randn(20_000, 6, generator=torch.Generator().manual_seed(0)).double()
    stds = torch.stack([as_matrix(draw) for draw in noise]).std(0)
    expected = torch.full((3, 3), 1 / math.sqrt(2)).double().fill_diagonal_(1.0)
    torch.testing.assert_close(stds, expected, rtol=0.03, atol=0.0)


def test_the_weights_solve_the_ridge_regression_of_the_adjacency_matrix():
    # Without a ridge, A = Y W Y^T is recovered from S = Y^T A Y / 2 up to the factor 1/2.
    source = torch.Generator().manual_seed(1)
    rows = torch.randn(9, 3, generator=source, dtype=torch.double)
    wanted = symmetric(3, seed=2)
    moment = rows.T @ (rows @ wanted @ rows.T) @ rows / 2
    torch.testing.assert_close(bilinear_form(moment, rows, 0.0), wanted / 2)


def test_the_weights_of_two_sides_solve_the_regression_on_the_rows_of_each():
    # Without a ridge, A = Y W Z^T is recovered from S = Y^T A Z.
    source = torch.Generator().manual_seed(1)
    rows, others = (torch.randn(n, 3, generator=source, dtype=torch.double) for n in (9, 7))
    wanted = torch.randn(3, 3, generator=source, dtype=torch.double)
    moment = rows.T @ (rows @ wanted @ others.T) @ others
    torch.testing.assert_close(bilinear_form(moment, rows, 0.0, others), wanted)
