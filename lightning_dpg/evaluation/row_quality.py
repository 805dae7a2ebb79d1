"""Private columns of a synthetic graph beside the real ones (reads the private columns)."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lightning_dpg.graph.edge_statistics import mixing_matrices
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
    "of a value; prediction, on the real graph: AUC of a column of two values, else macro F1.",
    "independent: the synthetic rows in a random order on the same edges; noise: what the noise of the",
    "released numbers makes of no association, in 95 of 100. '<' marks a real one that is not above it.",
)
_SEED = 0


class GraphRows(NamedTuple):
    """Edges and rows of one graph.

    Attributes:
        edges: Undirected edges of shape ``(M, 2)``.
        rows: Place of each node's value in the domain of each column, shape ``(N, J)``.
    """

    edges: NDArray[np.int64]
    rows: NDArray[np.int64]


class RowNoise(NamedTuple):
    """Noise of a release of private columns (released).

    Attributes:
        table: Scale of the noise of each cell of the tables of two columns.
        mixing: Scale of the noise of each weight of edges between two values.
        totals: Released weight of all edges, as the mixing of each column has it.
    """

    table: float
    mixing: float
    totals: Sequence[float]


class RowFigure(NamedTuple):
    """One figure of private columns; nan is what it does not have.

    Attributes:
        figure: ``marginal``, ``association``, ``assortativity``, ``degree``, ``prediction`` or
            ``prediction_without_links``.
        columns: Names of its columns.
        value: Value whose nodes are meant; empty for all nodes.
        real: Value of the real graph. A prediction learns from the nodes that it predicts.
        synthetic: Value of the synthetic graph. A prediction learns there, and is tested on the real
            graph.
        error: Total variation distance of marginals, relative error of degrees, else the difference.
        independent: Value of the synthetic graph with its rows in a random order; error of marginals.
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

    Args:
        real: The real graph (private).
        synthetic: The synthetic graph.
        domains: Values of each column (public).
        noise: Noise of the release; None if it is not known.
    """
    mixed = synthetic._replace(rows=np.random.default_rng(_SEED).permutation(synthetic.rows))
    graphs = (real, synthetic, mixed)
    sizes = [len(values) for values in domains.values()]
    names = list(domains)
    figures = [
        *_marginals(graphs, names, sizes),
        *_associations(graphs, names, sizes, noise),
        *_assortativities(graphs, names, sizes, noise),
        *_degrees(graphs, domains),
    ]
    for place, name in enumerate(names):
        figures += _predictions(graphs, name, place, sizes)
    return tuple(figures)


_Graphs = tuple[GraphRows, GraphRows, GraphRows]


def _marginals(graphs: _Graphs, names: Sequence[str], sizes: Sequence[int]) -> Iterator[RowFigure]:
    for place, (name, size) in enumerate(zip(names, sizes, strict=True)):
        real, *others = (graph.rows[:, [place]] for graph in graphs)
        error, control = (total_variation(real, other, [size], 1) for other in others)
        yield RowFigure("marginal", (name,), "", math.nan, math.nan, error, control)


def _associations(
    graphs: _Graphs, names: Sequence[str], sizes: Sequence[int], noise: RowNoise | None
) -> Iterator[RowFigure]:
    found = [pair_association(graph.rows) for graph in graphs]
    drawn = graphs[1].rows
    for pair in combinations(range(len(names)), 2):
        counts = [np.bincount(drawn[:, place], minlength=sizes[place]) for place in pair]
        first, second = (each[each > 0].astype(np.float64) for each in counts)
        bound = math.nan if noise is None else association_noise(first, second, noise.table)
        columns = tuple(names[place] for place in pair)
        yield _compared("association", columns, [float(each[pair]) for each in found], bound)


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
    values = [prediction_score(each, graphs[0], sizes, place) for each in graphs]
    yield _compared("prediction", (name,), values)
    alone = [each._replace(edges=each.edges[:0]) for each in graphs]
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
    sizes = [len(values) for values in method.hparams["domains"].values()]
    scale = float(method.mixing_scale)
    totals = [
        max(float(matrix.sum()), scale)
        for matrix in mixing_matrices(method.mixing.cpu().numpy(), sizes)
    ]
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
