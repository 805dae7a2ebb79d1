"""Drawn transfers of a synthetic graph beside the real ones (reads the private transfers)."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lightning_dpg.graph.kind import CENTS, Kind
from lightning_dpg.graph.transfer_counts import (
    Counted,
    Window,
    count_days,
    count_gaps,
    count_hours,
    count_new_pairs,
    counted_transfers,
    node_sums,
)
from lightning_dpg.metrics.pictures import GraphTransfers
from lightning_dpg.metrics.queries import Answer
from lightning_dpg.metrics.transfers import (
    curve_distance,
    growth_distance,
    strength_distance,
    top_found,
    top_share,
)
from lightning_dpg.pages.page import number

NOT_COMPARED = (
    "transfers: not compared, since the real ones are not given",
    "evaluate RUN reads those of the fit; in Python give its data module",
)
HEAD = ("figure", "real", "synthetic", "error", "without ties")
EXPLANATION = (
    "strengths: what nodes pay and get, largest difference of the distributions; top tenth: of the nodes by",
    "strength, their share of all money, and how many of the real ones are in the synthetic one (by chance",
    "0.1); days, hours of the week, gaps within a pair, new pairs by day: total variation distance; growth:",
    "largest difference of the running shares. without ties: the error with the amounts, and the times, of",
    "the synthetic transfers in a random order.",
)
_SEED = 0


class TransferFigure(NamedTuple):
    """One figure of transfers; nan is what it does not have.

    Attributes:
        figure: Its name.
        real: Value of the real transfers.
        synthetic: Value of the synthetic ones.
        error: Distance, or relative error of a number.
        independent: Error with the amounts and the times in a random order.
    """

    figure: str
    real: float
    synthetic: float
    error: float
    independent: float = math.nan

    def cells(self) -> list[str]:
        """Return the texts of a line of the table."""
        return [self.figure.replace("_", " "), *map(number, self[1:])]


def transfer_figures(
    real: GraphTransfers,
    synthetic: GraphTransfers,
    *,
    kind: Kind,
    num_nodes: int,
    window: Window | None,
    has_names: bool,
) -> tuple[TransferFigure, ...]:
    """Compare synthetic transfers with real ones.

    Args:
        real: The real transfers (private).
        synthetic: The synthetic ones.
        kind: Kind of both graphs.
        num_nodes: Number of nodes N of both graphs.
        window: Grid of days and hours; None without times.
        has_names: Whether a node has the same number in both graphs.
    """
    order = np.random.default_rng(_SEED).permutation(len(synthetic.pairs))
    amounts, times = (
        None if values is None else values[order] for values in (synthetic.amounts, synthetic.times)
    )
    three = (real, synthetic, GraphTransfers(synthetic.pairs, amounts, times))
    numbers = [float(len(each.pairs)) for each in three]
    found = [_relative("transfers", numbers)]
    if real.amounts is not None and synthetic.amounts is not None:
        found += _of_amounts(three, num_nodes, has_names=has_names)
    if window is not None:
        found += _of_times(three, kind, window)
    return tuple(found)


_Three = tuple[GraphTransfers, GraphTransfers, GraphTransfers]
"""Real transfers, synthetic ones, and the synthetic ones without ties."""


def _of_amounts(three: _Three, num_nodes: int, *, has_names: bool) -> Iterator[TransferFigure]:
    """Yield the figures of amounts."""
    sums = [
        node_sums(each.pairs, each.amounts, num_nodes) for each in three if each.amounts is not None
    ]
    yield _relative("money", [float(each.sum()) / 2 / CENTS for each in sums])
    errors = [strength_distance(sums[0], each) for each in sums[1:]]
    yield TransferFigure("strengths", math.nan, math.nan, *errors)
    values = [top_share(each) for each in sums]
    errors = [abs(values[0] - value) for value in values[1:]]
    yield TransferFigure("top_tenth_share", values[0], values[1], *errors)
    if has_names:
        values = [top_found(sums[0], each) for each in sums]
        errors = [1 - value for value in values[1:]]
        yield TransferFigure("top_tenth_found", values[0], values[1], *errors)


def _of_times(three: _Three, kind: Kind, window: Window) -> Iterator[TransferFigure]:
    """Yield the figures of times."""
    counted = [
        counted_transfers(each.pairs, None, each.times, kind=kind, most=None) for each in three
    ]
    for figure, curve in (
        ("days", count_days),
        ("hours", count_hours),
        ("gaps", _gaps),
        ("new_pairs", count_new_pairs),
    ):
        real, *others = (curve(each, window).astype(np.float64) for each in counted)
        errors = [curve_distance(real, each) for each in others]
        yield TransferFigure(figure, math.nan, math.nan, *errors)
        if figure in ("days", "new_pairs"):
            errors = [growth_distance(real, each) for each in others]
            name = "growth" if figure == "days" else "growth_of_pairs"
            yield TransferFigure(name, math.nan, math.nan, *errors)


def _gaps(counted: Counted, window: Window) -> NDArray[np.int64]:
    """Count gaps by their length."""
    return count_gaps(counted, window).sum(axis=0)


def _relative(figure: str, values: Sequence[float]) -> TransferFigure:
    """Compare a number; without ties it is the same."""
    real, synthetic, _ = values
    error = abs(synthetic / real - 1) if real else math.nan
    return TransferFigure(figure, real, synthetic, error)


def transfer_answers(figures: Sequence[TransferFigure]) -> dict[str, Answer]:
    """Return the figures as answers to queries, for files of all queries."""
    return {
        f"{each.figure} of transfers": Answer(each.real, each.synthetic, each.error)
        for each in figures
    }
