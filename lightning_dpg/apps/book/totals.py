r"""Total cost of the releases of a data set, as one ledger would compute it.

It is a statement on the releases that were made: Renyi curves add up over all entries of all runs,
pure epsilons add up, and the smallest proved epsilon counts, as in
:mod:`lightning_dpg.privacy.composition`. :mod:`lightning_dpg.apps.book.filter` decides whether a further
run may begin.

**From edges to a node.** Where each node has D edges at most (public), an edge-level guarantee covers
all edges of a node as a group of D. A pure epsilon becomes D epsilon, Gaussian noise of mu becomes D mu
(Dong, Roth, Su, "Gaussian differential privacy", 2022, Theorem 2.14), and a release that fails with
probability delta fails on one of the D steps of a path between both graphs
(:func:`lightning_dpg.privacy.meaning.group_budget`). Releases that are sampled count by the last of
these, at the epsilon and delta of all of them together.

**A release may rest on an earlier one.** Earlier versions counted edges by the degrees of their ends,
with noise at 2T + 1, for a released T (``UniformDK2``). An edge moves no more counts than that if T reaches
the sum of the two largest degrees of the neighbor with fewer edges: each of the other edges of its ends
leaves one count and enters another. The counts are then :math:`\epsilon_2`-DP. T is booked as
:math:`(\epsilon_1, \delta)`, the counts, which are called joint degrees, as :math:`\epsilon_2`. For a path :math:`G_0, \dots, G_D` of graphs, let
:math:`m_i` be the bound for the step from :math:`G_{i-1}` to :math:`G_i`: the smaller one of both
graphs' sums of the two largest degrees. Let :math:`m_j` be the largest of them, and B the event
:math:`T < m_j`.

* T falls below the sum of its own graph with a probability of at most :math:`\delta`. Both
  :math:`G_{j-1}` and :math:`G_j` have a sum of :math:`m_j` or more, so that B has at most this
  probability under both. T is :math:`\epsilon_1`-DP, and each end of the path is at most D - 1 steps
  from one of the two: B has a probability of at most :math:`e^{(D-1) \epsilon_1} \delta` under
  :math:`G_0` and under :math:`G_D`. That is one of the terms of ``group_budget``, whose sum is booked.
* Outside of B, T reaches the bound of every step. Given T, the joint degrees of :math:`G_0` and
  :math:`G_D` are then within a factor of :math:`e^{D \epsilon_2}`, and T itself is within
  :math:`e^{D \epsilon_1}`.

So T, with the graph itself where B happens, is :math:`(D \epsilon_1, e^{(D-1) \epsilon_1} \delta)`-DP
for the ends of the path, and all that rests on T is of pure :math:`D \epsilon_2` after that. ∎

Entries of earlier versions have the delta at the joint degrees. Counted as a release of its own, it
would grow with :math:`\epsilon_2` in place of :math:`\epsilon_1`. It counts here with both: as that of
a release of :math:`\epsilon_1 + \epsilon_2`, where :math:`\epsilon_1` is the largest of any T. Where no
T is booked, nothing is proved.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from lightning_dpg.apps.book.filter import RunCosts
from lightning_dpg.privacy import composition
from lightning_dpg.privacy.events import Approximate, Gaussian, LedgerEntry, Pure
from lightning_dpg.privacy.meaning import group_budget

SUM_OF_RUNS = "sum over runs"
"""Name of the accountant that adds up the budgets of runs."""

_SMALLEST_DELTA = 1e-100
_CLOSE = 1.01  # a sum of pure epsilons that is larger by no more is stated: it can be added by hand


def spent_epsilon(runs: RunCosts, delta: float) -> tuple[float, str]:
    """Smallest epsilon that is proved for all runs together at a delta, and the accountant's name.

    If all releases have a pure epsilon, it is their sum, which can be checked by hand, unless another
    accountant proves less by more than one percent.

    Args:
        runs: Runs of one relation.
        delta: Delta of the total.
    """
    entries = [composition.entry_of(event, steps) for event, steps in runs.steps.items()]
    if not entries:
        return 0.0, composition.PURE
    epsilon, name = composition.headline(entries, delta)
    added, pure = math.fsum(runs.epsilons), pure_sum(runs)
    if math.fsum(runs.deltas) <= delta and added < epsilon:
        epsilon, name = added, SUM_OF_RUNS
    return (pure, composition.PURE) if pure <= _CLOSE * epsilon else (epsilon, name)


def pure_sum(runs: RunCosts) -> float:
    """Sum of the epsilons of all releases; infinite if one of them is not of pure epsilon.

    Args:
        runs: Runs of one relation.
    """
    if not all(isinstance(event, Pure) and not event.total_delta for event in runs.steps):
        return math.inf
    return math.fsum(steps * event.pure_epsilon for event, steps in runs.steps.items())


def merged(entries: Sequence[LedgerEntry]) -> list[LedgerEntry]:
    """Entries of equal composition, one for each event."""
    return [
        composition.entry_of(event, steps) for event, steps in composition.costs(entries).items()
    ]


def node_level(entries: Sequence[LedgerEntry], delta: float, degree: int) -> float:
    """Epsilon that edge-level releases prove for all edges of a node at a delta; perhaps infinite.

    Args:
        entries: Releases that protect one edge, and what their runs owe.
        delta: Delta of the statement on nodes.
        degree: Largest number of edges of a node (public).
    """
    if not entries:
        return 0.0
    bound = max(
        (e.event.pure_epsilon for e in entries if e.key == "largest_degrees"), default=math.inf
    )
    late = merged([entry for entry in entries if _rests_on_a_bound(entry)])
    own = merged([entry for entry in entries if not _rests_on_a_bound(entry)])
    entries = [*own, *late]
    if all(entry.event.sample_rate == 1 for entry in entries):
        groups = [_of_group(entry, degree) for entry in own]
        groups += [_of_group(entry, degree, bound) for entry in late]
        return composition.headline(groups, delta)[0]
    smallest, inner = math.inf, delta
    while inner > _SMALLEST_DELTA:
        epsilon = composition.quick_epsilon(entries, inner)
        together = group_budget(epsilon, inner, degree)
        if together.delta <= delta:
            smallest = min(smallest, together.epsilon)
            if together.epsilon > smallest:
                break
        inner /= 2
    return smallest


def _rests_on_a_bound(entry: LedgerEntry) -> bool:
    """Return whether an entry is that of joint degrees of an earlier version, with a delta of its own."""
    return entry.key == "joint_degrees" and entry.event.total_delta > 0


def _of_group(entry: LedgerEntry, size: int, earlier: float = 0.0) -> LedgerEntry:
    """The release as it protects a group of records.

    Args:
        entry: The release.
        size: Number of records of the group.
        earlier: Epsilon of the earlier release that decides whether this one fails.
    """
    event = entry.event
    if isinstance(event, Gaussian):
        return replace(entry, event=Gaussian(event.noise_multiplier / size))
    if isinstance(event, Approximate):
        delta = group_budget(earlier + event.epsilon, event.delta, size).delta
        return replace(entry, event=Approximate(size * event.epsilon, min(delta, 1 - 1e-9)))
    return replace(entry, event=Pure(size * event.pure_epsilon))
