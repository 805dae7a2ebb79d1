"""The examples in docstrings run."""

import doctest

import pytest

from lightning_dpg.datamodules import edge_list, graph_set, subgraph


@pytest.mark.parametrize("module", [edge_list, graph_set, subgraph])
def test_examples_in_docstrings(module):
    found = doctest.testmod(module)
    assert found.attempted and not found.failed
