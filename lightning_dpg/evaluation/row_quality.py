"""Private columns of a synthetic graph beside the real ones (reads the private columns)."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lightning_dpg.graph.edge_statistics import Pairs
from lightning_dpg.methods.single_graph.attributed import Attributed
from lightning_dpg.metrics.queries import Answer, relative_error
from lightning_dpg.metrics.rows import (
    association_noise,
    assortativity_noise,
    categorical_assortativity,
    degree_by_category,
    mixing_shares,
    pair_association,
    prediction_score,
    total_variation,
)
from lightning_dpg.pages.page import number

NOT_COMPARED = (
    "private columns: not compared, since the real ones are not given",
    "evaluate RUN reads those of the fit; in Python give its data module",
)
HEAD = ("figure", "of", "real", "synthetic", "error", "independent", "noise")
EXPLANATION = (
    "marginal: total variation distance; association: Cramer's V of two columns; degree: mean of the nodes",
    "of a value; prediction, on the real graph: AUC of a column of two values, else macro F1. Directed and",
    "bipartite graphs: links is Cramer's V of the values of both ends of an edge, and mixing the total",
    "variation distance of the edges by both.",
    "independent: the synthetic rows in a random order on the same edges; noise: what the noise of the",
    "released numbers makes of no association, in 95 of 100. '<' marks a real one that is not above it.",
)
_SEED = 0


class GraphRows(NamedTuple):
    """Edges and rows of one graph.

    Attributes:
        edges: Edges of shape ``(M, 2)``.
        rows: Place of each node's value in the domain of each column, shape ``(N, J)``; -1 where a node
            does not have the column.
        pairs: Columns of both ends that are compared, where these have an order.
    """

    edges: NDArray[np.int64]
    rows: NDArray[np.int64]
    pairs: Pairs = None


class RowNoise(NamedTuple):
    """Noise of a release of private columns (released).

    Attributes:
        table: Scale of the noise of each cell of the tables of two columns.
        mixing: Scale of the noise of each weight of edges between two values.
        totals: Released weight of all edges, as the mixing of each column, or of both ends, has it.
    """

    table: float
    mixing: float
    totals: Sequence[float]


class RowFigure(NamedTuple):
    """One figure of private columns; nan is what it does not have.

    Attributes:
        figure: ``marginal``, ``association``, ``assortativity``, ``mixing``, ``links``, ``degree``,
            ``prediction`` or ``prediction_without_links``.
        columns: Names of its columns.
        value: Value whose nodes are meant; empty for all nodes.
        real: Value of the real graph. A prediction learns from the nodes that it predicts.
        synthetic: Value of the synthetic graph. A prediction learns there, and is tested on the real
            graph.
        error: Total variation distance of marginals and mixing, relative error of degrees, else the
            difference.
        independent: Value of the synthetic graph with its rows in a random order; error of marginals
            and mixing.
        noise: Size of the figure that is not told from none, see :func:`row_figures`.
    """

    figure: str
    columns: tuple[str, ...]
    value: str
    real: float
    synthetic: float
    error: float
    independent: float
    noise: float = math.nan

    @property
    def is_below_noise(self) -> bool:
        """Whether the real association is too weak for the release."""
        return abs(self.real) <= self.noise

    @property
    def of(self) -> str:
        """Columns and value as a text."""
        return " and ".join(self.columns) + (f" = {self.value}" if self.value else "")

    def cells(self) -> list[str]:
        """Return the texts of a line of the table."""
        numbers = (self.real, self.synthetic, self.error, self.independent)
        noise = "" if math.isnan(self.noise) else "<" * self.is_below_noise + number(self.noise)
        return [self.figure.replace("_", " "), self.of, *map(number, numbers), noise]

    def for_json(self) -> dict[str, Any]:
        """Return all fields as plain values."""
        values = self._asdict() | {"value": self.value or None}
        return {**values, "below_noise": self.is_below_noise}


def row_figures(
    real: GraphRows,
    synthetic: GraphRows,
    domains: Mapping[str, Sequence[str]],
    noise: RowNoise | None,
) -> tuple[RowFigure, ...]:
    """Compare the private columns of two graphs, whose nodes need not be the same.

    A control has the synthetic rows in a random order on the same edges. It keeps marginals and
    associations of columns, and has no relation between rows and edges.

    The noise of an association is derived from the release alone. For two columns, it is that of
    :func:`association_noise` with the scale of the released tables and the marginals of the synthetic
    rows. For the assortativity, it is that of :func:`assortativity_noise` with the scale and the sum
    of the released mixing, and the ends of edges of each value in the synthetic graph. A real
    association that is not larger is marked: the release cannot tell it from none. Values that no
    synthetic row has are left out. Fits and rewiring behind the noise are not part of it.

    Where ends have an order, :func:`association_noise` with the scale and sum of the mixing is that of
    the links of both values, in place of the assortativity. Columns that nodes lack are not predicted.

    Args:
        real: The real graph (private).
        synthetic: The synthetic graph.
        domains: Values of each column (public).
        noise: Noise of the release; None if it is not known.
    """
    graphs = (real, synthetic, synthetic._replace(rows=_shuffled(synthetic.rows)))
    sizes = [len(values) for values in domains.values()]
    names = list(domains)
    of_edges = _assortativities if real.pairs is None else _links
    figures = [
        *_marginals(graphs, names, sizes),
        *_associations(graphs, names, sizes, noise),
        *of_edges(graphs, names, sizes, noise),
        *_degrees(graphs, domains),
    ]
    for place, name in enumerate(names if (real.rows >= 0).all() else ()):
        figures += _predictions(graphs, name, place, sizes)
    return tuple(figures)


_Graphs = tuple[GraphRows, GraphRows, GraphRows]


def _shuffled(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows in a random order, each at a node that has the same columns."""
    order = np.random.default_rng(_SEED).permutation(len(rows))
    sides = (rows < 0) @ (1 << np.arange(rows.shape[1]))
    mixed = rows.copy()
    mixed[np.argsort(sides, kind="stable")] = rows[order[np.argsort(sides[order], kind="stable")]]
    return mixed


