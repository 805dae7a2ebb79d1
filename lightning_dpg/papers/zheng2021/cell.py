"""CELL: low-rank logits of random walks, without privacy (Rendsburg et al., 2020)."""

from typing import ClassVar

import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor
from torch.optim import Adam, Optimizer

from lightning_dpg.graph.edge_sampling import MAX_NODES, draw_weighted
from lightning_dpg.graph.pair_numbers import pairs_of_ranks
from lightning_dpg.interfaces import BatchRequest, GraphRecords
from lightning_dpg.methods.constraints import RATE, Constraints
from lightning_dpg.methods.synthesizer import Synthesizer
from lightning_dpg.nn import LowRankLogits
from lightning_dpg.nn.low_rank import WEIGHT_DECAY
from lightning_dpg.privacy.sampling import PoissonBatch


class CELL(Synthesizer):
    """Low-rank model of random walks on one graph; **not private**.

    NetGAN's random walks as a low-rank matrix of logits. Each training step reduces the cross
    entropy of one step of a walk along the edges of a batch, all edges at ``sample_rate: 1``. A
    graph takes pairs by the expected traffic between their nodes. Fewer steps copy less.

    When to use:
        As a baseline without privacy up to 6,000 nodes. For links within a budget take
        :class:`RandomizedResponse`, which can fit this model to its reports (``denoise: cell``).
        For larger graphs take :class:`NetGAN`.

    Privacy:
        None: training reads the exact edges. A run needs an infinite epsilon, and its statement
        says that nothing is protected.

    Cost:
        A step takes time O(H N^2) and memory O(N^2); more than 6,000 nodes are refused.

    Differences from the paper:
        The paper stops at a given overlap of the synthetic graph with the original edges; here the
        number of steps is a setting.

    * Rendsburg, Heidrich, von Luxburg, "NetGAN without GAN: from random walks to low-rank
      approximations", ICML 2020.

    Args:
        num_nodes: Number of nodes N, at most 6,000; the command line reads it from the data.
        rank: Rank H of the logits.
        learning_rate: Learning rate of Adam.
        sample_rate: Probability q with which an edge is in the batch of a step.
    """

    adds_noise: ClassVar[bool] = False
    curve_names: ClassVar[tuple[str, ...]] = ("nonprivate/loss",)
    constraints: ClassVar[Constraints] = {"sample_rate": RATE}
    records: GraphRecords

    def __init__(
        self,
        num_nodes: int | None = None,
        rank: int = 9,
        learning_rate: float = 0.1,
        sample_rate: float = 1.0,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = True
        if num_nodes is None or num_nodes > MAX_NODES:
            raise MisconfigurationException(
                f"CELL holds an N x N matrix: num_nodes must be at most {MAX_NODES}, "
                f"got {num_nodes}\ntake NetGAN for larger graphs"
            )
        self.model = LowRankLogits(num_nodes, rank)
        self.num_edges: Tensor
        self.register_buffer("num_edges", torch.tensor(0))

    def batch_request(self) -> BatchRequest:
        """Poisson samples of the edges: all of them by default."""
        return BatchRequest("poisson", self.hparams["sample_rate"])

    def on_fit_start(self) -> None:
        """Book that nothing is protected; a finite budget refuses this entry."""
        super().on_fit_start()
        if not self.ledger.reasons:
            self.ledger.spend(self.unprotected_training("CELL adds no noise"))
        self.num_edges.fill_(len(self.records.edges))

    def training_step(self, batch: PoissonBatch, batch_idx: int) -> Tensor:
        """Cross entropy along the edges of a batch, 0 if it is empty."""
        loss = self.model.loss(batch.data)
        self.log_curve("nonprivate/loss", loss, len(batch.data), prog_bar=True)
        return loss

    def configure_optimizers(self) -> Optimizer:
        """Build Adam."""
        return Adam(
            self.model.parameters(), self.hparams["learning_rate"], weight_decay=WEIGHT_DECAY
        )

    def sample_edges(self, generator: torch.Generator) -> Tensor:
        """Draw pairs by traffic, one neighbor of each node first; few nodes are then isolated."""
        traffic = self.model.likelihood().cpu()
        numbers = draw_weighted(traffic, int(self.num_edges), generator)
        return pairs_of_ranks(numbers, len(traffic))

    def score(self, pairs: Tensor) -> Tensor:
        """Traffic between pairs of shape ``(P, 2)``."""
        return self.model.score(pairs.to(self.device))

    def released_state(self) -> dict[str, Tensor]:
        """The logits and the number of edges."""
        return dict(self.state_dict())
