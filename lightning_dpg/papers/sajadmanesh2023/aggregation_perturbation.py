"""AggregationPerturbation: networks that learn classes from noisy sums over neighbors (GAP).

Sajadmanesh et al., "GAP: Differentially Private Graph Neural Networks with Aggregation Perturbation",
2023. The networks are those of Figure 3: batch normalization, dropout and SELU come in the order of
the authors' code.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize
from torch.optim import Adam, Optimizer

from lightning_dpg.graph.edge_statistics import GraphStatisticsSource
from lightning_dpg.interfaces import AttributedGraphRecords, BatchRequest
from lightning_dpg.methods.constraints import POSITIVE, Constraint, Constraints, at_least
from lightning_dpg.methods.node_classes import NODE_CLASS_SETTINGS, NodeClassifier
from lightning_dpg.methods.planning import Reads
from lightning_dpg.nn.attribute_rows import AttributeRows
from lightning_dpg.nn.resized_buffers import before_loading
from lightning_dpg.privacy.aggregation_perturbation import aggregation_entries, noisy_aggregation
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.calibration import calibrate_noise_multiplier
from lightning_dpg.privacy.events import Gaussian, LedgerEntry
from lightning_dpg.privacy.ledger import PrivacyLedger


class Encoder(nn.Module):
    """Two layers that map the row of a node to a row of length 1, and a head for its class.

    Args:
        row_dim: Width of the rows.
        hidden_dim: Width d of the encoded rows.
        num_classes: Number of classes C.
        dropout: Probability of dropout.
    """

    def __init__(self, row_dim: int, hidden_dim: int, num_classes: int, dropout: float) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(row_dim, hidden_dim),
            *_activation(hidden_dim, dropout),
            nn.Linear(hidden_dim, hidden_dim),
        )
        self.head = nn.Sequential(
            *_activation(hidden_dim, dropout), nn.Linear(hidden_dim, num_classes)
        )

    def encode(self, rows: Tensor) -> Tensor:
        """Encode rows of shape ``(B, row_dim)``: rows of shape ``(B, d)`` and length 1."""
        return normalize(self.layers(rows))

    def forward(self, rows: Tensor) -> Tensor:
        """Compute the logits of the classes of rows ``(B, row_dim)``: shape ``(B, C)``."""
        logits: Tensor = self.head(self.encode(rows))
        return logits


class HopClassifier(nn.Module):
    """A layer for each hop, and a head for the class of a node on all of them side by side.

    Args:
        num_hops: Number K of hops, the node's own row among them.
        hidden_dim: Width d of the rows of each hop.
        num_classes: Number of classes C.
        dropout: Probability of dropout.
    """

    def __init__(self, num_hops: int, hidden_dim: int, num_classes: int, dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(hidden_dim, hidden_dim) for _ in range(num_hops)])
        width = num_hops * hidden_dim
        self.head = nn.Sequential(*_activation(width, dropout), nn.Linear(width, num_classes))

    def forward(self, hops: Tensor) -> Tensor:
        """Compute the logits of the classes of nodes: ``(B, K, d)`` to ``(B, C)``."""
        outputs = [layer(hop) for layer, hop in zip(self.layers, hops.unbind(1), strict=True)]
        logits: Tensor = self.head(normalize(torch.cat(outputs, 1)))
        return logits


def _activation(width: int, dropout: float) -> list[nn.Module]:
    return [nn.BatchNorm1d(width), nn.Dropout(dropout), nn.SELU()]


class AggregationPerturbation(NodeClassifier):
    r"""Classes of nodes by networks on noisy sums of neighbors' encoded attributes (GAP).

    1. Maps the attributes of each node to a row of their principal components, see
       :class:`AttributeRows`, and trains an encoder of these rows on the known classes. Its hidden
       rows X have length 1. No edge is read.
    2. Releases the sums of all hops with Gaussian noise, :math:`H_1 = A X + N`, and each further hop
       as the sums of the hop before it, whose rows are scaled to length 1.
    3. Trains a classifier of the rows X and of the released sums, again on the known classes.

    Only the second step reads edges. Both trainings are free, however many steps they have.

    When to use:
        As the baseline of the literature for classes of nodes, on dense graphs, or where many
        classes are known. :class:`NeighborVotes` sums up beliefs about classes instead, which have
        fewer numbers, and knows the level of the noise: compare the two. Compare both with the
        encoder, which reads no edge.

    Privacy:
        (epsilon, delta)-DP at the level of edges: one undirected edge is added or removed. The
        guarantee has no condition. The set of nodes, the attributes and the given classes are
        public. Attributes that were computed from edges, such as a degree, must not be among them.
        Predictions for the nodes of the graph are free. A new node is predicted by the encoder
        alone, which is public: the classifier needs sums over the node's neighbors, and to read the
        edges of a new node, or those of the graph again, is another release.

    Cost:
        Time is O(N F r + M d K) for the rows and the K hops, and a step takes O(n d (r + K d)) for n
        known nodes. Memory is O(N (F + r + K d) + M), with no limit on N. Several processes divide
        the known nodes among them.

    Differences from the paper:
        One undirected edge changes the sums of both of its ends, so that the sensitivity of a hop is
        the square root of 2. The authors' code has noise for a sensitivity of 1, that of a directed
        edge: where it prints an epsilon of 1, the epsilon of an undirected edge is 1.47. The run
        reports the epsilon of that count beside its own. The node level of the paper is not built:
        its proof overlooks that the sampling of neighbors resamples at all neighbors of a node that
        is taken away. The encoder reads principal components in place of the attributes, as
        :class:`NeighborVotes` does, which was more accurate on Cora-ML with the same widths. No epoch
        is chosen by validation.

    * Sajadmanesh, Shamsabadi, Bellet, Gatica-Perez, "GAP: Differentially Private Graph Neural
      Networks with Aggregation Perturbation", USENIX Security 2023, Algorithm 1.

    Args:
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        hops: Number K of hops.
        rank: Number of principal components r.
        hidden_dim: Width d of the encoded rows and of the layers of both networks.
        dropout: Probability of dropout in both networks.
        encoder_steps: Steps of the encoder, each on all known nodes.
        classifier_steps: Steps of the classifier, each on all known nodes.
        learning_rate: Learning rate of Adam.
        split_seed: Public seed of a split of the known classes; only those of its training nodes are
            used, 20 of each class. By default all are used.
        train_fraction: Share of the known classes that the split gives to training instead.
    """

    is_trained: ClassVar[bool] = True
    curve_names: ClassVar[tuple[str, ...]] = ("train/encoder_loss", "train/classifier_loss")
    constraints: ClassVar[Constraints] = {
        **NODE_CLASS_SETTINGS,
        "hops": at_least(1),
        "rank": at_least(1),
        "hidden_dim": at_least(1),
        "dropout": Constraint("in [0, 1)", lambda value: 0 <= value < 1),
        "encoder_steps": at_least(1),
        "classifier_steps": at_least(1),
        "learning_rate": POSITIVE,
    }

    def __init__(
        self,
        num_nodes: int | None = None,
        hops: int = 2,
        rank: int = 64,
        hidden_dim: int = 16,
        dropout: float = 0.5,
        encoder_steps: int = 100,
        classifier_steps: int = 100,
        learning_rate: float = 1e-2,
        split_seed: int | None = None,
        train_fraction: float | None = None,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        # Of automatic optimization, DDP would wait for the network that is not in training.
        self.automatic_optimization = False
        self.features = AttributeRows(rank)
        self.encoder: Encoder
        self.classifier: HopClassifier
        self.sums: Tensor = nn.Buffer(torch.empty(0, hops * hidden_dim))
        before_loading(self, _build_for_state)
        self._rows = torch.empty(0, rank)  # of all nodes (public), in a fit
        self._hops: Tensor | None = None  # inputs of the classifier, in a fit

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan all hops, with the same noise; the number of steps has no effect."""
        hops = self.hparams["hops"]
        return aggregation_entries(
            hops, calibrate_noise_multiplier(budget, steps=hops), self.relation
        )

    def claimed_epsilon(self, delta: float) -> float | None:
        """Epsilon that the authors' code prints for this noise: that of a directed edge."""
        if not self.ledger.entries or self.ledger.reasons:
            return None
        claimed = PrivacyLedger(self.relation)
        for entry in self.ledger.entries:
            claimed.spend(replace(entry, sensitivity=1.0, event=Gaussian(entry.scale)))
        return claimed.headline(delta)[0]

    def batch_request(self) -> BatchRequest:
        """Request the steps of both networks."""
        steps = self.hparams["encoder_steps"] + self.hparams["classifier_steps"]
        return BatchRequest("all", steps_per_epoch=steps)

    def build(self, num_classes: int) -> None:
        """Make the networks, whose shapes follow from the number of classes C (public)."""
        h = self.hparams
        width, dropout = h["hidden_dim"], h["dropout"]
        self.encoder = Encoder(h["rank"], width, num_classes, dropout)
        self.classifier = HopClassifier(1 + h["hops"], width, num_classes, dropout)

    def setup(self, stage: str) -> None:
        """Find the principal components and make the networks, before the optimizer is made."""
        super().setup(stage)
        if stage == "fit" and "encoder" not in self._modules:
            classes, *_ = self._find_classes(self.records)
            self.features.fit(self.records.attributes)
            self.build(len(classes))

    def configure_optimizers(self) -> Optimizer:
        """Adam for both networks; it leaves alone what has no gradient in a step."""
        return Adam(self.parameters(), self.hparams["learning_rate"])

    def on_fit_start(self) -> None:
        """Copy the public facts of the data, and compute the rows of all nodes."""
        super().on_fit_start()
        self._rows, self._hops = self.features(self.records.attributes), None
        if self.trainer.max_steps == 0:  # an untrained method, for a comparison
            self.release_once(self.records)

    def training_step(self, batch: AttributedGraphRecords, batch_idx: int) -> None:
        """Train the encoder, or the classifier; the first step of the classifier is the release."""
        step, first = self.trainer.global_step, self.hparams["encoder_steps"]
        if step < first:
            self._train(self.encoder, self._rows, "train/encoder_loss")
            return
        self.release_once(batch)
        if self._hops is None:
            with self._evaluating():
                self._hops = self._inputs()
        self._train(self.classifier, self._hops, "train/classifier_loss")
        if step + 1 == first + self.hparams["classifier_steps"]:
            self._share(self.classifier)
            with self._evaluating():
                self.keep_posteriors(self.classifier(self._hops).softmax(1))
            self.trainer.should_stop = True

    def release(self, source: GraphStatisticsSource, attributes: Tensor, reads: Reads) -> Tensor:
        """Release the sums of all hops; the probabilities are those of the encoder."""
        self._share(self.encoder)
        with self._evaluating():
            rows, logits = self.encoder.encode(self._rows), self.encoder(self._rows)
        self.summed = rows.cpu()
        sums = noisy_aggregation(
            source.neighbor_sums, self.summed, list(reads.values()), self.ledger, self.noise
        )
        # One release, even if the rows of two processes differ by a rounding.
        self.sums = self.trainer.strategy.broadcast(sums).to(self.device)
        probabilities: Tensor = logits.softmax(1)
        return probabilities

    def predict_proba(self, attributes: Tensor) -> Tensor:
        """Predict classes from attributes of shape ``(P, F)`` by the encoder: ``(P, C)``."""
        with self._evaluating():
            probabilities: Tensor = self.encoder(self.features(attributes)).softmax(1)
        return probabilities

    def _inputs(self) -> Tensor:
        """Encoded rows and all hops at length 1, shape ``(N, 1 + K, d)``."""
        hops = normalize(torch.stack(self.sums.chunk(self.hparams["hops"], 1), 1), dim=2)
        return torch.cat([self.encoder.encode(self._rows)[:, None], hops], 1)

    def _train(self, network: nn.Module, inputs: Tensor, curve: str) -> None:
        """Make a step of one network on the known nodes, which reads public facts and releases."""
        optimizer: Any = self.optimizers()
        optimizer.zero_grad()
        part = self._own_part()
        logits = network(inputs[self.known_nodes[part]])
        loss = cross_entropy(logits, self.known_classes[part])
        self.public_backward(loss, list(network.parameters()))
        optimizer.step()
        self.log_curve(curve, loss, prog_bar=True)

    def _own_part(self) -> Tensor:
        """Places of the known nodes of this process; each has equally many, and two or more.

        Some nodes are in two parts if the known nodes cannot be divided. Batch normalization needs
        two rows.
        """
        count, processes = len(self.known_nodes), self.trainer.world_size
        size = max(2, -(-count // processes))
        places = torch.arange(size * processes, device=self.device) % count
        return places[self.trainer.global_rank :: processes]

    def _share(self, network: nn.Module) -> None:
        """Give a network in all processes the statistics of the first one."""
        network.load_state_dict(self.trainer.strategy.broadcast(network.state_dict()))

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        """Leave the mode of training, without gradients."""
        was_training = self.training
        self.eval()
        with torch.no_grad():
            yield
        self.train(was_training)


def _build_for_state(
    method: AggregationPerturbation, state: dict[str, Tensor], prefix: str, *_: object
) -> None:
    """Make the networks for the classes of a state, unless they are made."""
    classes = state.get(prefix + "classes", ())
    if len(classes) and "encoder" not in method._modules:
        method.build(len(classes))
