r"""Meaning of a guarantee for an attacker: beliefs, tests and groups, as numbers for people.

All bounds follow from one theorem: of two neighbors, an (epsilon, delta)-DP release shows no more
than a release that names the true one with probability delta, and that otherwise reports one of
them, the true one with probability :math:`e^\epsilon / (1 + e^\epsilon)` (Kairouz, Oh, Viswanath,
"The composition theorem for differential privacy", 2015, Theorem 3.1).
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from lightning_dpg.privacy.budget import Budget, digits_up
from lightning_dpg.privacy.composition import quick_epsilon
from lightning_dpg.privacy.events import Gaussian, LedgerEntry
from lightning_dpg.privacy.sensitivity.neighbor_sums import node_vote_moment_sensitivity

MAX_EDGES, CLIP = "edges of one node", "length of clipped votes"
"""Public facts of an entry of the relation ``edges_of_node``, from which other numbers follow."""
NUMBERS_OF_EDGES = (1, 5, 10, 20, 50)
"""Numbers of edges of one node for which a statement says epsilon."""


def belief_bound(epsilon: float, delta: float = 0.0) -> float:
    r"""Largest mean belief in the likelier answer after the release, if both had 50 % before.

    The mean is the probability of a right guess, (TPR + 1 - FPR) / 2, which is largest at
    :math:`\mathrm{FPR} = (1 - \delta) / (1 + e^\epsilon)`, where both lines of
    :func:`true_positive_bound` meet: :math:`(e^\epsilon + \delta) / (1 + e^\epsilon)`. Without
    delta, no single belief is larger either: Bayes' rule multiplies the odds 1 by a likelihood
    ratio of at most :math:`e^\epsilon`. With delta, single beliefs can be larger, with a
    probability above delta.

    Args:
        epsilon: Of the guarantee, not negative.
        delta: Of the guarantee, from 0 to 1.
    """
    return (1 + delta * math.exp(-epsilon)) / (1 + math.exp(-epsilon))


def true_positive_bound(epsilon: float, delta: float, false_positive_rate: float) -> float:
    r"""Largest share of present facts that a test finds at a share :math:`\alpha` of false alarms.

    Every test satisfies :math:`\mathrm{TPR} \le \delta + e^\epsilon \alpha` (the definition for the
    event of an alarm) and :math:`1 - \alpha \le \delta + e^\epsilon (1 - \mathrm{TPR})` (that for
    the event of no alarm, with the neighbors exchanged). Together, TPR is at most

    .. math:: \min(1, \delta + e^\epsilon \alpha, 1 - e^{-\epsilon} (1 - \delta - \alpha)),

    the smaller of two lines, and the release of the theorem above attains it (Wasserman and Zhou,
    "A statistical framework for differential privacy", 2010; Dong, Roth and Su, "Gaussian differential
    privacy", 2022, equation 5).

    Args:
        epsilon: Of the guarantee, not negative.
        delta: Of the guarantee, from 0 to 1.
        false_positive_rate: Share of absent facts with an alarm, from 0 to 1.
    """
    odds = math.exp(min(epsilon, 700.0))
    steep = delta + odds * false_positive_rate
    flat = 1 - (1 - delta - false_positive_rate) / odds
    return min(1.0, steep, flat)


def group_budget(epsilon: float, delta: float, size: int) -> Budget:
    r"""Guarantee for k units together: :math:`k \epsilon`, and delta times a geometric sum.

    Between two inputs that differ in k units lie k - 1 others. Step by step, a probability is at
    most :math:`e^\epsilon` times that of the next input plus delta, so the deltas
    :math:`\delta, e^\epsilon \delta, \dots, e^{(k - 1) \epsilon} \delta` add up. A delta of 1
    proves nothing.

    Args:
        epsilon: Of one unit.
        delta: Of one unit.
        size: Number k of units.
    """
    together = 0.0
    for _ in range(size if delta else 0):
        together = delta + math.exp(min(epsilon, 700.0)) * together
        if together >= 1:
            return Budget(size * epsilon, 1.0)
    return Budget(size * epsilon, together)


def joint_budget(units: Budget, other: Budget) -> Budget:
    r"""Guarantee for units of one relation together with one unit of another relation.

    Two inputs that differ in both have a third one between them, which differs from each in one of
    both. A probability is at most :math:`e^{\epsilon_1}` times that of the third plus
    :math:`\delta_1`, which is at most :math:`e^{\epsilon_2}` times that of the second plus
    :math:`\delta_2`: the epsilons add up, and delta is :math:`\delta_1 + e^{\epsilon_1} \delta_2`.
    The third may share either part with the first, so the smaller delta of both orders holds. That of
    a relation without a delta multiplies nothing: the other one's delta stays as it is.

    Args:
        units: Of the units of one relation, such as k edges by :func:`group_budget`.
        other: Of the unit of the other relation.
    """
    deltas = (
        first.delta + math.exp(min(first.epsilon, 700.0)) * second.delta
        for first, second in ((units, other), (other, units))
    )
    return Budget(units.epsilon + other.epsilon, min(1.0, *deltas))


def epsilon_by_edges(entries: Sequence[LedgerEntry], delta: float) -> dict[int, float]:
    r"""Epsilon for m edges of one node together, for the numbers m of ``NUMBERS_OF_EDGES``.

    The noise of a Gaussian release is fixed, and its sensitivity for m edges is that of
    :func:`node_vote_moment_sensitivity` with m in place of D. So m edges have the noise multiplier
    of D edges times the quotient of both sensitivities.

    Args:
        entries: All releases, of the relation ``edges_of_node``.
        delta: Delta of the guarantee.

    Returns:
        Epsilon by number of edges; empty if an entry does not say what it hides.
    """
    epsilons = {}
    for count in NUMBERS_OF_EDGES:
        scaled = [_of_edges(entry, count) for entry in entries]
        if None in scaled:
            return {}
        epsilons[count] = quick_epsilon([entry for entry in scaled if entry is not None], delta)
    return epsilons


def in_words(found: dict[int, float]) -> str:
    """Say the epsilon of each number of edges, rounded up to two digits."""
    counts = ", ".join(map(str, found))
    epsilons = (float(digits_up(epsilon, 2)) for epsilon in found.values())
    return f"{counts} edges have {', '.join(f'{epsilon:g}' for epsilon in epsilons)}"


def _of_edges(entry: LedgerEntry, count: int) -> LedgerEntry | None:
    clip, event = entry.public.get(CLIP), entry.event
    if not isinstance(clip, float | int) or not isinstance(event, Gaussian):
        return None
    sensitivity = node_vote_moment_sensitivity(count, clip)
    multiplier = event.noise_multiplier * entry.sensitivity / sensitivity
    return replace(entry, event=Gaussian(multiplier), sensitivity=sensitivity)
