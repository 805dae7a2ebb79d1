"""Checks of a method against its data, before a run makes a folder or spends budget."""

from pytorch_lightning import Trainer
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.advice import Facts, recommend
from lightning_dpg.graph.attributes import policy_option
from lightning_dpg.interfaces import (
    AttributedGraphRecords,
    GraphRecords,
    GraphSetRecords,
    HasCapabilities,
    HoldsPrivateColumns,
    HoldsPrivateLabels,
    HoldsTransfers,
    KeepsBudget,
    KindOfRecords,
    Records,
    Released,
    missing_parts,
    serves_records,
)
from lightning_dpg.preflight.typed_trainer import typed

_READS: dict[type, tuple[str, str, str]] = {
    AttributedGraphRecords: (
        "a graph with public node attributes",
        'EdgeListDataModule(graph, nodes=Nodes(attributes="people.csv"))',
        (
            "node attributes: --attributes people.csv,\n"
            "or from_graph for those of the graph itself, 'people(id)' for those of its database"
        ),
    ),
    GraphRecords: (
        "a single graph",
        "EdgeListDataModule(graph)",
        "EdgeListDataModule, or a method for sets: {other}",
    ),
    GraphSetRecords: (
        "a set of graphs",
        "GraphSetDataModule(graphs)",
        "GraphSetDataModule, TUGraphDataModule or SubgraphDataModule, or a method for one graph: {other}",
    ),
}
"""What a method of each kind learns, the data module for it in short, and all ways out.

``{other}`` stands for a method that learns the data at hand.
"""


_TWO_SIDED = (
    "ErdosRenyi, ChungLu, RandomizedResponse, PrivGraph, AttributeEncoder, AttributeMoments"
)
KIND_METHODS = {"directed": _TWO_SIDED, "bipartite": _TWO_SIDED}
"""Methods that learn graphs of a kind, for those that do not."""

_TRANSFER_WORDS = {"weight": "amounts", "time": "times"}
_AS_UNDIRECTED = {
    "directed": "--kind undirected --undirected",
    "bipartite": "--kind undirected",
}


def check_data(method: type[HasCapabilities], data: object) -> None:
    """Refuse a data module with records that a method does not read.

    Args:
        method: Class of the method.
        data: A data module that has been set up.

    Raises:
        MisconfigurationException: If its records are of another kind, hold private attributes or transfers
            that it does not protect, or repeat edges.
    """
    name, can = method.__name__, method.capabilities
    records = served_records(name, can.reads, data)
    columns = records.private_columns if isinstance(records, HoldsPrivateColumns) else None
    if columns is not None and not can.learns_private_columns:
        column = next(iter(columns.domains))
        raise MisconfigurationException(
            f"the column {column!r} is private, and {name} does not protect columns\n"
            f"take Attributed, or leave it out of the run: {policy_option(column, 'drop')}"
        )
    labels = records.private_labels if isinstance(records, HoldsPrivateLabels) else None
    if labels is not None and not can.learns_private_labels:
        raise MisconfigurationException(
            f"the label {labels.column!r} is private, and {name} does not protect labels\n"
            f"take NeighborVotes or NodeNeighborVotes, or leave it out: "
            f"{policy_option(labels.column, 'drop')}"
        )
    transfers = records.transfers if isinstance(records, HoldsTransfers) else None
    if transfers is not None and not can.learns_transfers:
        read = [
            setting
            for setting, bound in zip(("weight", "time"), transfers.bounds, strict=True)
            if bound is not None
        ]
        raise MisconfigurationException(
            f"the data have {' and '.join(_TRANSFER_WORDS[setting] for setting in read)} of "
            f"transfers, and {name} does not protect them\n"
            f"leave them out of the run: no {' and no '.join(f'columns.{part}' for part in read)}; "
            f"{name} then learns which pairs have a transfer"
        )
    kind = records.kind if isinstance(records, KindOfRecords) else "undirected"
    if kind not in can.kinds:
        raise MisconfigurationException(
            f"{name} learns {' and '.join(sorted(can.kinds))} graphs, and this one is {kind}\n"
            f"for {kind} graphs take {KIND_METHODS[kind]}\n"
            f"or read it as an undirected graph: {_AS_UNDIRECTED[kind]}"
        )
    if columns is None and transfers is None and can.learns_private_columns:
        raise MisconfigurationException(
            f"{name} learns private columns of nodes, amounts and times, and the data have none\n"
            "name them: --attributes people.csv --data.nodes.private_columns age,region "
            "--data.nodes.domains domains.yaml,\nor --data.columns.weight amount "
            "--data.columns.weight_max 1000\nor take the method of its structure alone, such as BTER"
        )
    occurrences = records.max_occurrences if isinstance(records, GraphSetRecords) else 1
    if occurrences > 1 and not can.repeats_edges:
        raise MisconfigurationException(
            f"{name} takes each edge for one record, but one can be {occurrences} edges of this "
            "set: set data.init_args.max_occurrences to 1"
        )


