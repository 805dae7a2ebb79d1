"""Attributed: private columns of nodes, amounts and times of transfers, beside private edges."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import Context
from dataclasses import replace
from itertools import product, repeat
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor, nn
from torch_geometric.data import Data

from lightning_dpg.graph.attributes import attach
from lightning_dpg.graph.degrees import with_degrees
from lightning_dpg.graph.drawn_tables import DrawnRows, attach_rows, attach_transfers
from lightning_dpg.graph.edge_statistics import (
    MIXING_UNIT,
    GraphStatisticsSource,
    Pairs,
    check_mixing,
    mixing_matrices,
)
from lightning_dpg.graph.mixing import NoisyMixing, place_rows, rewire
from lightning_dpg.graph.pair_space import Kind
from lightning_dpg.graph.rows import (
    Marginal,
    check_cells,
    count_pairs,
    draw_rows,
    fit_joint,
    spread_over_classes,
    tables_of_pairs,
    times_counted,
    trends,
)
from lightning_dpg.graph.transfer_counts import first_days_of
from lightning_dpg.interfaces import ALL_KINDS, HoldsPrivateColumns, PrivateColumns, TransferBounds
from lightning_dpg.methods.base import share_ledger
from lightning_dpg.methods.constraints import Constraint, Constraints
from lightning_dpg.methods.planning import Reads, check_shares
from lightning_dpg.methods.single_graph.attributed_transfers import TransferPart
from lightning_dpg.methods.single_graph.base import OneShotSynthesizer
from lightning_dpg.methods.single_graph.bter import BTER, degree_classes, merged_classes
from lightning_dpg.methods.single_graph.chung_lu import ChungLu
from lightning_dpg.methods.single_graph.erdos_renyi import ErdosRenyi
from lightning_dpg.methods.single_graph.privgraph import PrivGraph
from lightning_dpg.methods.single_graph.protected_unit import (
    ProtectedUnit,
    TransferFacts,
    counts_of,
    relation_of,
    transfers_of,
    window_from,
    window_text,
)
from lightning_dpg.preflight.data import served_records
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry, Pure, Relation
from lightning_dpg.privacy.sensitivity.private_columns import (
    mixing_edge_sensitivity,
    mixing_row_sensitivity,
    row_table_sensitivity,
)

DRAWN_ROWS = "Rows of the synthetic table are drawn: the row beside a name is not that person's."
"""Sentence of the statement of each release with drawn rows."""

# Nodes of a class of degrees per unit of noise in their tables, below which classes are merged.
_NODES_PER_NOISE = 10


def private_columns_of(records: object) -> PrivateColumns:
    """Return the private columns that records hold, which a check of the data has found."""
    columns = records.private_columns if isinstance(records, HoldsPrivateColumns) else None
    assert columns is not None
    return columns


def row_record(domains: Mapping[str, Sequence[str]] | None) -> str:
    """Return the unit of protection of rows, with the names of the columns."""
    names = list(domains or ())
    if not names:
        return ""  # before the data are known, the relation says it
    return f"private column{'s' * (len(names) > 1)} {', '.join(names)} of one node"


class Side(NamedTuple):
    """Nodes that have the same private columns: all, or those of one side of a bipartite graph.

    Attributes:
        nodes: Their numbers.
        columns: Places of their columns among all.
        sizes: Number of values of each of them.
    """

    nodes: slice
    columns: list[int]
    sizes: list[int]

    def rows(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the part of rows ``(N, J)`` that they have."""
        return rows[self.nodes][:, self.columns]


def table_entry(epsilon: float, sides: Sequence[Side], record: str) -> LedgerEntry:
    """Plan the read of the tables of nodes.

    Args:
        epsilon: Its cost to the columns of one node.
        sides: Nodes that have columns; each is in the tables of its side.
        record: Unit of protection in words.
    """
    tables = max(sum(times_counted(1 + len(side.columns))) for side in sides)
    return LedgerEntry.proved(
        "row_tables",
        "nodes by private columns and classes of released degrees",
        Pure(epsilon),
        row_table_sensitivity,
        tables,
        relation=Relation.ATTRIBUTES,
        record=record,
        public={"tables": tables},
    )


