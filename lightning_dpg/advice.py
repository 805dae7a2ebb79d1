"""Recommendation of a method, from facts that are public, released or assumed.

The rule stands here only: the hint of ``fit``, ``plan`` and ``list`` print it, and tests compare it
with the tables of the documentation and with what the methods declare. It imports no PyTorch.
"""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

from lightning_dpg.errors import Refusal

Goal = Literal[
    "links",
    "links-beyond-degrees",
    "communities",
    "shape",
    "degrees",
    "classes",
    "rows",
    "transfers",
    "graphs",
    "labels",
    "clients",
]
Kind = Literal["undirected", "directed", "bipartite", "set"]

GOALS: dict[Goal, str] = {
    "links": "for links",
    "links-beyond-degrees": "for links beyond degrees",
    "communities": "for communities",
    "shape": "for the shape of a graph",
    "degrees": "for degrees",
    "classes": "for classes of nodes",
    "rows": "for private columns of nodes",
    "transfers": "for amounts and times of transfers",
    "graphs": "for graphs of a set",
    "labels": "for labels of graphs",
    "clients": "for graphs of clients that trust nobody",
}
"""What a release is for, in words."""

OF_LINKS: frozenset[Goal] = frozenset({"links", "links-beyond-degrees"})
"""Goals whose methods rank pairs of nodes: among all pairs, and among pairs of equal degrees."""

OF_SETS: frozenset[Goal] = frozenset({"graphs", "labels", "clients"})
"""Goals of a set of graphs; the others are goals of one graph."""

OF_COLUMNS: frozenset[Goal] = frozenset({"classes", "rows", "transfers"})
"""Goals of one graph whose nodes or edges have columns."""


@dataclass(frozen=True)
class Facts:
    """Facts that are known without a look at the private edges.

    Attributes:
        goal: What the release is for.
        epsilon: Epsilon of the whole budget.
        num_nodes: Number of nodes N (public).
        num_edges: Number of edges if it is public, released or assumed; never the exact number of
            a private graph.
        kind: Kind of the graph, or ``set`` for a set of graphs.
        allows_delta: Whether the budget has a delta above 0.
        has_attributes: Whether attributes of the nodes are public, of which classes are learned.
        num_graphs: Number of graphs of a set (public); None if it is not given.
        has_hubs: Whether one node in a hundred, or more, has over ten times the mean degree (public or
            assumed).
    """

    goal: Goal
    epsilon: float
    num_nodes: int = 2
    num_edges: float | None = None
    kind: Kind = "undirected"
    allows_delta: bool = True
    has_attributes: bool = False
    num_graphs: int | None = None
    has_hubs: bool = False

    def __post_init__(self) -> None:
        """Refuse a goal of other data or of another budget, and a budget that is none."""
        if self.goal not in GOALS:
            raise Refusal(f"{self.goal!r:.60} is no goal: take {', '.join(GOALS)}")
        if not self.epsilon > 0:
            raise Refusal(f"epsilon must be positive, got {self.epsilon:g}")
        if (self.goal in OF_SETS) != (self.kind == "set"):
            fitting = [goal for goal in GOALS if (goal in OF_SETS) == (self.kind == "set")]
            data = "a set of graphs" if self.kind == "set" else "one graph"
            raise Refusal(f"{self.goal} is no goal of {data}: take {', '.join(fitting)}")
        if self.goal in ("classes", "rows") and self.kind != "undirected":
            raise Refusal(
                f"{self.goal} is a goal of undirected graphs, and this one is {self.kind}"
            )
        if self.goal == "classes" and not self.has_attributes:
            raise Refusal(
                "classes is a goal of nodes with public attributes\ngive them (fit: --attributes FILE, "
                "plan: --attributes)"
            )
        if self.goal == "classes" and not self.allows_delta:
            raise Refusal(
                "classes is a goal of a budget with a delta\ngive one, such as --delta 1e-5"
            )

    @property
    def mean_degree(self) -> float | None:
        """Mean number of edges at a node, in any direction; None if it is not known."""
        if self.num_edges is None or self.kind == "set":
            return None
        return 2 * self.num_edges / max(self.num_nodes, 1)

    @property
    def edges_per_graph(self) -> float | None:
        """Mean number of edges of a graph of a set; None if it is not known."""
        if self.num_edges is None or not self.num_graphs:
            return None
        return self.num_edges / self.num_graphs


