"""Synthesizers that read the graph once, without gradient descent."""

from abc import abstractmethod
from collections.abc import MutableMapping
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from lightning_dpg.graph.edge_statistics import EdgeStatistics
from lightning_dpg.graph.pair_space import PairSpace, UndirectedPairs
from lightning_dpg.graph.statistics_source import GraphStatisticsSource, HoldsStatistics
from lightning_dpg.interfaces import GraphRecords
from lightning_dpg.methods.synthesizer import Synthesizer
from lightning_dpg.privacy.ledger import LedgerEntry, PrivacyLedger
from lightning_dpg.privacy.mechanisms import discrete_laplace, pure_entry
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.sensitivity import edge_count_sensitivity

Counted = Tensor | GraphStatisticsSource
"""Edges of shape ``(M, 2)`` in memory, or a source of their counts (both private)."""


def statistics_of(edges: Counted, space: PairSpace) -> GraphStatisticsSource:
    """Return the source of counts of edges in memory, or the given source."""
    return EdgeStatistics(edges, space) if isinstance(edges, Tensor) else edges


class Pays(Protocol):
    """A method that pays for noise."""

    ledger: PrivacyLedger

    @property
    def noise(self) -> NoiseSource:
        """The secret noise source."""

    @property
    def hparams(self) -> MutableMapping[str, Any]:
        """Settings, with the number of nodes among them."""

    @property
    def space(self) -> PairSpace:
        """Pairs of nodes that may be linked (public)."""


class CountsEdges(Pays, Protocol):
    """A method that has released the number of edges, or will."""

    num_edges: Tensor

    def release_num_edges(self, edges: Counted, epsilon: float) -> None:
        """Release the number of edges (private) into ``num_edges``."""


class OneShotSynthesizer(Synthesizer):
    """A synthesizer whose only training step spends the whole budget on a few releases.

    All buffers and parameters of a subclass are released tensors, or functions of released tensors.
    The batch of the step contains all records. Each of several devices makes the same releases with
    the shared secret noise. An infinite budget adds no noise.

    Attributes:
        reads_counts: Whether ``release`` takes a :class:`GraphStatisticsSource` in place of edges,
            so that the edges of a table stay where they are.
    """

    reads_counts: ClassVar[bool] = False
    is_pure: ClassVar[bool] = True
    is_trained: ClassVar[bool] = False
    records: GraphRecords

    def __init__(self) -> None:
        super().__init__()
        # Lightning counts the steps, and keeps the checkpoints, of automatic optimization only.
        self.automatic_optimization = True
        self.num_edges: Tensor
        self.is_released: Tensor
        self.register_buffer("num_edges", torch.tensor(0))
        self.register_buffer("is_released", torch.tensor(False))
        self.register_load_state_dict_pre_hook(_resize_buffers)  # type: ignore[no-untyped-call]

    @abstractmethod
    def release(self, edges: Tensor, epsilon: float) -> None:
        """Make all releases and keep them in buffers.

        Args:
            edges: Training records of shape ``(M, 2)`` in ascending order (private).
            epsilon: Joint cost of all releases; infinite for no noise.
        """

    def training_step(self, batch: GraphRecords, batch_idx: int) -> None:
        """Make the releases, unless a resumed run has made them."""
        if not self.is_released:
            if self.reads_counts and isinstance(batch, HoldsStatistics):
                # Its release takes edges or counts, as reads_counts says.
                self.release(batch.statistics, self.budget.epsilon)  # type: ignore[arg-type]
            else:
                self.release(batch.edges, self.budget.epsilon)
            self.is_released.fill_(True)
        self.trainer.should_stop = True

    def configure_optimizers(self) -> Optimizer | None:
        """Return None, since there is no gradient."""
        return None

    def release_num_edges(self, edges: Counted, epsilon: float) -> None:
        """Release the number of edges (private) into ``num_edges``."""
        self.num_edges = noisy_num_edges(self, edges, epsilon, record=self.edge_record)

    def released_state(self) -> dict[str, Tensor]:
        """All buffers and parameters."""
        return dict(self.state_dict())


def noisy_num_edges(
    method: Pays,
    edges: Counted,
    epsilon: float,
    sensitivity: int = edge_count_sensitivity(),
    proof: str = "edge_count_sensitivity",
    record: str = UndirectedPairs.record,
) -> Tensor:
    """Release the number of edges, rounded to a possible number of a simple graph.

    Args:
        method: The method, which pays and draws the noise.
        edges: Training records of shape ``(M, 2)``, or their counts (private).
        epsilon: Cost of the release.
        sensitivity: Change of the number by one record.
        proof: Function whose docstring proves the sensitivity.
        record: Unit of protection in words.
    """
    noisy = discrete_laplace(
        torch.tensor(statistics_of(edges, method.space).num_edges()),
        method.ledger,
        method.noise,
        key="num_edges",
        name="number of edges",
        epsilon=epsilon,
        sensitivity=sensitivity,
        proof=proof,
        record=record,
    )
    return noisy.clamp(0, method.space.num_pairs)


def num_edges_entry(epsilon: float, record: str = UndirectedPairs.record) -> LedgerEntry:
    """Plan the release of the number of edges, see ``OneShotSynthesizer.release_num_edges``."""
    sensitivity, proof = edge_count_sensitivity(), "edge_count_sensitivity"
    return pure_entry("num_edges", "number of edges", epsilon, sensitivity, proof, record=record)


def _resize_buffers(module: nn.Module, state: dict[str, Tensor], prefix: str, *_: Any) -> None:
    """Resize buffers to the released shapes."""
    for name, buffer in module.named_buffers(recurse=False):
        if prefix + name in state:
            setattr(module, name, buffer.new_empty(state[prefix + name].shape))
