"""Base class of the data modules of one graph."""

import csv
import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import pytorch_lightning as pl
import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor
from torch.utils.data import DataLoader
from torch_geometric.data import Data

from lightning_dpg.datamodules.batches import Batches
from lightning_dpg.datamodules.identity import identity_of
from lightning_dpg.datamodules.loading import GraphSource, load_reading
from lightning_dpg.datamodules.node_attributes import (
    LEFT_OUT,
    NAMED_BY_ATTRIBUTES,
    AttributeSource,
    attribute_table,
    described,
    own_attributes,
)
from lightning_dpg.errors import Refusal
from lightning_dpg.graph.attributes import (
    PUBLIC_ATTRIBUTES,
    AttributeTable,
    Policy,
    attach,
    attributes_of,
    encode,
    private_columns,
    share_attributes,
)
from lightning_dpg.graph.conversion import GraphReading, NodeSet, holds_attributes
from lightning_dpg.graph.graph import largest_component
from lightning_dpg.graph.kinds import given_sides, in_kind
from lightning_dpg.graph.pair_space import Kind, PairSpace, space_of
from lightning_dpg.interfaces import Identity

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


def node_set_assumption(num_nodes: int, node_set: NodeSet, names: str) -> str:
    """State what a guarantee assumes of the nodes, by their origin."""
    fact, shows = f"the {num_nodes} nodes and their names", "is in the release"
    if names == "numbers":
        fact, shows = f"the number of nodes, {num_nodes}", "is counted"
    return f"{fact} ({_NODE_SETS[node_set].format(shows=shows)})"


def sides_assumption(node_set: NodeSet) -> str:
    """State what a guarantee assumes of the sides of a bipartite graph."""
    return _SIDES_OF_COLUMNS if node_set is NodeSet.LINES else _PUBLIC_SIDES


