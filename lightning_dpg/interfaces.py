"""Protocols between methods, data modules and callbacks.

Methods import no data module, and callbacks import neither. At run time the module imports no PyTorch.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from inspect import getattr_static
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NamedTuple,
    TypeGuard,
)

# Unlike those of Python 3.11, these checks read no property: edges of a table are read on demand.
from typing_extensions import Protocol, runtime_checkable

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pytorch_lightning import Trainer
    from torch import Generator, Tensor
    from torch_geometric.data import Data

    from lightning_dpg.privacy.budget import Budget
    from lightning_dpg.privacy.ledger import LedgerEntry, PrivacyLedger, Relation
    from lightning_dpg.privacy.noise import NoiseSource


@runtime_checkable
class GraphRecords(Protocol):
    """The training records of one graph (private): its undirected edges.

    Attributes:
        edges: Records of shape ``(M, 2)``, rows ``i < j`` that occur once.
        num_nodes: Number of nodes N (public).
        node_names: Names of the nodes (public).
        assumptions: What a guarantee takes as public because of how the data were prepared.
    """

    edges: Tensor
    num_nodes: int
    node_names: list[str]
    assumptions: list[str]

    @property
    def graph(self) -> Data:
        """Graph of the training edges, with all nodes (private)."""


@runtime_checkable
class HoldsClasses(Protocol):
    """Records of one graph that may hold classes of its nodes.

    Attributes:
        classes: Class of each node, -1 where there is none, shape ``(N,)`` (public); None without
            classes.
    """

    classes: Tensor | None


@runtime_checkable
class AttributedGraphRecords(GraphRecords, HoldsClasses, Protocol):
    """The training records of one graph (private), with attributes of its nodes (public).

    Attributes:
        attributes: Attributes of the N nodes, shape ``(N, F)`` (public).
        attribute_names: Names of the F columns (public).
    """

    attributes: Tensor
    attribute_names: list[str]


class PrivateColumns(NamedTuple):
    """Columns of nodes that their owner has marked as private, with their public domains.

    Attributes:
        domains: Names of all values that a column can have, by the name of the column (public).
        values: Place of each node's cell in the domain of each column (private), shape ``(N, J)``. A
            cell that is missing, or none of the domain, has a place of its own among the values.
        right: Names of the columns that right nodes of a bipartite graph have; left nodes have all others
            (public). A node of the other side has the place 0, which nothing reads.
    """

    domains: dict[str, list[str]]
    values: Tensor
    right: tuple[str, ...] = ()

    def of_nodes(self, nodes: Tensor) -> PrivateColumns:
        """Return the rows of some nodes, in their order."""
        return self._replace(values=self.values[nodes])

    def shown(self, num_left: int | None, absent: int = -1) -> Tensor:
        """Return the places, and another number where a node of a bipartite graph lacks the column.

        Args:
            num_left: Number of left nodes, which come first; None without sides.
            absent: The other number.
        """
        places = self.values.clone()
        for column, name in enumerate(self.domains if num_left is not None else ()):
            lacks = slice(num_left) if name in self.right else slice(num_left, None)
            places[lacks, column] = absent
        return places


@runtime_checkable
class HoldsPrivateColumns(Protocol):
    """Records of one graph that may have private columns of its nodes.

    Attributes:
        private_columns: The columns; None if there are none.
    """

    private_columns: PrivateColumns | None


class PrivateLabels(NamedTuple):
    """Labels of nodes that their owner has marked as private, with their public domain.

    Attributes:
        column: Name of the column (public).
        classes: Names of the k classes that a label can have (public).
        numbers: Numbers of these classes, ascending (public).
        values: Place of each node's label in ``classes`` (private), k for a value that is none of
            them, and -1 for a node without a label (public), shape ``(N,)``.
    """

    column: str
    classes: Sequence[str]
    numbers: Sequence[int]
    values: Tensor

    def of_nodes(self, nodes: Tensor) -> PrivateLabels:
        """Return the labels of some nodes, in their order."""
        return self._replace(values=self.values[nodes])

    def class_numbers(self) -> Tensor:
        """Return the number of each node's class (private), -1 without one, shape ``(N,)``."""
        # The last two are of a value that is no class, and of none.
        numbers = self.values.new_tensor([*self.numbers, -1, -1])
        return numbers[self.values]


