"""Shared parts of Gromov-Wasserstein releases: encoder, training, and comparison of graphs."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from sklearn.metrics import normalized_mutual_info_score
from torch import Tensor, nn

from lightning_dpg.interfaces import BatchRequest, GraphSetRecords
from lightning_dpg.methods.constraints import SHARE, Constraints, at_least
from lightning_dpg.methods.graph_features import Embedding, GraphFeatureRelease
from lightning_dpg.metrics.kernel_svm import clip_spectrum, neighbor_accuracy
from lightning_dpg.nn.node_encoders import GCN, GIN, NodeEncoder
from lightning_dpg.nn.resized_buffers import before_loading, resize_on_loading
from lightning_dpg.papers.jin2022.clients import (
    Client,
    LocalTraining,
    build_clients,
    draw_train_mask,
    partition_dirichlet,
    weighted_update,
)
from lightning_dpg.papers.jin2022.gromov import (
    Matrix,
    Space,
    discrepancy_kernels,
    gromov_kmeans,
    pairwise_discrepancies,
    row_distances,
)
from lightning_dpg.privacy.events import LedgerEntry, NonPrivate


def num_features(records: GraphSetRecords) -> int:
    """Width of the node features (public); 0 without any."""
    x = records.graphs[0].x
    return 0 if x is None else int(x.shape[1])


def node_inputs(records: GraphSetRecords, edges: Tensor) -> Tensor:
    """Degree and features, if any, of each node (private), shape ``(N, d)``.

    Args:
        records: The graphs.
        edges: Edges on the nodes of the graphs, shape ``(M, 2)``.
    """
    degrees = torch.bincount(edges.flatten(), minlength=len(records.graph_of))
    columns = [degrees.float().log1p()[:, None]]
    if num_features(records):
        columns.append(public_features(records))
    return torch.cat(columns, 1)


def public_features(records: GraphSetRecords) -> Tensor:
    """Features of all nodes, shape ``(N, d)``; a constant 1 without features."""
    if not num_features(records):
        return torch.ones(len(records.graph_of), 1)
    return torch.cat([graph.x for graph in records.graphs])


def scaled(rows: Tensor, width: int, noise_std: float) -> Tensor:
    """Scale the columns of rows to entries of about 1, and shrink sums dominated by noise.

    A column of mean square v is shrunk by the share of signal in v, as in Wiener's filter. The
    scale is a function of released rows.

    Args:
        rows: Features and noisy sums, shape ``(N, (1 + hops) d)``.
        width: Number d of noise-free feature columns.
        noise_std: Standard deviation of the noise of the sums.
    """
    power = rows.square().mean(0).clamp(min=1e-12)
    signal = (1 - noise_std**2 / power).clamp(min=0)
    signal[:width] = 1
    return rows / power.sqrt() * signal


# Barycenters of more graphs would take minutes.
_MOST_CLUSTERED = 500


def row_spaces(
    rows: Tensor, sizes: Tensor, distance: Literal["euclidean", "cosine", "correlation"]
) -> list[Space]:
    """Distances between the rows of each graph.

    Args:
        rows: Rows of all graphs, in the order of graphs, shape ``(N, h)``.
        sizes: Number of rows of each graph, shape ``(G,)``.
        distance: Distance between two rows.
    """
    parts = torch.split(rows.cpu().double(), sizes.tolist())
    return [Space(row_distances(part.numpy(), distance)) for part in parts]


def comparison_scores(
    discrepancies: Matrix,
    labels: NDArray[np.int64],
    spaces: Sequence[Space],
    tested: NDArray[np.intp],
) -> dict[str, float]:
    """Accuracy of nearest neighbors, and the mutual information of labels and clusters.

    Args:
        discrepancies: Discrepancies of all graphs, shape ``(G, G)``.
        labels: Label of each graph, shape ``(G,)``.
        spaces: Row distances of each graph.
        tested: Numbers of the graphs of the scores. Large numbers of graphs are not clustered.
    """
    distances, labels = discrepancies[np.ix_(tested, tested)], labels[tested]
    scores = {"test_accuracy_of_neighbors": neighbor_accuracy(distances, labels)}
    if len(tested) <= _MOST_CLUSTERED:
        clusters = gromov_kmeans([spaces[k] for k in tested], distances, len(np.unique(labels)))
        scores["test_clusters_nmi"] = normalized_mutual_info_score(labels, clusters.labels)
    return scores


UPDATES = "client_updates", "sum of client updates"
"""Key and name of the reads of the rounds."""


class GromovWassersteinRelease(GraphFeatureRelease):
    r"""A release of rows of nodes, and the Gromov-Wasserstein discrepancies of graphs by these rows.

    An encoder gives each node a row of the simplex, and a subclass releases the rows. The server
    computes the discrepancies between the distances of the rows within two graphs. Kernels
    :math:`e^{-\gamma GW}`, whose negative eigenvalues become 0, and neighbors predict the labels.

    The weights of the encoder are random, from the public seed, or trained by federated averaging
    on the labels of half of the graphs. Only the other half gives the accuracy: rows trained on a
    graph's label would reveal it. One training step of Lightning is one round: each client
    trains on its graphs, and the server takes a step of length 1 along the sum of the updates.
    Processes share the clients.

    A subclass has the settings ``weights, rounds, num_clients, concentration, local_epochs,
    learning_rate, train_fraction, seed, width`` and ``distance``.

    Attributes:
        network: The encoder; None before ``fit`` or the loading of a release.
        train_mask: Graphs that trained the encoder (public), shape ``(G,)``.
        rounds_made: Rounds so far.
        discrepancies: Discrepancies of all pairs of graphs (released), shape ``(G, G)``.
    """

    curve_names: ClassVar[tuple[str, ...]] = (
        *GraphFeatureRelease.curve_names,
        "test_accuracy_of_neighbors",
        "test_clusters_nmi",
    )
    capabilities = replace(GraphFeatureRelease.capabilities, is_inductive=False, repeats_edges=True)
    constraints: ClassVar[Constraints] = {
        **dict.fromkeys(("width", "hops", "rounds", "num_clients", "local_epochs"), at_least(1)),
        **dict.fromkeys(("weights_share", "train_fraction"), SHARE),
    }

    def __init__(self) -> None:
        super().__init__()
        self.network: NodeEncoder | None = None
        self.dims: Tensor = nn.Buffer(torch.zeros(2, dtype=torch.long))
        self.train_mask: Tensor = nn.Buffer(torch.empty(0, dtype=torch.bool))
        self.rounds_made: Tensor = nn.Buffer(torch.tensor(0))
        self.discrepancies: Tensor = nn.Buffer(torch.empty(0, dtype=torch.double))
        resize_on_loading(self, "train_mask", "discrepancies")
        before_loading(self, _build_encoder)
        self._clients: list[Client] | None = None

    def encoder_factory(self) -> Callable[[int, int, int], NodeEncoder]:
        """Encoder factory: (num_features, embedding_dim, num_classes) -> NodeEncoder."""
        return {"gcn": GCN, "gin": GIN}[self.hparams["encoder"]]

    def input_width(self, records: GraphSetRecords) -> int:
        """Width of the encoder's input of each node (public): degree and features."""
        return num_features(records) + 1

    def encoder_inputs(self, records: GraphSetRecords) -> tuple[Tensor, Tensor]:
        """Inputs of all nodes, ``(N, d)``, and edges, ``(M, 2)``, of the encoder (private)."""
        return node_inputs(records, records.edges), records.edges

    def round_entry(self) -> LedgerEntry | None:
        """Cost of the next round; None if it costs nothing. By default nothing is protected."""
        return self.ledger.unprotected(*UPDATES, "the weights of clients are not protected")

    def planned_rounds(self) -> list[LedgerEntry]:
        """Plan all rounds as one entry, or no entry without rounds."""
        entry = self.round_entry()
        return [replace(entry, steps=self.num_rounds)] if entry and self.num_rounds else []

    def step_entries(self) -> list[LedgerEntry]:
        """Cost of the next round; the rows are paid at their release."""
        entry = self.round_entry() if self.rounds_made < self.num_rounds else None
        return [] if entry is None else [entry]

    def publish_update(self, total: Tensor) -> Tensor:
        """Pay for the sum of the clients' updates in a round, and publish it with the paid noise.

        Args:
            total: Sum of all updates, each times the weight of its client, shape ``(K,)`` (private).
        """
        read = self.round_entry()
        if read is None:
            return total
        if isinstance(read.event, NonPrivate):
            self.ledger.spend(read)
            return total
        return self.pay(read, total)

    @property
    def num_rows(self) -> Tensor:
        """Number of rows of each graph (public), ``(G,)``; one row before the graphs are known."""
        return self.sizes.cpu() if len(self.sizes) else torch.ones(1, dtype=torch.long)

    @property
    def update_bound(self) -> float | None:
        """Clipping norm of the clients' updates; None if clients do not clip."""
        return None

    @property
    def num_rounds(self) -> int:
        """Rounds of the whole run; 0 without training."""
        return 0 if self.hparams["weights"] == "random" else int(self.hparams["rounds"])

    def settle_training(self, *, is_deep: bool = False) -> None:
        """Choose who optimizes, and the default learning rate.

        Args:
            is_deep: Whether the encoder is deep, which takes a smaller learning rate.
        """
        self.automatic_optimization = self.hparams["weights"] == "random"
        if self.hparams["learning_rate"] is None:
            self.hparams["learning_rate"] = 0.001 if is_deep else 0.003

    def batch_request(self) -> BatchRequest:
        """Request all records in each round, and at least one step, which makes the release."""
        return BatchRequest("all", steps_per_epoch=max(self.num_rounds, 1))

    def setup(self, stage: str) -> None:
        """Build the encoder for the public widths of features and labels."""
        super().setup(stage)
        if self.network is None and stage == "fit":
            records = self.records
            num_classes = 1 if records.labels is None else int(records.labels.max()) + 1
            self.build(self.input_width(records), num_classes)

    def build(self, feature_dim: int, num_classes: int) -> None:
        """Build the encoder, with random weights from the public seed.

        Args:
            feature_dim: Width of its input of each node.
            num_classes: Number of labels.
        """
        self.dims = torch.tensor([feature_dim, num_classes])
        self.network = self.encoder_factory()(feature_dim, self.hparams["width"], num_classes)

    def configure_optimizers(self) -> torch.optim.Optimizer | None:
        """Build the optimizer of the server; None without training."""
        if not self.num_rounds or self.network is None:
            return None
        return torch.optim.SGD(self.network.parameters(), lr=1.0)

    def on_fit_start(self) -> None:
        """Copy the public facts of the data, and draw the training graphs of the encoder."""
        super().on_fit_start()
        self.train_mask = torch.zeros(len(self.sizes), dtype=torch.bool, device=self.device)
        if self.num_rounds:
            self._check_labels()
            fraction = self.hparams["train_fraction"]
            chosen = draw_train_mask(self.labels.cpu(), fraction, self.hparams["seed"])
            if not chosen.any() or chosen.all():
                raise MisconfigurationException(
                    f"train_fraction {fraction:g} takes {int(chosen.sum())} of {len(chosen)} graphs "
                    "for training: some must train the encoder, and some must be left for the test"
                )
            self.train_mask = chosen.to(self.device)

    def training_step(self, batch: GraphSetRecords, batch_idx: int) -> None:
        """Make one round; after the last one release the rows and compare all graphs.

        Args:
            batch: The graphs (private).
            batch_idx: Number of the batch.
        """
        if not self.is_released and self.rounds_made < self.num_rounds:
            self._make_round(batch)
        if self.rounds_made < self.num_rounds:
            return
        self._clients = None
        super().training_step(batch, batch_idx)
        if not len(self.discrepancies):
            # One process compares the graphs for all processes.
            discrepancies = self.compared() if self.trainer.is_global_zero else np.empty(0)
            discrepancies = self.trainer.strategy.broadcast(discrepancies)
            self.discrepancies = torch.from_numpy(discrepancies).to(self.device)

    def encoded(self, inputs: Tensor, edges: Tensor) -> Tensor:
        """Rows of all nodes, on the CPU.

        Args:
            inputs: Input of the encoder of each node, shape ``(N, d)``.
            edges: Edges of shape ``(M, 2)``.

        Returns:
            Shape ``(N, h)``, in double precision.
        """
        edge_index = torch.cat([edges, edges.flip(1)]).T.to(self.device)
        with torch.no_grad():
            rows: Tensor = self._encoder()(inputs.to(self.device), edge_index)
        return rows.double().cpu()

    def compared(self) -> NDArray[np.float64]:
        """Discrepancies of all pairs of graphs by the released rows, shape ``(G, G)``."""
        progress = self.trainer.progress_bar_callback is not None
        spaces = row_spaces(self.embedding["features"], self.sizes, self.hparams["distance"])
        return pairwise_discrepancies(spaces, progress=progress)

    def kernels(self, embedding: Embedding, sizes: Tensor) -> list[NDArray[np.float64]]:
        """Kernels of the discrepancies, without their negative eigenvalues."""
        discrepancies = self.discrepancies.cpu().numpy()
        return [clip_spectrum(kernel) for kernel in discrepancy_kernels(discrepancies)]

    @property
    def test_mask(self) -> NDArray[np.bool_]:
        """Graphs outside of the encoder's training set."""
        mask: NDArray[np.bool_] = (~self.train_mask).cpu().numpy()
        return mask

    def on_test_epoch_end(self) -> None:
        """Also log the accuracy of nearest neighbors, and how well clusters match the labels.

        Both use only graphs outside of the encoder's training set, and are as public as the
        release.
        """
        super().on_test_epoch_end()
        discrepancies, labels = self.discrepancies.cpu().numpy(), self.labels.cpu().numpy()
        tested = np.flatnonzero(self.test_mask)
        spaces = row_spaces(self.embedding["features"], self.sizes, self.hparams["distance"])
        values = comparison_scores(discrepancies, labels, spaces, tested)
        self.log_dict(values, sync_dist=True)  # equal in all processes

    def released_arrays(self) -> dict[str, NDArray[Any]]:
        """Also return the discrepancies of all graphs, and the mask of the training graphs."""
        names = ("discrepancies", "train_mask")
        return super().released_arrays() | {n: getattr(self, n).cpu().numpy() for n in names}

    def local_training(self) -> LocalTraining:
        """Settings of the training of each client in a round."""
        h = self.hparams
        return LocalTraining(h["local_epochs"], h["learning_rate"], self.update_bound)

    def client_parts(self) -> list[Tensor]:
        """Numbers of the graphs of each client (public)."""
        h = self.hparams
        settings = (h["num_clients"], h["concentration"], h["seed"])
        return partition_dirichlet(self.labels.cpu(), self.train_mask.cpu(), *settings)

    def _make_round(self, records: GraphSetRecords) -> None:
        """Train all clients for one round, and take the server's step."""
        network = self._encoder()
        if self._clients is None:
            self._clients = self._own_clients(records)
        total = weighted_update(network, self._clients, self.local_training())
        if self.trainer.world_size > 1:
            total = total.to(self.device)
            torch.distributed.all_reduce(total)
        total = self.publish_update(total)
        optimizer: Any = self.optimizers()
        parameters = list(network.parameters())
        pieces = torch.split(total, [parameter.numel() for parameter in parameters])
        for parameter, moved in zip(parameters, pieces, strict=True):
            parameter.grad = -moved.view_as(parameter).to(parameter)
        optimizer.step()
        self.rounds_made += 1

    def _own_clients(self, records: GraphSetRecords) -> list[Client]:
        """Build the clients that this process trains: all of them, or its share."""
        inputs, edges = self.encoder_inputs(records)
        parts, labels = self.client_parts(), self.labels.cpu()
        clients = build_clients(parts, inputs, edges, records.graph_of, labels, self.device)
        return clients[self.global_rank :: self.trainer.world_size]

    def _encoder(self) -> NodeEncoder:
        if self.network is None:
            raise MisconfigurationException("the encoder is made in fit, or loaded from a release")
        return self.network


def _build_encoder(module: nn.Module, state: dict[str, Tensor], prefix: str, *_: object) -> None:
    """Build the encoder for the widths of a state before it is loaded."""
    if isinstance(module, GromovWassersteinRelease) and module.network is None:
        feature_dim, num_classes = state[prefix + "dims"].tolist()
        module.build(feature_dim, num_classes)