class NodeGroups(NamedTuple):
    """Groups of the classes of released degrees, in which tables count nodes.

    Attributes:
        of_class: Group of each class, shape ``(K,)``.
        sizes: Number of nodes of each group, shape ``(G,)``.
        of_node: Group of each node, shape ``(N,)``.
        of_classes: Number of nodes of each class, shape ``(K,)``.
    """

    of_class: NDArray[np.int64]
    sizes: NDArray[np.float64]
    of_node: NDArray[np.int64]
    of_classes: NDArray[np.float64]


def node_groups(degrees: NDArray[np.int64], read: LedgerEntry, num_columns: int) -> NodeGroups:
    """Merge classes of released degrees until each has enough nodes for the noise of the tables.

    Args:
        degrees: Released degrees of all nodes, shape ``(N,)``.
        read: Read of the tables.
        num_columns: Number of private columns.
    """
    classes = degree_classes(degrees)
    # The first table has the class.
    least = _NODES_PER_NOISE * read.scale / times_counted(1 + num_columns)[0]
    of_classes = np.bincount(classes, minlength=1).astype(np.float64)
    of_class = merged_classes(of_classes, least)
    of_node = of_class[classes]
    sizes = np.bincount(of_node, minlength=int(of_class.max()) + 1).astype(np.float64)
    return NodeGroups(of_class, sizes, of_node, of_classes)


