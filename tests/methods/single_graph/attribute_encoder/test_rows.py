"""Public rows: principal components of tf-idf by NumPy, and attributes with nothing to learn."""

import numpy as np
import pytest
import torch

from lightning_dpg.methods.single_graph.attribute_encoder.rows import AttributeRows


def test_rows_have_the_cosines_of_principal_components():
    attributes = (torch.rand(50, 20, generator=torch.Generator().manual_seed(0)) < 0.3).float()
    rows = AttributeRows(4)
    rows.fit(attributes)
    x = attributes.double().numpy()
    x *= np.log(51 / (1 + (x > 0).sum(0))) + 1
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    left, values, _ = np.linalg.svd(x - x.mean(0), full_matrices=False)
    expected = left[:, :4] * values[:4]
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    found = rows(attributes).double().numpy()
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-5)


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
