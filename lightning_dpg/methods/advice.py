"""Recommendation of a method for the links of a graph, from public numbers only."""

import math

from lightning_dpg.graph.edge_sampling import MAX_NODES

# Mean degrees at which the best method changes, measured on ten kinds of synthetic graphs of mean
# degree 4 to 60.
_LEAST_SIGNAL = 0.65
_LEAST_CHOICES = 20.0


def link_method(num_nodes: int, num_edges: int, epsilon: float) -> str:
    r"""Return the method with the best link prediction on most graphs of this size and budget.

    Eigenvalues of communities grow with the mean degree d; the noise of randomized response has
    eigenvalues up to :math:`\sqrt{N} / \sinh(\epsilon / 2)`. ``RandomizedResponse`` is best if d is
    a fair share of these. Otherwise the selections of ``PrivGraph`` become more reliable with
    :math:`d \epsilon`, and at small :math:`d \epsilon` only degrees remain useful.

    Args:
        num_nodes: Number of nodes N (public).
        num_edges: Number of edges, if it is released or publicly known.
        epsilon: Privacy parameter of the whole budget.
    """
    degree = 2 * num_edges / max(num_nodes, 1)
    from_signal, from_choices = _degree_thresholds(num_nodes, epsilon)
    if degree >= from_signal:
        return "RandomizedResponse with denoise: spectral"
    return "PrivGraph" if degree >= from_choices else "ChungLu"


def link_hint(epsilon: float, num_nodes: int, num_edges: int | None = None) -> str:
    """Recommend a method for link prediction in one line.

    Args:
        epsilon: Privacy parameter of the whole budget.
        num_nodes: Number of nodes N (public).
        num_edges: Number of edges if it is public or released; otherwise the line names all cases.
    """
    start = f"for links at epsilon {epsilon:g} on {num_nodes:,} nodes take"
    if num_edges is not None:
        degree = 2 * num_edges / max(num_nodes, 1)
        method = link_method(num_nodes, num_edges, epsilon)
        return f"{start} {method} (mean degree {degree:.3g})"
    from_signal, from_choices = _degree_thresholds(num_nodes, epsilon)
    spectral = "RandomizedResponse with denoise: spectral"
    if from_signal <= 1:
        return f"{start} {spectral}"
    upper = f"{spectral} above a mean degree of about {from_signal:.2g}"
    if from_signal == math.inf:
        return f"{start} PrivGraph above a mean degree of about {from_choices:.2g}, ChungLu below"
    if from_signal <= from_choices:
        return f"{start} {upper}, ChungLu below"
    return f"{start} {upper}, PrivGraph above {from_choices:.2g}, ChungLu below"


def _degree_thresholds(num_nodes: int, epsilon: float) -> tuple[float, float]:
    """Mean degrees above which ``RandomizedResponse``, and otherwise ``PrivGraph``, is best."""
    noise = math.sqrt(num_nodes) / math.sinh(min(epsilon, 100.0) / 2)
    signal = _LEAST_SIGNAL * noise if num_nodes <= MAX_NODES else math.inf
    return signal, _LEAST_CHOICES / epsilon
