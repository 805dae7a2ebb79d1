"""Local differential privacy of node embeddings, compared by the Gromov-Wasserstein discrepancy."""

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from sklearn.metrics import normalized_mutual_info_score
from torch import Tensor

from lightning_dpg.graph.gromov import (
    Space,
    discrepancy_kernels,
    pairwise_discrepancies,
    row_distances,
)
from lightning_dpg.graph.gromov_kmeans import gromov_kmeans
from lightning_dpg.methods.graph_features.base import Embedding
from lightning_dpg.methods.graph_features.ldp_gw.federated import FederatedLearner
from lightning_dpg.methods.graph_features.ldp_gw.release import (
    assumptions,
    check_settings,
    node_inputs,
    noisy_sums,
    report_epsilons,
    reported,
    scaled,
)
from lightning_dpg.methods.graph_set.base import resized
from lightning_dpg.metrics.discrepancies import neighbor_accuracy
from lightning_dpg.metrics.kernel_svm import clip_spectrum
from lightning_dpg.nn.node_encoders import GCN, GIN, NodeEncoder, RowNet, padded
from lightning_dpg.privacy.events import Relation
from lightning_dpg.privacy.ledger import PrivacyLedger

# Barycenters of more graphs take minutes.
_MOST_CLUSTERED = 500


