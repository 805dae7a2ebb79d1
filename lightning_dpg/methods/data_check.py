"""Checks of a method against its data, before a run makes a folder or spends budget."""

from pytorch_lightning import Trainer
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.interfaces import GraphRecords, GraphSetRecords, Records, serves_records

_READS: dict[type, tuple[str, str]] = {
    GraphRecords: ("a single graph", "EdgeListDataModule, or a method for sets: ErdosRenyiSet"),
    GraphSetRecords: (
        "a set of graphs",
        "GraphSetDataModule, TUGraphDataModule or SubgraphDataModule, or a method for one graph: BTER",
    ),
}


def check_records(method: str, reads: type, repeats_edges: bool, data: object) -> None:
    """Refuse a data module with records that a method does not read.

    Args:
        method: Name of the method.
        reads: Protocol of the records that it reads.
        repeats_edges: Whether the method accounts for private edges that occur repeatedly in the
            set.
        data: A data module that has been set up.

    Raises:
        MisconfigurationException: If its records are of another kind, or repeat edges.
    """
    records = served_records(method, reads, data)
    occurrences = records.max_occurrences if isinstance(records, GraphSetRecords) else 1
    if occurrences > 1 and not repeats_edges:
        raise MisconfigurationException(
            f"{method} takes each edge for one record, but one can be {occurrences} edges of this "
            "set: set data.init_args.max_occurrences to 1"
        )


def data_of(trainer: Trainer) -> object:
    """The data module in use; None if loaders were passed to the trainer instead."""
    return trainer.datamodule  # type: ignore[attr-defined]  # Lightning sets it untyped


def served_records(method: str, reads: type, data: object) -> Records:
    """Return the records of a data module if they are of the kind that a method reads.

    Args:
        method: Name of the method.
        reads: Protocol of the records that it reads.
        data: A data module that has been set up.

    Raises:
        MisconfigurationException: If it serves no records, or records of another kind.
    """
    learned, fits = _READS.get(reads, (reads.__name__, "a data module that serves such records"))
    if not serves_records(data):
        raise MisconfigurationException(
            f"{method} learns {learned}, and {type(data).__name__} serves no records\n"
            f"use {fits}; or add what lightning_dpg.interfaces.ServesRecords asks of a data module"
        )
    records = data.records
    if not isinstance(records, reads):
        held = next(what for kind, (what, _) in _READS.items() if isinstance(records, kind))
        raise MisconfigurationException(
            f"{method} learns {learned}, and {type(data).__name__} holds {held}\nuse {fits}"
        )
    return records
