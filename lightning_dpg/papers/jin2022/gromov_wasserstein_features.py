"""Rows of nodes and their comparison without protection: the baseline of private releases."""

from typing import ClassVar, Literal

from torch import Tensor

from lightning_dpg.interfaces import GraphSetRecords
from lightning_dpg.methods.graph_features.base import Embedding
from lightning_dpg.methods.planning import Reads
from lightning_dpg.papers.jin2022.base import GromovWassersteinRelease
from lightning_dpg.papers.jin2022.reports import Reports, equal_epsilons
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry, NonPrivate, Relation


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
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.settle_training(is_deep=encoder == "gin")

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the unprotected updates of all rounds, and the exact rows or their reports."""
        if self.hparams["report_epsilon"] is not None:
            return [*self.planned_rounds(), self._reports().entry]
        name = "embeddings"
        rows = self.unprotected(name, name, "they are released as they are")
        return [*self.planned_rounds(), rows]

    def release_features(self, records: GraphSetRecords, reads: Reads) -> Embedding:
        """Release the rows of all graphs, in the order of graphs, as ``features``."""
        rows, (*_, read) = self.encoded(*self.encoder_inputs(records)), reads.values()
        if isinstance(read.event, NonPrivate):
            self.ledger.spend(read)
            return {"features": rows}
        reports = self._reports()
        signs = self.pay(read, rows, reports.law(read, rows.shape))
        return {"features": reports.estimates(signs)}

    def epsilon_per_report(self) -> Tensor:
        """Epsilon of a single report of each graph (public), shape ``(G,)``; of reports only."""
        return self._reports().epsilon_per_report

    def _reports(self) -> Reports:
        """Reports of all graphs, whose rows share the epsilon."""
        h, sizes = self.hparams, self.num_rows
        epsilons, per_row = equal_epsilons(h["report_epsilon"], sizes), h["reports_per_row"]
        largest = int(sizes.max())
        return Reports.chosen(sizes, epsilons, per_row, num_rows=largest, width=h["width"])