@runtime_checkable
class HoldsPrivateLabels(Protocol):
    """Records of one graph that may have private labels of its nodes.

    Attributes:
        private_labels: The labels; None if there are none.
    """

    private_labels: PrivateLabels | None


class TransferBounds(NamedTuple):
    """What is public of amounts and times of transfers.

    Attributes:
        weight_max: Largest amount C that counts; None without amounts.
        window: First and last day of the times, both inclusive and at midnight of the zone in which
            the times are written; None without times.
    """

    weight_max: float | None
    window: tuple[datetime, datetime] | None


class Transfers(NamedTuple):
    """Transfers between nodes, the rows of a table of edges, with their amounts and times.

    Rows are in the order of the pair (its smaller number first), the time, the payer and the amount:
    equal transfers in any order give equal tensors.

    Attributes:
        pairs: Payer and payee of each transfer (private), numbers of nodes, shape ``(T, 2)``; in a
            bipartite graph the left and the right node. Those of a node to itself are left out.
        amounts: Amount of each transfer in hundredths, from 0 to C (private),
            shape ``(T,)``: larger ones are clipped. None without amounts.
        times: Seconds of each transfer since the beginning of the window (private), shape ``(T,)``:
            a row outside of the window is no transfer. None without times.
        bounds: The bounds of both (public).
    """

    pairs: Tensor
    amounts: Tensor | None
    times: Tensor | None
    bounds: TransferBounds


@runtime_checkable
class HoldsTransfers(Protocol):
    """Records of one graph that may have amounts and times of transfers.

    Attributes:
        transfers: The transfers; None if the data have neither amounts nor times.
    """

    transfers: Transfers | None


@runtime_checkable
class KindOfRecords(Protocol):
    """Records of one graph that name its kind; other records are of an undirected graph.

    Attributes:
        kind: Kind of the graph (public). Records of a directed graph are ordered pairs ``(i, j)`` of
            different nodes, those of a bipartite one pairs of a left and a right node.
        num_left: Number of left nodes (public), which have the first numbers; None without sides.
    """

    kind: Literal["undirected", "directed", "bipartite"]
    num_left: int | None


@runtime_checkable
class GraphSetRecords(Protocol):
    """The training records of a set of G graphs (private): the undirected edges of all of them.

    The N nodes of all graphs are numbered in one sequence, those of the first graph first.

    Attributes:
        edges: Edges of all graphs, shape ``(M, 2)``, rows ``i < j`` in ascending order.
        sizes: Number of nodes of each graph (public), shape ``(G,)``.
        graph_of: Number of each node's graph (public), shape ``(N,)``.
        labels: Label of each graph (public), shape ``(G,)``; None without labels.
        max_occurrences: Largest number of rows of ``edges`` that are one edge of the private data
            (public): they change together.
        graphs: The graphs (private), with node features ``x`` (public) where there are any.
        assumptions: What a guarantee takes as public.
        preparation: The assumptions because of the preparation of the data.
    """

    edges: Tensor
    sizes: Tensor
    graph_of: Tensor
    labels: Tensor | None
    max_occurrences: int
    graphs: Sequence[Data]
    assumptions: list[str]
    preparation: list[str]


Records = GraphRecords | GraphSetRecords
"""What a method reads; :attr:`PrivateModule.reads` says which, or ``AttributedGraphRecords``."""


class Identity(NamedTuple):
    """Canonical content of data (private): equal for the same edges in any file and order.

    Attributes:
        edges: All edges by the names of their nodes.
        nodes: Names of all nodes.
        record: One edge in the words of its kind (public).
        names: Names of all nodes, which may be those of people; empty where the nodes are only
            numbered from 0 on.
        rows: Private columns of all nodes, by the names of both; empty without private columns.
        links: The edges without amounts and times, where these are read; empty otherwise.
    """

    edges: bytes
    nodes: bytes
    record: str = "undirected edge"
    names: Sequence[str] = ()
    rows: bytes = b""
    links: bytes = b""


@runtime_checkable
class HasIdentity(Protocol):
    """A data module whose data a budget book can recognize."""

    def identity(self) -> Identity:
        """Return the canonical content of the data as they were read (private)."""


