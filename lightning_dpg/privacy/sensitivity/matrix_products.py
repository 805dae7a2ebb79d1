r"""Declared sensitivities of products with the adjacency matrix; each docstring is the proof.

V is a matrix of shape ``(N, K)`` that is public or released: given all earlier releases it is the
same for neighboring graphs, whose adjacency matrices are A and A'. Its rows are :math:`v_i`, and
:math:`r_1 \ge r_2 \ge \dots` are their norms in descending order. Under the relation ``node`` all
edges of one node come or go, of which both graphs have at most D at each node.
"""

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # commands that draw nothing start without PyTorch
    from torch import Tensor


def edge_product_sensitivity(basis: "Tensor") -> float:
    r"""Largest change of AV in the Frobenius norm, by an edge: :math:`\sqrt{r_1^2 + r_2^2}`.

    The edge {i, j} adds :math:`v_j` to row i and :math:`v_i` to row j and leaves the other rows
    alone: :math:`\|(A - A')V\|_F^2 = |v_i|^2 + |v_j|^2`. It is largest, and then equal, for the pair
    of the two longest rows; no bound on degrees is needed.

    Args:
        basis: V.
    """
    return math.hypot(*_largest(basis, 2).tolist())


def edge_rayleigh_sensitivity(basis: "Tensor") -> float:
    r"""Largest change of :math:`V^T A V` in the Frobenius norm, by an edge: :math:`2 r_1 r_2`.

    The edge {i, j} changes it by :math:`v_i v_j^T + v_j v_i^T`, whose squared norm is
    :math:`2 (|v_i|^2 |v_j|^2 + (v_i^T v_j)^2) \le 4 |v_i|^2 |v_j|^2`.

    Args:
        basis: V.
    """
    return 2 * math.prod(_largest(basis, 2).tolist())


def katz_sensitivity(decay: float, terms: int, max_degree: int) -> float:
    r"""Bound on the change of HV and of :math:`V^T H V`: :math:`\sqrt 2 \sum_l l \beta^l D^{l-1}`.

    H is the Katz matrix :math:`\sum_{l=1}^L \beta^l A^l`, an edge changes, and both graphs
    have degrees of at most D, which bounds the spectral norms of A and A'. In
    :math:`A^l - A'^l = \sum_{i<l} A^i (A - A') A'^{l-1-i}` each of the l summands has a Frobenius
    norm of at most :math:`D^{l-1} \|A - A'\|_F`, where :math:`\|A - A'\|_F = \sqrt 2`. Factors V
    with no singular value above 1 do not raise it.

    Args:
        decay: Decay :math:`\beta`.
        terms: Number of terms L.
        max_degree: Public bound D.
    """
    slope = sum(k * decay**k * max_degree ** (k - 1) for k in range(1, terms + 1))
    return math.sqrt(2) * slope


def paper_sensitivity() -> float:
    r"""Change of HV, and of :math:`|Hv|^2`, under the decay of PrivCom's Lemma 3: at most 1.

    With :math:`\beta \le 1 / ((n - 1)(n^{3/2} k^{1/2} + 1))` the entries of the Katz matrices of any
    two graphs on n nodes lie between 0 and :math:`1 / (n^{3/2} k^{1/2})`. So
    :math:`\|H - H'\|_F \le n / (n^{3/2} k^{1/2}) = 1 / \sqrt{nk} \le 1`, and V has no singular value
    above 1; :math:`|Hv|^2` lies between 0 and 1. The bound is far from tight: it covers all
    graphs at once, and the release hardly distinguishes any two of them.
    """
    return 1.0


def node_edge_count_sensitivity(max_degree: int) -> int:
    """Sensitivity of the number of edges when all edges of a node come or go: its bound D."""
    return max_degree


def rounded_up(sensitivity: float) -> float:
    """The value with four digits, never below: rounding in V then makes no two steps differ."""
    if sensitivity == 0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(sensitivity)) - 3)
    return float(f"{math.ceil(sensitivity * (1 - 1e-12) / unit) * unit:.12g}")


def _largest(basis: "Tensor", count: int) -> "Tensor":
    """The largest row norms in descending order, shape ``(count,)`` or fewer."""
    norms = basis.norm(dim=1)
    return norms.topk(min(count, len(norms))).values
