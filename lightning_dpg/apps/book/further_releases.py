"""Plans of further releases of a data set: their budgets, noise and measured quality."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from lightning_dpg.apps.book.book import Book
from lightning_dpg.apps.book.filter import RunCosts, Spending
from lightning_dpg.apps.book.refusals import check_open
from lightning_dpg.apps.book.request import accepting_rule, largest_fitting
from lightning_dpg.apps.book.state import DataSet, Run, cost_of_runs
from lightning_dpg.datamodules.batches import number_of_steps
from lightning_dpg.errors import CommandError
from lightning_dpg.privacy.budget import Budget, digits_down, digits_up
from lightning_dpg.privacy.composition import entry_of
from lightning_dpg.privacy.events import Gaussian, LedgerEntry, Pure, Relation
from lightning_dpg.run import quality
from lightning_dpg.run.method_choice import choose_method
from lightning_dpg.run.shipped import list_methods

COUNTS = (1, 2, 4, 12)
"""Numbers of further releases that are planned by default."""


class Share(NamedTuple):
    """One of several equal further runs.

    Attributes:
        releases: Number of runs.
        budget: Largest budget of each; an epsilon of 0 if the book accepts none.
        noise_multiplier: Noise of most of its Gaussian steps; None without such steps.
    """

    releases: int
    budget: Budget
    noise_multiplier: float | None


def pure_release(epsilon: float, relation: Relation) -> LedgerEntry:
    """A release of pure epsilon that stands for any such release."""
    return replace(entry_of(Pure(epsilon), 1), relation=relation)


def share(
    dataset: DataSet,
    earlier: RunCosts,
    releases: int,
    plan: Callable[[Budget], Sequence[LedgerEntry]],
    delta: float,
) -> Share:
    """Find the largest epsilon at which the book accepts several equal runs.

    Args:
        dataset: The data set, as one total sees it.
        earlier: Cost of its runs.
        releases: Number of further runs.
        plan: All releases of a run, as a function of its budget.
        delta: Delta of each run.
    """

    def fits(epsilon: float) -> bool:
        budget = Budget(epsilon, delta)
        run = Spending(budget, plan(budget))
        return accepting_rule(dataset, None, earlier, run, releases) is not None

    epsilon = largest_fitting(fits, dataset.total.epsilon, digits=3 if delta else 4)
    largest = Budget(epsilon, delta)
    return Share(releases, largest, _noise(plan(largest)) if epsilon else None)


def usual_deltas(dataset: DataSet, earlier: RunCosts, releases: int) -> list[float]:
    """Deltas of equal further runs that are worth a try.

    The Renyi filter counts noise, not the delta of a run: that delta may be as large as the total's.
    The sum accepts equal parts of its own share of delta.
    """
    spent = math.fsum(earlier.deltas)
    if earlier.deltas and dataset.rule == "sum":
        return _positive((dataset.total.delta - spent) / releases)
    part = (dataset.total.delta / 2 - spent) / releases
    return _positive(dataset.total.delta, part)


def _positive(*deltas: float) -> list[float]:
    return [delta for delta in deltas if delta > 0]


def _noise(entries: Sequence[LedgerEntry]) -> float | None:
    steps = [
        (entry.steps, entry.event.noise_multiplier)
        for entry in entries
        if isinstance(entry.event, Gaussian)
    ]
    return max(steps, key=itemgetter(0))[1] if steps else None


PLAN_COLUMNS = ("method", "releases", "epsilon each", "delta each", "noise", "steps")
_TRAINED = "DPNetGAN"  # stands for methods trained by DP-SGD where none is named
_NUM_NODES = 100  # plans do not depend on it


class Row(NamedTuple):
    """A plan for one number of further releases.

    Attributes:
        method: Name of a method, or of a kind of release.
        steps: Private steps of a run; None for a release in one step.
        share: Largest budget of each release, and its noise.
        measured: Quality that was measured at the nearest epsilons.
    """

    method: str
    steps: int | None
    share: Share
    measured: list[quality.Measured]

    @property
    def cells(self) -> tuple[str, ...]:
        """Cells of :data:`PLAN_COLUMNS`."""
        budget, noise = self.share.budget, self.share.noise_multiplier
        numbers = (
            digits_up(budget.epsilon, 6) if budget.epsilon else "none",
            digits_up(budget.delta, 6) if budget.epsilon else "-",
            "-" if noise is None else digits_down(noise, 4),
            "-" if self.steps is None else str(self.steps),
        )
        return (self.method, str(self.share.releases), *numbers)


def budget_plan(
    book: Book,
    name: str,
    method: str | None = None,
    releases: int | None = None,
    delta: float | None = None,
) -> list[Row]:
    """Plan equal further releases of a data set, by the filter of the book.

    Args:
        book: The book.
        name: Data set.
        method: Method or configuration; by default those of earlier runs on these data. Without such
            runs a pure release, and the shipped configuration of a method that is trained by DP-SGD.
        releases: Number of releases; by default 1, 2, 4 and 12.
        delta: Delta of each release of a method that needs one; by default that of the total or an equal
            part of what is left of it, whichever needs less noise.

    Raises:
        CommandError: If there is no such method, or if it protects another relation.
        BookError: If the data set is closed.
    """
    with book.database.snapshot():
        dataset, runs = book.data_set(name), book.runs(name)
    if method:
        earlier = cost_of_runs(runs, dataset.relation)
        return planned_rows(dataset, earlier, [method], releases, delta)
    rows = list[Row]()
    for part in map(dataset.for_relation, dataset.relations):
        used, earlier = used_methods(part, runs), cost_of_runs(runs, part.relation)
        planned = planned_rows(part, earlier, used, releases, delta)
        rows += without_refused(planned, is_usual=not used)
    return rows


def without_refused(rows: Sequence[Row], *, is_usual: bool) -> list[Row]:
    """Leave out the rows of a method after its first one that the book does not accept.

    Args:
        rows: Rows of :func:`planned_rows`.
        is_usual: Whether nobody has chosen the methods: all but the first one are then left out if no
            release of theirs is accepted.
    """
    kept: list[Row] = []
    for _, group in groupby(rows, lambda row: row.method):
        of_method = [*group]
        accepted = [row for row in of_method if row.share.budget.epsilon]
        if accepted or not is_usual or not kept:
            kept += of_method[: len(accepted) + 1]
    return kept


def used_methods(dataset: DataSet, runs: Sequence[Run]) -> list[str]:
    """Methods of the runs on a data set that have a shipped configuration, the newest first.

    Args:
        dataset: The data set.
        runs: Its runs.
    """
    shipped = {
        row.name
        for row in list_methods()
        if row.configuration is not None and row.relation == dataset.relation
    }
    return [*dict.fromkeys(run.method for run in reversed(runs) if run.method in shipped)]


def planned_rows(
    dataset: DataSet,
    earlier: RunCosts,
    names: Sequence[str] = (),
    releases: int | None = None,
    delta: float | None = None,
) -> list[Row]:
    """Plan further releases from rows that were read before.

    Args:
        dataset: The data set, as one total sees it.
        earlier: Cost of its runs.
        names: Methods or configurations; if empty, two usual kinds of releases.
        releases: Number of releases.
        delta: Delta of each release of a method that needs one.
    """
    check_open(dataset)
    if releases is not None and releases < 1:
        raise CommandError(f"--releases must be 1 or more, got {releases}")
    if delta is not None and not 0 < delta < 1:
        raise CommandError(f"--delta must lie in (0, 1), got {delta:g}")
    methods = [_method(name, dataset) for name in names] or _usual(dataset)
    rows = []
    for planned in methods:
        for count in (releases,) if releases else COUNTS:
            deltas = usual_deltas(dataset, earlier, count) if delta is None else [delta]
            best = _best(dataset, earlier, count, planned, deltas if planned.needs_delta else [0.0])
            epsilon = best.budget.epsilon
            measured = quality.nearest(planned.name, epsilon) if names and epsilon else []
            rows.append(Row(planned.name, planned.steps, best, measured))
    return rows


class _Planned(NamedTuple):
    """A method whose runs are planned without data."""

    name: str
    plan: Callable[[Budget], Sequence[LedgerEntry]]
    needs_delta: bool
    steps: int | None


def _best(
    dataset: DataSet, earlier: RunCosts, releases: int, planned: _Planned, deltas: Sequence[float]
) -> Share:
    """Share with the least noise that the book accepts, over some deltas."""
    shares = [share(dataset, earlier, releases, planned.plan, delta) for delta in deltas]
    accepted = [each for each in shares if each.budget.epsilon]
    if not accepted:
        return Share(releases, Budget(0.0, deltas[0] if deltas else 0.0), None)
    return min(accepted, key=lambda each: each.noise_multiplier or 0.0)


def _usual(dataset: DataSet) -> list[_Planned]:
    """A pure release and, for edges, a method that is trained."""
    relation = dataset.relation
    name = "pure release" + " of private columns" * (relation is Relation.ATTRIBUTES)
    pure = _Planned(name, lambda budget: [pure_release(budget.epsilon, relation)], False, None)
    return [pure, _method(_TRAINED, dataset)] if relation is Relation.EDGE else [pure]


def _method(name: str, dataset: DataSet) -> _Planned:
    """The plan of a method with the settings of a configuration, under the relation of a total."""
    choice = choose_method(name, {})
    row = {each.name: each for each in list_methods()}.get(choice.method.__name__)
    if row is None or (row.configuration is None and name == row.name):
        raise CommandError(f"--method {name}: no shipped configuration; name a file")
    if row.relation != dataset.relation:
        raise CommandError(
            f"--method {name}: {row.name} protects the relation {row.relation or 'of none'}, and the "
            f"data set is registered with the relation {dataset.relation}"
        )
    of_data = {"num_nodes": _NUM_NODES, "max_edges": dataset.max_edges}
    settings = {key: value for key, value in of_data.items() if key in choice.arguments and value}
    method = choice.method(**choice.arguments | settings)
    if (
        method.reads_private_columns
    ):  # planned beside any row budget, from which the edges have none
        method.ledger.beside[Relation.ATTRIBUTES] = Budget(1.0, 0.0)
    epochs = int(choice.sections["trainer"].get("max_epochs") or 1)
    steps = epochs * number_of_steps(method.batch_request(), None)

    def plan(budget: Budget) -> list[LedgerEntry]:
        return [each for each in method.plan(budget, steps) if each.relation is dataset.relation]

    return _Planned(row.name, plan, row.guarantee == "approximate", steps if steps > 1 else None)
