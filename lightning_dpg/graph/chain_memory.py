"""Memory that a chain of dendrograms keeps of its start, on the graph without edges (public)."""

import functools

import numpy as np
from numpy.typing import NDArray

from lightning_dpg.graph.dendrogram import Dendrogram, dividing_branch

_PAIRS = 10_000
_RENAMINGS = 99
_BLOCK = 8192


class _WithoutEdges(Dendrogram):
    """A dendrogram of a graph without edges, for which no edge is counted."""

    def _count(self, branch: int, bits: int) -> int:
        return 0


@functools.lru_cache(maxsize=16)
def memory_of_start(num_nodes: int, steps: int, start_seed: int) -> tuple[float, float]:
    """Correlate log sizes of branches after a chain with log sizes at its start.

    On the graph without edges all dendrograms have the same likelihood: each move is accepted, and
    all dendrograms are equally likely in the end, whatever the names of the nodes. A chain that has
    forgotten its start is as correlated with it as the same dendrogram with renamed nodes. A chain
    mixes more slowly on some graphs; a chain that remembers here has not forgotten there, either.

    Args:
        num_nodes: Number of nodes N.
        steps: Number of steps.
        start_seed: Public seed of the first dendrogram.

    Returns:
        The correlation over random node pairs, of the sizes of their dividing branches; and the
        95th of 100 such correlations under random names. Both are 0 below three nodes, public, and
        equal for equal arguments.
    """
    if num_nodes < 3:
        return 0.0, 0.0
    rng = np.random.default_rng(start_seed)
    chain = _WithoutEdges(np.empty((0, 2), dtype=np.int64), num_nodes, rng)
    first = rng.integers(num_nodes, size=_PAIRS)
    second = (first + rng.integers(1, num_nodes, size=_PAIRS)) % num_nodes
    pairs = np.stack([first, second], axis=1)
    start = _log_sizes(chain.state().numpy(), pairs)
    for block in range(0, steps, _BLOCK):
        for move in rng.integers(chain.num_moves, size=min(_BLOCK, steps - block)).tolist():
            chain.gain(move)
            chain.make()
    end = chain.state().numpy()

    def correlation(names: NDArray[np.int64]) -> float:
        return float(np.corrcoef(start, _log_sizes(end, names[pairs]))[0, 1])

    memory = correlation(np.arange(num_nodes))
    renamed = [correlation(rng.permutation(num_nodes)) for _ in range(_RENAMINGS)]
    return memory, sorted([memory, *renamed])[94]


def _log_sizes(dendrogram: NDArray[np.int64], pairs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return log node counts of the branches that divide pairs, shape ``(P,)``."""
    branches = dividing_branch(dendrogram, pairs)
    sizes: NDArray[np.float64] = np.log((dendrogram[:, 2] - dendrogram[:, 1])[branches])
    return sizes
