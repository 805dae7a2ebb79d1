"""Guesses of the private row of a person, from a release with drawn rows (reads the private rows).

Each guess uses the release and what its attacker knows of the person. An attacker who knows nothing
guesses the most frequent value of the release, which is the prior.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lightning_dpg.apps.audit.link_stealing import Estimate, proportion
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.graph.drawn_tables import rows_of
from lightning_dpg.graph.edge_statistics import mixing_matrices
from lightning_dpg.graph.graph import places_of, undirected_edges
from lightning_dpg.graph.mixing import NoisyMixing, fitted_mixing
from lightning_dpg.methods.single_graph.attributed import Attributed
from lightning_dpg.release.release import Release

_LEAST = 0.5  # ends of edges between two values; released mixing may have none
_SMALLEST = 1e-12


class RowGuess(NamedTuple):
    """Guesses of one column for all persons.

    Attributes:
        column: Name of the column.
        knowledge: ``name``, ``degree`` or ``neighbors``.
        prior: Share of the persons who have the most frequent value of the release.
        release: Share of the persons of whom the guess is right, with its interval.
    """

    column: str
    knowledge: str
    prior: float
    release: Estimate

    @property
    def is_better(self) -> bool:
        """Whether the guesses are right more often than the prior, beyond the interval."""
        return self.release.low > self.prior

    def for_json(self) -> dict[str, Any]:
        """Return all fields as plain values."""
        return {**self._asdict(), "release": self.release._asdict(), "better": self.is_better}


def guess_rows(release: Release, real: EdgeListDataModule) -> list[RowGuess]:
    """Guess each private column of each person in three ways.

    * ``name``: the row beside the name in the synthetic graph of seed 0. Where names are numbers, the
      attacker has the key of the owner.
    * ``degree``: the most likely value in the released tables, given the class of the true degree.
    * ``neighbors``: the most likely value given this class, and the true values of all true neighbors,
      by the released mixing. Neighbors count as independent of each other.

    The last attacker knows all edges and the rows of all others, as differential privacy assumes. It
    may be right without a leak of anybody's own row: that linked persons are alike is learned from
    all others.

    Args:
        release: Release of :class:`Attributed`, opened.
        real: Data of its fit (private).

    Returns:
        Guesses by column and knowledge. Those by name are left out if the nodes have other names, and
        all are if the columns or the number of nodes differ.
    """
    method, columns, graph = release.method, real.private_columns, release.sample(0)
    assert isinstance(method, Attributed)
    domains, drawn = method.hparams["domains"], rows_of(graph)
    is_known = columns is not None and columns.domains == domains
    if columns is None or drawn is None or not is_known or len(columns.values) != len(drawn.values):
        return []
    edges, rows = undirected_edges(real.graph).numpy(), columns.values.numpy()
    joint, num_nodes = method.joint.cpu().numpy(), len(rows)
    groups = method.groups(np.bincount(edges.ravel(), minlength=num_nodes))
    drawn_degrees = np.bincount(undirected_edges(graph).numpy().ravel(), minlength=num_nodes)
    order = places_of(real.graph.node_names, graph.node_names)
    beside = None if order is None else drawn.values[order.numpy()]
    mixing = mixing_matrices(method.mixing.cpu().numpy(), [*map(len, domains.values())])
    found = []
    for place, (column, matrix) in enumerate(zip(domains, mixing, strict=True)):
        values = rows[:, place]
        others = tuple(axis for axis in range(1, joint.ndim) if axis != place + 1)
        by_group = joint.sum(axis=others)
        totals = np.bincount(drawn.values[:, place], drawn_degrees, minlength=len(matrix))
        noisy = NoisyMixing(matrix, float(method.mixing_scale))
        links = fitted_mixing(noisy, totals.astype(np.int64))
        guesses = {} if beside is None else {"name": beside[:, place]}
        guesses["degree"] = by_group[groups].argmax(axis=1)
        guesses["neighbors"] = by_neighbors(by_group[groups], links, edges, values)
        prior = float((values == by_group.sum(axis=0).argmax()).mean())
        for knowledge, guessed in guesses.items():
            right = proportion(float((guessed == values).sum()), num_nodes)
            found.append(RowGuess(column, knowledge, prior, right))
    return found


def by_neighbors(
    before: NDArray[np.float64],
    links: NDArray[np.float64],
    edges: NDArray[np.int64],
    values: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Guess the value of each node by those of its neighbors.

    Args:
        before: Weight of each value before the neighbors are looked at, shape ``(N, K)``.
        links: Edges between values, the larger one in the row, shape ``(K, K)``.
        edges: Edges that the attacker knows, shape ``(M, 2)``.
        values: Value of each node, of which its neighbors' are known, shape ``(N,)``.

    Returns:
        Guesses of shape ``(N,)``.
    """
    num_nodes, size = before.shape
    ends = np.tril(links) + np.tril(links).T + _LEAST
    shares = np.log(ends / ends.sum(axis=1, keepdims=True))  # of a neighbor, given the own value
    both = np.concatenate([edges, edges[:, ::-1]])
    cells = both[:, 0] * size + values[both[:, 1]]
    around = np.bincount(cells, minlength=num_nodes * size).reshape(num_nodes, size)
    guessed = np.log(np.maximum(before, _SMALLEST)) + around @ shares.T
    return np.asarray(guessed.argmax(axis=1), dtype=np.int64)
