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
from lightning_dpg.graph.graph import places_of
from lightning_dpg.graph.mixing import wanted_mixing
from lightning_dpg.graph.pair_space import space_of
from lightning_dpg.graph.stubs import ends_of_links
from lightning_dpg.methods.single_graph.attributed import Attributed
from lightning_dpg.methods.single_graph.bter import degree_classes
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
      by the released mixing. Neighbors, and the columns of a bipartite graph, count as independent of
      each other.

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
    is_known = columns is not None and columns.domains == domains and real.kind == method.kind
    if columns is None or drawn is None or not is_known or len(columns.values) != len(drawn.values):
        return []
    space = space_of(real.graph)
    edges, rows = space.edges(real.graph).numpy(), columns.shown(space.num_left).numpy()
    order = places_of(real.graph.node_names, graph.node_names)
    beside = None if order is None else drawn.values[order.numpy()]
    around = _of_neighbors(method, edges, rows, space_of(graph).edges(graph).numpy(), drawn.values)
    degrees, names, found = np.bincount(edges.ravel(), minlength=len(rows)), list(domains), []
    for side, of_class, joint in method.joints():
        classes = np.minimum(degree_classes(degrees[side.nodes]), len(of_class) - 1)
        for axis, place in enumerate(side.columns, start=1):
            values = rows[side.nodes, place]
            others = tuple(each for each in range(1, joint.ndim) if each != axis)
            by_group = joint.sum(axis=others) * np.isin(np.arange(len(joint)), of_class)[:, None]
            before = by_group[of_class[classes]]
            guesses = {} if beside is None else {"name": beside[side.nodes, place]}
            guesses["degree"] = before.argmax(axis=1)
            guesses["neighbors"] = by_neighbors(before, around[place][side.nodes])
            prior = float((values == by_group.sum(axis=0).argmax()).mean())
            for knowledge, guessed in guesses.items():
                right = proportion(float((guessed == values).sum()), len(values))
                found.append(RowGuess(names[place], knowledge, prior, right))
    return found


def _of_neighbors(
    method: Attributed,
    edges: NDArray[np.int64],
    rows: NDArray[np.int64],
    synthetic: NDArray[np.int64],
    drawn: NDArray[np.int64],
) -> list[NDArray[np.float64]]:
    """Return the log-likelihood of all neighbors of each node for each value, by column."""
    found = [np.zeros((len(rows), len(values))) for values in method.hparams["domains"].values()]
    for place, noisy in enumerate(method.noisy_mixing):
        one, other = noisy.pair or (place, place)
        links = wanted_mixing(noisy, noisy.of(synthetic, drawn[:, one], drawn[:, other]))
        if noisy.pair is None:
            both = np.concatenate([edges, edges[:, ::-1]])
            found[one] += likelihoods(ends_of_links(links), both, rows[:, one])
        else:
            found[one] += likelihoods(links, edges, rows[:, other])
            found[other] += likelihoods(links.T, edges[:, ::-1], rows[:, one])
    return found


def likelihoods(
    ends: NDArray[np.float64], edges: NDArray[np.int64], values: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the log-likelihood of the neighbors of each node for each of its values.

    Args:
        ends: Ends of edges between own values and values of neighbors, shape ``(K, L)``.
        edges: Nodes and neighbors that the attacker knows, shape ``(M, 2)``.
        values: Value of each node as a neighbor, shape ``(N,)``.

    Returns:
        Logarithms of shape ``(N, K)``.
    """
    num_nodes, size = len(values), ends.shape[1]
    shares = np.log((ends + _LEAST) / (ends + _LEAST).sum(axis=1, keepdims=True))
    cells = edges[:, 0] * size + values[edges[:, 1]]
    around = np.bincount(cells, minlength=num_nodes * size).reshape(num_nodes, size)
    return np.asarray(around @ shares.T)


def by_neighbors(before: NDArray[np.float64], around: NDArray[np.float64]) -> NDArray[np.int64]:
    """Guess the value of each node by those of its neighbors.

    Args:
        before: Weight of each value before the neighbors are looked at, shape ``(N, K)``.
        around: Log-likelihood of the neighbors for each value, see :func:`likelihoods`, ``(N, K)``.

    Returns:
        Guesses of shape ``(N,)``.
    """
    return np.asarray((np.log(np.maximum(before, _SMALLEST)) + around).argmax(axis=1))
