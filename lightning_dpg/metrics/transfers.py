"""Figures of amounts and times of transfers: of real ones (private), or of synthetic ones.

Strengths are those of :func:`lightning_dpg.graph.transfer_counts.node_sums`.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ks_2samp

from lightning_dpg.graph.counts import Floats, Integers

_TOP = 0.1


def strength_distance(one: Integers, other: Integers) -> float:
    """Return the largest difference of the distribution functions of two graphs' strengths (KS)."""
    return float(ks_2samp(one, other).statistic)


def top_nodes(values: Integers) -> NDArray[np.int64]:
    """Return the tenth of the nodes with the largest strengths, rounded up."""
    count = math.ceil(_TOP * len(values))
    return np.argsort(-values, kind="stable")[:count]


def top_share(values: Integers) -> float:
    """Return the share of all strengths that the top tenth of the nodes has; nan without amounts."""
    total = values.sum()
    return float(values[top_nodes(values)].sum() / total) if total else math.nan


def top_found(real: Integers, drawn: Integers) -> float:
    """Return the share of the real top tenth of the nodes that is in the drawn one: by chance 0.1."""
    common = np.intersect1d(top_nodes(real), top_nodes(drawn))
    return len(common) / len(top_nodes(real))


def relative_error(real: Floats, drawn: Floats) -> float:
    """Return the sum of the errors of all totals over their sum; nan if that is 0."""
    total = np.abs(real).sum()
    return float(np.abs(real - drawn).sum() / total) if total else math.nan


def curve_distance(real: Floats, drawn: Floats) -> float:
    """Return the total variation between the shares of two curves; nan if one of them is empty."""
    if not (real.sum() > 0 and drawn.sum() > 0):
        return math.nan
    return float(np.abs(real / real.sum() - drawn / drawn.sum()).sum() / 2)


def growth_distance(real: Floats, drawn: Floats) -> float:
    """Return the largest difference of the running shares of two curves; nan if one is empty."""
    if not (real.sum() > 0 and drawn.sum() > 0):
        return math.nan
    difference = np.cumsum(real) / real.sum() - np.cumsum(drawn) / drawn.sum()
    return float(np.abs(difference).max())
