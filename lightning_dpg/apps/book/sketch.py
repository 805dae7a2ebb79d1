r"""Keyed sketches of the names of nodes, by which a book sees that two data sets are on the same people.

The fingerprint of the nodes finds equal node sets only, and next month's file has some new customers
and lacks some old ones. A sketch estimates how much two node sets overlap.

**Sketch.** Each name has a *mark*: the first 64 bits of its HMAC-SHA-256 under the key of the book. The
sketch holds the 256 smallest marks (bottom-k; Cohen and Kaplan, "Summarizing data using bottom-k
sketches", 2007), and none of the upper half of all marks: of small data a random half is left out.

**Overlap.** Two sketches A and B are complete up to the smaller one of their bounds. Below it they are
samples of both node sets by the same coins. :math:`|A \cap B| / \min(|A|, |B|)`, counted up to that
bound, estimates how much of the smaller node set lies in the larger one. Sets without a common name
have an estimate of 0. For sets of one size, of 256 nodes and more, an overlap of one half is estimated
with a standard deviation of .03.

**What a sketch leaks.**

* *Without the key: nothing.* The marks are filled up to 256 and hidden under a key stream with a nonce
  of its own. A sketch of any data is 2,064 random bytes, and two sketches of the same data have
  nothing in common.
* *With the key*, which lies in the same book: about how many nodes there are (the 256th mark lies at
  :math:`256 / N`, up to 6 %; of fewer than some 500 nodes, about half of the marks are there, and their
  number is random; the exact number is not there). Whether a guessed name is among the 256 smallest
  marks: whoever tries all possible names finds 256 nodes of the data, and half of the nodes of small
  data. How much two data sets overlap. Nothing of the edges.

A book is as private as its data for that reason, and no part of it is in a release.

**Numbered nodes** are no people: the node 7 of one graph is not the node 7 of another one. Data whose
nodes are only numbers from 0 on have an empty sketch, which overlaps with none.
"""

import base64
import hmac
import secrets
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lightning_dpg.apps.book.database import Database
from lightning_dpg.apps.book.identity import Fingerprint
from lightning_dpg.apps.book.state import DataSet
from lightning_dpg.apps.book.store import data_set, secret, state_of
from lightning_dpg.privacy.events import Relation

Marks = NDArray[np.uint64]
"""Marks of a sketch in ascending order, at most :data:`SIZE`."""

SIZE = 256

NOBODY: Marks = np.empty(0, dtype=np.uint64)
"""Sketch of data whose nodes have no names, or of data that an earlier version has registered."""

_SAME_PEOPLE = 0.5  # share of the smaller node set above which both are taken for the same people
_UPPER_HALF = 2**63
_FILLER = 2**64 - 1
_NONCE = 16


def marks(key: str, names: Sequence[str]) -> Marks:
    """Smallest marks of the names of nodes.

    Args:
        key: Secret of a book, as hexadecimal digits.
        names: Names of nodes (private); one that occurs twice counts once.
    """
    secret, digest = bytes.fromhex(key), hmac.digest
    encoded = (b"node\0" + name.encode("utf-8", "surrogatepass") for name in names)
    heads = b"".join([digest(secret, name, "sha256")[:8] for name in encoded])
    values = np.frombuffer(heads, dtype="<u8").astype(np.uint64)
    return np.unique(values[values < _UPPER_HALF])[:SIZE]


def seal(key: str, sketch: Marks) -> str:
    """Text of a sketch, which nobody can tell from random bytes without the key.

    Args:
        key: Secret of a book, as hexadecimal digits.
        sketch: Its marks.
    """
    filled = np.full(SIZE, _FILLER, dtype="<u8")
    filled[: len(sketch)] = sketch
    nonce = secrets.token_bytes(_NONCE)
    hidden = np.frombuffer(filled.tobytes(), np.uint8) ^ _stream(key, nonce)
    return base64.b64encode(nonce + hidden.tobytes()).decode()


def unseal(key: str, text: str) -> Marks:
    """Marks of a sealed sketch.

    Args:
        key: Secret of the book, as hexadecimal digits.
        text: The sealed sketch.
    """
    content = base64.b64decode(text)
    hidden = np.frombuffer(content[_NONCE:], np.uint8)
    values = np.frombuffer((hidden ^ _stream(key, content[:_NONCE])).tobytes(), dtype="<u8")
    return values[values < _UPPER_HALF].astype(np.uint64)


