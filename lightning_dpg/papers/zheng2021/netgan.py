"""NetGAN: a Wasserstein GAN of random walks (Bojchevski et al., ICML 2018). Not private."""

from dataclasses import replace
from typing import ClassVar

import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from lightning_dpg.graph.edge_sampling import MAX_NODES, draw_weighted
from lightning_dpg.graph.pair_numbers import pairs_of_ranks
from lightning_dpg.interfaces import BatchRequest, GraphRecords
from lightning_dpg.methods.constraints import RATE, Constraints
from lightning_dpg.methods.synthesizer import Synthesizer
from lightning_dpg.metrics.functional import edge_overlap
from lightning_dpg.nn import LowRankLogits
from lightning_dpg.nn.low_rank import WEIGHT_DECAY
from lightning_dpg.papers.zheng2021.dp_netgan import WalkGAN
from lightning_dpg.privacy.sampling import PoissonBatch


class CELL(Synthesizer):
    """Low-rank model of random walks on one graph; **not private**.

    NetGAN's random walks as a low-rank matrix of logits. Each training step reduces the cross
    entropy of one step of a walk along the edges of a batch, all edges at ``sample_rate: 1``. A
    graph takes pairs by the expected traffic between their nodes. Fewer steps copy less.

    When to use:
        As a baseline without privacy up to 6,000 nodes. For links within a budget take
        :class:`RandomizedResponse`. For larger graphs take :class:`NetGAN`.

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

    capabilities = replace(Synthesizer.capabilities, adds_noise=False)
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
        self.num_edges: Tensor = nn.Buffer(torch.tensor(0))

    def batch_request(self) -> BatchRequest:
        """Poisson samples of the edges: all of them by default."""
        return BatchRequest("poisson", self.hparams["sample_rate"])

    def on_fit_start(self) -> None:
        """Book that nothing is protected; a finite budget refuses this entry."""
        super().on_fit_start()
        if not self.ledger.reasons:
            self.ledger.spend(self.ledger.unprotected("training", "training", "CELL adds no noise"))
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


class NetGAN(WalkGAN):
    """GAN of random walks on one graph; **not private**.

    A generator of walks is trained against a critic (WGAN-GP); a graph is assembled from the
    transitions of generated walks, by how often they occur.

    When to use:
        As a baseline without privacy, of :class:`DPNetGAN`. :class:`CELL` is a simpler one up to
        6,000 nodes.

    Privacy:
        None: training reads the exact walks, and the number of edges is exact. A run needs an
        infinite epsilon, and its statement says that nothing is protected.

    Cost:
        A step grows with ``batch_size`` times ``walk_length`` times N. Drawing takes at least ten
        transitions for each edge. Memory has one N x d table in each network, and there is no limit
        on N.

    Differences from the paper:
        The gradient penalty acts at the embedded walk; the original applies it to one-hot tokens,
        which trains slower.

    * Bojchevski, Shchur, Zügner, Günnemann, "NetGAN: Generating Graphs via Random Walks", 2018.

    Args:
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        walk_length: Tokens L of a walk; 2 makes it an edge.
        latent_dim: Width of the latent vector.
        generator_dim: Hidden width of the generator.
        critic_dim: Hidden width of the critic.
        embedding_dim: Width d of both embedding tables.
        batch_size: Number of real walks, and of generated walks, per step.
        n_critic: Critic steps per generator step.
        gp_weight: Weight lambda of the gradient penalty.
        generator_lr: Learning rate of the generator.
        critic_lr: Learning rate of the critic.
        temperature: First temperature of the Gumbel softmax.
        min_temperature: Last temperature.
        temperature_decay: Factor per critic step.
        num_samples: Edges (transitions of walks) drawn to assemble one graph; at least ten for each
            edge of it are drawn.
        p: Return parameter of node2vec, of the real walks.
        q: In-out parameter of node2vec.
    """

    capabilities = replace(WalkGAN.capabilities, adds_noise=False)

    def __init__(
        self,
        num_nodes: int | None = None,
        walk_length: int = 16,
        latent_dim: int = 16,
        generator_dim: int = 40,
        critic_dim: int = 30,
        embedding_dim: int = 128,
        batch_size: int = 128,
        n_critic: int = 3,
        gp_weight: float = 10.0,
        generator_lr: float = 1e-3,
        critic_lr: float = 1e-3,
        temperature: float = 3.0,
        min_temperature: float = 0.5,
        temperature_decay: float = 0.9998,
        num_samples: int = 400_000,
        p: float = 1.0,
        q: float = 1.0,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self._build(walk_length, frozen=False)

    def batch_request(self) -> BatchRequest:
        """Request random walks; the data module sets the number of batches per epoch."""
        h = self.hparams
        walks = {"num_walks": h["batch_size"], "walk_length": h["walk_length"]}
        return BatchRequest("walks", p=h["p"], q=h["q"], **walks)

    def on_fit_start(self) -> None:
        """Book the unprotected training."""
        super().on_fit_start()
        self._start_without_noise("NetGAN adds no noise")

    def training_step(self, batch: Tensor, batch_idx: int) -> None:
        """Take one critic step, and a generator step after every ``n_critic`` of them.

        Args:
            batch: Real walks of shape ``(B, L)``.
            batch_idx: Number of the batch.
        """
        self._step(batch)

    def on_validation_epoch_end(self) -> None:
        """Log the stopping criteria of the paper: link prediction and edge overlap."""
        super().on_validation_epoch_end()
        if self.trainer.sanity_checking:  # nothing is released yet that could be evaluated
            return
        graph = self.records.graph
        overlap = edge_overlap(self.sample(torch.Generator().manual_seed(0)), graph)
        self.log("nonprivate/edge_overlap", overlap, sync_dist=True)  # equal in all processes
