"""A release of a database beside the real one: keys, cardinalities, columns and degrees across kinds."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar, NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray
from scipy.stats import ks_2samp, spearmanr
from torch_geometric.data import Data

from lightning_dpg.datamodules.database import DatabaseDataModule
from lightning_dpg.evaluation.evaluate import evaluate_releases
from lightning_dpg.evaluation.evaluation import Evaluation
from lightning_dpg.evaluation.node_classification import NamedGraph
from lightning_dpg.evaluation.page import SHOWN_GROUPS, closeness, view
from lightning_dpg.graph.drawn_tables import DrawnRows, rows_of
from lightning_dpg.graph.pair_space import space_of
from lightning_dpg.pages.page import Table, number, render
from lightning_dpg.pages.report import Report
from lightning_dpg.release.database import DatabaseRelease, schema_picture
from lightning_dpg.run_folder import KINDS, release_in


class Figure(NamedTuple):
    """One comparison of the real database and the synthetic one.

    Attributes:
        kind: Kind of relation, or node table.
        what: What is compared.
        real: Value of the real database.
        synthetic: Value of the synthetic one.
        error: Distance of both: 0 is best.
        control: The same distance of a control that knows no dependence; None without one.
    """

    kind: str
    what: str
    real: float
    synthetic: float
    error: float
    control: float | None = None


class _Kind(NamedTuple):
    """Relations of one kind (private, or drawn).

    Attributes:
        edges: Pairs of places in the node tables at both ends, shape ``(M, 2)``.
        rows: Place of the value of each node in its domain, by table and column.
    """

    edges: NDArray[np.int64]
    rows: dict[str, dict[str, NDArray[np.int64]]]


@dataclass(frozen=True, repr=False)
class DatabaseEvaluation(Report):
    """Result of :func:`evaluate_database`.

    Attributes:
        keys: Share of keys of the synthetic tables that refer to a row, by kind and key.
        cardinalities: Relations of a node, by kind and node table: means, and the distance of
            Kolmogorov and Smirnov.
        mixing: Edges by the values of their ends, by kind and pair of columns: how far both columns are
            from independent ones, and the total variation of both tables.
        degrees: Rank correlation of the degrees of a node in two kinds.
        kinds: Each kind as a graph of its own, by all queries.
        schema: Picture of the node tables and kinds.
    """

    keys: tuple[Figure, ...]
    cardinalities: tuple[Figure, ...]
    mixing: tuple[Figure, ...]
    degrees: tuple[Figure, ...]
    kinds: dict[str, Evaluation]
    schema: Markup
    title: ClassVar[str] = "Quality of a synthetic database"
    not_private: ClassVar[str] = "not private: the numbers were computed from the real database"

    @property
    def values(self) -> dict[str, Any]:
        """All figures by the group, and by kind and name."""
        found: dict[str, Any] = {
            group: {f"{each.kind}: {each.what}": each._asdict() for each in getattr(self, group)}
            for group in ("keys", "cardinalities", "mixing", "degrees")
        }
        return found | {"kinds": {kind: each.values for kind, each in self.kinds.items()}}

    def _parts(self) -> dict[str, Any]:
        return super()._parts() | {"pictures": [("Schema", self.schema)]}

    def to_html_text(self) -> str:
        """Return the page: what is said across kinds, and then each kind as a graph of its own."""
        kinds = [(kind, view(each.real, each.measured)) for kind, each in self.kinds.items()]
        return render("database", self._parts() | {"kinds": kinds})

    def sections(self) -> Sequence[Table]:
        """Return a table for each group."""
        head, left = ("kind", "", "real", "synthetic", "error"), (0, 1)
        by_groups = [
            (kind, *(closeness(one, group) for group in SHOWN_GROUPS))
            for kind, each in self.kinds.items()
            for one in each.measured
        ]
        across = [
            (*cells, number(figure.control))
            for cells, figure in zip(_cells(self.mixing), self.mixing, strict=True)
        ]
        said = _CAPTIONS
        return [
            Table("Keys", said["keys"], head, _cells(self.keys), (), left),
            Table(
                "Cardinalities", said["cardinalities"], head, _cells(self.cardinalities), (), left
            ),
            Table("Columns across kinds", said["mixing"], (*head, "independent"), across, (), left),
            Table(
                "Each kind by its own queries", said["kinds"], ("kind", *SHOWN_GROUPS), by_groups
            ),
            Table("Degrees across kinds", said["degrees"], head, _cells(self.degrees), (), left),
        ]


_CAPTIONS = {
    "keys": "Share of keys that refer to a row.",
    "cardinalities": "Relations of a node: mean, and the distance of Kolmogorov and Smirnov of both distributions.",
    "mixing": "Edges by the values of their ends: distance from independent columns, and total variation of both tables. The last column is that of drawn columns that are independent.",
    "kinds": "Queries with an error of at most 0.1, or an agreement of at least 0.9, of those with a number.",
    "degrees": "Rank correlation of the numbers of relations of a node in two kinds.",
}


def _cells(figures: Sequence[Figure]) -> list[tuple[str, ...]]:
    return [
        (each.kind, each.what, *map(number, (each.real, each.synthetic, each.error)))
        for each in figures
    ]


def evaluate_database(
    data: DatabaseDataModule, release: DatabaseRelease, seed: int = 0
) -> DatabaseEvaluation:
    """Compare a synthetic database with the real one. Reads private tables: nothing is private.

    Args:
        data: The real database.
        release: The release.
        seed: Public seed of the synthetic database.

    Returns:
        The figures; ``str(evaluation)`` is a text for people.

    Raises:
        CommandError: If a table is not readable.

    Example:
        >>> import lightning_dpg as dpg
        >>> bank = dpg.open_database("runs/database/version_0")  # doctest: +SKIP
        >>> dpg.evaluate_database(DatabaseDataModule("schema.yaml"), bank)  # doctest: +SKIP
    """
    data.setup("fit")
    facts = release.statement
    sizes = {table: about["size"] for table, about in facts["nodes"].items()}
    graphs = release.sample(seed)
    real, synthetic = _real(data, facts), _synthetic(release, graphs)
    keys, cardinalities = zip(*_of_keys(facts, real, synthetic, sizes), strict=True)
    return DatabaseEvaluation(
        keys,
        cardinalities,
        tuple(_columns(facts, real, synthetic)),
        tuple(_degrees(facts, real, synthetic, sizes)),
        {kind: _as_graph(data, release, kind, drawn) for kind, drawn in graphs.items()},
        schema_picture(facts),
    )


def _as_graph(
    data: DatabaseDataModule, release: DatabaseRelease, kind: str, drawn: Data
) -> Evaluation:
    """Compare a kind as a graph of its own, whose nodes are known if the key of its run is there."""
    real, part = data.relation(kind), release.kinds[kind]
    run = release_in(release.folder.parent / KINDS / kind)
    named = NamedGraph(kind, drawn, part.guarantee, part.statement, run if run.is_dir() else part)
    found = evaluate_releases(real, named, kind=real.kind)
    assert isinstance(found, Evaluation)
    return found


def _real(data: DatabaseDataModule, facts: Mapping[str, Any]) -> dict[str, _Kind]:
    """Return the real relations of each kind (private)."""
    found = {}
    for kind, of in facts["relations"].items():
        module = data.relation(kind)
        columns = module.private_columns
        rows = None if columns is None else DrawnRows(columns.domains, columns.values.numpy())
        found[kind] = _kind(of, module.graph, rows, () if columns is None else columns.right)
    return found


def _synthetic(release: DatabaseRelease, graphs: Mapping[str, Data]) -> dict[str, _Kind]:
    """Return the drawn relations of each kind."""
    found = {}
    for kind, graph in graphs.items():
        right = release.kinds[kind].method.hparams.get("right_columns") or ()
        found[kind] = _kind(release.statement["relations"][kind], graph, rows_of(graph), right)
    return found


def _kind(
    of: Mapping[str, Any], graph: Data, columns: DrawnRows | None, right: Sequence[str]
) -> _Kind:
    """Arrange the relations of a kind by the node tables at both ends."""
    first, second = of["between"]
    space = space_of(graph)
    start = space.num_left or 0
    rows: dict[str, dict[str, NDArray[np.int64]]] = {first: {}, second: {}}
    for name, column in (
        () if columns is None else zip(columns.domains, columns.values.T, strict=False)
    ):
        table, nodes = (
            (second, slice(start, None)) if name in right else (first, slice(space.num_left))
        )
        rows[table][name.removeprefix(f"{table}.")] = column[nodes]
    return _Kind(space.edges(graph).numpy() - np.array([0, start]), rows)


def _degrees_of(kind: _Kind, of: Mapping[str, Any], table: str, size: int) -> NDArray[np.int64]:
    """Count the relations of each node of a table in a kind, shape ``(N,)``."""
    ends = [kind.edges[:, place] for place, name in enumerate(of["between"]) if name == table]
    return np.bincount(np.concatenate(ends), minlength=size)


def _of_keys(
    facts: Mapping[str, Any],
    real: Mapping[str, _Kind],
    drawn: Mapping[str, _Kind],
    sizes: Mapping[str, int],
) -> Iterator[tuple[Figure, Figure]]:
    """Compare each key of each kind: the share that refers to a row, and the relations of a node."""
    for kind, of in facts["relations"].items():
        for place, (table, key) in enumerate(zip(of["between"], of["keys"], strict=True)):
            ends = [each[kind].edges[:, place] for each in (real, drawn)]
            share = (
                float(np.mean((ends[1] >= 0) & (ends[1] < sizes[table]))) if len(ends[1]) else 1.0
            )
            both = [np.bincount(each, minlength=sizes[table]) for each in ends]
            error = float(ks_2samp(*both, method="asymp").statistic)
            means = [float(each.mean()) for each in both]
            yield (
                Figure(kind, f"{key} in {table}", 1.0, share, 1.0 - share),
                Figure(kind, key, means[0], means[1], error),
            )


def _columns(
    facts: Mapping[str, Any], real: Mapping[str, _Kind], drawn: Mapping[str, _Kind]
) -> Iterator[Figure]:
    """Compare edges by the values of their ends, for each column of one table and of the other."""
    for kind, of in facts["relations"].items():
        first, second = of["between"]
        for one in real[kind].rows[first]:
            for other in real[kind].rows[second]:
                if first == second and one != other:
                    continue
                if other not in drawn[kind].rows[second] or one not in drawn[kind].rows[first]:
                    continue
                both = [
                    [each[kind].rows[first][one], each[kind].rows[second][other]]
                    for each in (real, drawn)
                ]
                shape = [
                    1 + max(int(each.max(initial=0)) for each in end)
                    for end in zip(*both, strict=True)
                ]
                tables = [
                    _shares(each[kind].edges, values, shape)
                    for each, values in zip((real, drawn), both, strict=True)
                ]
                chance = np.outer(tables[1].sum(axis=1), tables[1].sum(axis=0))
                error, control = (
                    np.abs(tables[0] - each).sum() / 2 for each in (tables[1], chance)
                )
                first_of, second_of = map(_dependence, tables)
                what = f"{first}.{one}, {second}.{other}"
                yield Figure(kind, what, first_of, second_of, float(error), float(control))


def _shares(
    edges: NDArray[np.int64], values: Sequence[NDArray[np.int64]], shape: Sequence[int]
) -> NDArray[np.float64]:
    """Return the share of edges between each pair of values of two columns."""
    cells = values[0][edges[:, 0]] * shape[1] + values[1][edges[:, 1]]
    return np.bincount(cells, minlength=math.prod(shape)).reshape(shape) / max(len(cells), 1)


def _dependence(shares: NDArray[np.float64]) -> float:
    """Return the total variation of a table and of the product of its margins."""
    return float(np.abs(shares - np.outer(shares.sum(axis=1), shares.sum(axis=0))).sum() / 2)


def _degrees(
    facts: Mapping[str, Any],
    real: Mapping[str, _Kind],
    drawn: Mapping[str, _Kind],
    sizes: Mapping[str, int],
) -> Iterator[Figure]:
    """Compare the rank correlation of the degrees of a node in two kinds, for each table in several."""
    relations = facts["relations"]
    for table in facts["nodes"]:
        touching = [kind for kind, of in relations.items() if table in of["between"]]
        for one, other in combinations(touching, 2):
            both = []
            for each in (real, drawn):
                degrees = [
                    _degrees_of(each[kind], relations[kind], table, sizes[table])
                    for kind in (one, other)
                ]
                is_constant = min(map(np.ptp, degrees)) == 0
                both.append(math.nan if is_constant else float(spearmanr(*degrees).statistic))
            yield Figure(table, f"{one}, {other}", both[0], both[1], abs(both[0] - both[1]))
