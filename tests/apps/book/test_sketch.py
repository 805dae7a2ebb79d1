"""Sketches of node names: overlaps against exact ones, and what is hidden."""

import base64
import random

import networkx as nx
import numpy as np
import pytest

from lightning_dpg.apps.book import sketch
from lightning_dpg.datamodules.identity import identity_of
from lightning_dpg.formats.io import from_networkx

KEY, OTHER_KEY = "ab" * 32, "cd" * 32


def names(first, last):
    return [f"customer {number}" for number in range(first, last)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (names(0, 5000), names(2000, 7000)),
        (names(0, 5000), names(100, 5400)),
        (names(0, 20_000), names(19_000, 20_100)),  # most of a small set in a large one
        (names(0, 600), names(500, 1100)),
        (names(0, 60), names(6, 70)),
    ],
)
def test_the_overlap_is_that_of_the_smaller_set_on_average(one, other):
    exact = len({*one} & {*other}) / min(len(one), len(other))
    keys = [f"{number:064x}" for number in range(12)]
    found = [sketch.overlap(sketch.marks(key, one), sketch.marks(key, other)) for key in keys]
    assert np.mean(found) == pytest.approx(exact, abs=0.05)


def test_sets_without_a_common_name_never_overlap():
    for size in (3, 300, 30_000):
        one, other = sketch.marks(KEY, names(0, 300)), sketch.marks(KEY, names(300, 300 + size))
        assert sketch.overlap(one, other) == 0
    assert sketch.overlap(sketch.marks(KEY, []), sketch.marks(KEY, [])) == 0


def test_a_sealed_sketch_has_one_length_and_nothing_in_common_with_another_one():
    """Also of the same data under the same key; without the key it opens to nothing."""
    texts = []
    for size in (0, 1, 40, 40, 3000):
        marks = sketch.marks(KEY, names(0, size))
        texts.append(sketch.seal(KEY, marks))
        assert np.array_equal(sketch.unseal(KEY, texts[-1]), marks)
    assert {len(base64.b64decode(text)) for text in texts} == {16 + 8 * 256}
    same = [base64.b64decode(text) for text in texts[2:4]]
    assert sum(a == b for a, b in zip(*same, strict=True)) < 40  # 8 of 2064 by chance
    opened = sketch.unseal(OTHER_KEY, texts[3])
    assert sketch.overlap(opened, sketch.marks(KEY, names(0, 40))) == 0


def test_the_exact_number_of_a_few_nodes_is_not_there():
    counts = {len(sketch.marks(f"{key:064x}", names(0, 40))) for key in range(20)}
    assert len(counts) > 3 and max(counts) < 40
    assert len(sketch.marks(KEY, names(0, 40) * 2)) == len(sketch.marks(KEY, names(0, 40)))


def test_numbered_nodes_have_no_names_of_people():
    ring = nx.cycle_graph(6)
    named = nx.relabel_nodes(ring, "ann{}".format)
    assert identity_of([from_networkx(ring)]).names == []
    both = identity_of([from_networkx(graph) for graph in (ring, named)])
    assert sorted(both.names) == [f"ann{number}" for number in range(6)]
    shifted = nx.relabel_nodes(ring, lambda number: number + 7000)  # as ids of customers
    shuffled = random.sample(sorted(shifted.edges), 6)
    assert len(identity_of([from_networkx(nx.Graph(shuffled))]).names) == 6