class LDPGromovWasserstein(FederatedLearner):
    r"""Each graph sends its node embeddings once, encoded; a server compares them.

    An encoder gives each node a row H of the simplex. What is sent of it:

    - ``ldp``: the signs of a few entries, by the multi-bit encoder, whose law changes by at most
      :math:`e^\epsilon` whatever the graph (with as many nodes) is. At epsilon 1 an entry of 18 rows
      has a standard deviation of 48, and below an epsilon of hundreds nothing is left but the number
      of nodes, if that is public.
    - ``curated_edge``: whoever holds a graph adds up the features of neighbors with noise, and the
      encoder reads nothing else. One edge is protected, not the graph; there is a signal.
    - ``exact``: the rows as they are, without protection.

    The server computes the discrepancies between the rows' distances within two graphs. Kernels
    :math:`e^{-\gamma GW}`, whose negative eigenvalues become 0, and neighbors tell the labels.

    Federated averaging trains the encoder on the labels of half of the graphs, the other half tells
    the accuracy: rows that were trained on a graph's label would give it away. One training step of
    Lightning is one round of all clients; processes share them.

    * Jin, Chen, "Gromov-Wasserstein Discrepancy with Local Differential Privacy for Distributed
      Structural Graphs", 2022.

    Args:
        encoder: ``gcn`` (two layers of 16) or ``gin`` (five of 64, two linear ones); of ``curated_edge``
            it is two linear layers of each node's noisy sums.
        release: What is sent, see above.
        weights: ``random`` from the public seed; ``trained`` by federated averaging, whose updates
            have no protection, but for ``curated_edge``, where they read noisy sums and cost nothing;
            ``private``: clipped updates whose sum has noise, paid from the same budget.
        mode: ``corrected``, or ``paper``: signs without correction of their bias, at an epsilon of one
            over the number of nodes of each graph.
        width: Width h of the rows.
        distance: Distance between the rows of a graph.
        reports_per_row: Entries m told of each row; None is about the best for the epsilon.
        report_epsilon: Epsilon of ``ldp`` where the budget is infinite because of ``weights``; in
            ``mode: paper`` in place of one over the number of nodes.
        max_nodes: Public bound on the nodes of a graph, up to which all are filled with rows that
            say nothing; None where the numbers of nodes are public.
        hops: Hops of ``curated_edge``.
        rounds: Rounds, at most the batches of the run.
        num_clients: Number of clients among whom the graphs that teach are dealt.
        concentration: Of the Dirichlet distribution of each label over the clients.
        local_epochs: Steps of a client in a round.
        learning_rate: Of these; None is 0.001 of GIN, which is deep, and 0.003 of the others.
        proximal: Weight of the term of FedProx; 0 is FedAvg.
        max_update_norm: What updates of ``weights: private`` are clipped to.
        weights_share: Share of epsilon for the rounds of ``weights: private``.
        teaching_fraction: Share of the graphs of each label that teach.
        split_seed: Public seed of who teaches and who holds what.
        flower_processes: Processes that hold the clients and talk to the server over Flower, which is
            an extra; 0 trains them one after another, or in the processes of Lightning.
    """

    relation = Relation.LOCAL_GRAPH
    is_pure: ClassVar[bool] = True
    predicts_graphs: ClassVar[bool] = False
    repeats_edges: ClassVar[bool] = True

    def __init__(
        self,
        encoder: Literal["gcn", "gin"] = "gcn",
        release: Literal["ldp", "curated_edge", "exact"] = "ldp",
        weights: Literal["random", "trained", "private"] = "random",
        mode: Literal["corrected", "paper"] = "corrected",
        *,
        width: int = 8,
        distance: Literal["euclidean", "cosine", "correlation"] = "euclidean",
        reports_per_row: int | None = None,
        report_epsilon: float | None = None,
        max_nodes: int | None = None,
        hops: int = 2,
        rounds: int = 50,
        num_clients: int = 10,
        concentration: float = 1.0,
        local_epochs: int = 5,
        learning_rate: float | None = None,
        proximal: float = 0.0,
        max_update_norm: float = 1.0,
        weights_share: float = 0.5,
        teaching_fraction: float = 0.5,
        split_seed: int = 0,
        flower_processes: int = 0,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        check_settings(self.hparams)
        self.automatic_optimization = weights == "random"
        self.updates_are_free = release == "curated_edge"
        if learning_rate is None:
            is_deep = encoder == "gin" and not self.updates_are_free
            self.hparams["learning_rate"] = 0.001 if is_deep else 0.003
        if self.updates_are_free:
            self.relation = Relation.EDGE
            self.ledger = PrivacyLedger(self.relation)
        self.rows: Tensor
        self.discrepancies: Tensor
        self.register_buffer("rows", torch.empty(0))
        self.register_buffer("discrepancies", torch.empty(0, dtype=torch.double))
        hook = resized("rows", "discrepancies")
        self.register_load_state_dict_pre_hook(hook)  # type: ignore[no-untyped-call]

    def delta_setting(self) -> str | None:
        """Gaussian noise of sums over neighbors, or of clients' updates."""
        if self.updates_are_free:
            return "release: curated_edge"
        return "weights: private" if self.hparams["weights"] == "private" else None

    def unprotected_setting(self) -> str | None:
        """Rows, or updates of clients, as they are."""
        if self.hparams["release"] == "exact":
            return "release: exact"
        return super().unprotected_setting()

    def encoder_class(self) -> Callable[[int, int, int], NodeEncoder]:
        """As set; of ``curated_edge`` one that reads no edges."""
        if self.updates_are_free:
            return RowNet
        return {"gcn": GCN, "gin": GIN}[self.hparams["encoder"]]

    def input_width(self, data: Any) -> int:
        """Features and degree, or features and their sums."""
        x = data.graphs[0].x
        width = 0 if x is None else int(x.shape[1])
        return max(width, 1) * (1 + self.hparams["hops"]) if self.updates_are_free else width + 1

    def client_inputs(self, data: Any) -> tuple[Tensor, Tensor]:
        """Private graphs, or what was released of them."""
        if self.updates_are_free:
            return self._shrunk_sums(), data.edges[:0]
        return node_inputs(data, data.edges), data.edges

    def reserved_epsilon(self, epsilon: float) -> float:
        """That of the reports."""
        if self.hparams["release"] != "ldp":
            return 0.0
        return float(report_epsilons(self.hparams, self.sizes, epsilon).max())

    def on_fit_start(self) -> None:
        """Take over the public facts of the data, and plan the rounds."""
        super().on_fit_start()
        data = self.trainer.datamodule  # type: ignore[attr-defined]
        if self.updates_are_free and data.max_occurrences > 1:
            raise MisconfigurationException(
                "release: curated_edge takes each edge for one record, but one can be "
                f"{data.max_occurrences} edges of this set: set data.init_args.max_occurrences to 1"
            )
        self.assumptions = assumptions(self.hparams, data)

    def public_sizes(self, data: Any) -> Tensor:
        """Numbers of rows that the graphs send, shape ``(G,)``.

        Raises:
            MisconfigurationException: If a graph has more nodes than ``max_nodes``.
        """
        bound, sizes = self.hparams["max_nodes"], data.sizes
        if bound is None:
            return sizes
        if int(sizes.max()) > bound:
            raise MisconfigurationException(
                f"max_nodes is {bound}, which is to be a public bound, and a graph has more nodes"
            )
        return torch.full_like(sizes, bound)

    def training_step(self, batch: Any, batch_idx: int) -> None:
        """One round; the last one is followed by the release, and the comparison of all graphs."""
        if self.updates_are_free and not len(self.rows):
            data = self.trainer.datamodule  # type: ignore[attr-defined]
            rows = noisy_sums(data, self.hparams["hops"], self.ledger, self.noise)
            self.rows = rows.to(self.device)
        super().training_step(batch, batch_idx)
        if self.is_released and not len(self.discrepancies):
            found = np.empty(0)
            if self.trainer.is_global_zero:  # one process compares for all
                found = self.compared()
            found = self.trainer.strategy.broadcast(found)
            self.discrepancies = torch.from_numpy(found).to(self.device)

    def compared(self) -> NDArray[np.float64]:
        """Discrepancies of all pairs of graphs by what was released, shape ``(G, G)``."""
        progress = self.trainer.progress_bar_callback is not None
        return pairwise_discrepancies(self._spaces(), progress=progress)

    def embed(self, data: Any, epsilon: float) -> Embedding:
        """Release the rows of all graphs, those of the first one first, as ``features``."""
        h = self.hparams
        if self.updates_are_free:
            return {"features": self.encoded(self._shrunk_sums(), data.edges[:0])}
        rows = self.encoded(node_inputs(data, data.edges), data.edges)
        if h["max_nodes"] is not None:
            rows = padded(rows, data.sizes, h["max_nodes"], 1 / rows.shape[1])
        if h["release"] == "exact":
            self.ledger.spend(self.unprotected("embeddings", "they are released as they are"))
            return {"features": rows}
        sizes = self.public_sizes(data).cpu()
        return {"features": reported(h, rows, sizes, epsilon, self.ledger, self.noise)}

    def grams(self, embedding: Embedding, sizes: Tensor) -> list[NDArray[np.float64]]:
        """Kernels of the discrepancies, without their negative eigenvalues."""
        found = self.discrepancies.cpu().numpy()
        return [clip_spectrum(gram) for gram in discrepancy_kernels(found)]

    def test_step(self, batch: Any, batch_idx: int) -> None:
        """Also the accuracy of neighbors, and how well clusters fit the labels.

        Like the accuracy they are of graphs that did not teach, and public if the release is private.
        """
        super().test_step(batch, batch_idx)
        judged = np.flatnonzero(self.judged)
        labels = self.labels.cpu().numpy()[judged]
        found = self.discrepancies.cpu().numpy()[np.ix_(judged, judged)]
        values = {"test_accuracy_of_neighbors": neighbor_accuracy(found, labels)}
        if len(judged) <= _MOST_CLUSTERED:
            spaces = self._spaces()
            clusters = gromov_kmeans([spaces[k] for k in judged], found, len(np.unique(labels)))
            values["test_clusters_nmi"] = normalized_mutual_info_score(labels, clusters.labels)
        self.log_dict(values, batch_size=1)

    def released_arrays(self) -> dict[str, NDArray[Any]]:
        """Also the discrepancies between all graphs, and which of them taught the encoder."""
        names = ("discrepancies", "teaching")
        return super().released_arrays() | {n: getattr(self, n).cpu().numpy() for n in names}

    def claimed_epsilon(self, delta: float) -> float | None:
        """Epsilon that the paper prints: that of the reports, and nothing of the weights."""
        if self.hparams["mode"] != "paper" or self.hparams["release"] != "ldp":
            return None
        return self.reserved_epsilon(float("inf"))

    def _shrunk_sums(self) -> Tensor:
        entry = self.ledger.entries[0]
        width = self.rows.shape[1] // (1 + self.hparams["hops"])
        return scaled(self.rows.cpu(), width, entry.sensitivity * entry.noise_multiplier)

    def _spaces(self) -> list[Space]:
        """What is compared of each graph: distances between its released rows."""
        parts = torch.split(self.embedding["features"].cpu().double(), self.sizes.tolist())
        metric = self.hparams["distance"]
        return [Space(row_distances(part.numpy(), metric)) for part in parts]