class GraphDataModule(pl.LightningDataModule):
    """One graph, and the seeds of the graphs to generate.

    The graph is read at its first use and never for prediction, which needs seeds only.

    Attributes:
        assumptions: What a guarantee assumes public because of the preparation of the data.
        notes: Lines for the owner that tell nothing of the edges.
        summary: One line on what was read, with exact counts and names: for the owner's terminal,
            never for a log, a tracker or a release (private); None before the graph is read.
    """

    def __init__(
        self,
        name: GraphSource = "les_miserables",
        *,
        undirected: bool = False,
        largest_component: bool = False,
        num_graphs: int = 1,
        nodes: str | Sequence[str] | None = None,
        node_column: str | None = None,
        names: Literal["keep", "numbers"] = "keep",
        source_column: str | int | None = None,
        target_column: str | int | None = None,
        node_attributes: AttributeSource | None = None,
        attribute_policy: dict[str, Policy] | None = None,
        kind: Kind = "undirected",
        left_nodes: str | Sequence[str] | None = None,
        right_nodes: str | Sequence[str] | None = None,
        side_column: str | None = None,
        missing_ids: Literal["refuse", "drop"] = "refuse",
    ) -> None:
        """Store the arguments; nothing is read yet.

        Args:
            name: Built-in graph, data set under ``$LIGHTNING_DPG_DATA``, or path of a file. From
                Python also a graph of networkx or PyTorch Geometric, a data set of one graph, a
                square matrix of numpy or scipy, a DataFrame or an array of shape ``(M, 2)`` with an
                edge per row, or a list of pairs, see :func:`load_reading`.
            undirected: Drop the directions of a directed graph instead of refusing it.
            largest_component: Keep the largest connected component only. It is found by looking
                at the private edges, which becomes an assumption of the guarantee.
            num_graphs: Number of graphs to generate in ``predict``, from the seeds 0, 1, ...
            nodes: Ids of all nodes (public), or a file of them: one per line, or a table in CSV.
                ``from_edges``: the ids that occur on the private lines of an edge list, which
                becomes an assumption of the guarantee. By default the node table of the graph or,
                of an edge list, ``from_edges``.
            node_column: Column of the table of nodes that holds the ids.
            names: ``numbers`` publishes numbers from 0 to N - 1 in a secret random order instead
                of names, and leaves a key file in the run folder.
            source_column: Column of an edge list or a table that holds the first id of each edge,
                by name or by number from 1 on.
            target_column: Column that holds the second id.
            node_attributes: Public attributes of the nodes: a table in CSV, TSV or Parquet with a
                row per node, whose ids are also the nodes unless ``nodes`` is given or the graph
                is bipartite; or ``from_graph``: those in the graph itself. By default none are used
                or published.
            attribute_policy: Policy of each column by its name. ``public``, the default, finds out
                whether it holds numbers, categories or text; ``number``, ``category``, ``text`` and
                ``label`` (classes) say so; ``drop`` leaves it out; ``private`` refuses methods that
                cannot protect it.
            kind: ``undirected``; ``directed``, where an edge is an ordered pair of nodes; or
                ``bipartite``, where an edge links a left and a right node, and the side of each
                node is public.
            left_nodes: Ids of all left nodes (public), or a file of them as for ``nodes``. By
                default the sides are those of the graph or, of an edge list, of its two columns.
            right_nodes: Ids of all right nodes (public), or a file of them.
            side_column: Column of the table of nodes that holds the side, one of two values.
            missing_ids: Whether to ``refuse`` rows of edges without an id or to ``drop`` them.
        """
        super().__init__()
        # No save_hyperparameters: a graph object among them would end in checkpoints and logs.
        self.source = name
        self.undirected = undirected
        self.largest_component = largest_component
        self.num_graphs = num_graphs
        self.nodes = nodes
        self.node_column = node_column
        self.names = names
        self.source_column = source_column
        self.target_column = target_column
        self.node_attributes = node_attributes
        self.attribute_policy = attribute_policy
        self.private_attributes: list[str] = []
        self.kind = kind
        self.left_nodes = left_nodes
        self.right_nodes = right_nodes
        self.side_column = side_column
        self.missing_ids = missing_ids
        self.assumptions: list[str] = []
        self.notes: list[str] = []
        self.summary: str | None = None
        self._graph: Data | None = None
        self._file_order: Sequence[str] | None = None
        self._whole: Data | None = None
        self._numbering: list[int] | None = None
        self._key: list[str] | None = None

    @property
    def graph(self) -> Data:
        """Return the whole graph (private), read at the first use."""
        if self._graph is None:
            self._graph = self._read_graph()
        return self._graph

    def identity(self) -> Identity:
        """Canonical content of the whole graph under its own names (private)."""
        if self._whole is None:
            _ = self.graph
        assert self._whole is not None  # read with the graph
        return identity_of([self._whole])

    def _read_graph(self) -> Data:
        if self.names not in ("keep", "numbers"):
            raise Refusal(f"names must be 'keep' or 'numbers', got {self.names!r}")
        self._check_kind()
        table = attribute_table(self.node_attributes, self.attribute_policy, self.node_column)
        nodes = self.nodes
        if nodes is None and table is not None and self.kind != "bipartite":
            nodes = table.ids
        ids = self.left_nodes, self.right_nodes, self.nodes
        sides = given_sides(*ids, self.node_column, self.side_column)
        reading = load_reading(
            self.source,
            undirected=self.undirected or self.kind != "undirected",
            nodes=nodes,
            node_column=self.node_column,
            columns=self._columns(),
            missing_ids=self.missing_ids,
        )
        self._file_order = reading.file_order
        reading = in_kind(reading, self.kind, sides)
        graph, self.summary = reading.graph, reading.summary
        self._whole = graph
        total = graph.num_nodes
        if self.largest_component:
            graph = largest_component(graph)
            self.assumptions.append(
                f"the largest component, {graph.num_nodes} of {total} nodes (although found by "
                "looking at the private edges)"
            )
        self.assumptions.append(node_set_assumption(graph.num_nodes, reading.node_set, self.names))
        if self.node_attributes is not None:
            self._add_attributes(graph, reading, table)
        elif holds_attributes(reading) and reading.node_set is not NodeSet.BUILT_IN:
            self.notes.append(LEFT_OUT)
        if self.kind == "bipartite":
            self.assumptions.append(sides_assumption(reading.node_set))
        return graph if self.names == "keep" else self._numbered(graph)

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
        sides = (self.left_nodes, self.right_nodes, self.side_column)
        if self.kind != "bipartite" and sides != (None, None, None):
            raise MisconfigurationException(
                "left_nodes, right_nodes and side_column are for kind: bipartite"
            )

    @property
    def space(self) -> PairSpace:
        """Return the pairs of nodes that may be linked (public)."""
        return space_of(self.graph)

    def _add_attributes(
        self, graph: Data, reading: GraphReading, table: AttributeTable | None
    ) -> None:
        """Give the nodes of a graph their public attributes."""
        policy = self.attribute_policy or {}
        read = own_attributes(reading, self.kind) if table is None else table
        self.private_attributes = private_columns(read, policy)
        attributes = encode(read, graph.node_names, policy)
        attach(graph, attributes)
        self.summary = f"{self.summary}; {described(read, policy, attributes, graph.node_names)}"
        self.assumptions.append(PUBLIC_ATTRIBUTES)

    def _on_nodes(self, edges: Tensor) -> Data:
        """Build a graph of some of the edges, with all nodes and their public attributes."""
        return share_attributes(self.space.graph(edges, self.graph.node_names), self.graph)

    def _columns(self) -> tuple[str, str] | None:
        given = (self.source_column, self.target_column)
        if given == (None, None):
            return None
        if None in given:
            raise MisconfigurationException("set both source_column and target_column, or neither")
        return str(given[0]), str(given[1])

    def _numbered(self, graph: Data) -> Data:
        """Replace names by numbers in an order that only the key file reveals."""
        if self._numbering is None:
            self._numbering = list(range(graph.num_nodes))
            random.SystemRandom().shuffle(self._numbering)
        if len(self._numbering) != graph.num_nodes:
            raise MisconfigurationException(
                f"the checkpoint numbers {len(self._numbering)} nodes, and the graph has "
                f"{graph.num_nodes}: resume with the data of the first run"
            )
        space = space_of(graph)
        if space.num_left is not None:  # the left nodes keep the first numbers
            self._numbering.sort(key=lambda node: node >= (space.num_left or 0))
        self._key = [graph.node_names[node] for node in self._numbering]
        number = torch.empty(graph.num_nodes, dtype=torch.long)
        number[torch.tensor(self._numbering)] = torch.arange(graph.num_nodes)
        self.assumptions.append(
            "that the nodes are numbered in a secret random order (the release holds no name)"
        )
        made = space.graph(number[space.edges(graph)])
        attributes = attributes_of(graph)
        if attributes is not None:
            attach(made, attributes.of_nodes(torch.tensor(self._numbering)))
            self.assumptions.append(NAMED_BY_ATTRIBUTES)
        return made

    def write_key(self, path: Path) -> bool:
        """Write the key file of numbers and names, for the owner only (private).

        Returns:
            Whether there is a key: there is none where names are published.
        """
        if self._key is None:
            return False
        path.unlink(missing_ok=True)  # an older file may have another mode
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("number", "name"), *enumerate(self._key)])
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
        then, now = ("keep" if numbering is None else "numbers"), self.names
        if then != now and self._graph is not None:
            raise MisconfigurationException(
                f"the checkpoint was made with names: {then}, and its tensors follow their order\n"
                f"set names to {then} (--data.names {then})"
            )
        if numbering is not None and numbering != self._numbering:
            self._numbering, self._graph = list(numbering), None
            self.assumptions = []

    @property
    def num_nodes(self) -> int:
        """Return the number of nodes N (public)."""
        return int(self.graph.num_nodes)

    @property
    def num_edges(self) -> int:
        """Return the number of edges including held-out edges (private)."""
        return len(self.space.edges(self.graph))

    @property
    def num_pairs(self) -> int:
        """Return the number of pairs of nodes that may be linked (public)."""
        return self.space.num_pairs

    def predict_dataloader(self) -> DataLoader[Tensor]:
        """Return the seeds of the graphs to generate, one scalar tensor each."""
        if self.num_graphs < 1:
            raise Refusal(f"num_graphs must be positive, got {self.num_graphs}")
        return DataLoader(Batches(list(torch.arange(self.num_graphs))), batch_size=None)
