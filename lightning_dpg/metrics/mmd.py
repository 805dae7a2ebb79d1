"""Maximum mean discrepancy between two sets of graphs, by four descriptors of a graph.

Descriptors, kernel and bandwidths follow Liao et al., "Efficient Graph Generation with Graph
Recurrent Attention Networks" (GRAN), 2019. They took the idea and the first three descriptors from
You et al., "GraphRNN: Generating Realistic Graphs with Deep Auto-regressive Models", 2018, and
replaced its earth mover's distance by the total variation.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import laplacian
from scipy.spatial.distance import cdist
from torch_geometric.data import Data

from lightning_dpg.errors import Refusal
from lightning_dpg.graph.graph import adjacency
from lightning_dpg.metrics.functional import degrees, local_clustering
from lightning_dpg.metrics.orbits import orbit_counts

# The spectrum needs a dense matrix of the graph's size.
MAX_SPECTRUM_NODES = 5_000


class Descriptor(NamedTuple):
    """A map of graphs to vectors, and the scale on which these are compared."""

    describe: Callable[[Data], NDArray[np.float64]]
    """Vector of a graph; missing entries at its end count as 0."""
    bandwidth: float
    """Standard deviation of the Gaussian kernel."""


def degree_histogram(graph: Data) -> NDArray[np.float64]:
    """Return the shares of nodes of degree 0, 1, ..., up to the largest degree."""
    return _shares(np.bincount(degrees(graph)))


def clustering_histogram(graph: Data) -> NDArray[np.float64]:
    """Return the shares of nodes by local clustering coefficient, in 100 bins from 0 to 1."""
    return _shares(np.histogram(local_clustering(graph), bins=100, range=(0, 1))[0])


def orbit_means(graph: Data) -> NDArray[np.float64]:
    """Return the mean of each of the 15 orbit counts over nodes, ``(15,)``; not a histogram."""
    return orbit_counts(graph).mean(axis=0)


def spectrum_histogram(graph: Data) -> NDArray[np.float64]:
    """Return the shares of eigenvalues of the normalized Laplacian, in 200 bins from -1e-5 to 2.

    A node without an edge has the eigenvalue 0.

    Raises:
        Refusal: If the graph has more than :data:`MAX_SPECTRUM_NODES` nodes.
    """
    if graph.num_nodes > MAX_SPECTRUM_NODES:
        raise Refusal(
            f"graph has {graph.num_nodes} nodes, more than the {MAX_SPECTRUM_NODES} "
            "of which the whole spectrum can be computed; leave out the spectrum"
        )
    normalized = laplacian(adjacency(graph), normed=True)
    # Rounding errors would drop eigenvalues of 2, which bipartite graphs have.
    values = np.linalg.eigvalsh(normalized.toarray()).clip(0, 2)
    return _shares(np.histogram(values, bins=200, range=(-1e-5, 2))[0])


DESCRIPTORS: dict[str, Descriptor] = {
    "degree": Descriptor(degree_histogram, 1.0),
    "clustering": Descriptor(clustering_histogram, 0.1),
    "orbit": Descriptor(orbit_means, 30.0),
    "spectrum": Descriptor(spectrum_histogram, 1.0),
}


def gaussian_tv(
    first: NDArray[np.float64], second: NDArray[np.float64], bandwidth: float
) -> NDArray[np.float64]:
    r"""Return the total-variation kernel :math:`\exp(-\|x - y\|_1^2 / 8 \sigma^2)`.

    Args:
        first: Vectors x, shape ``(A, K)``. The total variation of two of them is half the sum of
            the absolute differences, also where they are no histograms.
        second: Vectors y, shape ``(B, K)``.
        bandwidth: Standard deviation :math:`\sigma`.

    Returns:
        Kernel of shape ``(A, B)``. It need not be positive definite.
    """
    distance = cdist(first, second, "cityblock") / 2
    return np.exp(-(distance**2) / (2 * bandwidth**2))


def squared_mmd(
    real: Sequence[NDArray[np.float64]], synthetic: Sequence[NDArray[np.float64]], bandwidth: float
) -> float:
    """Return the squared discrepancy :math:`E k(x, x') + E k(y, y') - 2 E k(x, y)`.

    The means go over all pairs, including pairs of a vector with itself, as in GraphRNN and GRAN.
    So it is 0 for equal sets, and above 0 for two samples of one distribution. As the kernel need
    not be positive definite, it is slightly below 0 for rare sets.

    Args:
        real: Vectors x, one or more.
        synthetic: Vectors y, one or more.
        bandwidth: Standard deviation of the kernel, see :func:`gaussian_tv`.
    """
    if not (real and synthetic):
        raise Refusal(f"both sets need a graph, got {len(real)} and {len(synthetic)}")
    size = max(len(vector) for vector in (*real, *synthetic))
    x, y = (
        np.stack([np.pad(vector, (0, size - len(vector))) for vector in vectors])
        for vectors in (real, synthetic)
    )
    within = gaussian_tv(x, x, bandwidth).mean() + gaussian_tv(y, y, bandwidth).mean()
    return float(within - 2 * gaussian_tv(x, y, bandwidth).mean())


def _shares(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    return counts / counts.sum()
