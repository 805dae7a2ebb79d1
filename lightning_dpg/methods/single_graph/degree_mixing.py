"""Joint degrees of dK-2 in released cells, and graphs with released joint degrees."""

import numpy as np
import torch
from numpy.typing import NDArray
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor

from lightning_dpg.graph.communities import untangle
from lightning_dpg.graph.joint_degrees import degree_cells, joint_degrees, num_cells
from lightning_dpg.graph.stubs import fill_links, link_pairs, pair_stubs, stub_mixing

DEGREE_SHARES = {"count_share": 0.2, "sequence_share": 0.25}
"""Parts of the share of the degrees, as in PrivGraph."""
_MOST_CELLS = 2**26
TOO_MANY_CELLS = f"more than {_MOST_CELLS:,} pairs of degrees, which are not counted"
FEWER_CELLS = "BTER, which counts classes of degrees"


def cells_up_to(largest_two: int, num_nodes: int) -> NDArray[np.int64]:
    """Pairs of degrees whose sum is at most T (public), shape ``(C, 2)``.

    Args:
        largest_two: T.
        num_nodes: Number of nodes N.

    Raises:
        MisconfigurationException: If there are too many. T was paid for, and is not named: the run
            releases nothing.
    """
    if has_too_many_cells(largest_two, num_nodes):
        raise MisconfigurationException(
            f"the noisy degrees have {TOO_MANY_CELLS}; what was read so far is spent\n"
            f"raise privacy.epsilon, or take {FEWER_CELLS}"
        )
    return degree_cells(largest_two, num_nodes - 1)


def has_too_many_cells(largest_two: int, num_nodes: int) -> bool:
    """Whether there are more pairs of degrees whose sum is at most T than are counted (public)."""
    return num_cells(largest_two, num_nodes - 1) > _MOST_CELLS


def counted_cells(edges: NDArray[np.int64], largest_two: int, num_nodes: int) -> NDArray[np.int64]:
    """Numbers of edges of shape ``(M, 2)`` (private) by the cell of the degrees of both ends."""
    return joint_degrees(edges, np.bincount(edges.ravel(), minlength=num_nodes), largest_two)


def linked_edges(degrees: Tensor, links: Tensor, generator: torch.Generator) -> Tensor:
    """Link half-edges of released degrees at random, in proportion to released joint degrees.

    Args:
        degrees: Degrees of shape ``(N,)``.
        links: Fitted joint degrees, by classes of degrees.
        generator: Source of the draw.
    """
    rng = np.random.default_rng(int(torch.randint(2**62, (1,), generator=generator)))
    classes, totals = _classes(degrees)
    mixing = stub_mixing(links.cpu().numpy(), totals)
    mixing[np.diag_indices(len(mixing))] /= 2
    wanted = np.tril(np.rint(mixing).astype(np.int64))
    stubs = np.repeat(np.arange(len(degrees)), degrees.cpu().numpy())
    pairs, is_used = fill_links(stubs, classes[stubs], wanted, rng)
    # Random draws decide on fractions of a link.
    left, rest = stubs[~is_used], np.maximum(np.tril(mixing) - wanted, 0)
    pairs = np.concatenate([pairs, pair_stubs(left, classes[left], rest, rng)])
    pairs = untangle(pairs, classes, rng)
    nothing = np.empty((0, 2), dtype=np.int64)
    return torch.from_numpy(link_pairs(pairs, nothing, len(degrees), rng))


def expected_edges(degrees: Tensor, links: Tensor, pairs: Tensor) -> Tensor:
    """Expected number of edges of pairs ``(P, 2)``, repeated edges allowed: ``(P,)``."""
    classes, totals = _classes(degrees)
    mixing = stub_mixing(links.cpu().numpy(), totals)
    share = degrees.cpu().numpy() / np.maximum(totals[classes], 1)
    first, second = pairs.cpu().numpy().T
    both = mixing[classes[first], classes[second]]
    return torch.from_numpy(both * share[first] * share[second])


def _classes(degrees: Tensor) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Class of each node, and sum of the degrees of each class."""
    values, classes, sizes = np.unique(
        degrees.cpu().numpy(), return_inverse=True, return_counts=True
    )
    return classes, values * sizes
