"""``budget plan``: further releases that the rest of a total pays for."""

from typing import TYPE_CHECKING, Any

from lightning_dpg.book.commands.open_book import open_book
from lightning_dpg.errors import CommandError
from lightning_dpg.outcome import Outcome

if TYPE_CHECKING:
    from lightning_dpg.book.further_releases import Row


def plan(
    name: str,
    *,
    method: str | None = None,
    releases: int | None = None,
    delta: float | None = None,
    book: str | None = None,
) -> Outcome:
    """Print what the budget that is left buys, in equal further releases.

    Args:
        name: Data set.
        method: Method or configuration, with its measured quality; by default those of
            earlier runs, without such runs two kinds.
        releases: Number of releases; by default 1, 2, 4 and 12.
        delta: Of each release of a method that needs it; by default that of the total.
        book: See :func:`lightning_dpg.book.commands.open_book.open_book`.

    Example:
        python -m lightning_dpg budget plan crm --method bter --releases 4
    """
    # Start-up time: the imports bring PyTorch.
    from lightning_dpg.book import terminal
    from lightning_dpg.book.further_releases import PLAN_COLUMNS, budget_plan
    from lightning_dpg.book.partition import parts_of

    with open_book(book) as place:
        if parts := parts_of(place, name):
            names = ", ".join(part.name for part in parts)
            raise CommandError(f"{name}: a group of parts with totals of their own: {names}")
        place.reconcile(name)
        rows = budget_plan(place, name, method, releases, delta)
    lines = [
        *terminal.table_lines(PLAN_COLUMNS, [row.cells for row in rows]),
        "each release that the filter of the book lets in; noise is that of most Gaussian steps",
    ]
    if not all(row.share.budget.epsilon for row in rows):
        lines.append("none: what is left does not pay for so many releases, whatever their noise")
    if not method:
        lines.append(f"noise and measured quality of a method: budget plan {name} --method METHOD")
    for row in rows:
        if method and row.measured:
            lines.append(f"\nmeasured near epsilon {row.share.budget.epsilon:g}, in results/:")
            lines += [f"  {number}" for number in row.measured]
    return Outcome(lines, {"dataset": name, "plans": [_values(row) for row in rows]})


def _values(row: "Row") -> dict[str, Any]:
    epsilon, delta = row.share.budget
    return {
        "method": row.method,
        "releases": row.share.releases,
        "epsilon_each": epsilon,
        "delta_each": delta,
        "noise_multiplier": row.share.noise_multiplier,
        "steps": row.steps,
        "measured": [*map(str, row.measured)],
    }