def _having(rows: NDArray[np.int64], columns: Sequence[int]) -> NDArray[np.int64]:
    """Return some columns of the nodes that have all of them, shape ``(N', C)``."""
    found = rows[:, columns]
    return found[(found >= 0).all(axis=1)]


def _marginals(graphs: _Graphs, names: Sequence[str], sizes: Sequence[int]) -> Iterator[RowFigure]:
    for place, (name, size) in enumerate(zip(names, sizes, strict=True)):
        real, *others = (_having(graph.rows, [place]) for graph in graphs)
        error, control = (total_variation(real, other, [size], 1) for other in others)
        yield RowFigure("marginal", (name,), "", math.nan, math.nan, error, control)


def _associations(
    graphs: _Graphs, names: Sequence[str], sizes: Sequence[int], noise: RowNoise | None
) -> Iterator[RowFigure]:
    for pair in combinations(range(len(names)), 2):
        both = [_having(graph.rows, pair) for graph in graphs]
        if any(map(len, both)):  # no columns of two sides
            columns = tuple(names[place] for place in pair)
            scale = None if noise is None else noise.table
            yield _associated("association", columns, both, scale)


def _links(
    graphs: _Graphs, names: Sequence[str], sizes: Sequence[int], noise: RowNoise | None
) -> Iterator[RowFigure]:
    """Yield what the values of both ends of the edges have to do with each other."""
    for count, pair in enumerate(graphs[0].pairs or ()):
        both = [graph.rows[graph.edges, pair] for graph in graphs]
        columns, of_pair = tuple(names[place] for place in pair), [sizes[place] for place in pair]
        error, control = (total_variation(both[0], other, of_pair, 2) for other in both[1:])
        yield RowFigure("mixing", columns, "", math.nan, math.nan, error, control)
        scale, total = (None, 1.0) if noise is None else (noise.mixing, noise.totals[count])
        yield _associated("links", columns, both, scale, total)


