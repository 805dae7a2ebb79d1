"""Sums over neighbors, of edges in memory or of edges that come in blocks: exact, in any order."""

import math
from collections.abc import Iterable

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array
from torch import Tensor

_BLOCK = 2**20
_COLUMNS = 16
"""Columns that are added up at a time, since the sums of a block take memory beside those of all."""
_BITS = 52
"""Binary digits of a number of double precision behind its first one."""


def neighbor_sums(edges: Tensor, rows: Tensor) -> Tensor:
    """Sum the rows of each node's neighbors, A U, see :func:`on_grid`.

    Args:
        edges: Undirected edges of shape ``(M, 2)``, each once.
        rows: Rows U of all nodes, shape ``(N, k)``.

    Returns:
        Sums of shape ``(N, k)``.
    """
    return sums_over_blocks(torch.split(edges, block_size(len(rows))), rows)


def block_size(num_nodes: int) -> int:
    """Number of edges from which on a block costs more time than the sums that it is added to."""
    return max(_BLOCK, num_nodes)


def sums_over_blocks(blocks: Iterable[Tensor], rows: Tensor) -> Tensor:
    """As :func:`neighbor_sums`, of edges in blocks; one block is in memory at a time.

    Args:
        blocks: Undirected edges of shape ``(P, 2)`` of whole numbers, each edge in one block.
        rows: Rows U of all nodes, shape ``(N, k)``.
    """
    values, step = on_grid(rows)
    sums = np.zeros_like(values)
    for block in blocks:
        first, second = block.cpu().numpy().T
        above = coo_array((np.ones(len(block)), (first, second)), shape=(len(values), len(values)))
        both = above.tocsr() + above.T.tocsr()
        for start in range(0, values.shape[1], _COLUMNS):
            few = slice(start, start + _COLUMNS)
            sums[:, few] += both @ values[:, few]
    sums *= step
    return torch.from_numpy(sums).to(rows)


def on_grid(rows: Tensor) -> tuple[NDArray[np.float64], float]:
    r"""Round rows toward 0 to whole numbers of steps, whose sums have no rounding errors.

    The step is :math:`2^{e + n - 52}` for N nodes with :math:`N < 2^n` and rows with entries below
    :math:`2^e`, where e is 1 for rows that are at most 1 long. A sum over fewer than N neighbors is
    then a whole number below :math:`2^{52}`, and so are all partial sums: double precision and
    whole numbers of 64 bits hold each of them. The sums are the same bit for bit in memory, in
    blocks of edges, and in each engine, whatever the order of the edges. An edge changes them by the
    rounded rows of its ends, which are no longer than the rows, and by nothing else: the
    sensitivities need nothing for the arithmetic of an engine. The step follows from public facts, as
    the rows do.

    Args:
        rows: Rows of all nodes (public, or functions of earlier releases), shape ``(N, k)``.

    Returns:
        Rows in steps, which are whole numbers in double precision, shape ``(N, k)``; and the step.
    """
    values: NDArray[np.float64] = rows.detach().cpu().double().numpy()
    _, exponent = math.frexp(np.abs(values).max(initial=1.0))
    step = math.ldexp(1.0, exponent + len(values).bit_length() - _BITS)
    steps: NDArray[np.float64] = values / step
    return np.trunc(steps, out=steps), step
