"""Gromov-Wasserstein discrepancies of reported rows, as Jin and Chen published them."""

from dataclasses import replace
from typing import Literal

from torch import Tensor

from lightning_dpg.interfaces import GraphSetRecords
from lightning_dpg.methods.graph_features import Embedding
from lightning_dpg.methods.planning import Reads
from lightning_dpg.papers.jin2022.base import GromovWassersteinRelease
from lightning_dpg.papers.jin2022.ldp_gw import REPORTS_KEY, Reports, equal_epsilons
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry, Relation


class LDPGromovWassersteinAsPublished(GromovWassersteinRelease):
    """Node embeddings of clients' graphs, as published; **not private**.

    Algorithm 1: the graphs report signs of their rows without correction of their bias, at an
    epsilon of one over their number of nodes.

    When to use:
        To check the claim of the paper. :class:`LDPGromovWasserstein` keeps a budget.

    Privacy:
        None: the clients' weights are not protected in the federated averaging. A run needs an
        infinite epsilon, and its statement reports the epsilon of the reports as the paper's claim.

    Cost:
        As :class:`LDPGromovWasserstein`, and ``rounds`` of training by all clients with
        ``weights: trained``.

    Differences from the paper:
        What the paper claims and does not hold: its theorem covers one report of a graph and
        neither the weights of clients in each round, nor the public number of nodes, nor a second
        report.

    * Jin, Chen, "Gromov-Wasserstein Discrepancy with Local Differential Privacy for Distributed
      Structural Graphs", 2022, Algorithm 1.

    Args:
        encoder: ``gcn`` (two layers of 16) or ``gin`` (five of 64, two linear ones).
        weights: ``trained`` by federated averaging, or ``random`` from the public seed.
        width: Width h of the rows.
        distance: Distance between the rows of a graph.
        report_epsilon: Epsilon of the reports in place of one over the number of nodes.
        reports_per_row: Entries m reported of each row; None is near the optimum for a row that has
            the whole epsilon of its graph, as in the paper.
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
        weights: Literal["random", "trained"] = "trained",
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
        """Plan the unprotected updates of all rounds, and the reports of all graphs."""
        return [*self.planned_rounds(), self._reports().entry]

    def release_features(self, records: GraphSetRecords, reads: Reads) -> Embedding:
        """Release signs of the rows of all graphs, in the order of graphs, as ``features``."""
        read, rows = reads[REPORTS_KEY], self.encoded(*self.encoder_inputs(records))
        signs = self.pay(read, rows, self._reports().law(read, rows.shape))
        return {"features": signs.double()}

    def claimed_epsilon(self, delta: float) -> float | None:
        """Epsilon of the paper, which covers the reports and ignores the weights."""
        return float(self._reports().epsilons.max()) if len(self.sizes) else None

    def epsilon_per_report(self) -> Tensor:
        """Epsilon of a single report of each graph (public), shape ``(G,)``."""
        return self._reports().epsilon_per_report

    def _reports(self) -> Reports:
        """Reports of all graphs, as if each row had the whole epsilon of its graph."""
        h, sizes = self.hparams, self.num_rows
        epsilon = h["report_epsilon"]
        epsilons = 1 / sizes.double() if epsilon is None else equal_epsilons(epsilon, sizes)
        return Reports.chosen(sizes, epsilons, h["reports_per_row"], num_rows=1, width=h["width"])