def overlap(one: Marks, other: Marks) -> float:
    r"""Estimate how much of the smaller of two node sets lies in the other one.

    Args:
        one: Marks of a node set.
        other: Marks of another one.

    Returns:
        :math:`|A \cap B| / \min(|A|, |B|)` in [0, 1]; 0 if a sketch is empty.
    """
    bound = min(_bound(one), _bound(other))
    first, second = one[one <= bound], other[other <= bound]
    smaller = min(len(first), len(second))
    return len(np.intersect1d(first, second, assume_unique=True)) / smaller if smaller else 0.0


def same_edges(database: Database, name: str) -> list[DataSet]:
    """Other data sets that hold the same edges, in any version that was registered or read.

    They have another relation, since one total covers all runs of one relation.

    Args:
        database: The book.
        name: Data set.
    """
    state = state_of(database)
    return [
        dataset
        for dataset in state.data_sets.values()
        if dataset.name != name and not state.edges[name].isdisjoint(state.edges[dataset.name])
    ]


def same_people(
    database: Database, data: Fingerprint, people: Marks, *relations: str
) -> list[DataSet]:
    """Data sets on the same people; the one with most common nodes comes first.

    They have a total of one of the relations, other edges, and more than half of the nodes of the
    smaller node set. Private columns are of people, whatever links them: for the relation
    ``attributes``, edges may be the same.
    Lines of earlier versions have no sketch: for them, only equal node sets are found.

    Args:
        database: The book.
        data: Fingerprint of data.
        people: Sketch of the names of their nodes.
        relations: Neighboring relations of a run or of totals.
    """
    shared = []
    for dataset in state_of(database).data_sets.values():
        is_known = dataset.edges == data.edges and Relation.ATTRIBUTES not in relations
        if is_known or not {*relations} & {*dataset.relations}:
            continue
        is_equal = dataset.nodes == data.nodes
        share = 1.0 if is_equal else overlap(_people_of(database, dataset), people)
        if share > _SAME_PEOPLE:
            shared.append((not is_equal, -share, dataset))
    return [dataset for *_, dataset in sorted(shared, key=lambda each: each[:2])]


def same_people_as(database: Database, name: str, *relations: str) -> list[DataSet]:
    """Other data sets with a total of some relations, on the people of a data set.

    Args:
        database: The book.
        name: Data set.
        *relations: Relations of the totals.
    """
    dataset = data_set(database, name)
    people = _people_of(database, dataset)
    known = Fingerprint(dataset.edges, dataset.nodes)
    return [each for each in same_people(database, known, people, *relations) if each.name != name]


def same_nodes(database: Database, name: str) -> list[DataSet]:
    """Other data sets on the people of a data set, with other edges and another relation of edges.

    Args:
        database: The book.
        name: Data set.
    """
    dataset = data_set(database, name)
    others = {*Relation} - {dataset.relation, Relation.ATTRIBUTES}
    if others.isdisjoint(each.relation for each in state_of(database).data_sets.values()):
        return []
    known = [each.name for each in same_edges(database, name)]
    return [each for each in same_people_as(database, name, *others) if each.name not in known]


def _people_of(database: Database, dataset: DataSet) -> Marks:
    """Sketch of the names of the nodes of a data set."""
    return unseal(secret(database), dataset.sketch) if dataset.sketch else NOBODY


def _bound(sketch: Marks) -> int:
    """Largest mark up to which a sketch holds all marks of its node set."""
    return int(sketch[-1]) if len(sketch) == SIZE else _UPPER_HALF


def _stream(key: str, nonce: bytes) -> NDArray[np.uint8]:
    """Bytes that hide the marks of one sketch: HMAC-SHA-256 of its nonce and a counter."""
    blocks = (
        hmac.digest(bytes.fromhex(key), b"sketch\0" + nonce + bytes([block]), "sha256")
        for block in range(SIZE * 8 // 32)
    )
    return np.frombuffer(b"".join(blocks), np.uint8)
