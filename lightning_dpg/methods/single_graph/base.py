"""Synthesizers that read the graph once, without gradient descent."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from lightning_dpg.graph.edge_statistics import (
    EdgeStatistics,
    GraphStatisticsSource,
    HoldsStatistics,
)
from lightning_dpg.graph.pair_space import PairSpace, UndirectedPairs
from lightning_dpg.interfaces import GraphRecords
from lightning_dpg.methods.planning import Reads, by_key
from lightning_dpg.methods.synthesizer import Synthesizer
from lightning_dpg.nn.resized_buffers import resize_own_buffers
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry, Pure, Relation
from lightning_dpg.privacy.sensitivity.degrees import edge_count_sensitivity


class OneShotSynthesizer(Synthesizer):
    """A synthesizer whose only training step spends the whole budget on a few releases.

    All buffers and parameters of a subclass are released tensors, or functions of released tensors.
    The batch of the step contains all records. Each of several devices makes the same releases with
    the shared secret noise. An infinite budget adds no noise.
    """

    capabilities = replace(Synthesizer.capabilities, is_pure=True, is_trained=False)
    records: GraphRecords

    def __init__(self) -> None:
        super().__init__()
        # Lightning counts the steps, and keeps the checkpoints, of automatic optimization only.
        self.automatic_optimization = True
        self.num_edges: Tensor = nn.Buffer(torch.tensor(0))
        self.is_released: Tensor = nn.Buffer(torch.tensor(False))
        resize_own_buffers(self)

    @abstractmethod
    def release(self, source: GraphStatisticsSource, reads: Reads) -> None:
        """Pay for all planned reads, and keep what they release in buffers.

        Args:
            source: Counts of the training records (private). A method that asks for no ``edges``
                leaves the edges of a table where they are.
            reads: The entries of :meth:`plan`, by key.
        """

    def read(
        self,
        key: str,
        name: str,
        budget: Budget,
        proof: Callable[..., float],
        *arguments: object,
    ) -> LedgerEntry:
        """Plan a read that spends an epsilon on one record of the method's relation.

        Args:
            key: Key of the read in :meth:`release`.
            name: What is read, for people.
            budget: Its part of the budget; delta is left.
            proof: Function that bounds the sensitivity, see :meth:`LedgerEntry.proved`.
            *arguments: Arguments of the bound (public).
        """
        record = self.edge_record if self.relation is Relation.EDGE else ""
        event, relation = Pure(budget.epsilon), self.relation
        return LedgerEntry.proved(
            key, name, event, proof, *arguments, relation=relation, record=record
        )

    def training_step(self, batch: GraphRecords, batch_idx: int) -> None:
        """Make the releases, unless a resumed run has made them."""
        if not self.is_released:
            source = statistics_of(batch, self.space)
            self.release(source, by_key(self.plan(self.budget, 1)))
            self.is_released.fill_(True)
        self.trainer.should_stop = True

    def configure_optimizers(self) -> Optimizer | None:
        """Return None, since there is no gradient."""
        return None

    def released_state(self) -> dict[str, Tensor]:
        """All buffers and parameters."""
        return dict(self.state_dict())


def statistics_of(records: GraphRecords, space: PairSpace) -> GraphStatisticsSource:
    """Return the counts of records: their own, or counts of their edges in memory."""
    if isinstance(records, HoldsStatistics):
        return records.statistics
    return EdgeStatistics(records.edges, space)


def noisy_num_edges(method: Synthesizer, source: GraphStatisticsSource, reads: Reads) -> Tensor:
    """Release the number of edges, rounded to a possible number of a simple graph.

    Args:
        method: The method, which pays.
        source: Counts of the training records (private).
        reads: Planned reads, ``num_edges`` among them.
    """
    noisy = method.pay(reads["num_edges"], torch.tensor(source.num_edges()))
    return noisy.clamp(0, method.space.num_pairs)


def num_edges_entry(epsilon: float, record: str = UndirectedPairs.record) -> LedgerEntry:
    """Plan the read of :func:`noisy_num_edges` under the relation of edges."""
    return LedgerEntry.proved(
        "num_edges", "number of edges", Pure(epsilon), edge_count_sensitivity, record=record
    )