def _associated(
    figure: str,
    columns: tuple[str, ...],
    tables: Sequence[NDArray[np.int64]],
    scale: float | None,
    total: float | None = None,
) -> RowFigure:
    """Compare the associations of tables of two columns, whose noise is that of a released table.

    Args:
        figure: Name of the figure.
        columns: Names of the columns.
        tables: Rows of shape ``(M, 2)`` of each graph.
        scale: Scale of the noise of the released table; None if it is not known.
        total: Sum of the released table; by default the number of rows.
    """
    values = [float(pair_association(table)[0, 1]) for table in tables]
    counts = [np.unique(column, return_counts=True)[1].astype(float) for column in tables[1].T]
    if total is not None:
        counts = [each * (total / max(each.sum(), 1)) for each in counts]
    bound = math.nan if scale is None else association_noise(counts[0], counts[1], scale)
    return _compared(figure, columns, values, bound)


def _assortativities(
    graphs: _Graphs, names: Sequence[str], sizes: Sequence[int], noise: RowNoise | None
) -> Iterator[RowFigure]:
    for place, name in enumerate(names):
        values = [categorical_assortativity(each.edges, each.rows[:, place]) for each in graphs]
        bound = math.nan
        if noise is not None:
            drawn = graphs[1]
            ends = mixing_shares(drawn.edges, drawn.rows[:, place], sizes[place]).sum(axis=0)
            bound = assortativity_noise(ends[ends > 0], noise.totals[place], noise.mixing)
        yield _compared("assortativity", (name,), values, bound)


def _degrees(graphs: _Graphs, domains: Mapping[str, Sequence[str]]) -> Iterator[RowFigure]:
    for place, (name, values) in enumerate(domains.items()):
        found = [
            degree_by_category(each.edges, each.rows[:, place], len(values)) for each in graphs
        ]
        for value, (real, synthetic, control) in zip(values, zip(*found, strict=True), strict=True):
            if not (math.isnan(real) and math.isnan(synthetic)):
                error = relative_error(float(real), float(synthetic))
                yield RowFigure(
                    "degree", (name,), value, float(real), float(synthetic), error, float(control)
                )


def _predictions(
    graphs: _Graphs, name: str, place: int, sizes: Sequence[int]
) -> Iterator[RowFigure]:
    """Yield predictions of a column by what was learned on each graph, with and without links."""
    linked = [(each.edges, each.rows) for each in graphs]
    values = [prediction_score(each, linked[0], sizes, place) for each in linked]
    yield _compared("prediction", (name,), values)
    alone = [(each.edges[:0], each.rows) for each in graphs]
    values = [prediction_score(each, alone[0], sizes, place) for each in alone]
    yield _compared("prediction_without_links", (name,), values)


def _compared(
    figure: str, columns: tuple[str, ...], values: Sequence[float], noise: float = math.nan
) -> RowFigure:
    real, synthetic, control = values
    return RowFigure(figure, columns, "", real, synthetic, abs(real - synthetic), control, noise)


def noise_of(method: Attributed, statement: Mapping[str, Any]) -> RowNoise | None:
    """Return the noise of a release; None if its statement does not list the read of tables.

    Args:
        method: The method, around its released tensors.
        statement: Privacy statement of the release.
    """
    entries = {entry["key"]: entry for entry in statement.get("entries", ()) if "key" in entry}
    tables = entries.get("row_tables")
    if tables is None:
        return None
    scale = float(method.mixing_scale)
    totals = [max(float(each.counts.sum()), scale) for each in method.noisy_mixing]
    return RowNoise(float(tables["sensitivity"]) / float(tables["epsilon"]), scale, totals)


def row_answers(figures: Sequence[RowFigure]) -> dict[str, Answer]:
    """Return the figures as answers to queries, with rows of the control, for files of all queries."""
    answers = {}
    for each in figures:
        name = f"{each.figure} of {each.of}"
        noise = f"{'not above' if each.is_below_noise else 'above'} noise {number(each.noise)}"
        note = "" if math.isnan(each.noise) else noise
        answers[name] = Answer(each.real, each.synthetic, each.error, note)
        if each.figure == "marginal":
            control = Answer(math.nan, math.nan, each.independent)
        else:
            control = Answer(each.real, each.independent, abs(each.real - each.independent))
        answers[f"{name}, independent rows"] = control
    return answers