class Recommendation(NamedTuple):
    """A method, and the reason for it.

    Attributes:
        method: Name of its class in ``lightning_dpg.methods``.
        reason: One sentence without its period.
        denoise: Setting of ``RandomizedResponse``; empty for other methods.
        least_degree: Mean degree from which the method is recommended.
        configuration: Name of its configuration, where it is not the first one of the method.
    """

    method: str
    reason: str
    denoise: str = ""
    least_degree: float = 0.0
    configuration: str = ""

    @property
    def bound(self) -> str:
        """Least mean degree, with two digits."""
        return _rounded(self.least_degree)

    def __str__(self) -> str:
        """Return the name of the method with its setting, or of a configuration."""
        if self.configuration:
            return self.configuration
        return f"{self.method} with denoise: {self.denoise}" if self.denoise else self.method


def recommend(facts: Facts) -> Recommendation:
    """Recommend a method with edge-level privacy, or local privacy for clients.

    Args:
        facts: Public facts. Without a number of edges the method is that of the sparsest graphs,
            and :func:`hint` names all cases.
    """
    degree = facts.mean_degree or 0.0
    return next(case for case in cases(facts) if degree >= case.least_degree)


def hints_of(facts: Facts) -> list[str]:
    """Name a method for the goal, and the size of a release of all links."""
    reports = reports_line(facts)
    return [hint(facts), *([reports] if reports else [])]


def hint(facts: Facts) -> str:
    """Recommend a method in one line.

    Args:
        facts: Public facts. Without a number of edges the line names all cases.
    """
    size = "" if facts.kind == "set" else f" on {facts.num_nodes:,} nodes"
    start = f"{GOALS[facts.goal]} at epsilon {facts.epsilon:g}{size} take"
    *above, last = cases(facts)
    if facts.mean_degree is None and above:
        bounds = [f"{case} from a mean degree of {case.bound} on" for case in above]
        return f"{start} {', '.join(bounds)}, {last} below"
    best = recommend(facts)
    degree = f" (mean degree {facts.mean_degree:.3g})" if facts.mean_degree is not None else ""
    if facts.edges_per_graph is not None:
        degree = f" ({facts.edges_per_graph:.3g} edges a graph)"
    return f"{start} {best}{degree}: {best.reason}"


def cases(facts: Facts) -> list[Recommendation]:
    """Return the recommendations by descending least mean degree; the last is for any degree."""
    if facts.goal in OF_LINKS:
        return _links(facts)
    return [_without_degree(facts)]


def choices(goal: Goal) -> list[Recommendation]:
    """Return all methods that :func:`recommend` may name for a goal, from the largest epsilon on.

    Args:
        goal: What the release is for.
    """
    kind: Kind = "set" if goal in OF_SETS else "undirected"
    named = {
        str(case): case
        for has_attributes in ((True,) if goal == "classes" else (True, False))
        for epsilon in (2 * _REPORTS_EPSILON, 0.1)
        for case in cases(
            Facts(goal, epsilon, _REPORTS_NODES, kind=kind, has_attributes=has_attributes)
        )
    }
    return list(named.values())


_ENCODER = Recommendation(
    "AttributeEncoder",
    "public attributes rank links at any epsilon, provided that linked nodes have similar ones",
)
_REPORTS = Recommendation(
    "RandomizedResponse", "few reports are false, and their eigenvectors rank links", "spectral"
)
_PRIVGRAPH = Recommendation(
    "PrivGraph",
    "nodes of this degree choose their communities reliably, and these rank links",
)
_CHUNG_LU = Recommendation(
    "ChungLu",
    "where degrees vary, they rank all pairs better than noisy communities do; links beyond degrees are "
    "another goal",
)

# Bounds of the rule for links; results/advice names the graphs on which they were fixed.
_PRIVGRAPH_SIGNAL = 30.0
_REPORTS_SIGNAL: dict[Goal, float] = {"links": 2.5, "links-beyond-degrees": 2.0}
# With hubs, ends of edges have so many times the mean degree: 5.5 to 17 times on five public graphs.
_HUB_DEGREES = 5.0
_REPORTS_EPSILON = 5.0
_REPORTS_NODES = 6000
MAX_REPORTS = 50_000_000
"""Most false reports of randomized response that are expected to fit in memory."""
MAX_REPORT_NODES = 100_000
"""Most nodes of which randomized response models all pairs, in blocks."""
REPORTS_SHARE = 0.95
"""Share of epsilon for the reports, as ``RandomizedResponse`` has it by default."""
_ENCODER_KINDS = frozenset({"undirected", "directed", "bipartite"})
_SET_EPSILON = 1.0
# Edges of a graph times epsilon from which private counts add something to public features.
_LABEL_SIGNAL = 400.0
_STRONG_LABEL_SIGNAL = 60.0
_LABEL_GRAPHS = 100


