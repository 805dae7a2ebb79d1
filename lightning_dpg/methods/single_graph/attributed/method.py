"""Attributed: private columns of nodes beside private edges, on the structure of another method."""

import math
from collections.abc import Callable
from contextvars import Context
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.graph.drawn_rows import DrawnRows, attach_rows
from lightning_dpg.graph.exact_mixing import (
    MIXING_UNIT,
    check_mixing,
    mixing_matrices,
)
from lightning_dpg.graph.mixing_rewiring import rewire
from lightning_dpg.graph.mixing_targets import NoisyMixing
from lightning_dpg.graph.pair_space import Kind
from lightning_dpg.graph.row_counts import count_pairs, tables_of_pairs, times_counted
from lightning_dpg.graph.row_marginals import Marginal, check_cells, draw_rows, fit_joint
from lightning_dpg.graph.row_placement import place_rows
from lightning_dpg.graph.statistics_source import GraphStatisticsSource
from lightning_dpg.interfaces import HoldsPrivateColumns, PrivateColumns
from lightning_dpg.methods.constraints import Constraint, Constraints
from lightning_dpg.methods.planning import Reads, check_shares
from lightning_dpg.methods.single_graph.base import OneShotSynthesizer
from lightning_dpg.methods.single_graph.bter import BTER, degree_classes, merged_classes
from lightning_dpg.methods.single_graph.chung_lu import ChungLu
from lightning_dpg.methods.single_graph.erdos_renyi import ErdosRenyi
from lightning_dpg.methods.single_graph.privgraph import PrivGraph
from lightning_dpg.preflight.data import served_records
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry, Pure, Relation
from lightning_dpg.privacy.sensitivity import (
    mixing_edge_sensitivity,
    mixing_row_sensitivity,
    row_table_sensitivity,
)

DRAWN_ROWS = "Rows of the synthetic table are drawn: the row beside a name is not that person's."
"""Sentence of the statement of each release with drawn rows."""

_STRUCTURES: dict[str, Callable[[int | None], OneShotSynthesizer]] = {
    "bter": BTER,
    "chung_lu": ChungLu,
    "privgraph": PrivGraph,
    "erdos_renyi": ErdosRenyi,
}
_UNKNOWN_SIZES = (2,)  # of columns, for a plan before the data are known
# Nodes of a class of degrees per unit of noise in their tables, below which classes are merged.
_NODES_PER_NOISE = 10
_MOST_WEIGHT = 1024
_WEIGHT = Constraint(
    f"a whole number from 1 to {_MOST_WEIGHT}",
    lambda value: type(value) is int and 1 <= value <= _MOST_WEIGHT,
)


class _MixingCosts(NamedTuple):
    """Epsilons of the read of mixing, whose noise serves both relations."""

    edges: float
    rows: float


