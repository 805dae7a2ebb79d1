r"""Filters decide whether one more run fits the total of a data set.

Users choose methods and budgets of later runs after they saw earlier releases. An epsilon that is
computed from the releases that happened to be made is then no guarantee: the smallest of several
accountants may be a different one on each path, and the exact composition is no valid stopping rule
in general (arXiv 2602.15815). A *filter* is a rule fixed in advance that refuses each run that would
exceed a total. All runs that it accepts are together :math:`(\epsilon, \delta)`-DP (Rogers, Roth,
Ullman, Vadhan, "Privacy odometers and filters", 2016). Runs may overlap in time: filters stay valid
(Haney et al., "Concurrent composition for interactive differential privacy with adaptive privacy-loss
parameters", 2023). There are two filters:

* **Sum**: the epsilons of all runs add up to :math:`\epsilon` at most, and their deltas to
  :math:`\delta_1` (Rogers et al., Theorem 3.6). A run counts with the budget of its own ledger: its
  plan is fixed before its first release, and any accountant may prove it. If all planned releases have
  a pure epsilon, or an epsilon and a delta, these numbers are added up instead.
* **Renyi**: the Renyi divergences of all releases at one order add up to the largest sum that a
  conversion with :math:`\delta_2` allows (Feldman and Zrnic, "Individual privacy accounting via a Renyi filter",
  2021, Theorem 4.3). The order depends on the total only. Deltas of releases that may fail have a
  share of their own (as in Whitehouse, Ramdas, Rogers, Wu, 2023).

**A run passes if either filter accepts it**, with :math:`\delta_1 + \delta_2 = \delta`. Proof: by
either rule, the cost of the releases never decreases. So each transcript of releases passes the first
filter, or else the second. For neighbors P and P' and a set S of transcripts, let :math:`S_1` be those
that pass the first, and :math:`S_2` all others. An analyst who keeps to filter j alone makes the same
releases up to the end of any transcript in :math:`S_j`. Hence :math:`P[S_j] \le e^\epsilon P'[S_j] +
\delta_j`. The two sets are disjoint, and the inequalities add up. ∎

**A run that is stopped gives back epsilon, and no delta.** Let a run of :math:`(\epsilon_b,
\delta_b)` be stopped after releases of pure epsilon :math:`e < \epsilon_b` only. Its densities are
:math:`p \le e^e p'` on such transcripts and :math:`p \le e^{\epsilon_b} p' + \nu` on all others, where
:math:`\nu` has a mass of :math:`\delta_b`. Whether it is stopped may follow from its first releases,
and all of that mass may lie where it is not: the run counts :math:`(e, \delta_b)`. With no delta,
others could spend it once more where it is stopped.

So a run owes the delta of its whole plan from its first release on: the delta of its budget if Gaussian
noise is planned, and that of all planned releases that may fail. For the Renyi filter, let run i fail
with probability :math:`d_i` at most, given all that was released before its first release. The
probability that some run fails is the expected sum of the :math:`d_i` of the runs that have released
anything, and so at most what that sum is held to on every path. It is larger if runs may leave that
sum once their first releases were seen: whether a run is going to fail may be known by then.

**One run can be the whole total.** Half of delta is too little for a run at all of it. So before
anything was released from a data set, the first run may choose the sum with :math:`\delta_1 = \delta`,
which then stays its rule. The choice depends on no release.

**Each relation has a filter of its own.** A read can cost several relations, such as the edges and the
private columns of a node, with an entry for each. A run is let in if the filter of each relation that
it has entries of accepts these entries. For neighbors of one relation, a read without an entry of this
relation has equal laws on both, given what was released before. Such reads, their order and the
verdicts of the other filters are then moves of one adaptive analyst, against whom the filter of this
relation holds. Each total is for its own neighbors: totals are never added, and none is a part of
another one.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np

from lightning_dpg.errors import BookError
from lightning_dpg.privacy.accounting import ORDERS, Curve, rdp_pure
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import Approximate, Event, Gaussian, LedgerEntry, Relation

Rule = Literal["split", "sum"]
"""``split`` divides delta between both filters; ``sum`` gives it to the first and ends the second."""

_ROUNDING = 1 + 1e-12  # shares of a total add up to it but for the last digit
_FAILURES = 0.01  # share of the Renyi filter's delta for releases that may fail
_UP = 1 + 2.0**-51  # more than products and their sum lose by rounding


class Spending(NamedTuple):
    """Cost of one run against a total. All entries are of the relation of this total.

    Attributes:
        budget: Budget of its ledger for this relation.
        entries: Its whole plan while it is open, and its booked releases once it is closed.
        plan: Its whole plan, which was fixed before its first release; by default the entries.
    """

    budget: Budget
    entries: Sequence[LedgerEntry]
    plan: Sequence[LedgerEntry] = ()

    @property
    def cost(self) -> Budget:
        """Epsilon and delta of the run in the sum."""
        if not self.entries:
            return Budget(0.0, 0.0)
        if has_noise(self.entries):
            return self.budget
        epsilon = math.fsum(entry.pure_epsilon for entry in self.entries)
        if has_noise(self.plan):
            return Budget(min(epsilon, self.budget.epsilon), self.budget.delta)
        return Budget(epsilon, math.fsum(entry.total_delta for entry in self.with_owed_deltas))

    @property
    def with_owed_deltas(self) -> list[LedgerEntry]:
        """The entries, and the deltas of planned releases that may fail, which the run still owes."""
        owed = [entry for entry in self.plan if entry.event.total_delta] if self.entries else []
        left = [
            replace(entry, event=Approximate(0.0, entry.event.total_delta))
            for entry in subtract(owed, self.entries)
        ]
        return [*self.entries, *left]


def costs(entries: Iterable[LedgerEntry]) -> Counter[tuple[Relation, Event]]:
    """Number of steps of each event under each relation, which decide the price of entries."""
    total: Counter[tuple[Relation, Event]] = Counter()
    for entry in entries:
        total[entry.relation, entry.event] += entry.steps
    return total


def as_booked(entries: Iterable[LedgerEntry], relation: Relation) -> list[LedgerEntry]:
    """Return reads as a total of a relation books them: one of transfers takes reads of edges.

    Args:
        entries: The reads.
        relation: Relation of the total.

    Raises:
        BookError: If a read of sampled edges, which is proved for one edge only, is to be booked by
            transfer.
    """
    if relation is not Relation.TRANSFER:
        return [*entries]
    booked = []
    for entry in entries:
        if entry.relation is Relation.EDGE and entry.event.sample_rate < 1:
            raise BookError(
                f"{entry.name!r} samples edges, which is proved for one edge only, and the total is of "
                "transfers\ntake a method without sampling, or register the data with --relation edge"
            )
        booked.append(entry.by_transfer() if entry.relation is Relation.EDGE else entry)
    return booked


def subtract(entries: Sequence[LedgerEntry], released: Sequence[LedgerEntry]) -> list[LedgerEntry]:
    """Subtract released steps from entries; steps of one relation and equal cost are the same."""
    if not entries:
        return []
    left, rest = costs(released), []
    for entry in entries:
        kind = entry.relation, entry.event
        used = min(entry.steps, left[kind])
        left[kind] -= used
        if used < entry.steps:
            rest.append(replace(entry, steps=entry.steps - used))
    return rest


class RunCosts(NamedTuple):
    """Cost of several runs together, with equal releases merged: each run is read once.

    Attributes:
        epsilons: Epsilon that the sum counts for each run.
        deltas: Delta that the sum counts for each run.
        steps: Number of steps of each event; what a run owes is among them.
    """

    epsilons: list[float]
    deltas: list[float]
    steps: Counter[Event]

    def plus(self, run: Spending, times: int = 1) -> "RunCosts":
        """Cost of these runs and of further equal ones."""
        more = together([run] * times)
        epsilons, deltas = [*self.epsilons, *more.epsilons], [*self.deltas, *more.deltas]
        return RunCosts(epsilons, deltas, self.steps + more.steps)

    def renyi(self, place: int) -> float:
        """Renyi divergence of all releases at one of ``ORDERS``, rounded up."""
        parts = (steps * float(event.curve()[place]) for event, steps in self.steps.items())
        return math.fsum(parts) * _UP

    @property
    def failed(self) -> float:
        """Probability at most with which some release fails, rounded up."""
        return math.fsum(steps * event.total_delta for event, steps in self.steps.items()) * _UP


def together(runs: Iterable[Spending]) -> RunCosts:
    """Cost of runs together."""
    total = RunCosts([], [], Counter())
    for run in runs:
        cost = run.cost
        total.epsilons.append(cost.epsilon)
        total.deltas.append(cost.delta)
        for entry in run.with_owed_deltas:
            total.steps[entry.event] += entry.steps
    return total


def passes(total: Budget, rule: Rule, runs: RunCosts) -> bool:
    """Return whether a filter accepts all runs.

    Args:
        total: Total of the data set.
        rule: How delta is divided.
        runs: All runs from the first one on.
    """
    delta = total.delta if rule == "sum" else total.delta / 2
    if _sum_passes(Budget(total.epsilon, delta), runs):
        return True
    return rule == "split" and _renyi_passes(Budget(total.epsilon, total.delta / 2), runs)


def pure_epsilon_left(total: Budget, rule: Rule, runs: RunCosts) -> float:
    """Largest epsilon of one more pure release that passes."""
    delta = total.delta if rule == "sum" else total.delta / 2
    left = 0.0
    if math.fsum(runs.deltas) <= delta * _ROUNDING:
        left = total.epsilon - math.fsum(runs.epsilons)
    if rule == "split" and total.delta:
        place, allowance = _order(Budget(total.epsilon, total.delta / 2))
        if runs.failed <= _FAILURES * total.delta / 2:
            room = allowance / _UP**2 - runs.renyi(place)  # the next sum is rounded up, too
            left = max(left, _largest_pure(room, place))
    return max(0.0, left)


def _sum_passes(total: Budget, runs: RunCosts) -> bool:
    return (
        math.fsum(runs.epsilons) <= total.epsilon * _ROUNDING
        and math.fsum(runs.deltas) <= total.delta * _ROUNDING
    )


def _renyi_passes(total: Budget, runs: RunCosts) -> bool:
    if not total.delta or runs.failed > _FAILURES * total.delta:
        return False
    place, allowance = _order(total)
    return runs.renyi(place) <= allowance


def has_noise(entries: Sequence[LedgerEntry]) -> bool:
    """Return whether there is Gaussian noise, which has no pure epsilon."""
    return any(isinstance(entry.event, Gaussian) for entry in entries)


def _order(total: Budget) -> tuple[int, float]:
    """Place in ``ORDERS`` of the best order for Gaussian noise, and the largest sum allowed there."""
    delta = (1 - _FAILURES) * total.delta
    slack: Curve = np.log1p(-1 / ORDERS) - (math.log(delta) + np.log(ORDERS)) / (ORDERS - 1)
    allowed = total.epsilon - slack
    place = int(np.argmax(allowed / ORDERS))
    return place, float(allowed[place])


def _largest_pure(room: float, place: int) -> float:
    """Largest epsilon of a pure release whose Renyi divergence fits."""
    low, high = 0.0, 1.0
    while high < 1e3 and rdp_pure(high)[place] <= room:
        low, high = high, 2 * high
    for _ in range(60 if room > 0 else 0):
        middle = (low + high) / 2
        if rdp_pure(middle)[place] <= room:
            low = middle
        else:
            high = middle
    return low