def _links(facts: Facts) -> list[Recommendation]:
    r"""Recommend methods for links among all pairs of nodes, or among pairs of equal degrees.

    The mean degree d is compared with two noises; the leading eigenvalues of a graph grow with it:

    * A node of ``PrivGraph`` chooses its community by numbers of edges, which grow with d, under noise
      that falls as :math:`1 / \epsilon`: the choices are reliable from :math:`d = 30 / \epsilon` on.
    * Eigenvectors of the reports of randomized response have the noise :func:`noise_of_reports`. From
      about twice this noise on, they know more than the few communities of ``PrivGraph`` do. With hubs
      the leading eigenvalue is that of a fivefold mean degree, which ranks links beyond degrees.

    Below both, degrees rank all pairs best. They do not rank pairs of equal degrees: there the method
    of the smaller noise is taken. Reports rank all pairs better than degrees at any d if few of them are
    false: from an epsilon of 5 on at 6,000 nodes, and of :math:`5 + \ln(N / 6000)` beyond, at which the
    noise in an eigenvector is the same.
    """
    if facts.has_attributes and facts.allows_delta and facts.kind in _ENCODER_KINDS:
        return [_ENCODER]
    choice_noise = _PRIVGRAPH_SIGNAL / facts.epsilon
    report_noise = noise_of_reports(facts.num_nodes, facts.epsilon)
    larger = math.log(max(facts.num_nodes / _REPORTS_NODES, 1.0))
    few_are_false = facts.epsilon >= _REPORTS_EPSILON + larger
    if facts.goal == "links":
        low, is_low = _REPORTS, few_are_false
        below = [_PRIVGRAPH._replace(least_degree=choice_noise), _CHUNG_LU]
    else:
        is_low = report_noise <= choice_noise
        start = "reports have less noise than communities at this size and budget, and rank links"
        low = _REPORTS._replace(reason=_near_chance(start, report_noise / 2))
        start = "communities rank links" if is_low else "communities have less noise than reports"
        below = [_PRIVGRAPH._replace(reason=_near_chance(start, choice_noise / 2))]
    if not _fit_reports(facts):
        return below
    if is_low:
        return [low]
    least_degree = _REPORTS_SIGNAL[facts.goal] * report_noise
    if facts.has_hubs and facts.goal == "links-beyond-degrees":
        least_degree /= _HUB_DEGREES
    clear = _REPORTS._replace(
        reason="eigenvectors of a graph of this degree are clear of the noise of reports, and rank links",
        least_degree=least_degree,
    )
    return [clear, *(case for case in below if case.least_degree < least_degree)]


def _near_chance(reason: str, degree: float) -> str:
    return f"{reason}; close to chance below a mean degree of {_rounded(degree)}"


def noise_of_reports(num_nodes: int, epsilon: float) -> float:
    r"""Return the noise of randomized response that an eigenvector of the graph has to exceed.

    The unbiased estimate of an entry of the adjacency matrix has the standard deviation
    :math:`e^{\epsilon / 2} / (e^\epsilon - 1)`, and an eigenvector of the matrix correlates with one of
    the estimate only if its eigenvalue exceeds this number times :math:`\sqrt{N}`.

    * Benaych-Georges and Nadakuditi, "The eigenvalues and eigenvectors of finite, low rank
      perturbations of large random matrices", 2011.

    Args:
        num_nodes: Number of nodes N (public).
        epsilon: Epsilon of the reports; may be infinite.
    """
    return math.sqrt(num_nodes) / (2 * math.sinh(min(epsilon, 700.0) / 2))


def _fit_reports(facts: Facts) -> bool:
    """Return whether randomized response learns the graph, and its reports are expected to fit."""
    if facts.kind != "undirected" or facts.num_nodes > MAX_REPORT_NODES:
        return False
    return false_reports(facts.num_nodes, REPORTS_SHARE * facts.epsilon) <= MAX_REPORTS


def _without_degree(facts: Facts) -> Recommendation:
    """Recommend a method for another goal than links, on which the mean degree has no effect."""
    if facts.goal == "communities":
        return Recommendation("PrivGraph", "it learns communities, and needs no delta")
    if facts.goal == "shape" and facts.kind == "undirected":
        return Recommendation(
            "BTER", "it has the smallest errors in triangles, clustering and paths"
        )
    if facts.goal == "shape":
        return Recommendation("ChungLu", f"BTER does not learn {facts.kind} graphs")
    if facts.goal == "degrees":
        return Recommendation("ChungLu", "it spends the whole budget on degrees")
    if facts.goal == "classes":
        return Recommendation("NeighborVotes", "it learns from attributes and from edges")
    if facts.goal == "rows":
        return Recommendation("Attributed", "columns and edges have a budget each")
    if facts.goal == "transfers":
        return Recommendation("Attributed", "it learns amounts and times beside the edges")
    if facts.goal == "graphs" and facts.epsilon >= _SET_EPSILON:
        return Recommendation("PooledSet", "it learns more than sizes, of 100 graphs and more")
    if facts.goal == "graphs":
        return Recommendation("ErdosRenyiSet", "below an epsilon of 1 nothing is clearly nearer")
    if facts.goal == "labels":
        return _labels(facts)
    return Recommendation("LocalScalars", "its one number of each graph has the whole budget")


