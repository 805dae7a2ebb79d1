"""Rows of nodes and their comparison without protection: the baseline of private releases."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn

from lightning_dpg.graph.edge_statistics import neighbor_sums
from lightning_dpg.interfaces import GraphSetRecords
from lightning_dpg.methods.graph_features import Embedding
from lightning_dpg.methods.planning import Reads
from lightning_dpg.nn.node_encoders import NodeEncoder, RowNet
from lightning_dpg.nn.resized_buffers import resize_on_loading
from lightning_dpg.papers.jin2022.base import (
    GromovWassersteinRelease,
    num_features,
    public_features,
    scaled,
)
from lightning_dpg.papers.jin2022.ldp_gw import Reports
from lightning_dpg.privacy.aggregation_perturbation import aggregation_entries, noisy_aggregation
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.calibration import calibrate_noise_multiplier
from lightning_dpg.privacy.events import LedgerEntry, NonPrivate, Relation


class CentralGromovWasserstein(GromovWassersteinRelease):
    """Node embeddings of graphs from private sums over neighbors, and their comparison.

    A trusted curator releases sums of the public features over the neighbors of each node, hop by
    hop, with Gaussian noise that spends the whole budget. The encoder reads only these sums. Its
    training on the public labels, the rows and their comparison therefore cost nothing.

    When to use:
        Where a trusted curator holds the graphs, and the numbers of nodes and edges tell little of
        their labels, from an epsilon of about 5 on. Otherwise take :class:`PrivateGraphKernel`.
        :class:`LDPGromovWasserstein` protects the whole graph of a client, at the price of nearly
        all signal.

    Privacy:
        (epsilon, delta)-DP at the level of edges: one undirected edge of one graph is added or
        removed. The guarantee has no condition; data with repeated edges are refused. The number of
        graphs, their numbers of nodes, the features of nodes and the labels are public.

    Cost:
        The sums take time O(``hops`` (N + M)) times the width of the features. All pairs of graphs
        are compared, each by a series of transport problems between all pairs of their nodes.

    * Jin, Chen, "Gromov-Wasserstein Discrepancy with Local Differential Privacy for Distributed
      Structural Graphs", 2022, for the rows and their comparison.
    * Sajadmanesh et al., "GAP: Differentially private graph neural networks with aggregation
      perturbation", 2023, for the noisy sums, which are an addition of this package.

    Args:
        weights: ``random`` from the public seed, or ``trained`` by federated averaging.
        width: Width h of the rows.
        distance: Distance between the rows of a graph.
        hops: Number of hops.
        rounds: Rounds of ``weights: trained``, as many steps of the trainer.
        num_clients: Number of clients among whom the training graphs are divided.
        concentration: Concentration of the Dirichlet distribution of each label over the clients.
        local_epochs: Steps of a client in a round.
        learning_rate: Learning rate of the local steps; None is 0.003.
        train_fraction: Fraction of the graphs of each label that train the encoder.
        seed: Public seed of the training graphs and of their division among clients.
    """

    capabilities = replace(GromovWassersteinRelease.capabilities, repeats_edges=False)

    def __init__(
        self,
        weights: Literal["random", "trained"] = "random",
        *,
        width: int = 8,
        distance: Literal["euclidean", "cosine", "correlation"] = "euclidean",
        hops: int = 2,
        rounds: int = 50,
        num_clients: int = 10,
        concentration: float = 1.0,
        local_epochs: int = 5,
        learning_rate: float | None = None,
        train_fraction: float = 0.5,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.settle_training()
        self.rows: Tensor = nn.Buffer(torch.empty(0))
        resize_on_loading(self, "rows")

    def encoder_factory(self) -> Callable[[int, int, int], NodeEncoder]:
        """Build two linear layers on each node's own row, which read no edge."""
        return RowNet

    def input_width(self, records: GraphSetRecords) -> int:
        """Width of the features and of their sums."""
        return max(num_features(records), 1) * (1 + int(self.hparams["hops"]))

    def encoder_inputs(self, records: GraphSetRecords) -> tuple[Tensor, Tensor]:
        """Return the noisy sums, and no edges."""
        return self._scaled_rows(), records.edges[:0]

    def round_entry(self) -> None:
        """Return None: functions of the noisy sums and of public labels cost nothing."""

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan one release of sums over neighbors for each hop, all with the same noise."""
        hops = int(self.hparams["hops"])
        multiplier = calibrate_noise_multiplier(budget, steps=hops)
        return aggregation_entries(hops, multiplier, self.relation)

    def training_step(self, batch: GraphSetRecords, batch_idx: int) -> None:
        """Release the noisy sums before the first round.

        Args:
            batch: The graphs (private).
            batch_idx: Number of the batch.
        """
        if not len(self.rows):
            self.rows = self._noisy_rows(batch).to(self.device)
        super().training_step(batch, batch_idx)

    def release_features(self, records: GraphSetRecords, reads: Reads) -> Embedding:
        """Encode the noisy sums of all graphs, in the order of graphs, as ``features``."""
        return {"features": self.encoded(*self.encoder_inputs(records))}

    def _noisy_rows(self, records: GraphSetRecords) -> Tensor:
        """Public features and their noisy sums over neighbors, shape ``(N, (1 + hops) d)``."""
        x, reads = public_features(records), self.plan(self.budget, 1)
        sums_of = partial(neighbor_sums, records.edges)
        sums = noisy_aggregation(sums_of, x, reads, self.ledger, self.noise)
        return torch.cat([x, sums], 1)

    def _scaled_rows(self) -> Tensor:
        width = self.rows.shape[1] // (1 + self.hparams["hops"])
        return scaled(self.rows.cpu(), width, self.ledger.entries[0].scale)


class GromovWassersteinFeatures(GromovWassersteinRelease):
    """Exact node embeddings of graphs, and their comparison; **not private**.

    With ``report_epsilon`` the rows pass through the multi-bit encoder of
    :class:`LDPGromovWasserstein`, which measures the loss due to the reports alone.

    When to use:
        As the baseline without privacy of :class:`LDPGromovWasserstein` and
        :class:`CentralGromovWasserstein`.

    Privacy:
        None, with ``report_epsilon`` as well: the clients' weights are not protected. A run needs
        an infinite epsilon, and its statement says that nothing is protected.

    Cost:
        All pairs of graphs are compared, each by a series of transport problems between all pairs
        of their nodes. ``weights: trained`` adds ``rounds`` of training by all clients.

    * Jin, Chen, "Gromov-Wasserstein Discrepancy with Local Differential Privacy for Distributed
      Structural Graphs", 2022.

    Args:
        encoder: ``gcn`` (two layers of 16) or ``gin`` (five of 64, two linear ones).
        weights: ``random`` from the public seed, or ``trained`` by federated averaging.
        width: Width h of the rows.
        distance: Distance between the rows of a graph.
        report_epsilon: Epsilon of the reports of each graph; None releases the exact rows.
        reports_per_row: Entries m reported of each row; None is near the optimum for the epsilon.
        rounds: Rounds of ``weights: trained``, as many steps of the trainer.
        num_clients: Number of clients among whom the training graphs are divided.
        concentration: Concentration of the Dirichlet distribution of each label over the clients.
        local_epochs: Steps of a client in a round.
        learning_rate: Learning rate of the local steps; None is 0.001 for GIN, which is deep, and
            0.003 for GCN.
        train_fraction: Fraction of the graphs of each label that train the encoder.
        seed: Public seed of the training graphs and of their division among clients.
    """

    relation = Relation.LOCAL_GRAPH
    capabilities = replace(GromovWassersteinRelease.capabilities, adds_noise=False)

    def __init__(
        self,
        encoder: Literal["gcn", "gin"] = "gcn",
        weights: Literal["random", "trained"] = "random",
        *,
        width: int = 8,
        distance: Literal["euclidean", "cosine", "correlation"] = "euclidean",
        report_epsilon: float | None = None,
        reports_per_row: int | None = None,
        rounds: int = 50,
        num_clients: int = 10,
        concentration: float = 1.0,
        local_epochs: int = 5,
        learning_rate: float | None = None,
        train_fraction: float = 0.5,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.settle_training(is_deep=encoder == "gin")

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the unprotected updates of all rounds, and the exact rows or their reports."""
        if self.hparams["report_epsilon"] is not None:
            return [*self.planned_rounds(), self._reports.entry]
        name = "embeddings"
        rows = self.ledger.unprotected(name, name, "they are released as they are")
        return [*self.planned_rounds(), rows]

    def release_features(self, records: GraphSetRecords, reads: Reads) -> Embedding:
        """Release the rows of all graphs, in the order of graphs, as ``features``."""
        rows, (*_, read) = self.encoded(*self.encoder_inputs(records)), reads.values()
        if isinstance(read.event, NonPrivate):
            self.ledger.spend(read)
            return {"features": rows}
        reports = self._reports
        signs = self.pay(read, rows, reports.law(read, rows.shape))
        return {"features": reports.estimates(signs)}

    def epsilon_per_report(self) -> Tensor:
        """Epsilon of a single report of each graph (public), shape ``(G,)``; of reports only."""
        return self._reports.epsilon_per_report

    @property
    def _reports(self) -> Reports:
        """Reports of the rows."""
        return Reports.equal(self, self.hparams["report_epsilon"])
