"""Every query has an entry in the glossary, and every entry is a query."""

from typing import get_args

from lightning_dpg.metrics.glossary import GROUPS, Group, glossary
from lightning_dpg.metrics.kernel_svm import LABEL_QUERIES
from lightning_dpg.metrics.node_classification import NODE_QUERIES
from lightning_dpg.metrics.queries import HIGHER_IS_BETTER, KIND_QUERIES, QUERIES
from lightning_dpg.metrics.set_queries import SET_HIGHER_IS_BETTER, SET_QUERIES


def test_entries_are_the_queries_and_no_others():
    of_kinds = {name for names in KIND_QUERIES.values() for name in names}
    assert set(glossary()) == {*(*QUERIES, *of_kinds, *SET_QUERIES, *LABEL_QUERIES, *NODE_QUERIES)}
    assert set(glossary("graphs")) == {*QUERIES, *of_kinds}
    assert all(name == entry.name for name, entry in glossary().items())
    assert len({(entry.label, name in SET_QUERIES) for name, entry in glossary().items()}) == len(
        glossary()
    )


def test_directions_are_those_of_the_queries():
    higher = {name for name, entry in glossary().items() if entry.better == "higher"}
    assert higher == {*HIGHER_IS_BETTER, *SET_HIGHER_IS_BETTER, *LABEL_QUERIES, *NODE_QUERIES}


def test_entries_are_one_sentence_of_a_known_group():
    assert tuple(GROUPS) == get_args(Group)
    assert {entry.group for entry in glossary().values()} == set(GROUPS)
    for entry in glossary().values():
        assert entry.meaning.endswith(".")
        assert ". " not in entry.meaning
