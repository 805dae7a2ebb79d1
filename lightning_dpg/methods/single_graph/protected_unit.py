"""Unit of protection of transfers: one relation with all of them, or one transfer."""

from collections.abc import Callable
from datetime import datetime
from typing import Literal, NamedTuple

from lightning_dpg.graph.kind import Kind
from lightning_dpg.graph.pair_space import PairSpace
from lightning_dpg.graph.transfer_counts import (
    DAY,
    Counted,
    TransferStatistics,
    Window,
    counted_transfers,
    largest_amount,
    window_of,
)
from lightning_dpg.interfaces import HoldsTransfers, TransferBounds, Transfers
from lightning_dpg.privacy.events import (
    RECORDS,
    WITH_TRANSFERS,
    LedgerEntry,
    Pure,
    Relation,
)

ProtectedUnit = Literal["relation", "transfer"]


def relation_of(unit: ProtectedUnit) -> Relation:
    """Return the neighboring relation of a unit."""
    return Relation.TRANSFER if unit == "transfer" else Relation.EDGE


def transfers_of(records: object) -> Transfers | None:
    """Return the transfers that records hold (private); None without amounts and times."""
    return records.transfers if isinstance(records, HoldsTransfers) else None


def counted(transfers: Transfers, kind: Kind, most: int | None) -> Counted:
    """Choose the transfers that count, see :func:`counted_transfers`.

    Args:
        transfers: All transfers (private), with their public bounds.
        kind: Kind of the graph (public).
        most: Number k of transfers of a pair that count; None for all.
    """
    weight_max, window = transfers.bounds
    pairs, amounts, times = (
        None if values is None else values.numpy()
        for values in (transfers.pairs, transfers.amounts, transfers.times)
    )
    assert pairs is not None
    if times is not None and window is not None:
        # Data modules leave other rows out. From records of a user's own they would show in shapes.
        inside = (times >= 0) & (times < window_of(*window).days * DAY)
        pairs, times = pairs[inside], times[inside]
        amounts = None if amounts is None else amounts[inside]
    return counted_transfers(
        pairs,
        amounts,
        times,
        kind=kind,
        most=most,
        largest=0 if weight_max is None else largest_amount(weight_max),
    )


class TransferFacts(NamedTuple):
    """What is public of the transfers, and the unit that is protected.

    Attributes:
        unit: One relation with all its transfers, or one transfer.
        max_transfers: Transfers of a relation that count, with times.
        bounds: Largest amount, and window of the times.
        kind: Kind of the graph.
        edge_record: One edge in the words of its kind.
    """

    unit: ProtectedUnit
    max_transfers: int
    bounds: TransferBounds
    kind: Kind
    edge_record: str

    @property
    def most(self) -> int | None:
        """Number k of transfers of a pair that count; None for all, and 1 for their total."""
        if self.unit == "transfer":
            return None
        return self.max_transfers if self.bounds.window else 1

    @property
    def changes(self) -> int:
        """Number of counted transfers at most that come or go with one unit."""
        return 1 if self.most is None else self.most

    @property
    def has_numbers(self) -> bool:
        """Whether a pair can have several counted transfers."""
        return self.most != 1

    @property
    def window(self) -> Window | None:
        """Grid of days and hours; None without times."""
        return None if self.bounds.window is None else window_of(*self.bounds.window)

    @property
    def record(self) -> str:
        """Unit of protection in words."""
        if self.unit == "transfer":
            return RECORDS[Relation.TRANSFER]
        has = {"amounts": self.bounds.weight_max is not None, "times": self.window is not None}
        *others, last = (part for part, is_there in has.items() if is_there)
        words = f", {others[0]} and {last}" if others else f" and their {last}"
        return f"{self.edge_record}{WITH_TRANSFERS}{words}"

    def entry(
        self,
        key: str,
        name: str,
        epsilon: float,
        proof: Callable[..., float],
        *arguments: object,
        public: dict[str, float | int | str] | None = None,
    ) -> LedgerEntry:
        """Plan a read of transfers, see :meth:`LedgerEntry.proved`."""
        limit = {} if self.most is None else {"transfers of a pair": self.most}
        return LedgerEntry.proved(
            key,
            name,
            Pure(epsilon),
            proof,
            *arguments,
            relation=relation_of(self.unit),
            record=self.record,
            public={**limit, **(public or {})},
        )


def counts_of(transfers: Transfers, facts: TransferFacts, space: PairSpace) -> TransferStatistics:
    """Return the counts of transfers.

    Args:
        transfers: All transfers (private).
        facts: What is public, and the unit.
        space: Pairs of nodes (public).
    """
    held = transfers._replace(bounds=facts.bounds)
    return TransferStatistics(
        counted(held, facts.kind, facts.most),
        space,
        facts.most,
        facts.bounds.weight_max,
        facts.window,
    )


def window_from(text: str | None) -> tuple[datetime, datetime] | None:
    """Return the first and the last day of ``first,last`` in ISO format; None of None."""
    if text is None:
        return None
    first, last = (datetime.fromisoformat(day) for day in text.split(","))
    return first, last


def window_text(window: tuple[datetime, datetime] | None) -> str | None:
    """Return a window as a plain value, which :func:`window_from` reads."""
    return None if window is None else ",".join(day.date().isoformat() for day in window)
