"""Local differential privacy of each graph, by one report of the rows of its nodes."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor, nn

from lightning_dpg.interfaces import GraphSetRecords
from lightning_dpg.methods.graph_features import Embedding, local_assumptions
from lightning_dpg.methods.planning import Reads
from lightning_dpg.nn.node_encoders import padded
from lightning_dpg.papers.jin2022.base import UPDATES, GromovWassersteinRelease
from lightning_dpg.papers.jin2022.clients import client_weight
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.calibration import calibrate_noise_multiplier
from lightning_dpg.privacy.events import Gaussian, LedgerEntry, Relation
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.reports import best_reports_per_row, multi_bit, reports_entry, unbiased
from lightning_dpg.privacy.sensitivity.fitting import client_update_sensitivity

REPORTS_KEY = "embedding_reports"

BOUNDS = (0.0, 1.0)
"""Of the entries of a softmax."""


class Reports(NamedTuple):
    """Settings of the reports of the rows of all graphs (public).

    Attributes:
        sizes: Number of rows of each graph, shape ``(G,)``.
        epsilons: Cost for each graph, shape ``(G,)``.
        per_row: Entries m reported of each row.
    """

    sizes: Tensor
    epsilons: Tensor
    per_row: int

    @classmethod
    def chosen(
        cls, sizes: Tensor, epsilons: Tensor, per_row: int | None, *, num_rows: int, width: int
    ) -> "Reports":
        """Choose the number of reported entries per row: the setting, or near the optimum.

        Args:
            sizes: Number of rows of each graph, shape ``(G,)``.
            epsilons: Cost for each graph, shape ``(G,)``.
            per_row: The setting; None selects the optimum.
            num_rows: Number of rows that share the epsilon of a graph.
            width: Entries of a row.
        """
        if per_row is None:
            per_row = best_reports_per_row(float(epsilons.min()), num_rows, width)
        return cls(sizes, epsilons, per_row)

    @classmethod
    def equal(cls, method: GromovWassersteinRelease, epsilon: float) -> "Reports":
        """Choose the reports of a method that has one epsilon for all graphs."""
        h, sizes = method.hparams, method.num_rows
        epsilons, largest = equal_epsilons(epsilon, sizes), int(sizes.max())
        per_row, width = h["reports_per_row"], h["width"]
        return cls.chosen(sizes, epsilons, per_row, num_rows=largest, width=width)

    @property
    def entry(self) -> LedgerEntry:
        """Read of all reports."""
        name, largest = "reports of embeddings", float(self.epsilons.max())
        return reports_entry(REPORTS_KEY, name, largest, self.sizes, self.per_row)

    @property
    def epsilon_per_report(self) -> Tensor:
        """Epsilon of a single report of each graph, shape ``(G,)``."""
        return self.epsilons / (self.per_row * self.sizes)

    def law(
        self, read: LedgerEntry, shape: Sequence[int]
    ) -> Callable[[Tensor, NoiseSource], Tensor]:
        """Law of the signs of a few entries of each row, with 0 for unreported entries.

        Args:
            read: Read of all reports.
            shape: Shape ``(N, h)`` of the rows.
        """
        return multi_bit(
            read,
            shape,
            self.sizes,
            epsilon=self.epsilons,
            reports_per_row=self.per_row,
            bounds=BOUNDS,
        )

    def estimates(self, signs: Tensor) -> Tensor:
        """Unbiased estimates of all rows from the released signs, shape ``(N, h)``."""
        return unbiased(
            signs, self.sizes, epsilon=self.epsilons, reports_per_row=self.per_row, bounds=BOUNDS
        )


def equal_epsilons(epsilon: float, sizes: Tensor) -> Tensor:
    """Equal epsilons for the reports of all graphs, shape ``(G,)``."""
    return torch.full((len(sizes),), epsilon, dtype=torch.double, device=sizes.device)


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
        max_update_norm: Clipping norm of the updates.
        weights_share: Share of epsilon for the rounds of ``weights: private``.
        train_fraction: Fraction of the graphs of each label that train the encoder.
        seed: Public seed of the training graphs and of their division among clients.
    """

    relation = Relation.LOCAL_GRAPH
    capabilities = replace(GromovWassersteinRelease.capabilities, is_pure=True)

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
        max_update_norm: float = 1.0,
        weights_share: float = 0.5,
        train_fraction: float = 0.5,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        if self.num_rounds:  # Gaussian noise on the updates of clients
            self.capabilities = replace(self.capabilities, is_pure=False)
        self.settle_training(is_deep=encoder == "gin")
        self.update_noise: Tensor = nn.Buffer(torch.tensor(0.0, dtype=torch.double))

    def _check_budget(self, budget: Budget) -> None:
        """Also refuse an infinite epsilon, at which the encoder of reports has no law."""
        super()._check_budget(budget)
        self._report_epsilon(budget)

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the private rounds, if any, and the reports of all graphs."""
        reports = Reports.equal(self, self._report_epsilon(budget)).entry
        if not self.num_rounds:
            return [reports]
        multiplier = calibrate_noise_multiplier(budget, steps=self.num_rounds, other=[reports])
        return [replace(self._round(multiplier), steps=self.num_rounds), reports]

    @property
    def update_bound(self) -> float:
        """Clipping norm of the clients' updates."""
        return float(self.hparams["max_update_norm"])

    def round_entry(self) -> LedgerEntry:
        """Cost of the next round, with the noise that is fixed at the start of a run."""
        return self._round(float(self.update_noise))

    def assumed(self, records: GraphSetRecords) -> list[str]:
        """Facts of graphs that the guarantee treats as public."""
        is_trusted = bool(self.num_rounds)
        return local_assumptions(records, self.hparams["max_nodes"], is_trusted=is_trusted)

    def on_fit_start(self) -> None:
        """Copy the public facts of the data, and fix the noise of the rounds."""
        super().on_fit_start()
        if self.num_rounds and not self.rounds_made:  # a resumed run keeps its noise
            event = self.plan(self.budget, self.num_rounds)[0].event
            assert isinstance(event, Gaussian)
            self.update_noise.fill_(event.noise_multiplier)

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

    def release_features(self, records: GraphSetRecords, reads: Reads) -> Embedding:
        """Release reports of the rows of all graphs, in the order of graphs, as ``features``."""
        rows = self.encoded(*self.encoder_inputs(records))
        if self.hparams["max_nodes"] is not None:
            rows = padded(rows, records.sizes, self.hparams["max_nodes"], 1 / rows.shape[1])
        read = reads[REPORTS_KEY]
        reports = Reports.equal(self, read.event.pure_epsilon)
        signs = self.pay(read, rows, reports.law(read, rows.shape))
        return {"features": reports.estimates(signs)}

    def epsilon_per_report(self) -> Tensor:
        """Epsilon of a single report of each graph (public), shape ``(G,)``."""
        return Reports.equal(self, self._report_epsilon(self.budget)).epsilon_per_report

    def _report_epsilon(self, budget: Budget) -> float:
        """Epsilon of the reports of each graph."""
        if math.isinf(budget.epsilon):
            raise MisconfigurationException(
                f"{type(self).__name__} has no law for an infinite epsilon\n"
                "set privacy.epsilon, or take GromovWassersteinFeatures for rows without protection"
            )
        share = self.hparams["weights_share"] if self.num_rounds else 0.0
        return budget.epsilon * (1 - share)

    def _round(self, noise_multiplier: float) -> LedgerEntry:
        """Cost of a round; before the graphs are known, one client has all of them."""
        parts = self.client_parts() if len(self.train_mask) else []
        largest = max((client_weight(part, parts) for part in parts), default=1.0)
        return LedgerEntry.proved(
            *UPDATES,
            Gaussian(noise_multiplier),
            client_update_sensitivity,
            self.update_bound,
            largest,
            relation=self.relation,
        )
