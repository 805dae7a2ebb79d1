"""Rows of nodes and their comparison without protection: the baseline of private releases."""

from typing import ClassVar, Literal

from torch import Tensor

from lightning_dpg.interfaces import GraphSetRecords
from lightning_dpg.methods.graph_features.base import Embedding
from lightning_dpg.methods.graph_features.ldp_gw.base import (
    GromovWassersteinRelease,
)
from lightning_dpg.methods.graph_features.ldp_gw.reports import (
    choose_reports_per_row,
    equal_epsilons,
    release_reports,
    report_assumptions,
    reports_entry,
)
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry, Relation


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
        proximal: Weight of the term of FedProx; 0 is FedAvg.
        train_fraction: Fraction of the graphs of each label that train the encoder.
        seed: Public seed of the training graphs and of their division among clients.
        flower_processes: Processes of clients, which talk to the server over Flower, an extra; 0
            trains clients one after another, or in the processes of Lightning.
    """

    relation = Relation.LOCAL_GRAPH
    adds_noise: ClassVar[bool] = False

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
        proximal: float = 0.0,
        train_fraction: float = 0.5,
        seed: int = 0,
        flower_processes: int = 0,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.settle_training(("random", "trained"), is_deep=encoder == "gin")

    def publish_update(self, total: Tensor) -> Tensor:
        """Publish the update without noise, which voids every guarantee."""
        self.ledger.spend(self.unprotected_updates())
        return total

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the updates of all rounds, and the rows, as unprotected reads."""
        rounds = [self.unprotected_updates(self.num_rounds)] if self.num_rounds else []
        return [*rounds, self._rows_entry()]

    def on_fit_start(self) -> None:
        """Copy the public facts of the data."""
        super().on_fit_start()
        self.assumptions = report_assumptions(self.records, None)

    def release_features(self, records: GraphSetRecords, budget: Budget) -> Embedding:
        """Release the rows of all graphs, in the order of graphs, as ``features``."""
        rows, epsilon = self.encoded(*self.encoder_inputs(records)), self.hparams["report_epsilon"]
        if epsilon is None:
            self.ledger.spend(self._rows_entry())
            return {"features": rows}
        reports = release_reports(
            rows,
            records.sizes,
            self.ledger,
            self.noise,
            epsilons=equal_epsilons(epsilon, records.sizes),
            reports_per_row=self._reports_per_row(),
        )
        return {"features": reports}

    def epsilon_per_report(self) -> Tensor:
        """Epsilon of a single report of each graph (public), shape ``(G,)``; of reports only."""
        total: float = self.hparams["report_epsilon"]
        return total / (self._reports_per_row() * self.sizes.cpu().double())

    def _rows_entry(self) -> LedgerEntry:
        epsilon = self.hparams["report_epsilon"]
        if epsilon is None:
            return self.unprotected("embeddings", "they are released as they are")
        return reports_entry(epsilon, self._largest() * self._reports_per_row())

    def _largest(self) -> int:
        """Number of nodes of the largest graph; 1 before the graphs are known."""
        return int(self.sizes.max()) if len(self.sizes) else 1

    def _reports_per_row(self) -> int:
        h = self.hparams
        return choose_reports_per_row(
            h["reports_per_row"], h["report_epsilon"], self._largest(), h["width"]
        )