def served_records(method: str, reads: type, data: object) -> Records:
    """Return the records of a data module if they are of the kind that a method reads.

    Args:
        method: Name of the method.
        reads: Protocol of the records that it reads.
        data: A data module that has been set up.

    Raises:
        MisconfigurationException: If it serves no records, or records of another kind.
    """
    other = reads.__name__, "a data module that serves such records", "such a data module"
    learned, short, fits = _READS.get(reads, other)
    if data is None:
        raise MisconfigurationException(
            f"{method} learns {learned}, and no data module was passed, or a DataLoader in its place\n"
            f"pass {short} as the data of the trainer"
        )
    missing_members = missing_parts(data)
    if missing_members or not serves_records(data):
        name = type(data).__name__
        raise MisconfigurationException(
            f"{method} learns {learned}, and {name} lacks {', '.join(missing_members)}\n"
            f"use {short}, whose docstring lists all that it takes\n"
            f"or derive {name} from {short.partition('(')[0]}, and pass the data to its constructor\n"
            "or add what lightning_dpg.interfaces.ServesRecords asks of a data module"
        )
    records = data.records
    if isinstance(records, reads):
        return records
    held = next((what for kind, (what, *_) in _READS.items() if isinstance(records, kind)), None)
    if held is None:
        lacking = [part for part in reads.__annotations__ if not hasattr(records, part)]
        raise MisconfigurationException(
            f"{method} learns {learned}, and the records of {type(data).__name__} lack "
            f"{', '.join(lacking)}\nsee lightning_dpg.interfaces.{reads.__name__}, or use {short}"
        )
    raise MisconfigurationException(
        f"{method} learns {learned}, and {type(data).__name__} holds {held}\n"
        f"use {fits.format(other=_method_for(records))}"
    )


def _method_for(records: Records) -> str:
    """Name a method that learns the records."""
    if isinstance(records, GraphSetRecords):
        return recommend(Facts("graphs", 1.0, kind="set")).method
    kind = records.kind if isinstance(records, KindOfRecords) else "undirected"
    return recommend(Facts("shape", 1.0, kind=kind)).method


def check_accountant(trainer: Trainer, method: Released) -> None:
    """Refuse a trainer without a budget, before it reads anything.

    Raises:
        MisconfigurationException: If no callback holds the method to a budget.
    """
    if any(isinstance(callback, KeepsBudget) for callback in typed(trainer).callbacks):
        return
    name, where = type(method).__name__, "from lightning_dpg.callbacks"
    without = 'PrivacyAccountant("inf")'
    lines = [f"{name} reads private graphs, and the trainer has no PrivacyAccountant"]
    if method.capabilities.adds_noise:
        budget = "epsilon=1.0, delta=" + ("0.0" if method.capabilities.is_pure else "1e-6")
        lines.append(f"pass Trainer(callbacks=[PrivacyAccountant({budget})]), {where}")
        lines.append(f"{without} runs it without protection")
    else:
        lines.append(f"pass Trainer(callbacks=[{without}]), {where}: {name} protects nothing")
    lines.append("or call lightning_dpg.fit(data, method, epsilon=...), which adds it")
    raise MisconfigurationException("\n".join(lines))