def fitted_joint(
    noisy: NDArray[np.float64], groups: NodeGroups, sizes: Sequence[int], scale: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Fit the joint distribution of group and columns to noisy tables of :func:`count_pairs`.

    Where the share of a value grows or falls with the degree, see :func:`trends`, the rows of a group are
    spread over its classes, and each class is a group of its own.

    Returns:
        Group of each class, and the distribution.
    """
    all_sizes = [len(groups.sizes), *sizes]
    marginals = [Marginal((0,), groups.sizes, 0.0)]
    tables = tables_of_pairs(noisy, all_sizes)
    for (axes, table), count in zip(tables.items(), times_counted(len(all_sizes)), strict=True):
        marginals.append(Marginal(axes, table / count, scale / count))
    joint, of_class = fit_joint(marginals, all_sizes), groups.of_class
    if scale > 0 and 1 < len(groups.sizes) < len(of_class):  # a single group has no trend
        nodes, classes = np.maximum(groups.of_classes, 1), np.arange(len(of_class))
        places = np.bincount(of_class, nodes * classes) / np.bincount(of_class, nodes)
        slopes = [trends(each, groups.sizes, places) for each in marginals[1 : len(all_sizes)]]
        if any(map(np.any, slopes)):
            return classes, spread_over_classes(joint, of_class, nodes, slopes)
    return of_class, joint


_PROOFS = {Relation.EDGE: mixing_edge_sensitivity, Relation.ATTRIBUTES: mixing_row_sensitivity}


class MixingCosts(NamedTuple):
    """Epsilons of the read of mixing, whose noise serves both relations."""

    edges: float
    rows: float


class MixingRead(NamedTuple):
    """The read of mixing.

    Attributes:
        max_weight: Largest weight D of all edges of a node together (public).
        sizes: Number of values of each private column (public).
        pairs: Columns of both ends, where these have an order; there may be none (public).
    """

    max_weight: int
    sizes: tuple[int, ...]
    pairs: Pairs = None

    def costs(
        self, edges: Budget, rows: Budget | None, edge_share: float, row_share: float
    ) -> MixingCosts:
        """Return the epsilons under both relations, by the larger of the noises that they need.

        They are 0 if no edge has columns at both ends, so that there is nothing to read.

        Args:
            edges: Budget of the edges.
            rows: Budget of the rows, if there is one.
            edge_share: Share of the edges' budget at most.
            row_share: Share of the rows' budget at most.
        """
        if self.pairs is not None and not self.pairs:
            return MixingCosts(0.0, 0.0)
        edge, row = (self._sensitivity(relation) for relation in _PROOFS)
        most_edges = edge_share * edges.epsilon
        most_rows = math.inf if rows is None else row_share * rows.epsilon
        scale = max(edge / most_edges, row / most_rows)
        if not scale:
            return MixingCosts(math.inf, math.inf)
        return MixingCosts(min(edge / scale, most_edges), min(row / scale, most_rows))

    def _sensitivity(self, relation: Relation) -> int:
        return _PROOFS[relation](self.max_weight, self.sizes, MIXING_UNIT, self.pairs)

    def entry(self, costs: MixingCosts, relation: Relation, record: str) -> LedgerEntry:
        """Plan the read under one relation."""
        is_edge = relation is Relation.EDGE
        return LedgerEntry.proved(
            "column_mixing" if is_edge else "column_mixing_rows",
            f"weights of edges by the values of their ends, in 1/{MIXING_UNIT}",
            Pure(costs.edges if is_edge else costs.rows),
            _PROOFS[relation],
            self.max_weight,
            self.sizes,
            MIXING_UNIT,
            self.pairs,
            relation=relation,
            record=record,
            public={"max_weight": self.max_weight, "unit": MIXING_UNIT},
        )


_STRUCTURES: dict[str, Callable[[int | None], OneShotSynthesizer]] = {
    "bter": BTER,
    "chung_lu": ChungLu,
    "privgraph": PrivGraph,
    "erdos_renyi": ErdosRenyi,
}
_UNKNOWN_SIZES = (2,)  # of columns, for a plan before the data are known
_MOST_WEIGHT = 1024
_MOST_TRANSFERS = 1000
_WEIGHT = Constraint(
    f"a whole number from 1 to {_MOST_WEIGHT}",
    lambda value: type(value) is int and 1 <= value <= _MOST_WEIGHT,
)
_TRANSFERS = Constraint(
    f"a whole number from 2 to {_MOST_TRANSFERS}",
    lambda value: type(value) is int and 2 <= value <= _MOST_TRANSFERS,
)


class Attributed(OneShotSynthesizer):
    r"""Graphs with private columns of nodes and transfers, on the structure of another method.

    The data have private columns of nodes, amounts or times of transfers, or several of these. The
    reads, with discrete Laplace noise:

    1. The structure, by the method of that name, which reads edges only.
    2. Tables of the nodes by each pair of [class of the released degree, private columns], which read
       rows only. Classes are powers of two, and classes of few nodes are merged; rows differ between
       merged classes where the share of a value grows or falls with the degree. A structure that
       releases no degree of each node has one class. With four columns and more, tables with the
       class count each node several times, which gives them less noise than the other tables.
       Of a bipartite graph each side has tables of its own columns.
    3. For each column the sum of the weights of the edges between each pair of values, in directed
       graphs by the order of both ends, and in bipartite ones for each column of left nodes and each of
       right ones. An edge
       weighs :math:`\min(1, D / \max(d_u, d_v))` by the true degrees. No edge is left out and no degree
       is bounded. This reads both, and one noise serves both: an edge pays
       :math:`3D / ((D + 1) b)` and a row :math:`2D / b` for each column or pair of them, see
       :func:`mixing_edge_sensitivity` and :func:`mixing_row_sensitivity`. What the smaller of both noises
       would save is left to the structure, or to the tables.
    4. Amounts: transfers by bins of amounts and by classes of the released degrees of payer and payee;
       sums of amounts by public classes of both, or by classes of the degrees; nodes by their true degree
       and the sum of their amounts, see :func:`amount_count_sensitivity`,
       :func:`amount_sum_sensitivity` and :func:`strength_sensitivity`.
    5. Times: transfers by hour of the week and by day, gaps within pairs by length and reply, pairs by
       the day of their first transfer; by weeks or four weeks where days would be noise. See :func:`event_count_sensitivity`,
       :func:`relation_gap_sensitivity` and :func:`relation_contact_sensitivity`.
    6. Pairs by the number of their transfers, where a pair has several.

    The rest is post-processing, so that any number of graphs is free: a joint distribution is fitted to
    the tables, without categories that no more than noise has; a graph is drawn, then a row for each
    node given the class of its degree; whole rows are exchanged within classes, and then edges rewired
    without a change of degrees, until the mixing is as close to the released one as its noise allows.
    Amounts are drawn by the classes of their ends, where bins within the noise are taken from all
    transfers, and multiplied until sums and the strengths of nodes are as released. Edges of the
    structure ``chung_lu`` move first, until the degrees are the released ones, see
    :func:`with_degrees`. Times come from
    renewal: each pair begins on a day of the curve of new pairs and goes on by the curve of gaps. Then
    sessions move to the ranks of the curves of days and hours, and exchange their times until the gaps
    are those of the curve, see :func:`draw_stamps`.

    When to use:
        For tables of people with private columns and private relations, where the columns and the
        relations depend on each other; and for tables of transfers, for totals, curves and
        distributions. Associations that are weaker than the noise do not come through: four columns of
        a graph of 7,000 nodes need a homophily of about 0.1. *Which* nodes pay much is not in the
        release. For the structure alone take its method.

    Privacy:
        Pure epsilon-DP at the level of edges (one edge or arc is added or removed), and, with
        private columns, at the level of the columns of one node (they are exchanged for any others).
        Each level has a total of its own. The guarantee has no condition and needs no delta. With
        transfers, one edge is a pair with all of them: its first k, with their amounts and times,
        count, or without times the sum of all amounts. With ``unit: transfer`` one transfer is
        protected, and all of them count. What is proved for one edge holds for one transfer, which adds
        or removes one edge at most. The set of nodes, the domains of the columns, the largest amount
        and the window of the times are public. Rows and transfers are drawn: what stands
        beside a node is not what its bearer has.

    Cost:
        Time and memory are the structure's, and O(N J + M J) more, with a joint distribution of at most
        a million cells; for T transfers O(T log T).

    Differences from the paper:
        AGM-DP leaves out edges of nodes of many edges, counts mixing of all combinations of values, and
        adds both budgets up. Here each edge counts, mixing is by column, and each relation has a total.
        It has no transfers.

    * Jorgensen, Yu, Cormode, "Publishing attributed social graphs with formal privacy guarantees",
      2016.

    Args:
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        structure: Method of the edges. Directed and bipartite graphs need one that learns them, such as
            ``chung_lu``. Reciprocity of arcs is not learned.
        structure_share: Share of the edges' budget for the structure, at least; mixing gets the rest.
            With transfers it is the share of what these leave.
        table_share: Share of the rows' budget for the tables, at least; mixing gets the rest.
        max_weight: Largest weight D of all edges of a node together, a whole number.
        domains: Values of each private column by its name (public); they come from the data.
        unit: What is protected of transfers: one ``relation`` with all of them, or one ``transfer``.
        max_transfers: Number k of transfers of a relation that count, the first ones, where the data
            have times and the unit is a relation.
        amount_share: Share of the edges' budget for amounts, where the data have them; .4 by default,
            and .25 if they have times, too.
        time_share: Share of the edges' budget for times; .4 by default, and .25 if they have amounts.
        weight_max: Largest amount that counts (public); it comes from the data.
        time_window: First and last day of the times (public); they come from the data.
        right_columns: Names of the private columns that right nodes of a bipartite graph have; left
            nodes have the others (public). They come from the data.
    """

    capabilities = replace(
        OneShotSynthesizer.capabilities,
        learns_private_columns=True,
        learns_transfers=True,
        kinds=ALL_KINDS,
    )
    constraints: ClassVar[Constraints] = {"max_weight": _WEIGHT, "max_transfers": _TRANSFERS}

    def __init__(
        self,
        num_nodes: int | None = None,
        structure: Literal["bter", "chung_lu", "privgraph", "erdos_renyi"] = "bter",
        structure_share: float = 0.85,
        table_share: float = 0.5,
        max_weight: int = 4,
        domains: dict[str, list[str]] | None = None,
        unit: ProtectedUnit = "relation",
        max_transfers: int = 10,
        amount_share: float | None = None,
        time_share: float | None = None,
        weight_max: float | None = None,
        time_window: str | None = None,
        right_columns: list[str] | None = None,
    ) -> None:
        self.relation = relation_of(unit)  # before the ledger is made
        super().__init__()
        self.save_hyperparameters()
        check_shares(structure_share=structure_share)
        check_shares(table_share=table_share)
        shares = {"amount_share": amount_share, "time_share": time_share}
        if given := {name: share for name, share in shares.items() if share is not None}:
            check_shares(**given)
        # Lightning's command line hands the settings of this class to save_hyperparameters by a
        # variable of the context; the structure must not take them for its own.
        self.structure: OneShotSynthesizer = Context().run(_STRUCTURES[structure], num_nodes)
        self.transfers = TransferPart()
        self.degree_groups: Tensor = nn.Buffer(torch.zeros(1, dtype=torch.long))
        self.joint: Tensor = nn.Buffer(torch.empty(0, dtype=torch.double))
        self.mixing: Tensor = nn.Buffer(torch.empty(0, dtype=torch.double))
        self.mixing_scale: Tensor = nn.Buffer(torch.tensor(0.0, dtype=torch.double))

    @property
    def has_transfers(self) -> bool:
        """Whether the data are known to have amounts or times of transfers."""
        return self._bounds != (None, None)

    @property
    def reads_private_columns(self) -> bool:
        """Whether the data have private columns; before the data are known, whether they may."""
        return self.hparams["domains"] is not None or not self.has_transfers

    @property
    def reading_note(self) -> str | None:
        """Say that rows are drawn, and so are amounts and times, and which days are noise."""
        columns = zip(("amounts", "times"), self._bounds, strict=True)
        drawn = " and ".join(name for name, bound in columns if bound is not None).capitalize()
        return " ".join(
            note
            for note, is_there in (
                (DRAWN_ROWS, self.reads_private_columns),
                (f"{drawn} of transfers are drawn: {_NOT_REAL}", self.has_transfers),
                (
                    f"Days were counted in bins of {self._days_of_bins} days.",
                    self._days_of_bins > 1,
                ),
            )
            if is_there
        )

    @property
    def _days_of_bins(self) -> int:
        """Number of days of a bin of the released curve of days; 1 before the release."""
        bins, window = len(self.transfers.times.days), self.facts.window
        if window is None or not bins:
            return 1
        first = first_days_of(window.days, bins)
        return int(first[1]) if bins > 1 else window.days

    @property
    def _sizes(self) -> tuple[int, ...]:
        """Number of values of each private column (public)."""
        columns = self.hparams["domains"]
        return _UNKNOWN_SIZES if not columns else tuple(map(len, columns.values()))

    @property
    def sides(self) -> list[Side]:
        """Nodes that have private columns (public): all of them, or each side that has some."""
        if self.kind != "bipartite":
            return [Side(slice(None), list(range(len(self._sizes))), list(self._sizes))]
        right, left = set(self.hparams["right_columns"] or ()), self.num_left
        is_right = [name in right for name in self.hparams["domains"] or "?"]
        parts = []
        for nodes, side in ((slice(left), False), (slice(left, None), True)):
            columns = [place for place, found in enumerate(is_right) if found is side]
            parts.append(Side(nodes, columns, [self._sizes[place] for place in columns]))
        return [part for part in parts if part.columns]

    @property
    def pairs(self) -> Pairs:
        """Columns of both ends whose mixing is read; None of an undirected graph (public)."""
        if self.kind == "undirected":
            return None
        if self.kind == "directed":
            return [(place, place) for place in range(len(self._sizes))]
        sides = self.sides
        return list(product(sides[0].columns, sides[-1].columns)) if len(sides) == 2 else []

    @property
    def noisy_mixing(self) -> list[NoisyMixing]:
        """Released mixing of each column, or of pairs of columns."""
        matrices = mixing_matrices(self.mixing.cpu().numpy(), self._sizes, self.pairs)
        places: Iterable[tuple[int, int] | None] = self.pairs or [None] * len(matrices)
        return [
            NoisyMixing(*each) for each in zip(matrices, repeat(float(self.mixing_scale)), places)
        ]

    @property
    def _bounds(self) -> TransferBounds:
        """Public bounds of amounts and times."""
        return TransferBounds(self.hparams["weight_max"], window_from(self.hparams["time_window"]))

    @property
    def facts(self) -> TransferFacts:
        """What is public of the transfers, and the unit."""
        h = self.hparams
        return TransferFacts(
            h["unit"], h["max_transfers"], self._bounds, self.kind, self.edge_record
        )

    def take_num_nodes(self, num_nodes: int) -> None:
        """Keep the public number of nodes, also for the structure."""
        super().take_num_nodes(num_nodes)
        self.structure.take_num_nodes(num_nodes)

    def take_kind(self, kind: Kind, num_left: int | None) -> None:
        """Keep the public kind of the graph, also for the structure."""
        super().take_kind(kind, num_left)
        self.structure.take_kind(kind, num_left)

    def accept_data(self, data: object) -> None:
        """Refuse data of another kind, or columns of too many values; take the public facts."""
        super().accept_data(data)
        records = served_records(type(self).__name__, self.capabilities.reads, data)
        columns = records.private_columns if isinstance(records, HoldsPrivateColumns) else None
        self._take_public_fact("domains", None if columns is None else columns.domains)
        right = [] if columns is None else list(columns.right)
        self._take_public_fact("right_columns", right or None)
        transfers = transfers_of(records)
        bounds = TransferBounds(None, None) if transfers is None else transfers.bounds
        self._take_public_fact("weight_max", bounds.weight_max)
        self._take_public_fact("time_window", window_text(bounds.window))
        if transfers is None and self.hparams["unit"] != "relation":
            raise MisconfigurationException(
                "unit transfer protects one transfer, and the data have neither amounts nor times\n"
                "name the columns, such as --data.columns.time at, or leave model.init_args.unit out"
            )
        if self.kind not in self.structure.capabilities.kinds:
            raise MisconfigurationException(
                f"{type(self).__name__} learns undirected graphs by the structure "
                f"{self.hparams['structure']}, and this one is {self.kind}\n"
                "take another structure: --model.init_args.structure chung_lu"
            )
        num_nodes = self.hparams["num_nodes"]
        if columns is None:
            return
        check_mixing(num_nodes, self._sizes, self.pairs)
        classes = degree_classes(np.array([num_nodes]))[0] + 1 + (self.kind == "directed")
        for side in self.sides:
            check_cells([int(classes), *side.sizes])

    def _take_public_fact(self, name: str, value: object) -> None:
        """Take a public fact of the data, and refuse a setting that differs from it."""
        if self.hparams[name] is None:
            self.hparams[name] = value
        if self.hparams[name] != value:
            raise MisconfigurationException(
                f"{name} is not {_FACTS[name]} of the data\n"
                f"leave model.init_args.{name} out: it comes from the data"
            )

    def on_fit_start(self) -> None:
        """Copy the public facts of the data, the domains of the private columns among them."""
        super().on_fit_start()
        if self.hparams["domains"]:
            names = ", ".join(self.hparams["domains"])
            self.assumptions.append(
                f"the values and bins that the private columns can have ({names}), which were not "
                "collected from them"
            )

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the structure, rows and mixing, and transfers; the number of steps has no effect.

        Without a budget of rows the entries of rows are left out.
        """
        bounds, h = self._bounds, self.hparams
        given = {"amounts": h["amount_share"], "times": h["time_share"]}
        has = {"amounts": bounds.weight_max is not None, "times": bounds.window is not None}
        usual = _SHARE_OF_BOTH if all(has.values()) else _SHARE_ALONE
        shares = {part: given[part] or usual for part in given if has[part]}
        if shares:
            check_shares(**shares)
        spent = {part: share * budget.epsilon for part, share in shares.items()}
        rest = _rest(budget, *spent.values())
        entries = (
            self._edge_entries(rest) if self.reads_private_columns else self.structure.plan(rest, 1)
        )
        if self.relation is Relation.TRANSFER:
            entries = [
                read.by_transfer() if read.relation is Relation.EDGE else read for read in entries
            ]
        return [*entries, *(self.transfers.entries(self.facts, spent) if spent else ())]

    def _edge_entries(self, budget: Budget) -> list[LedgerEntry]:
        """Plan the structure, the tables of rows and the mixing."""
        h, rows = self.hparams, self.ledger.budget_of(Relation.ATTRIBUTES)
        record = row_record(h["domains"])
        mixing = MixingRead(h["max_weight"], self._sizes, self.pairs)
        costs = mixing.costs(budget, rows, 1 - h["structure_share"], 1 - h["table_share"])
        entries = self.structure.plan(_rest(budget, costs.edges), 1)
        if rows is not None:
            entries.append(table_entry(_rest(rows, costs.rows).epsilon, self.sides, record))
        if self.pairs != []:
            entries.append(mixing.entry(costs, Relation.EDGE, self.edge_record))
            if rows is not None:
                entries.append(mixing.entry(costs, Relation.ATTRIBUTES, record))
        return entries

    def release(self, source: GraphStatisticsSource, reads: Reads) -> None:
        """Release the structure, the rows and their mixing, and the transfers."""
        share_ledger(self, self.structure)
        self.structure.release(source, reads)
        self.num_edges = self.structure.num_edges.clone()
        if self.reads_private_columns:
            rows = private_columns_of(self.records).values.numpy()
            self._release_tables(rows, reads["row_tables"])
            if self.pairs != []:
                weight, read = self.hparams["max_weight"], reads["column_mixing"]
                cells = source.column_mixing(rows, self._sizes, weight, self.pairs)
                noisy = self.pay(read, torch.from_numpy(cells), also=[reads["column_mixing_rows"]])
                self.mixing = noisy.double() / MIXING_UNIT
                self.mixing_scale = torch.tensor(read.scale / MIXING_UNIT, dtype=torch.double)
        transfers = transfers_of(self.records)
        if transfers is not None:
            public = self.node_attributes
            self.transfers.release(
                self,
                counts_of(transfers, self.facts, self.space),
                self.facts,
                self._released_degrees(),
                None if public is None else public.y,
                reads,
            )

    def _release_tables(self, rows: NDArray[np.int64], read: LedgerEntry) -> None:
        """Release the tables of rows of shape ``(N, J)`` (private), and fit their distributions."""
        sides, degrees = self.sides, self._released_degrees_of_nodes()
        groups = [node_groups(degrees[side.nodes], read, len(side.columns)) for side in sides]
        self._keep_groups([each.of_class for each in groups])
        both = list(zip(sides, groups, strict=True))
        counts = [
            count_pairs(
                np.column_stack([of_side.of_node, side.rows(rows)]),
                [len(of_side.sizes), *side.sizes],
            )
            for side, of_side in both
        ]
        noisy = self.pay(read, torch.from_numpy(np.concatenate(counts))).double().numpy()
        parts = np.split(noisy, np.cumsum([len(part) for part in counts])[:-1])
        fits = [
            fitted_joint(part, of_side, side.sizes, read.scale)
            for part, (side, of_side) in zip(parts, both, strict=True)
        ]
        self._keep_groups([of_class for of_class, _ in fits])
        joints = [joint for _, joint in fits]
        if len(sides) == 2:
            joints = [_padded([part for each in joints for part in each.reshape(len(each), -1)])]
        self.joint = torch.from_numpy(joints[0])

    def _keep_groups(self, of_class: list[NDArray[np.int64]]) -> None:
        """Keep the group of each class of each side, those of right nodes behind those of left ones."""
        if len(of_class) == 2:
            left, right = of_class
            of_class = [_padded([left, right + left.max() + 1], "edge")]
        self.degree_groups = torch.from_numpy(of_class[0])

    def _groups_of_classes(self) -> Iterator[tuple[Side, NDArray[np.int64]]]:
        sides = self.sides
        return zip(sides, self.degree_groups.cpu().numpy().reshape(len(sides), -1), strict=True)

    def joints(self) -> Iterator[tuple[Side, NDArray[np.int64], NDArray[np.float64]]]:
        """Yield each side, the groups of its classes of degrees, and its joint distribution.

        The distribution has the shape ``(G, K1, ...)``: groups of all sides, of which those of other
        sides mean nothing, and the columns of the side.
        """
        joint = self.joint.cpu().numpy()
        cells = joint.reshape(len(joint), -1)
        for side, of_class in self._groups_of_classes():
            yield side, of_class, cells[:, : math.prod(side.sizes)].reshape(-1, *side.sizes)

    def _released_degrees(self) -> NDArray[np.int64]:
        """Released degree of each end, zeros if the structure releases none, ``(num_ends,)``."""
        degrees = getattr(self.structure, "degrees", None)
        if degrees is None:
            return np.zeros(self.space.num_ends, dtype=np.int64)
        found: NDArray[np.int64] = degrees.cpu().numpy()
        return found

    def _released_degrees_of_nodes(self) -> NDArray[np.int64]:
        """Released degree of each node, of both directions together, ``(N,)``."""
        degrees = self._released_degrees()
        return degrees.reshape(2, -1).sum(axis=0) if self.kind == "directed" else degrees

    def released_groups(self) -> NDArray[np.int64]:
        """Return the group of the released degree of each node, in which tables count it, ``(N,)``."""
        return self.groups(self._released_degrees_of_nodes())

    def groups(self, degrees: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the group of the class of each degree, the largest released class for larger ones.

        Args:
            degrees: Degrees of shape ``(N,)``.

        Returns:
            Places on the first axis of the distributions, shape ``(N,)``; -1 for nodes without columns.
        """
        found = np.full(len(degrees), -1, dtype=np.int64)
        for side, of_class in self._groups_of_classes():
            classes = degree_classes(degrees[side.nodes])
            found[side.nodes] = of_class[np.minimum(classes, len(of_class) - 1)]
        return found

    def sample_edges(self, generator: torch.Generator) -> Tensor:
        """Draw edges of the structure, and rewire them towards the released mixing of drawn rows."""
        edges, rows, rng = self._drawn(generator)
        rewired = edges if rows is None else rewire(edges, rows, self.noisy_mixing, rng)
        return torch.from_numpy(rewired)

    def sample(self, generator: torch.Generator) -> Data:
        """Draw a synthetic graph on the public nodes, with drawn rows and transfers."""
        return self.complete(*self._drawn(generator))

    def draw_edges(
        self, generator: torch.Generator
    ) -> tuple[NDArray[np.int64], np.random.Generator]:
        """Draw edges of the structure, shape ``(M, 2)``, and a source for all that follows."""
        edges = self.structure.sample_edges(generator).cpu().numpy()
        rng = np.random.default_rng(int(torch.randint(2**62, (1,), generator=generator)))
        if self.has_transfers and self.hparams["structure"] == "chung_lu":
            # Where few nodes have many relations, amounts of nodes need more than expected degrees.
            degrees = self._released_degrees()
            if self.hparams["weight_max"] is not None:
                degrees = self.transfers.amounts.degrees(degrees, self.space, rng)
            edges = with_degrees(edges, degrees, self.space, rng)
        return edges, rng

    def complete(
        self,
        edges: NDArray[np.int64],
        rows: NDArray[np.int64] | None,
        rng: np.random.Generator,
    ) -> Data:
        """Build the graph of drawn edges on given rows, as those of a database are drawn.

        Args:
            edges: Edges of :meth:`draw_edges`, which are rewired to the released mixing of the rows.
            rows: Place of each node's value in the domain of each column, shape ``(N, J)``; of a node
                that does not have the column, any number. None without private columns.
            rng: Source of :meth:`draw_edges`.
        """
        if rows is not None:
            edges = rewire(edges, rows, self.noisy_mixing, rng)
        new = torch.from_numpy(edges)
        graph = self.space.graph(new, self.node_names)
        if rows is not None:
            shown = np.full_like(rows, -1)
            for side in self.sides:
                shown[side.nodes, side.columns] = side.rows(rows)
            attach_rows(graph, DrawnRows(self.hparams["domains"], shown), self.node_attributes)
        elif self.node_attributes is not None:
            attach(graph, self.node_attributes)
        if self.has_transfers:
            facts, num_edges = self.facts, int(self.num_edges)
            drawn = self.transfers.draw(new, self.space, facts, num_edges, rng)
            attach_transfers(graph, drawn)
        return graph

    def _drawn(
        self, generator: torch.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.int64] | None, np.random.Generator]:
        """Draw edges ``(M, 2)``, rows ``(N, J)`` of all nodes if there are any, and more numbers."""
        edges, rng = self.draw_edges(generator)
        if not self.reads_private_columns:
            return edges, None, rng
        rows = np.zeros((self.hparams["num_nodes"], len(self._sizes)), dtype=np.int64)
        groups = self.groups(np.bincount(edges.ravel(), minlength=len(rows)))
        for side, _, joint in self.joints():
            rows[side.nodes, side.columns] = draw_rows(joint, groups[side.nodes], rng)
        return edges, place_rows(edges, rows, groups, self.noisy_mixing, rng), rng

    def score(self, pairs: Tensor) -> Tensor:
        """Score pairs of shape ``(P, 2)`` by the structure alone: shape ``(P,)``.

        Rows and transfers do not count, since each graph draws them anew.
        """
        return self.structure.score(pairs)


def _padded(
    rows: Sequence[NDArray[Any]], mode: Literal["edge", "constant"] = "constant"
) -> NDArray[Any]:
    """Stack rows of different lengths, the ends of shorter ones being the last number or 0."""
    longest = max(map(len, rows))
    return np.stack([np.pad(row, (0, longest - len(row)), mode) for row in rows])


_FACTS = {
    "domains": "the list of private columns and values",
    "right_columns": "the list of private columns of right nodes",
    "weight_max": "the largest amount",
    "time_window": "the window of the times",
}
# Shares of amounts and of times, alone and beside each other: the structure has to keep half.
_SHARE_ALONE, _SHARE_OF_BOTH = 0.4, 0.25
_NOT_REAL = "they are not those of a relation in the data."


def _rest(budget: Budget, *epsilons: float) -> Budget:
    """Return what reads leave of a pure budget."""
    rest = math.inf if math.isinf(budget.epsilon) else budget.epsilon - math.fsum(epsilons)
    return Budget(rest, 0.0)