def _labels(facts: Facts) -> Recommendation:
    r"""Recommend private counts for labels, or public features where the counts add nothing.

    The noise of a count has a scale that falls as :math:`1 / \epsilon`, and the difference of a
    count between two classes grows with the number m of edges of a graph. The product
    :math:`m \epsilon` therefore decides, beside the unknown relative difference of the classes.
    docs/choosing.md says on which families both bounds were fixed.
    """
    least, strong = (
        f"{float(f'{bound / facts.epsilon:.2g}'):,g}"
        for bound in (_LABEL_SIGNAL, _STRONG_LABEL_SIGNAL)
    )
    where = (
        f"from {_LABEL_GRAPHS} graphs of about {least} edges on average on, and of {strong} where "
        "counts of edges, wedges or triangles differ by a third or more between labels"
    )
    edges, graphs = facts.edges_per_graph, facts.num_graphs
    is_small = edges is not None and edges * facts.epsilon < _LABEL_SIGNAL
    if is_small or (graphs is not None and graphs < _LABEL_GRAPHS):
        reason = f"it reads public features alone, and private counts add to them {where}"
        return Recommendation("PrivateGraphKernel", reason, configuration="node_kernel")
    return Recommendation(
        "PrivateGraphKernel",
        f"its private counts add something to public features, which node_kernel has alone, {where}",
    )


def false_reports(num_nodes: int, epsilon: float) -> float:
    r"""Return the expected number of false reports of a graph without edges, the most of any graph.

    Each of the N (N - 1) / 2 pairs reports falsely with probability :math:`1 / (1 + e^\epsilon)`.

    Args:
        num_nodes: Number of nodes N (public).
        epsilon: Epsilon of the reports; may be infinite.
    """
    return num_nodes * (num_nodes - 1) / 2 / (1 + math.exp(min(epsilon, 700.0)))


def least_report_epsilon(num_nodes: int) -> float:
    """Return the smallest epsilon with at most :data:`MAX_REPORTS` false reports; 0 if all have."""
    return math.log(max(num_nodes * (num_nodes - 1) / 2 / MAX_REPORTS - 1, 1.0))


def excess_of_reports(num_nodes: int, epsilon: float, share: float) -> str | None:
    """Say that a release has too many false reports, and name the smallest epsilon that avoids it.

    The number follows from public facts: a refusal by it tells nothing of the edges.

    Args:
        num_nodes: Number of nodes (public).
        epsilon: Epsilon of the whole release.
        share: Share of it for the reports.

    Returns:
        Two lines; None if the reports fit.
    """
    expected = false_reports(num_nodes, share * epsilon)
    if expected <= MAX_REPORTS:
        return None
    return (
        f"at epsilon {epsilon:g} about {expected:,.0f} false reports are expected of "
        f"{num_nodes:,} nodes, and at most {MAX_REPORTS:,} fit\n"
        f"set privacy.epsilon to {_rounded_up(least_report_epsilon(num_nodes) / share):g} or more"
    )


def reports_line(facts: Facts, share: float = REPORTS_SHARE) -> str | None:
    """Say how many false reports ``RandomizedResponse`` has, and from which epsilon on they fit.

    Args:
        facts: Public facts.
        share: Share of epsilon for the reports.

    Returns:
        One line; None for small graphs, for other ones than undirected ones, and for other goals
        than links.
    """
    is_for_links = facts.goal in OF_LINKS and facts.kind == "undirected"
    if not is_for_links or facts.num_nodes <= _REPORTS_NODES:
        return None
    start = "RandomizedResponse with denoise: spectral"
    if facts.num_nodes > MAX_REPORT_NODES:
        return f"{start} takes at most {MAX_REPORT_NODES:,} nodes"
    expected = false_reports(facts.num_nodes, share * facts.epsilon)
    least = _rounded_up(least_report_epsilon(facts.num_nodes) / share)
    fits = f"from an epsilon of {least:g} on" if least else "at any epsilon"
    return (
        f"{start}: about {expected:,.0f} false reports at epsilon {facts.epsilon:g}; at most "
        f"{MAX_REPORTS:,} fit, {fits}"
    )


def _rounded(degree: float) -> str:
    return f"{degree:.2g}" if degree < 99.5 else f"{degree:.0f}"


def _rounded_up(epsilon: float) -> float:
    return math.ceil(epsilon * 100) / 100
