"""Public rows: principal components of tf-idf by NumPy, and attributes with nothing to learn."""

import numpy as np
import pytest
import torch
from torch.nn.functional import one_hot

from lightning_dpg.nn.attribute_rows import AttributeRows


def assert_cosines_of_components(rows, attributes, count):
    x = attributes.double().numpy()
    x *= np.log((1 + len(x)) / (1 + (x > 0).sum(0))) + 1
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    left, values, _ = np.linalg.svd(x - x.mean(0), full_matrices=False)
    expected = left[:, :count] * values[:count]
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    found = rows(attributes).double().numpy()
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-5)


def test_rows_have_the_cosines_of_principal_components():
    attributes = (torch.rand(50, 20, generator=torch.Generator().manual_seed(0)) < 0.3).float()
    rows = AttributeRows(4)
    rows.fit(attributes)
    assert_cosines_of_components(rows, attributes, 4)


def test_rows_depend_on_a_node_alone_and_are_equal_in_each_run():
    attributes = torch.rand(30, 12, generator=torch.Generator().manual_seed(0))
    fits = [AttributeRows(3), AttributeRows(3)]
    for rows in fits:
        rows.fit(attributes)
    assert torch.equal(fits[0](attributes), fits[1](attributes))
    torch.testing.assert_close(fits[0](attributes)[7:9], fits[0](attributes[7:9]))


@pytest.mark.parametrize(
    "attributes",
    [torch.zeros(5, 9), torch.ones(1, 3), torch.ones(6, 8), torch.eye(2), torch.zeros(4, 1)],
    ids=["all zero", "one node", "all equal", "two nodes", "one column"],
)
def test_attributes_with_few_components_give_finite_rows(attributes):
    rows = AttributeRows(4)
    rows.fit(attributes)
    found = rows(attributes)
    assert found.shape == (len(attributes), 4)
    assert found.isfinite().all()
    assert (found.norm(dim=1) <= 1 + 1e-6).all()


@pytest.mark.parametrize("columns", [900, 1300], ids=["covariances", "iteration"])
def test_sparse_attributes_have_the_cosines_of_principal_components(columns):
    drawn = torch.rand(60, columns, generator=torch.Generator().manual_seed(0))
    # Six groups of different sizes with words of their own, so that variances differ
    group = (torch.arange(60) + 1).double().sqrt().long() - 1
    rate = 0.02 + 0.6 * (group[:, None] == torch.arange(columns) % 40)
    attributes = (drawn < rate).float()
    rows = AttributeRows(5)
    rows.fit(attributes)
    assert_cosines_of_components(rows, attributes, 5)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e5])
def test_nodes_of_near_numbers_have_similar_rows(scale):
    # An age says nothing at length 1: all ages would be one row. Categories are noise here.
    source = torch.Generator().manual_seed(0)
    age = 20 + 60 * torch.rand(300, generator=source)
    branch = one_hot(torch.randint(4, (300,), generator=source), 4)
    rows = AttributeRows(64)
    rows.fit(torch.cat([scale * age[:, None], branch], 1))
    between = torch.rand(200, generator=source).sort().values * 60 + 20  # ages of other nodes
    found = rows(torch.cat([scale * between[:, None], torch.zeros(200, 4)], 1))
    similarity = (found @ found.T)[100]
    steps = similarity[100:].diff()
    assert similarity[100] == pytest.approx(1.0)
    assert (steps < 0.01).all() and similarity[140] < 0.9 and similarity[199] < 0
    assert (similarity[:101].diff() > -0.01).all()


def test_many_numbers_count_alike():
    source = torch.Generator().manual_seed(0)
    numbers = torch.randn(200, 40, generator=source)
    scales = torch.logspace(-3, 3, 40)
    fits = [AttributeRows(40), AttributeRows(40)]
    for rows, values in zip(fits, (numbers, numbers * scales), strict=True):
        rows.fit(values)
    one, other = fits[0](numbers), fits[1](numbers * scales)
    torch.testing.assert_close(one @ one.T, other @ other.T, atol=1e-4, rtol=0)


def test_words_and_categories_of_any_value_are_no_numbers():
    words = (torch.rand(50, 3, generator=torch.Generator().manual_seed(0)) < 0.3).float()
    rows = AttributeRows(2)
    rows.fit(torch.cat([words, 7 * words[:, :1], torch.arange(50.0)[:, None]], 1))
    assert rows.binned.tolist() == [4]


@pytest.mark.parametrize("words", [8, 1100])
@pytest.mark.parametrize("value", [3e38, -1e30, 1e-30, 1e-39])
def test_attributes_near_the_limits_of_single_precision_keep_their_rows(words, value):
    present = (torch.rand(30, words, generator=torch.Generator().manual_seed(0)) < 0.3).float()
    present[0] = 1.0
    fits = [AttributeRows(4), AttributeRows(4)]
    for rows, attributes in zip(fits, (present, value * present), strict=True):
        rows.fit(attributes)
    one, other = fits[0](present), fits[1](value * present)
    torch.testing.assert_close(one @ one.T, other @ other.T, atol=1e-3, rtol=0)


def test_constant_columns_and_large_means_hide_no_other_numbers():
    source = torch.Generator().manual_seed(0)
    numbers = torch.randint(-8, 9, (100, 40), generator=source) + 0.5
    year = torch.zeros(100, 40)
    year[:, 3] = 1e6
    fits = [AttributeRows(40), AttributeRows(40)]
    same = torch.cat([numbers + year, torch.full((100, 2), 1e9)], 1)
    for rows, values in zip(fits, (numbers, numbers + year), strict=True):
        rows.fit(values)
    one, other = fits[0](numbers), fits[1](numbers + year)
    torch.testing.assert_close(one @ one.T, other @ other.T, atol=1e-4, rtol=0)
    fits[1].fit(same)
    found = fits[1](same)
    assert (found @ found.T - one @ one.T).abs().max() < 0.3
    assert found.norm(dim=1).min() > 0.99


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e300])
@pytest.mark.parametrize("is_fitted", [False, True])
def test_attributes_that_are_not_finite_are_refused(value, is_fitted):
    attributes = torch.eye(6, dtype=torch.double)
    rows = AttributeRows(3)
    with pytest.raises(ValueError, match="rank must be 1 or more, got 0"):
        AttributeRows(0)
    if is_fitted:
        rows.fit(attributes)
    attributes[2, 2] = value
    with pytest.raises(ValueError, match=r"must be finite in single precision, got (nan|inf|1e)"):
        (rows if is_fitted else rows.fit)(attributes)


@pytest.mark.parametrize("shape", [(6,), (2, 5), (2, 7), (2, 6, 1)])
def test_new_nodes_need_the_columns_of_the_fit(shape):
    rows = AttributeRows(3)
    rows.fit(torch.eye(6))
    with pytest.raises(ValueError, match=r"expected attributes of shape \(P, 6\)"):
        rows(torch.ones(shape))


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.half, torch.double])
def test_the_type_of_attributes_does_not_matter(dtype):
    words = torch.rand(20, 9, generator=torch.Generator().manual_seed(0)) < 0.3
    fits = [AttributeRows(4), AttributeRows(4)]
    for rows, values in zip(fits, (words.float(), words.to(dtype)), strict=True):
        rows.fit(values)
    assert torch.equal(fits[0](words.float()), fits[1](words.to(dtype)))
