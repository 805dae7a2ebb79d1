"""Releases of a killed run, as far as the book and its journal prove them."""

import socket
from collections import Counter
from pathlib import Path

from lightning_dpg.apps.book.filter import as_booked, costs
from lightning_dpg.apps.book.state import Run
from lightning_dpg.apps.book.writers import machine_of
from lightning_dpg.privacy.events import Event, LedgerEntry, Relation
from lightning_dpg.privacy.ledger import PrivacyLedger


def proved_steps(run: Run) -> list[int]:
    """Steps of each planned release that a run keeps.

    They are those that the book shows and, where the journal shows more, those of the journal. A run
    whose journal is missing or unreadable keeps its whole plan, as does one without a journal.

    Args:
        run: The run.
    """
    shown = _shown(run)
    if shown is None:
        return [each.entry.steps for each in run.planned]
    counts = []
    for each in run.planned:
        kind = each.entry.relation, each.entry.event
        steps = max(each.booked, min(shown[kind], each.entry.steps))
        shown[kind] -= steps
        counts.append(steps)
    return counts


def is_elsewhere(run: Run) -> bool:
    """Return whether only another machine can read the journal of a run.

    Without its journal, the run would keep its whole plan.

    Args:
        run: The run.
    """
    return (
        run.journal is not None
        and machine_of(run.who) != socket.gethostname()
        and not Path(run.journal).is_file()
    )


def _shown(run: Run) -> Counter[tuple[Relation, Event]] | None:
    """Steps of each event and relation that the journal shows beyond the start of the run."""
    if run.journal is None:
        return None
    path = Path(run.journal)
    of_transfers = any(each.entry.relation is Relation.TRANSFER for each in run.planned)
    relation = Relation.TRANSFER if of_transfers else Relation.EDGE
    before = costs([LedgerEntry.from_dict(entry) for entry in run.before])
    try:
        if b"\n" not in path.read_bytes():
            return Counter()
        state = PrivacyLedger.replay(path)
    except FileNotFoundError:
        # The journal is made with the first release.
        return Counter() if path.parent.is_dir() and not _has_booked(run) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    entries = [LedgerEntry.from_dict(entry) for entry in state["entries"]]
    after = costs(as_booked(entries, relation))
    after.subtract(before)
    return after


def _has_booked(run: Run) -> bool:
    return any(each.booked for each in run.planned)