class BatchRequest(NamedTuple):
    """Batches that a method asks its data module for; all numbers are settings of the method.

    Attributes:
        kind: ``all`` gives the records object itself as the batch, which stays on the CPU;
            ``poisson`` a ``PoissonBatch`` of edges; ``walks`` random walks of shape
            ``(num_walks, walk_length)``.
        sample_rate: Probability q with which a record is drawn into a ``poisson`` batch; of ``all``,
            the share of them that a step of the method uses.
        steps_per_epoch: Batches of an epoch. None leaves their number to the data module: its own
            ``steps_per_epoch`` or else, of batches that are drawn, 1 / q rounded up. A number is
            that of the whole run, all of it in the first epoch.
        num_walks: Walks of a batch, over all processes.
        walk_length: Nodes of a walk.
        p: Return parameter of node2vec.
        q: In-out parameter of node2vec.
    """

    kind: Literal["all", "poisson", "walks"]
    sample_rate: float = 1.0
    steps_per_epoch: int | None = None
    num_walks: int = 128
    walk_length: int = 16
    p: float = 1.0
    q: float = 1.0


@runtime_checkable
class RequestsBatches(Protocol):
    """A method that says which batches it needs."""

    def batch_request(self) -> BatchRequest:
        """Return the batches that the settings of the method ask for."""


ALL_KINDS = frozenset({"undirected", "directed", "bipartite"})


@dataclass(frozen=True)
class Capabilities:
    """What a method reads, learns and protects, declared by its class and checked before a run.

    Attributes:
        reads: Protocol of the records: ``GraphRecords``, ``AttributedGraphRecords`` or
            ``GraphSetRecords``.
        kinds: Kinds of graphs that it learns.
        is_pure: Whether all releases satisfy pure epsilon-DP; a delta of 0 then suffices.
        adds_noise: Whether it protects anything.
        is_trained: Whether training steps change the released tensors; if so, a run of zero steps
            releases an untrained model.
        is_inductive: Whether ``predict`` reads graphs, whose labels the method predicts.
        repeats_edges: Whether it multiplies its sensitivities by ``max_occurrences`` of a set; other
            methods refuse data with repeated edges.
        learns_private_labels: Whether it protects private labels of nodes; others refuse such data.
        learns_private_columns: Whether it protects private columns of nodes; others refuse them.
        learns_transfers: Whether it protects amounts and times of transfers; others refuse them.
    """

    reads: type = GraphRecords
    kinds: frozenset[str] = frozenset({"undirected"})
    is_pure: bool = False
    adds_noise: bool = True
    is_trained: bool = True
    is_inductive: bool = False
    repeats_edges: bool = False
    learns_private_labels: bool = False
    learns_private_columns: bool = False
    learns_transfers: bool = False


@runtime_checkable
class HasCapabilities(Protocol):
    """A method as a check of its data sees it."""

    capabilities: Capabilities


def public_path(method: type) -> str:
    """Dotted path of a class in a release, valid wherever the modules of the package move.

    The path of a shipped class is in ``lightning_dpg.methods``, that of a user's class in its module.
    """
    if method.__module__.startswith("lightning_dpg."):
        return f"lightning_dpg.methods.{method.__name__}"
    return f"{method.__module__}.{method.__qualname__}"


