"""Local differential privacy of each graph, by one report of the rows of its nodes."""

import math
from typing import ClassVar, Literal

import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor

from lightning_dpg.interfaces import GraphSetRecords
from lightning_dpg.methods.graph_features.base import Embedding
from lightning_dpg.methods.graph_features.ldp_gw.base import (
    UPDATES,
    UPDATES_KEY,
    GromovWassersteinRelease,
)
from lightning_dpg.methods.graph_features.ldp_gw.clients import client_weight
from lightning_dpg.methods.graph_features.ldp_gw.reports import (
    choose_reports_per_row,
    equal_epsilons,
    release_reports,
    report_assumptions,
    reports_entry,
)
from lightning_dpg.nn.node_encoders import padded
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.calibration import calibrate_noise_multiplier
from lightning_dpg.privacy.events import LedgerEntry, Relation
from lightning_dpg.privacy.mechanisms import gaussian
from lightning_dpg.privacy.sensitivity import client_update_sensitivity


class LDPGromovWasserstein(GromovWassersteinRelease):
    r"""Node embeddings of each client's graph, sent once with local privacy, and their comparison.

    A graph reports the signs of a few entries of its rows by the multi-bit encoder, whose law
    changes by at most :math:`e^\epsilon` for any two graphs. A server computes the
    Gromov-Wasserstein discrepancies of the reported rows. At epsilon 1 an entry of a graph with
    18 nodes has a standard deviation of 51 at the default width; true entries lie in [0, 1].

    With ``weights: random`` the encoder has public random weights. With ``weights: private`` it is
    trained by federated averaging: the sum of clipped updates has Gaussian noise, paid from the
    same budget, under the same relation, and from its delta.

    When to use:
        To study local privacy, where no curator may see a graph. Up to an epsilon of 10,000 hardly
        any signal but the number of nodes remains, if that is public. Its baseline
        :class:`LocalScalars` predicts labels better where densities differ.
        :class:`CentralGromovWasserstein` protects an edge and has a signal;
        :class:`GromovWassersteinFeatures` is the baseline without protection.

    Privacy:
        Local: the graph of one client is exchanged for any other graph with as many nodes. Pure
        epsilon-DP with ``weights: random``; (epsilon, delta)-DP with ``weights: private``, which
        trusts the server that adds the updates. The number of graphs, their labels, the kinds of
        node features and the numbers of nodes are public; ``max_nodes`` hides the latter behind a
        public bound.

    Cost:
        All pairs of graphs are compared, each by a series of transport problems between all pairs
        of their nodes. An infinite epsilon is refused.

    Differences from the paper:
        The reports are corrected for their bias, and the entries per row suit the epsilon that a
        graph divides among its rows. The weights of clients are paid for, while the paper leaves
        them without protection. The paper reads a larger epsilon as more protection; here a smaller
        one is. :class:`LDPGromovWassersteinAsPublished` follows the paper exactly.

    * Jin, Chen, "Gromov-Wasserstein Discrepancy with Local Differential Privacy for Distributed
      Structural Graphs", 2022.

    Args:
        encoder: ``gcn`` (two layers of 16) or ``gin`` (five of 64, two linear ones).
        weights: ``random`` from the public seed, or ``private``: trained by private rounds.
        width: Width h of the rows.
        distance: Distance between the rows of a graph.
        reports_per_row: Entries m reported of each row; None is near the optimum for the epsilon.
        max_nodes: Public bound on the nodes of a graph; constant rows pad all graphs to it. None if
            the numbers of nodes are public.
        rounds: Rounds of ``weights: private``, as many steps of the trainer.
        num_clients: Number of clients among whom the training graphs are divided.
        concentration: Concentration of the Dirichlet distribution of each label over the clients.
        local_epochs: Steps of a client in a round.
        learning_rate: Learning rate of the local steps; None is 0.001 for GIN, which is deep, and
            0.003 for GCN.
        proximal: Weight of the term of FedProx; 0 is FedAvg.
        max_update_norm: Clipping norm of the updates.
        weights_share: Share of epsilon for the rounds of ``weights: private``.
        train_fraction: Fraction of the graphs of each label that train the encoder.
        seed: Public seed of the training graphs and of their division among clients.
        flower_processes: Processes of clients, which talk to the server over Flower, an extra; 0
            trains clients one after another, or in the processes of Lightning.
    """

    relation = Relation.LOCAL_GRAPH
    is_pure: ClassVar[bool] = True

    def __init__(
        self,
        encoder: Literal["gcn", "gin"] = "gcn",
        weights: Literal["random", "private"] = "random",
        *,
        width: int = 8,
        distance: Literal["euclidean", "cosine", "correlation"] = "euclidean",
        reports_per_row: int | None = None,
        max_nodes: int | None = None,
        rounds: int = 50,
        num_clients: int = 10,
        concentration: float = 1.0,
        local_epochs: int = 5,
        learning_rate: float | None = None,
        proximal: float = 0.0,
        max_update_norm: float = 1.0,
        weights_share: float = 0.5,
        train_fraction: float = 0.5,
        seed: int = 0,
        flower_processes: int = 0,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.settle_training(("random", "private"), is_deep=encoder == "gin")
        self.update_noise: Tensor
        self.register_buffer("update_noise", torch.tensor(0.0, dtype=torch.double))

    def delta_setting(self) -> str | None:
        """Setting that spends delta: the Gaussian noise of the clients' updates."""
        return "weights: private" if self.num_rounds else None

    def check_budget(self, budget: Budget, steps: int = 1) -> None:
        """Also refuse an infinite epsilon, at which the encoder of reports has no law."""
        super().check_budget(budget, steps)
        self._report_epsilon(budget)

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the private rounds, if any, and the reports of all graphs."""
        epsilon, largest = self._report_epsilon(budget), int(self._num_rows().max())
        reports = reports_entry(epsilon, largest * self._reports_per_row(epsilon))
        if not self.num_rounds:
            return [reports]
        multiplier = calibrate_noise_multiplier(budget, steps=self.num_rounds, other=[reports])
        return [self._update_entry(multiplier, self.num_rounds), reports]

    @property
    def update_bound(self) -> float:
        """Clipping norm of the clients' updates."""
        return float(self.hparams["max_update_norm"])

    def step_entries(self) -> list[LedgerEntry]:
        """Cost of the next round; the reports are paid at their release."""
        if self.rounds_made >= self.num_rounds:
            return []
        return [self._update_entry(float(self.update_noise), 1)]

    def publish_update(self, total: Tensor) -> Tensor:
        """Add Gaussian noise to the sum of the clipped updates."""
        entry = self._update_entry(float(self.update_noise), 1)
        return gaussian(
            total,
            self.ledger,
            self.noise,
            key=entry.key,
            name=entry.name,
            sensitivity=entry.sensitivity,
            noise_multiplier=entry.noise_multiplier,
            proof=entry.proof,
            record=entry.record,
        )

    def on_fit_start(self) -> None:
        """Copy the public facts of the data, and fix the noise of the rounds."""
        super().on_fit_start()
        bound = self.hparams["max_nodes"]
        self.assumptions = report_assumptions(self.records, bound, is_trusted=bool(self.num_rounds))
        if self.num_rounds and not self.rounds_made:  # a resumed run keeps its noise
            self.update_noise.fill_(self.plan(self.budget, self.num_rounds)[0].noise_multiplier)

    def public_sizes(self, records: GraphSetRecords) -> Tensor:
        """Number of reported rows of each graph, shape ``(G,)``.

        Raises:
            MisconfigurationException: If a graph has more nodes than ``max_nodes``.
        """
        bound = self.hparams["max_nodes"]
        if bound is None:
            return records.sizes
        if int(records.sizes.max()) > bound:
            raise MisconfigurationException(
                f"max_nodes is {bound}, which is to be a public bound, and a graph has more nodes"
            )
        return torch.full_like(records.sizes, bound)

    def release_features(self, records: GraphSetRecords, budget: Budget) -> Embedding:
        """Release reports of the rows of all graphs, in the order of graphs, as ``features``."""
        rows = self.encoded(*self.encoder_inputs(records))
        if self.hparams["max_nodes"] is not None:
            rows = padded(rows, records.sizes, self.hparams["max_nodes"], 1 / rows.shape[1])
        sizes, epsilon = self.public_sizes(records).cpu(), self._report_epsilon(budget)
        reports = release_reports(
            rows,
            sizes,
            self.ledger,
            self.noise,
            epsilons=equal_epsilons(epsilon, sizes),
            reports_per_row=self._reports_per_row(epsilon),
        )
        return {"features": reports}

    def epsilon_per_report(self) -> Tensor:
        """Epsilon of a single report of each graph (public), shape ``(G,)``."""
        epsilon = self._report_epsilon(self.budget)
        return epsilon / (self._reports_per_row(epsilon) * self.sizes.cpu().double())

    def _report_epsilon(self, budget: Budget) -> float:
        """Epsilon of the reports of each graph."""
        if math.isinf(budget.epsilon):
            raise MisconfigurationException(
                f"{type(self).__name__} has no law for an infinite epsilon\n"
                "set privacy.epsilon, or take GromovWassersteinFeatures for rows without protection"
            )
        share = self.hparams["weights_share"] if self.num_rounds else 0.0
        return budget.epsilon * (1 - share)

    def _num_rows(self) -> Tensor:
        """Numbers of rows of all graphs; one row before the graphs are known."""
        return self.sizes.cpu() if len(self.sizes) else torch.ones(1, dtype=torch.long)

    def _reports_per_row(self, epsilon: float) -> int:
        h, largest = self.hparams, int(self._num_rows().max())
        return choose_reports_per_row(h["reports_per_row"], epsilon, largest, h["width"])

    def _update_entry(self, noise_multiplier: float, steps: int) -> LedgerEntry:
        """Ledger entry of rounds; before the graphs are known, one client has all of them."""
        parts = self.client_parts() if len(self.train_mask) else []
        largest = max((client_weight(part, parts) for part in parts), default=1.0)
        return LedgerEntry(
            key=UPDATES_KEY,
            name=UPDATES,
            relation=self.relation,
            mechanism="gaussian",
            sensitivity=client_update_sensitivity(self.update_bound, largest),
            noise_multiplier=noise_multiplier,
            steps=steps,
            proof="client_update_sensitivity",
            record="graph of one client",
        )
