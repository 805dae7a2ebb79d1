r"""What the releases of a data set spend together, as one ledger would say it.

It is a statement on the releases that were made: Renyi curves add up over all entries of all runs,
pure epsilons add up, and the smallest epsilon that is proved counts, as in
:mod:`lightning_dpg.privacy.composition`. Whether a further run may begin is for
:mod:`lightning_dpg.book.filter` to say.

**From edges to a node.** Where each node has D edges at most (public), an edge-level guarantee covers
all edges of a node as a group of D. A pure epsilon becomes D epsilon, Gaussian noise of mu becomes D mu
(Dong, Roth, Su, "Gaussian differential privacy", 2022, Theorem 2.14), and a release that fails with
probability delta fails on one of the D steps of a path between both graphs
(:func:`lightning_dpg.privacy.meaning.group_budget`). Releases that are sampled count by the last of
these, at the epsilon and delta of all of them together.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from lightning_dpg.book.filter import Together
from lightning_dpg.privacy import composition
from lightning_dpg.privacy.events import Approximate, Gaussian, LedgerEntry, Pure
from lightning_dpg.privacy.meaning import group_budget

SUM_OF_RUNS = "sum over runs"
"""Name of the accountant that adds up the budgets of runs."""

_SMALLEST_DELTA = 1e-100
_CLOSE = 1.01  # a sum of pure epsilons that is larger by no more is stated: it can be added by hand


def spent(runs: Together, delta: float) -> tuple[float, str]:
    """Smallest epsilon that is proved for all runs together at a delta, and the accountant's name.

    Where all releases are of pure epsilon, it is their sum unless another accountant proves less by
    more than a hundredth: that is the number which whoever adds up the runs by hand arrives at.

    Args:
        runs: Runs of one relation.
        delta: That of the data set's total.
    """
    entries = [composition.entry_of(event, steps) for event, steps in runs.steps.items()]
    if not entries:
        return 0.0, composition.PURE
    epsilon, name = composition.headline(entries, delta)
    added, pure = math.fsum(runs.epsilons), pure_sum(runs)
    if math.fsum(runs.deltas) <= delta and added < epsilon:
        epsilon, name = added, SUM_OF_RUNS
    return (pure, composition.PURE) if pure <= _CLOSE * epsilon else (epsilon, name)


def pure_sum(runs: Together) -> float:
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
        entries: Releases that protect one edge.
        delta: Delta of the statement on nodes.
        degree: Largest number of edges of a node (public).
    """
    entries = merged(entries)
    if not entries:
        return 0.0
    if all(entry.sample_rate == 1 for entry in entries):
        return composition.headline([_of_group(entry, degree) for entry in entries], delta)[0]
    found, inner = math.inf, delta
    while inner > _SMALLEST_DELTA:
        epsilon = composition.quick_epsilon(entries, inner)
        together = group_budget(epsilon, inner, degree)
        if together.delta <= delta:
            found = min(found, together.epsilon)
            if together.epsilon > found:
                break
        inner /= 2
    return found


def _of_group(entry: LedgerEntry, size: int) -> LedgerEntry:
    """The release as it protects a group of records."""
    event = entry.event
    if isinstance(event, Gaussian):
        return replace(entry, noise_multiplier=event.noise_multiplier / size)
    if isinstance(event, Approximate):
        group = group_budget(event.epsilon, event.delta, size)
        return replace(entry, epsilon=group.epsilon, delta=min(group.delta, 1 - 1e-9))
    return replace(entry, epsilon=size * event.pure_epsilon)
