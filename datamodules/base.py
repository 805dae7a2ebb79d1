"""Base class of the data modules of one graph."""

import copy
import csv
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor
from torch.utils.data import DataLoader
from torch_geometric.data import Data

from lightning_dpg.datamodules.batches import Batches
from lightning_dpg.datamodules.identity import identity_of, rows_of, with_transfers
from lightning_dpg.datamodules.loading import TRANSFER_FACTS, GraphSource, load_reading
from lightning_dpg.datamodules.node_attributes import (
    LEFT_OUT,
    NAMED_BY_ATTRIBUTES,
    attribute_table,
    described,
    own_attributes,
)
from lightning_dpg.datamodules.nodes import ColumnsGiven, Nodes, NodesGiven
from lightning_dpg.datamodules.private_columns import private_columns_of, private_labels
from lightning_dpg.datamodules.transfers import renumbered, transfers_of
from lightning_dpg.errors import Refusal
from lightning_dpg.formats.columns import Columns
from lightning_dpg.formats.conversion import GraphReading, NodeSet, holds_attributes
from lightning_dpg.formats.kinds import Sides, given_sides, in_kind
from lightning_dpg.formats.row_names import refuse_rows
from lightning_dpg.graph.attributes import (
    PUBLIC_ATTRIBUTES,
    AttributeTable,
    attach,
    attributes_of,
    encode,
    share_attributes,
)
from lightning_dpg.graph.graph import largest_component, renumber
from lightning_dpg.graph.node_names import SECRET_NUMBERS
from lightning_dpg.graph.pair_space import Kind, PairSpace, apart, joined, space_of
from lightning_dpg.interfaces import Identity, PrivateColumns, PrivateLabels, Transfers

_NODE_SETS = {
    NodeSet.BUILT_IN: "built-in graph",
    NodeSet.TABLE: "the input's own node table, which must not have been collected from private edges",
    NodeSet.LIST: "given as a list beside the edges",
    NodeSet.LINES: "although read off the private lines: an id that occurs on one line only {shows} "
    "because of that line",
    NodeSet.LARGEST: "although their number was read off the private lines, as the largest id plus one",
}
_PUBLIC_SIDES = "the side of each node"
_SIDES_OF_COLUMNS = (
    "the side of each node (although read off the private lines, as the column in which the node "
    "stands)"
)


def node_set_assumption(num_nodes: int, node_set: NodeSet, *, are_numbered: bool) -> str:
    """State what a guarantee assumes of the nodes, by their origin."""
    fact, shows = f"the {num_nodes} nodes and their names", "is in the release"
    if are_numbered:
        fact, shows = f"the number of nodes, {num_nodes}", "is counted"
    return f"{fact} ({_NODE_SETS[node_set].format(shows=shows)})"


def sides_assumption(node_set: NodeSet) -> str:
    """State what a guarantee assumes of the sides of a bipartite graph."""
    return _SIDES_OF_COLUMNS if node_set is NodeSet.LINES else _PUBLIC_SIDES


def secret_order(num_nodes: int) -> list[int]:
    """Draw an order of nodes from the randomness of the system."""
    # All orders of different keys have equal chances. Equal keys are rare, and drawn again.
    while True:
        keys = np.frombuffer(os.urandom(8 * num_nodes), dtype=np.uint64)
        order = np.argsort(keys)
        if np.diff(keys[order]).all():
            return order.tolist()


def write_key_file(path: Path, names: Sequence[str]) -> None:
    """Write numbers and names, for the owner only (private)."""
    path.unlink(missing_ok=True)  # an older file may have another mode
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("number", "name"), *enumerate(names)])


