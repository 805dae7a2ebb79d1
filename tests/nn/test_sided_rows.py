"""Rows of two sides: which columns the components of both have in common."""

import pytest
import torch

from lightning_dpg.nn.attribute_rows import AttributeRows, attributes_alone, common_directions


def sides(first, second, rank=4):
    fits = AttributeRows(rank), AttributeRows(rank)
    for rows, attributes in zip(fits, (first, second), strict=True):
        rows.fit(attributes)
    return fits


@pytest.mark.parametrize("right_columns", [[3], [3, 4]])
def test_numbers_of_one_side_are_no_common_column(right_columns):
    source = torch.Generator().manual_seed(0)
    people, products = torch.zeros(20, 5), torch.zeros(30, 5)
    people[:, :1] = torch.randn(20, 1, generator=source)
    products[:, right_columns] = torch.randn(30, len(right_columns), generator=source)
    assert not common_directions(*sides(people, products)).any()
    score = attributes_alone(torch.cat([people, products]), 20, rank=4)
    assert not score(torch.tensor([[0, 20], [3, 49]])).any()


def test_columns_of_both_sides_are_found_beside_numbers_of_one():
    source = torch.Generator().manual_seed(0)
    both = torch.randn(40, 2, generator=source)
    price = torch.randn(40, 1, generator=source)
    left, right = torch.cat([0 * price, both], 1), torch.cat([price, both], 1)
    same = common_directions(*sides(left, left))
    torch.testing.assert_close(same, torch.eye(4), atol=1e-5, rtol=0)
    found = common_directions(*sides(left, right))
    assert 0.5 < torch.linalg.matrix_norm(found, 2) <= 1 + 1e-5
