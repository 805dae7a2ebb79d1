"""Checks of a budget against the data, and warnings of one that protects next to nothing."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.privacy.budget import Budget, advised_delta
from lightning_dpg.privacy.events import LedgerEntry, Relation
from lightning_dpg.privacy.meaning import belief_bound

LARGE_EPSILON = 10.0
"""Epsilon above which a run warns: a belief of 50 % may become one of 99.995 %."""
FEW_NODES = 10
"""Least number of nodes, and of nodes per unit of noise in the number of edges, without a warning."""
_CHOICE_NOISE = 18 / math.sqrt(2)
"""Mean degree, in standard deviations of the noise, from which nodes choose communities reliably: with the
shares of ``PrivGraph`` it is the 30 / epsilon of :func:`lightning_dpg.advice.recommend`."""

_UNITS = {
    Relation.EDGE: "one relation",
    Relation.TRANSFER: "one transfer",
    Relation.NODE: "one node and its relations",
    Relation.EDGES_OF_NODE: "relations of one node",
    Relation.LOCAL_GRAPH: "the graph of one client",
    Relation.ATTRIBUTES: "the private columns of one node",
}


def check_delta(
    budget: Budget, *, is_pure: bool, num_edges: int | None, num_pairs: int | None
) -> None:
    """Refuse a delta that a method cannot meet, or that protects no single edge.

    Args:
        budget: Budget of a run.
        is_pure: Whether the method makes releases of pure epsilon only.
        num_edges: Number of undirected edges of the private graph, None where there is none.
        num_pairs: Number of pairs of nodes (public), None where there is no graph. The advised
            delta is computed from it, because delta is published and the number of edges is not.
    """
    if math.isinf(budget.epsilon):
        return
    if budget.delta == 0 and not is_pure:
        raise MisconfigurationException(
            "privacy.delta 0 suits methods of pure epsilon only, such as ChungLu: Gaussian "
            f"noise cannot meet it\n{advised_delta(num_pairs)}"
        )
    if num_edges and budget.delta * num_edges >= 1:
        raise MisconfigurationException(
            f"privacy.delta {budget.delta:g} is not below one over the number of edges, which is "
            "private: publishing one edge as it is would pass\n"
            f"{advised_delta(num_pairs)}"
        )


def check_rows(
    method: str,
    row_budget: Budget | None,
    *,
    reads_private_columns: bool,
    learns_labels: bool = False,
) -> None:
    """Refuse private columns without a budget of their own, and such a budget without columns.

    Args:
        method: Name of the method.
        row_budget: Budget of the private columns of one node, if the run has one.
        reads_private_columns: Whether the method reads such columns.
        learns_labels: Whether it would read private labels, which the data do not have.

    Raises:
        MisconfigurationException: If one of both is missing.
    """
    if reads_private_columns and row_budget is None:
        raise MisconfigurationException(
            f"{method} reads private columns of nodes, and the run has no budget for them\n"
            "set privacy.row_epsilon, such as 1; it protects the columns of one node"
        )
    if row_budget is not None and not reads_private_columns:
        other_way = (
            ", or make the classes private: "
            "--data.nodes.policy.COLUMN private_label --data.nodes.classes A,B"
        )
        raise MisconfigurationException(
            f"privacy.row_epsilon {row_budget.epsilon:g}: {method} reads no private column of the "
            f"nodes here\nleave it out{other_way if learns_labels else ''}"
        )


class Served(NamedTuple):
    """What a plan serves at a number of nodes.

    Attributes:
        sentence: It in words; empty if no read of the plan is known.
        is_all: Whether noise may hide none of it.
    """

    sentence: str
    is_all: bool


def served(plan: Sequence[LedgerEntry], epsilon: float, num_nodes: int | None) -> Served:
    r"""Say what a plan serves at a number of nodes, by its own noise.

    A connected graph has N - 1 edges or more. Noise may hide a read if its standard deviation s exceeds what
    the sparsest of them has:

    * Number of edges: s exceeds N - 1. With degrees it is that of the mean in ``release_degrees``, and s of
      a degree below that of both releases together.
    * Degrees: nodes of one of about :math:`K = \log_2 N` classes are averaged. The error of all classes
      together, :math:`s \sqrt{N K}`, exceeds 2 (N - 1).
    * Clustering: there is about one wedge for each node, and K s exceeds N - 1.
    * Communities: nodes choose them reliably from a mean degree on that exceeds N / 2.

    Args:
        plan: Planned reads.
        epsilon: Budget of the run.
        num_nodes: Number of nodes N (public); None for other data than one graph.
    """
    paid = [read for read in plan if read.key in _SERVING and read.event.protects]
    stds = {read.key: math.sqrt(2) * read.scale for read in paid}
    if num_nodes is None or num_nodes < 2 or not stds or math.isinf(epsilon):
        return Served("", is_all=True)
    least, classes, noise = num_nodes - 1, num_nodes.bit_length(), dict[str, float]()
    of_degrees = [stds[key] ** -2 for key in ("ordered_degrees", "degrees") if key in stds]
    if "num_edges" in stds:
        std = (stds["num_edges"] ** -2 + 4 / num_nodes * sum(of_degrees)) ** -0.5
        noise[f"the number of edges (± {_short(std)})"] = std / least
    if of_degrees:
        noise["degrees"] = math.sqrt(num_nodes * classes / sum(of_degrees)) / (2 * least)
    if "wedges" in stds:
        noise["clustering"] = classes * stds["wedges"] / least
    if "communities" in stds:
        # An edge counts as much as the sensitivity, see Turns.
        (units,) = {read.sensitivity for read in paid if read.key == "communities"}
        degree = _CHOICE_NOISE * stds["communities"] / units
        noise[f"communities from a mean degree of {_short(degree)} on"] = 2 * degree / num_nodes
    kept = [words for words, share in noise.items() if share <= 1]
    hidden = [words.partition(" from ")[0] for words, share in noise.items() if share > 1]
    parts = [
        *([_listed(kept)] if kept else []),
        *([f"noise may hide {_listed(hidden)}"] if hidden else []),
    ]
    return Served(f"{num_nodes:,} nodes at epsilon {epsilon:g}: {'; '.join(parts)}", not hidden)


_SERVING = ("num_edges", "ordered_degrees", "degrees", "wedges", "communities")
"""Keys of reads of which :func:`served` knows what they are for."""


def _short(number: float) -> str:
    return f"{float(f'{number:.2g}'):,g}"


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def budget_warnings(budget: Budget, relation: Relation, num_nodes: int | None) -> list[str]:
    r"""Warn of a budget by public facts only.

    The number of edges is the smallest question to a graph, since one edge changes it by 1. Its
    noise at the whole budget has the scale :math:`1 / \epsilon`. A connected graph has N - 1 edges
    or more: from a scale of N / 10 on, even its size is lost.

    Args:
        budget: Budget of a run.
        relation: Neighboring relation of its method.
        num_nodes: Number of nodes N (public); None for other data than one graph.

    Returns:
        Texts of the warnings.
    """
    epsilon = budget.epsilon
    warnings = _if_large(budget, relation, "epsilon")
    if num_nodes is not None and num_nodes < FEW_NODES:
        warnings.append(
            f"{num_nodes} nodes are too few to hide {_UNITS[relation]} among: take a graph of "
            f"{FEW_NODES} nodes or more, and better of hundreds"
        )
    elif num_nodes is not None and num_nodes * epsilon < FEW_NODES:
        warnings.append(
            f"epsilon {epsilon:g} is too small for {num_nodes:,} nodes: already the number of edges "
            f"is off by about {1 / epsilon:,.4g}\nset privacy.epsilon to {FEW_NODES / num_nodes:.2g} "
            "or more, or take a larger graph"
        )
    return warnings


def row_budget_warnings(budget: Budget, num_nodes: int | None) -> list[str]:
    r"""Warn of a budget of private columns by public facts only.

    The number of nodes of each value is the smallest question to a column. One row changes two of
    these numbers, so their noise has the scale :math:`2 / \epsilon` or more. From a scale of N / 10
    on, nothing is left of them.

    Args:
        budget: Budget of the private columns of one node.
        num_nodes: Number of nodes N (public); None for other data than one graph.

    Returns:
        Texts of the warnings.
    """
    epsilon = budget.epsilon
    warnings = _if_large(budget, Relation.ATTRIBUTES, "row_epsilon")
    if num_nodes is not None and FEW_NODES <= num_nodes and num_nodes * epsilon < 2 * FEW_NODES:
        warnings.append(
            f"row_epsilon {epsilon:g} is too small for {num_nodes:,} nodes: already the number of "
            f"nodes of each value is off by about {2 / epsilon:,.4g}\n"
            f"set privacy.row_epsilon to {2 * FEW_NODES / num_nodes:.2g} or more"
        )
    return warnings


def _if_large(budget: Budget, relation: Relation, name: str) -> list[str]:
    """Warn of an epsilon that protects next to nothing."""
    if not LARGE_EPSILON < budget.epsilon < math.inf:
        return []
    belief = 100 * belief_bound(budget.epsilon, budget.delta)
    text = (
        f"{name} {budget.epsilon:g} protects next to nothing: after the release an attacker may be "
        f"{belief:.6g} % sure of {_UNITS[relation]}, who was 50 % sure before\n"
        f"set privacy.{name} to {LARGE_EPSILON:g} or less; 1 is usual"
    )
    return [text]