class GraphDataModule(pl.LightningDataModule):
    """One graph, and the seeds of the graphs to generate.

    The graph is read at its first use and never for prediction, which needs seeds only.

    Attributes:
        assumptions: What a guarantee assumes public because of the preparation of the data.
        notes: Lines for the owner that tell nothing of the edges.
        private_columns: Columns of the nodes that a policy makes private; None without them, and
            before the graph is read.
        private_labels: Labels of the nodes that a policy makes private, likewise.
        transfers: Transfers between the nodes, if their amounts or times are read, likewise.
        summary: One line on what was read, with exact counts and names: for the owner's terminal,
            never for a log, a tracker or a release (private); None before the graph is read.
        times_read: Number of times that ``records`` was read.
    """

    times_read = 0

    def __init__(
        self,
        name: GraphSource = "les_miserables",
        *,
        undirected: bool = False,
        largest_component: bool = False,
        num_graphs: int = 1,
        nodes: NodesGiven = Nodes(),
        columns: ColumnsGiven = Columns(),
        kind: Kind = "undirected",
    ) -> None:
        """Store the arguments, see :class:`EdgeListDataModule`; nothing is read yet."""
        super().__init__()
        # No save_hyperparameters: a graph object among them would end in checkpoints and logs.
        self.source = name
        self.undirected = undirected
        self.largest_component = largest_component
        self.num_graphs = num_graphs
        self.nodes = Nodes.of(nodes)
        facts = TRANSFER_FACTS.get(name, {}) if isinstance(name, str) else {}
        given = Columns(**columns) if isinstance(columns, Mapping) else columns
        self.columns = given.completed(facts)
        self.private_columns: PrivateColumns | None = None
        self._attribute_table: AttributeTable | None = None
        self.private_labels: PrivateLabels | None = None
        self.transfers: Transfers | None = None
        self.kind = kind
        self.assumptions: list[str] = []
        self.notes: list[str] = []
        self.summary: str | None = None
        self._read: tuple[Data, Tensor] | None = None
        self._file_order: Sequence[str] | None = None
        self._whole: tuple[Data, Tensor] | None = None  # where it is not what was read last
        self._rows: GraphReading | None = None  # where their amounts or times are read
        self._numbering: list[int] | None = None

    @cached_property
    def graph(self) -> Data:
        """The whole graph (private) under its own names; its edges alone take half of the memory."""
        return joined(*self._once())

    def _once(self) -> tuple[Data, Tensor]:
        """Return the nodes and each edge once, ``(M, 2)`` (private), read at the first use."""
        if self._read is None:
            self._read = self._read_graph()
        return self._read

    def _forget(self) -> None:
        """Leave what was read: the next use reads it again."""
        self._read = self._whole = self._rows = self.transfers = None
        vars(self).pop("graph", None)

    def identity(self) -> Identity:
        """Return the canonical content of the whole graph under its own names (private)."""
        read = self._once()
        whole = joined(*(read if self._whole is None else self._whole))
        table, identity = self._attribute_table, identity_of([whole])
        rows = self._transfer_rows()
        if rows is not None:
            identity = with_transfers(identity, whole, *rows)
        if table is None:
            return identity
        labels = [] if self.private_labels is None else [self.private_labels.column]
        columns = [*self.nodes.value_domains, *labels]
        return identity._replace(rows=rows_of(table, columns, whole.node_names))

    def _transfer_rows(self) -> tuple[Tensor, Tensor | None, Tensor | None] | None:
        """Return payer and payee, amount and time of each row as they were read; None if none are."""
        if self._rows is None or self._rows.values is None:
            return None
        return self._rows.links, self._rows.values.amounts, self._rows.values.times

    def _read_graph(self) -> tuple[Data, Tensor]:
        self._check_kind()
        nodes = self.nodes
        table, ids, sides = self._public_nodes()
        reading = self._load(ids)
        if sides is None:
            refuse_rows(reading)
        self._file_order = reading.file_order
        reading = in_kind(reading, self.kind, sides)
        graph, edges, self.summary = reading.nodes, reading.edges, reading.summary
        self._rows = None if reading.values is None else reading
        if self.largest_component or self._rows is not None:
            self._whole = graph, edges
        total = graph.num_nodes
        self._add_transfers(reading)
        if self.largest_component:
            graph, edges = apart(self._largest_component(reading.graph))
            self.assumptions.append(
                f"the largest component, {graph.num_nodes} of {total} nodes (although found by "
                "looking at the private edges)"
            )
        are_numbered, node_set = nodes.are_numbered(reading.node_set), reading.node_set
        self.assumptions.append(
            node_set_assumption(graph.num_nodes, reading.node_set, are_numbered=are_numbered)
        )
        if nodes.attributes is not None:
            read = own_attributes(reading, self.kind) if table is None else table
            self._add_attributes(graph, read)
        elif holds_attributes(reading) and reading.node_set is not NodeSet.BUILT_IN:
            self.notes.append(LEFT_OUT)
        if self.kind == "bipartite":
            self.assumptions.append(sides_assumption(node_set))
        del reading  # memory: its rows
        return self._numbered(graph, edges) if are_numbered else (graph, edges)

    def _public_nodes(
        self,
    ) -> tuple[AttributeTable | None, str | Sequence[str] | None, Sides | None]:
        """Read what is given beside the edges: attributes, all ids or a file of them, and sides."""
        nodes, table = self.nodes, self._attributes_beside()
        left, right = (self._given_ids(ids) for ids in (nodes.left, nodes.right))
        sides = given_sides(left, right, nodes.ids, nodes.column, nodes.side_column)
        ids = self._given_ids(nodes.ids)
        if ids is None and table is not None and self.kind != "bipartite":
            ids = table.ids
        return table, ids, sides

    def _attributes_beside(self) -> AttributeTable | None:
        """Read the table of attributes beside the edges, if there is one."""
        return attribute_table(self.nodes.attributes, self.nodes.policies, self.nodes.column)

    def _given_ids(self, ids: str | Sequence[str] | None) -> str | Sequence[str] | None:
        """Return ids of nodes of the settings, or a file of them."""
        return ids

    def _load(self, ids: str | Sequence[str] | None) -> GraphReading:
        """Read the graph on given nodes, see :func:`load_reading`."""
        return load_reading(
            self.source,
            undirected=self.undirected or self.kind != "undirected",
            nodes=ids,
            node_column=self.nodes.column,
            columns=self.columns,
        )

    def _check_kind(self) -> None:
        """Refuse settings that contradict the kind of the graph."""
        if self.kind not in get_args(Kind):
            raise Refusal(f"kind must be undirected, directed or bipartite, got {self.kind!r}")
        if self.kind == "directed" and self.undirected:
            raise MisconfigurationException(
                "undirected drops the directions that kind: directed keeps: set one of them"
            )
        if self.kind != "undirected" and self.largest_component:
            raise MisconfigurationException(
                f"largest_component is for undirected graphs: set it to false for kind: {self.kind}"
            )
        sides = (self.nodes.left, self.nodes.right, self.nodes.side_column)
        if self.kind != "bipartite" and (sides != (None, None, None) or self.nodes.of_right):
            raise MisconfigurationException(
                "nodes.left, nodes.right, nodes.side_column and nodes.right_columns are for kind: bipartite"
            )
        if sides[:2].count(None) == 1:
            raise MisconfigurationException("nodes.left and nodes.right: give both, or neither")
        if sides[0] is not None and (self.nodes.ids, sides[2]) != (None, None):
            raise MisconfigurationException(
                "nodes.left and nodes.right: leave out nodes.ids and nodes.side_column"
            )

    @property
    def space(self) -> PairSpace:
        """Return the pairs of nodes that may be linked (public)."""
        return space_of(self._nodes)

    @property
    def _nodes(self) -> Data:
        """The graph without its edges."""
        return self._once()[0]

    def _add_transfers(self, reading: GraphReading) -> None:
        """Find the transfers of a reading, and state what is public about them."""
        self.transfers = transfers_of(reading, self.columns)
        if self.transfers is None:
            return
        bound, window = self.transfers.bounds
        if bound is not None:
            self.assumptions.append(f"the largest amount of a transfer that counts, {bound:,.15g}")
        if window is not None:
            days = " to ".join(day.date().isoformat() for day in window)
            self.assumptions.append(f"the days of the transfers, {days}")

    def _largest_component(self, graph: Data) -> Data:
        """Return the largest component, and leave out the transfers of other nodes."""
        component = largest_component(graph)
        if self.transfers is not None:
            number = {name: node for node, name in enumerate(component.node_names)}
            numbers = torch.tensor([number.get(name, -1) for name in graph.node_names])
            self.transfers = renumbered(self.transfers, numbers)
        return component

    def _add_attributes(self, graph: Data, read: AttributeTable) -> None:
        """Give the nodes of a graph their public attributes, and find their private columns."""
        policy, names = self.nodes.policies, graph.node_names
        self._attribute_table = read
        attributes = encode(read, names, policy)
        attach(graph, attributes)
        self.private_columns = private_columns_of(read, names, self.nodes.value_domains)
        if self.private_columns is not None:
            columns = self.private_columns._replace(right=self.nodes.of_right)
            places = columns.shown(space_of(graph).num_left, 0)
            self.private_columns = columns._replace(values=places)
        self.private_labels = private_labels(read, names, policy, self.nodes.classes)
        self.summary = f"{self.summary}; {described(read, policy, attributes, names)}"
        if not attributes.is_empty:
            self.assumptions.append(PUBLIC_ATTRIBUTES)

    def _on_nodes(self, edges: Tensor) -> Data:
        """Build a graph of some of the edges, with all nodes as they are published."""
        names = self._nodes.node_names if self._numbering is None else None
        return share_attributes(self.space.graph(edges, names), self._nodes)

    def _order(self, num_nodes: int, num_left: int | None) -> list[int]:
        """Return the secret order of the nodes, drawn at the first use; left nodes come first.

        Raises:
            MisconfigurationException: If the order of a checkpoint is that of other data.
        """
        if self._numbering is None:
            self._numbering = secret_order(num_nodes)
        if len(self._numbering) != num_nodes:
            raise MisconfigurationException(
                f"the checkpoint numbers {len(self._numbering)} nodes, and the graph has "
                f"{num_nodes}: resume with the data of the first run"
            )
        if num_left is not None:
            self._numbering.sort(key=lambda node: node >= num_left)
        return self._numbering

    def _published(self, graph: Data) -> Data:
        """Return a graph with the names that a release has."""
        shown = copy.copy(graph)
        if self._numbering is not None:
            shown.node_names = [str(number) for number in range(int(graph.num_nodes))]
        return shown

    def _numbered(self, graph: Data, edges: Tensor) -> tuple[Data, Tensor]:
        """Put the nodes into an order that only the key file reveals; records have no names."""
        space = space_of(graph)
        numbering = self._order(int(graph.num_nodes), space.num_left)
        order = torch.tensor(numbering)
        names = np.array(graph.node_names, dtype=object)[order.numpy()].tolist()  # half of the time
        number = torch.empty(graph.num_nodes, dtype=torch.long)
        number[order] = torch.arange(graph.num_nodes)
        self.assumptions.append(SECRET_NUMBERS)
        numbered = space.graph(torch.empty(0, 2).long())
        numbered.node_names = names  # which differ
        if self._whole is not None:
            edges = edges.clone()
        renumber(edges, number, is_directed=space.kind == "directed")
        attributes = attributes_of(graph)
        if attributes is not None:
            attach(numbered, attributes.of_nodes(order))
            if not attributes.is_empty:
                self.assumptions.append(NAMED_BY_ATTRIBUTES)
        if self.private_columns is not None:
            self.private_columns = self.private_columns.of_nodes(order)
        if self.private_labels is not None:
            self.private_labels = self.private_labels.of_nodes(order)
        if self.transfers is not None:
            self.transfers = renumbered(self.transfers, number)
        return numbered, edges

    def write_key(self, path: Path) -> bool:
        """Write the key file of numbers and names, for the owner only (private).

        Returns:
            Whether there is a key: there is none where names are published.
        """
        if self._numbering is None:
            return False
        write_key_file(path, self._nodes.node_names)
        return True

    def state_dict(self) -> dict[str, Any]:
        """Return the numbering of the nodes, which a resumed run needs (private)."""
        return {} if self._numbering is None else {"numbering": list(self._numbering)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the numbering of a resumed run or of another process.

        Raises:
            MisconfigurationException: If the tensors of the checkpoint follow another order.
        """
        numbering = state_dict.get("numbering")
        then = "ids" if numbering is None else "numbers"
        if self._read is not None and (numbering is None) != (self._numbering is None):
            raise MisconfigurationException(
                f"the checkpoint was made with names: {then}, and its tensors follow their order\n"
                f"set nodes.names to {then} (--names {then})"
            )
        if numbering is not None and numbering != self._numbering:
            self._numbering = list(numbering)
            self._forget()
            self.assumptions = []

    @property
    def num_nodes(self) -> int:
        """Return the number of nodes N (public)."""
        return int(self._nodes.num_nodes)

    @property
    def num_edges(self) -> int:
        """Return the number of edges including held-out edges (private)."""
        return len(self._once()[1])

    @property
    def num_pairs(self) -> int:
        """Return the number of pairs of nodes that may be linked (public)."""
        return self.space.num_pairs

    def predict_dataloader(self) -> DataLoader[Tensor]:
        """Return the seeds of the graphs to generate, one scalar tensor each."""
        if self.num_graphs < 1:
            raise Refusal(f"num_graphs must be positive, got {self.num_graphs}")
        return DataLoader(Batches(list(torch.arange(self.num_graphs))), batch_size=None)