class Released(RequestsBatches, HasCapabilities, Protocol):
    """A method as a callback sees it: its entries, its claims and its published values.

    Attributes:
        ledger: Releases so far.
        assumptions: What the guarantee takes as public, phrases to follow "Assumed public:".
        relation: Neighboring relation of the guarantee.
    """

    relation: Relation
    ledger: PrivacyLedger
    assumptions: list[str]

    @property
    def hparams(self) -> MutableMapping[str, Any]:
        """Hyperparameters, which are plain values."""

    @property
    def noise(self) -> NoiseSource:
        """Secret noise source; all processes create it together at the first use."""

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan every event of a whole run."""

    def step_entries(self) -> list[LedgerEntry]:
        """Return the cost of the next training step."""

    def condition(self) -> str | None:
        """Return the assumption on which the guarantee depends; None where it always holds."""

    def claimed_epsilon(self, delta: float) -> float | None:
        """Return the epsilon that the paper would print for this run; None where it prints none."""

    def accept_data(self, data: object) -> None:
        """Take public facts of a data module that has been set up, or refuse it."""

    @property
    def reading_note(self) -> str | None:
        """Return the sentence at the end of the guarantee on how to read the release, if any."""

    @property
    def reads_private_columns(self) -> bool:
        """Whether it reads private columns of nodes, and so needs a row budget."""

    def accept_budget(
        self, budget: Budget, steps: int = 1, row_budget: Budget | None = None
    ) -> None:
        """Hold the ledger to its budgets; refuse a plan that does not fit them."""


@runtime_checkable
class PublishesAttributes(Protocol):
    """A method whose synthetic graphs carry public attributes of their nodes."""

    def attribute_arrays(self) -> dict[str, Any]:
        """Return the arrays of a release by name; empty without attributes."""


class Rebuilt(Released, Protocol):
    """A method that a release can rebuild.

    Attributes:
        node_names: Names of the nodes of one graph (public).
    """

    node_names: list[str] | None

    def released_state(self) -> dict[str, Tensor]:
        """Return the released tensors by name."""


class PublishesGraphs(Protocol):
    """A method that draws synthetic graphs from released tensors.

    Attributes:
        training: Whether its networks are in the mode of training.
    """

    training: bool

    def sample(self, generator: Generator) -> Data:
        """Draw a graph; equal for equal generators."""

    def train(self, mode: bool = True) -> object:
        """Set the mode of its networks."""

    def eval(self) -> object:
        """Leave the mode of training."""


@runtime_checkable
class PublishesFeatures(Protocol):
    """A method that releases features of each graph of a set, and no graphs."""

    def released_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the released values of each graph, and the public labels."""


class PublishesDiscrepancies(Protocol):
    """A method that releases discrepancies between graphs.

    Attributes:
        discrepancies: One for each pair of graphs, shape ``(G, G)``.
        labels: Label of each graph (public), shape ``(G,)``.
        ledger: Releases so far.
    """

    discrepancies: Tensor
    labels: Tensor
    ledger: PrivacyLedger


def publishes_discrepancies(method: object) -> TypeGuard[PublishesDiscrepancies]:
    """Return whether a method releases discrepancies; ``isinstance`` does not find buffers."""
    return all(hasattr(method, name) for name in PublishesDiscrepancies.__annotations__)


class ServesRecords(Protocol):
    """A data module that serves records and the batches that a method requests."""

    @property
    def records(self) -> Records:
        """The training records (private), after ``setup``."""

    @property
    def num_edges(self) -> int:
        """Number of edges, including held-out edges (private)."""

    @property
    def num_pairs(self) -> int:
        """Number of pairs of nodes within a graph that may be linked (public)."""

    def check_request(self, request: BatchRequest, max_epochs: int | None) -> None:
        """Refuse batches that it cannot serve in that many epochs, before anything is spent."""

    def train_dataloader(self) -> object:
        """Return the batches that the method of the trainer requests."""

    def write_key(self, path: Path) -> bool:
        """Write the names behind the published numbers (private); return whether there is a key."""


@runtime_checkable
class KeepsBudget(Protocol):
    """A callback that holds a method to a budget in each step.

    Attributes:
        passed: Trainer and method of a run that has passed the preflight and has not begun.
    """

    passed: tuple[Trainer, Released] | None

    @property
    def budget(self) -> Budget:
        """Budget of the run."""

    @property
    def row_budget(self) -> Budget | None:
        """Budget of the private columns of nodes; None for a run that reads none."""


@runtime_checkable
class Account(Protocol):
    """A run in a budget book, which adds up the runs on the same data."""

    def record(self, *entries: LedgerEntry) -> None:
        """Book a read before it is paid: one entry for each relation that it costs.

        This is the ``account`` of the ledger of a run. It may refuse the read.
        """

    def affords(self, entries: Sequence[LedgerEntry]) -> bool:
        """Whether one more release of each is reserved."""

    def close(self, outcome: Literal["ended", "stopped"], release: str | None = None) -> str | None:
        """Give back what was not released; return a line on what is left, the first time.

        Args:
            outcome: How the run ends.
            release: Digest of the release, if the run has written one.
        """


_ABSENT = object()


def serves_records(data: object) -> TypeGuard[ServesRecords]:
    """Return whether a data module serves records; unlike ``isinstance``, read none of them."""
    return not missing_parts(data)


def missing_parts(data: object) -> list[str]:
    """Name what a data module lacks to serve records; read none of them."""
    names = [name for name in vars(ServesRecords) if not name.startswith("_")]
    return [name for name in names if getattr_static(data, name, _ABSENT) is _ABSENT]
