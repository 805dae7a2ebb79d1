"""Which method to take for the links of a graph, by public numbers alone."""

import math

from lightning_dpg.graph.edge_sampling import MAX_NODES

# Where measurements on ten kinds of synthetic graphs of mean degree 4 to 60 change their winner.
_LEAST_SIGNAL = 0.65
_LEAST_CHOICES = 20.0


def link_method(num_nodes: int, num_edges: int, epsilon: float) -> str:
    r"""The method that predicts links best on most graphs of this size within a budget.

    Eigenvalues of communities grow with the mean degree d; those of the noise of randomized response
    reach :math:`\sqrt{N} / \sinh(\epsilon / 2)`. Where d is a fair share of these,
    ``RandomizedResponse`` is best. Elsewhere the choices of ``PrivGraph`` are the surer the larger
    :math:`d \epsilon` is, and where that is small, degrees are all that is left.

    Args:
        num_nodes: Number of nodes N (public).
        num_edges: Number of edges: released, or publicly known; that of a private graph is not.
        epsilon: Privacy parameter of the whole budget.
    """
    degree = 2 * num_edges / max(num_nodes, 1)
    from_signal, from_choices = _degree_thresholds(num_nodes, epsilon)
    if degree >= from_signal:
        return "RandomizedResponse with denoise: spectral"
    return "PrivGraph" if degree >= from_choices else "ChungLu"


def link_hint(epsilon: float, num_nodes: int, num_edges: int | None = None) -> str:
    """One line on which method predicts links best.

    Args:
        epsilon: Privacy parameter of the whole budget.
        num_nodes: Number of nodes N (public).
        num_edges: Number of edges if it is public or released; else all cases are told.
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
    """Mean degrees from which ``RandomizedResponse``, and else ``PrivGraph``, is best."""
    noise = math.sqrt(num_nodes) / math.sinh(min(epsilon, 100.0) / 2)
    signal = _LEAST_SIGNAL * noise if num_nodes <= MAX_NODES else math.inf
    return signal, _LEAST_CHOICES / epsilon