class Attributed(OneShotSynthesizer):
    r"""Graphs with private columns of their nodes, on the structure of another method.

    Two relations are protected, each at a budget of its own: one edge at ``privacy.epsilon``, and the
    private columns of one node at ``privacy.row_epsilon``. The reads, with discrete Laplace noise:

    1. The structure, by the method of that name, which reads edges only.
    2. Tables of the nodes by each pair of [class of the released degree, private columns], which read
       rows only. Classes are powers of two, and classes of few nodes are merged. A structure that
       releases no degree of each node has one class. With four columns and more, tables with the
       class count each node several times, which gives them less noise than the other tables.
    3. For each column the sum of the weights of the edges between each pair of values, where an edge
       weighs :math:`\min(1, D / \max(d_u, d_v))` by the true degrees. No edge is left out and no degree
       is bounded. This reads both, and one noise serves both: an edge pays
       :math:`3D / ((D + 1) b)` and a row :math:`2D / b` for each column, see
       :func:`mixing_edge_sensitivity` and :func:`mixing_row_sensitivity`. What the smaller noise of
       both would save is left to the structure, or to the tables.

    The rest is post-processing, so that any number of graphs is free: a joint distribution is fitted to
    the tables, without categories that no more than noise has; a graph is drawn, then a row for each
    node given the class of its degree; whole rows are exchanged within classes, and then edges rewired
    without a change of degrees, until the mixing is as close to the released one as its noise allows.

    When to use:
        For tables of people with private columns and private relations, where the columns and the
        relations depend on each other. Associations that are weaker than the noise do not come
        through: four columns of a graph of 7,000 nodes need a homophily of about 0.1. For the
        structure alone take its method.

    Privacy:
        Pure epsilon-DP at the level of edges (one undirected edge is added or removed), and beside it
        at that of private columns (those of one node are exchanged for any others). Each level has a
        total of its own. The guarantee has no condition and needs no delta. The set of nodes, and the
        domains of the columns, are public. Rows are drawn: the row of a node is not that of its bearer.

    Cost:
        Time and memory are those of the structure, and O(N J + M J) beside, with a joint distribution
        of at most a million cells.

    Differences from the paper:
        AGM-DP leaves out edges of nodes of many edges, counts mixing of all combinations of values, and
        adds both budgets up. Here each edge counts, mixing is by column, and each relation has a total.

    * Jorgensen, Yu, Cormode, "Publishing attributed social graphs with formal privacy guarantees",
      2016.

    Args:
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        structure: Method of the edges.
        structure_share: Share of the edges' budget for the structure, at least; mixing gets the rest.
        table_share: Share of the rows' budget for the tables, at least; mixing gets the rest.
        max_weight: Largest weight D of all edges of a node together, a whole number.
        domains: Values of each private column by its name (public); they come from the data.
    """

    learns_private_columns: ClassVar[bool] = True
    constraints: ClassVar[Constraints] = {"max_weight": _WEIGHT}

    def __init__(
        self,
        num_nodes: int | None = None,
        structure: Literal["bter", "chung_lu", "privgraph", "erdos_renyi"] = "bter",
        structure_share: float = 0.85,
        table_share: float = 0.5,
        max_weight: int = 4,
        domains: dict[str, list[str]] | None = None,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        check_shares(structure_share=structure_share)
        check_shares(table_share=table_share)
        # Lightning's command line hands the settings of this class to save_hyperparameters by a
        # variable of the context; the structure must not take them for its own.
        self.structure: OneShotSynthesizer = Context().run(_STRUCTURES[structure], num_nodes)
        self.degree_groups: Tensor
        self.joint: Tensor
        self.mixing: Tensor
        self.mixing_scale: Tensor
        self.register_buffer("degree_groups", torch.zeros(1, dtype=torch.long))
        self.register_buffer("joint", torch.empty(0, dtype=torch.double))
        self.register_buffer("mixing", torch.empty(0, dtype=torch.double))
        self.register_buffer("mixing_scale", torch.tensor(0.0, dtype=torch.double))

    @property
    def pays_rows(self) -> bool:
        """True: it reads the private columns."""
        return True

    @property
    def reading_note(self) -> str:
        """Say that rows are drawn."""
        return DRAWN_ROWS

    @property
    def _sizes(self) -> tuple[int, ...]:
        """Number of values of each private column (public)."""
        columns = self.hparams["domains"]
        return _UNKNOWN_SIZES if not columns else tuple(map(len, columns.values()))

    def take_num_nodes(self, num_nodes: int) -> None:
        """Keep the public number of nodes, also for the structure."""
        super().take_num_nodes(num_nodes)
        self.structure.take_num_nodes(num_nodes)

    def take_kind(self, kind: Kind, num_left: int | None) -> None:
        """Keep the public kind of the graph, also for the structure."""
        super().take_kind(kind, num_left)
        self.structure.take_kind(kind, num_left)

    def accept_data(self, data: object) -> None:
        """Refuse data of another kind, or columns of too many values; take the public domains."""
        super().accept_data(data)
        columns = private_columns_of(served_records(type(self).__name__, self.reads, data))
        if self.hparams["domains"] is None:
            self.hparams["domains"] = columns.domains
        if self.hparams["domains"] != columns.domains:
            raise MisconfigurationException(
                "domains is not the list of private columns and values of the data\n"
                "leave model.init_args.domains out: it comes from the data"
            )
        num_nodes = self.hparams["num_nodes"]
        check_mixing(num_nodes, self._sizes)
        check_cells([int(degree_classes(np.array([num_nodes]))[0]) + 1, *self._sizes])

    def on_fit_start(self) -> None:
        """Copy the public facts of the data, the domains of the private columns among them."""
        super().on_fit_start()
        names = ", ".join(self.hparams["domains"])
        self.assumptions.append(
            f"the values and bins that the private columns can have ({names}), which were not "
            "collected from them"
        )

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the structure, the tables and the mixing; the number of steps has no effect.

        Without a budget of rows the entries of rows are left out.
        """
        costs, rows = self._mixing_costs(budget), self.row_budget
        structure = _rest(budget, costs.edges)
        entries = [*self.structure.plan(structure, steps), self._mixing_entry(costs, Relation.EDGE)]
        if rows is None:
            return entries
        tables = sum(times_counted(1 + len(self._sizes)))
        of_tables = LedgerEntry.proved(
            "row_tables",
            "nodes by private columns and classes of released degrees",
            Pure(_rest(rows, costs.rows).epsilon),
            row_table_sensitivity,
            tables,
            relation=Relation.ATTRIBUTES,
            record=self._row_record,
            public={"tables": tables},
        )
        return [
            *entries[:-1],
            of_tables,
            entries[-1],
            self._mixing_entry(costs, Relation.ATTRIBUTES),
        ]

    @property
    def _row_record(self) -> str:
        """Unit of protection of rows, with the names of the columns."""
        names = list(self.hparams["domains"] or ())
        if not names:
            return ""  # that of the relation, before the data are known
        return f"private column{'s' * (len(names) > 1)} {', '.join(names)} of one node"

    def _mixing_costs(self, budget: Budget) -> _MixingCosts:
        """Epsilons of the mixing under both relations, by the larger of the noises that they need."""
        rows = self.row_budget
        edge, row = (self._mixing_sensitivity(each) for each in _BOTH)
        most_edges = (1 - self.hparams["structure_share"]) * budget.epsilon
        most_rows = math.inf
        if rows is not None:
            most_rows = (1 - self.hparams["table_share"]) * rows.epsilon
        scale = max(edge / most_edges, row / most_rows)
        if not scale:
            return _MixingCosts(math.inf, math.inf)
        return _MixingCosts(min(edge / scale, most_edges), min(row / scale, most_rows))

    def _mixing_sensitivity(self, relation: Relation) -> int:
        return _PROOFS[relation](self.hparams["max_weight"], self._sizes, MIXING_UNIT)

    def _mixing_entry(self, costs: _MixingCosts, relation: Relation) -> LedgerEntry:
        """Plan the read of the mixing under one relation."""
        is_edge = relation is Relation.EDGE
        return LedgerEntry.proved(
            "column_mixing" if is_edge else "column_mixing_rows",
            f"weights of edges by the values of their ends, in 1/{MIXING_UNIT}",
            Pure(costs.edges if is_edge else costs.rows),
            _PROOFS[relation],
            self.hparams["max_weight"],
            self._sizes,
            MIXING_UNIT,
            relation=relation,
            record=self.edge_record if is_edge else self._row_record,
            public={"max_weight": self.hparams["max_weight"], "unit": MIXING_UNIT},
        )

    def release(self, source: GraphStatisticsSource, reads: Reads) -> None:
        """Release the structure, the tables of rows, and the mixing."""
        self.lend_ledger(self.structure)
        self.structure.release(source, reads)
        self.num_edges = self.structure.num_edges.clone()
        rows = private_columns_of(self.records).values.numpy()
        self._release_tables(rows, reads["row_tables"])
        self._release_mixing(source, rows, reads["column_mixing"], reads["column_mixing_rows"])

    def _release_tables(self, rows: NDArray[np.int64], read: LedgerEntry) -> None:
        """Release the tables of rows of shape ``(N, J)`` (private), and fit their distribution."""
        degrees = self._released_degrees()
        classes = degree_classes(degrees)
        nodes = np.bincount(classes).astype(np.float64)
        times = times_counted(1 + len(self._sizes))
        # The first table has the class.
        least = _NODES_PER_NOISE * read.scale / times[0]
        self.degree_groups = torch.from_numpy(merged_classes(nodes, least))
        groups = self.groups(degrees)
        sizes = [int(self.degree_groups.max()) + 1, *self._sizes]
        counts = count_pairs(np.column_stack([groups, rows]), sizes)
        noisy = self.pay(read, torch.from_numpy(counts)).numpy().astype(np.float64)
        of_groups = np.bincount(groups, minlength=sizes[0]).astype(np.float64)
        marginals = [Marginal((0,), of_groups, 0.0)]
        for (axes, table), count in zip(tables_of_pairs(noisy, sizes).items(), times, strict=True):
            marginals.append(Marginal(axes, table / count, read.scale / count))
        self.joint = torch.from_numpy(fit_joint(marginals, sizes))

    def _release_mixing(
        self,
        source: GraphStatisticsSource,
        rows: NDArray[np.int64],
        of_edges: LedgerEntry,
        of_rows: LedgerEntry,
    ) -> None:
        """Release the mixing of rows of shape ``(N, J)`` (private), which costs both relations."""
        cells = source.column_mixing(rows, self._sizes, self.hparams["max_weight"])
        noisy = self.pay(of_edges, torch.from_numpy(cells), also=[of_rows])
        self.mixing = noisy.double() / MIXING_UNIT
        self.mixing_scale = torch.tensor(of_edges.scale / MIXING_UNIT, dtype=torch.double)

    def _released_degrees(self) -> NDArray[np.int64]:
        """Released degree of each node; 0 of all if the structure releases none, shape ``(N,)``."""
        degrees = getattr(self.structure, "degrees", None)
        if degrees is None:
            return np.zeros(self.hparams["num_nodes"], dtype=np.int64)
        found: NDArray[np.int64] = degrees.cpu().numpy()
        return found

    def released_groups(self) -> NDArray[np.int64]:
        """Return the group of the released degree of each node, in which tables count it, ``(N,)``."""
        return self.groups(self._released_degrees())

    def groups(self, degrees: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the group of the class of each degree, the largest released class for larger ones.

        Args:
            degrees: Degrees of shape ``(N,)``.

        Returns:
            Places on the first axis of ``joint``, shape ``(N,)``.
        """
        groups = self.degree_groups.cpu().numpy()
        found: NDArray[np.int64] = groups[np.minimum(degree_classes(degrees), len(groups) - 1)]
        return found

    def sample_edges(self, generator: torch.Generator) -> Tensor:
        """Draw edges of the structure, and rewire them towards the released mixing of drawn rows."""
        return self._drawn(generator)[0]

    def sample(self, generator: torch.Generator) -> Data:
        """Draw a synthetic graph on the public nodes, with a drawn row for each of them."""
        edges, rows = self._drawn(generator)
        graph = self.space.graph(edges, self.node_names)
        attach_rows(graph, DrawnRows(self.hparams["domains"], rows), self.node_attributes)
        return graph

    def _drawn(self, generator: torch.Generator) -> tuple[Tensor, NDArray[np.int64]]:
        """Draw edges ``(M, 2)``, and rows ``(N, J)`` of all nodes."""
        edges = self.structure.sample_edges(generator).cpu().numpy()
        rng = np.random.default_rng(int(torch.randint(2**62, (1,), generator=generator)))
        groups = self.groups(np.bincount(edges.ravel(), minlength=self.hparams["num_nodes"]))
        rows = draw_rows(self.joint.cpu().numpy(), groups, rng)
        matrices = mixing_matrices(self.mixing.cpu().numpy(), self._sizes)
        mixing = [NoisyMixing(matrix, float(self.mixing_scale)) for matrix in matrices]
        rows = place_rows(edges, rows, groups, mixing, rng)
        return torch.from_numpy(rewire(edges, rows, mixing, rng)), rows

    def score(self, pairs: Tensor) -> Tensor:
        """Score pairs of shape ``(P, 2)`` by the structure alone: shape ``(P,)``.

        Rows do not count, since each graph draws them anew.
        """
        return self.structure.score(pairs)


_BOTH = (Relation.EDGE, Relation.ATTRIBUTES)
_PROOFS = {Relation.EDGE: mixing_edge_sensitivity, Relation.ATTRIBUTES: mixing_row_sensitivity}


def private_columns_of(records: object) -> PrivateColumns:
    """Return the private columns that records hold, which a check of the data has found."""
    columns = records.private_columns if isinstance(records, HoldsPrivateColumns) else None
    assert columns is not None
    return columns


def _rest(budget: Budget, epsilon: float) -> Budget:
    """Return what a read leaves of a pure budget."""
    rest = math.inf if math.isinf(budget.epsilon) else budget.epsilon - epsilon
    return Budget(rest, 0.0)
