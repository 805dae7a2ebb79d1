"""DPGVAE and DPGGAN: autoencoders of graph sets under edge differential privacy."""

import math
from functools import partial
from typing import Literal

import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from lightning_dpg.graph.dense_blocks import DenseBlocks, random_pairs
from lightning_dpg.methods.graph_vae import GraphVAE
from lightning_dpg.nn.graph_vae import (
    GCNEncoder,
    RowEncoder,
    kl_divergence,
    reparametrized,
)
from lightning_dpg.privacy import accounting
from lightning_dpg.privacy.aggregation import noisy_aggregation
from lightning_dpg.privacy.dpsgd import DPSGD
from lightning_dpg.privacy.ghost import ghost_clipped_gradient_sum
from lightning_dpg.privacy.ledger import LedgerEntry
from lightning_dpg.privacy.sampling import PoissonBatch
from lightning_dpg.privacy.sensitivity import edge_gradient_sensitivity

HOPS = 2


class DPGVAE(GraphVAE):
    r"""Variational autoencoder of graphs under edge differential privacy (Yang et al., 2021).

    The paper clips the decoder's gradient per node. One edge moves the gradients of all nodes, and
    every step through an encoder without noise, so that its Theorem 1 does not hold.

    ``mode: corrected`` has a proof. The sums over neighbors, of which a two-layer GCN has two, are
    released once with noise; the encoder is a network of these rows. The cross entropy of all pairs,
    :math:`\sum_{i<j} \log(1 + e^{l_{ij}}) - \sum_{ij \in E} l_{ij}`, reads edges in its second sum
    only, whose gradient is taken from Poisson batches, clipped per edge and noised. That of the first
    one is estimated from uniform pairs, linked or not; it is free, as is the divergence. The number
    of edges of each graph is released with discrete Laplace noise.

    ``mode: paper`` is Algorithm 1 as printed, on random graphs of the set with a share q of its
    nodes. It takes the exact numbers of edges for public, and claims an epsilon that it does not keep.

    Args:
        mode: ``corrected`` or ``paper``.
        noise_multiplier: Noise scale sigma relative to ``max_grad_norm``; ``auto`` solves it from
            the budget and the number of steps of the run.
        max_grad_norm: Clipping norm C, of one edge's gradient or of one node's.
        clip_decay: Factor of C per epoch, in ``mode: paper``.
        count_share: Share of epsilon that buys the numbers of edges.
        aggregation_share: Share of the budget (of its zCDP parameter) that buys the sums.
        public_pairs: Uniform pairs, and nodes, per step.
        feature_dim: Width of the public random features of the nodes.
        hidden_dim: Width of the first layers and of the decoder's vectors.
        latent_dim: Width of the latent vectors.
        kl_weight: Weight lambda_1 of the divergence from the prior.
        learning_rate: Learning rate of Adam.
    """

    def __init__(
        self,
        mode: Literal["corrected", "paper"] = "corrected",
        noise_multiplier: float | Literal["auto"] = "auto",
        max_grad_norm: float = 5.0,
        clip_decay: float = 0.99,
        count_share: float = 0.3,
        aggregation_share: float = 0.3,
        public_pairs: int = 4096,
        feature_dim: int = 8,
        hidden_dim: int = 32,
        latent_dim: int = 16,
        kl_weight: float = 0.1,
        learning_rate: float = 1e-2,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        if mode not in ("corrected", "paper"):
            raise ValueError(f"mode must be 'corrected' or 'paper', got {mode!r}")
        if not (count_share > 0 and aggregation_share > 0 and count_share + aggregation_share < 1):
            raise ValueError(
                "count_share and aggregation_share must be positive and their sum below 1, "
                f"got {count_share} and {aggregation_share}"
            )
        if noise_multiplier == "auto" and mode == "paper":
            raise MisconfigurationException(
                "mode: paper needs a number as noise_multiplier; the paper takes 5"
            )
        if noise_multiplier != "auto" and not noise_multiplier > 0:
            raise ValueError(
                f"noise_multiplier must be positive or auto, got {noise_multiplier}; to train "
                "without noise set privacy.epsilon to .inf"
            )
        self._build_decoder()
        self.encoder: RowEncoder | GCNEncoder
        if mode == "corrected":
            self.encoder = RowEncoder(HOPS * feature_dim, hidden_dim, latent_dim)
        else:
            self.encoder = GCNEncoder(feature_dim, hidden_dim, latent_dim)
        self.rows: Tensor
        self.noise_multiplier: Tensor
        self.aggregation_noise: Tensor
        self.register_buffer("rows", torch.empty(0, HOPS * feature_dim))
        for name in ("noise_multiplier", "aggregation_noise"):
            self.register_buffer(name, torch.tensor(float("nan"), dtype=torch.float64))
        self.register_load_state_dict_pre_hook(_resize_rows)  # type: ignore[no-untyped-call]
        self._local = torch.Generator()
        self._local.seed()

    def on_fit_start(self) -> None:
        """Make the releases that the training reads, then settle its noise."""
        super().on_fit_start()
        data, budget, h = self.trainer.datamodule, self.ledger.budget, self.hparams  # type: ignore[attr-defined]
        self.sample_rate = data.sample_rate
        if h["mode"] == "paper":
            self.assumptions.append(
                "The exact numbers of edges are public, as the paper takes them."
            )
            self.num_edges = self._exact_num_edges()
        elif budget is None:
            raise MisconfigurationException(
                f"{type(self).__name__} needs a budget: give the privacy section, or "
                "PrivacyAccountant among the callbacks"
            )
        elif not self.ledger.entries:  # what a resumed run has released is in its checkpoint
            self._settle_noise(*budget)
            self._release(data.edges, budget.epsilon)
        if h["noise_multiplier"] != "auto":
            self.noise_multiplier.fill_(h["noise_multiplier"])

    def _settle_noise(self, epsilon: float, delta: float) -> None:
        """Divide the budget before any of it is spent."""
        h = self.hparams
        one_release = 0.0 if math.isinf(epsilon) else accounting.gaussian_sigma(epsilon, delta)
        self.aggregation_noise.fill_(one_release * math.sqrt(HOPS / h["aggregation_share"]))
        if h["noise_multiplier"] != "auto":
            return
        other = HOPS * accounting.rdp_gaussian(float(self.aggregation_noise))
        other = other + accounting.rdp_pure(h["count_share"] * epsilon)
        plan = (epsilon, delta, self.sample_rate, self.planned_steps(), other)
        try:
            self.noise_multiplier.fill_(accounting.noise_multiplier_for(*plan))
        except ValueError as error:
            raise MisconfigurationException(
                f"count_share {h['count_share']:g} and aggregation_share "
                f"{h['aggregation_share']:g} leave nothing of the budget for training: lower them"
            ) from error

    def _release(self, edges: Tensor, epsilon: float) -> None:
        """Numbers of edges, then sums over neighbors, of all edges of shape ``(M, 2)`` (private)."""
        self.release_num_edges_per_graph(edges, self.hparams["count_share"] * epsilon)
        rows = noisy_aggregation(
            edges,
            self.features.cpu(),
            HOPS,
            self.ledger,
            self.noise,
            noise_multiplier=float(self.aggregation_noise),
        )
        self.rows = rows.to(self.device)

    def step_entries(self) -> list[LedgerEntry]:
        """One sampled Gaussian per step; a step of ``mode: paper`` has no price."""
        if self.hparams["mode"] == "paper":
            return []
        return [
            LedgerEntry(
                name="gradient of edges",
                relation=self.relation,
                mechanism="gaussian",
                sensitivity=edge_gradient_sensitivity(self.hparams["max_grad_norm"]),
                proof="edge_gradient_sensitivity",
                noise_multiplier=float(self.noise_multiplier),
                sample_rate=self.sample_rate,
            )
        ]

    def claimed_epsilon(self, delta: float) -> float | None:
        r"""By the paper's formula: :math:`2 q \sqrt{T \log(1 / \delta)} / \sigma`."""
        if self.hparams["mode"] != "paper" or not self.ledger.entries:
            return None
        steps = self.ledger.entries[0].steps
        return (
            2
            * self.sample_rate
            * math.sqrt(steps * math.log(1 / delta))
            / float(self.noise_multiplier)
        )

    def training_step(self, batch: PoissonBatch, batch_idx: int) -> None:
        """One private step of the autoencoder.

        Args:
            batch: Poisson sample of edges of shape ``(B, 2)``, B may be 0.
            batch_idx: Number of the batch.
        """
        if batch.sample_rate != self.sample_rate:
            raise ValueError(f"batch drawn at {batch.sample_rate}, booked at {self.sample_rate}")
        optimizers = self._zeroed_optimizers()
        if self.hparams["mode"] == "paper":
            self._node_step()
        else:
            self._edge_step(batch.data)
        for optimizer in optimizers:
            optimizer.step()

    def _edge_step(self, edges: Tensor) -> None:
        """Corrected: gradients of edges of shape ``(B, 2)``, and of all that reads none."""
        DPSGD(float(self.noise_multiplier), self.hparams["max_grad_norm"]).backward(
            partial(self._edge_sum, edges),
            dict(self._networks.named_parameters()),
            ledger=self.ledger,
            entry=self.step_entries()[0],
            noise=self.noise,
            expected_size=self.sample_rate * self._total_edges,
        )
        self._public_terms()

    @property
    def _networks(self) -> nn.ModuleDict:
        """The networks that edges train."""
        return nn.ModuleDict({"encoder": self.encoder, "decoder": self.decoder})

    @property
    def _total_edges(self) -> int:
        return max(1, int(self.num_edges.sum()))

    def _edge_sum(self, edges: Tensor, max_grad_norm: float) -> dict[str, Tensor]:
        """Sum of the clipped gradients of :math:`-l_{ij}` over edges of shape ``(B, 2)``."""
        # Counts of draws that depend on the batch would move the public stream of seed_everything.
        normal = torch.randn(len(edges), 2, self.hparams["latent_dim"], generator=self._local)
        total = self._clipped_sum(self._scaled(self.rows[edges]), normal, max_grad_norm)
        return {name: -gradient for name, gradient in total.items()}

    def _clipped_sum(self, rows: Tensor, normal: Tensor, max_grad_norm: float) -> dict[str, Tensor]:
        """Sum of the clipped gradients of l of pairs whose ends have rows of shape ``(P, 2, d)``."""
        return ghost_clipped_gradient_sum(
            self._networks,
            lambda rows, normal: self.decoder.pair_logits(self._latent(rows, normal)),
            rows,
            max_grad_norm,
            others=(normal.to(self.device),),
        )

    def _scaled(self, rows: Tensor) -> Tensor:
        """Rows with entries of about 1; the scale is a function of the released ones."""
        return rows / self.rows.square().mean().sqrt()

    def _latent(self, rows: Tensor, normal: Tensor) -> Tensor:
        mean, log_variance = self.encoder(rows)
        return reparametrized(mean, log_variance, normal)

    def _public_terms(self) -> None:
        """Gradient of all that reads released rows and uniform pairs alone."""
        self._push_drawn_edges()
        self.public_backward(self._divergence(), self._autoencoder)

    def _push_drawn_edges(self) -> None:
        r"""Gradient of :math:`\sum \log(1 + e^{l_{ij}})` over all pairs, per edge of the graphs.

        It is the mean of that of :math:`l_{ij}` over edges that the model draws. They are clipped as
        the real ones are: else they would outweigh them, and all pairs would become alike.
        """
        count = self.hparams["public_pairs"]
        pairs = random_pairs(self.sizes, count)
        rows = self._scaled(self.rows[pairs])
        normal = torch.randn(count, 2, self.hparams["latent_dim"], device=self.device)
        with torch.no_grad():
            offsets = self.offset + self._density_logits()[self.graph_of(pairs[:, 0])]
            logits = self.decoder.pair_logits(self._latent(rows, normal)) + offsets
        drawn = torch.rand_like(logits) < logits.sigmoid()
        total = self._clipped_sum(rows[drawn], normal[drawn], self.hparams["max_grad_norm"])
        per_edge = int(self._num_pairs().sum()) / count / self._total_edges
        parameters = dict(self._networks.named_parameters())
        gradients = [total[name] * per_edge for name in parameters]
        # The edges' part of the offset's gradient is minus their number, which is released.
        surplus = logits.sigmoid().sum() * per_edge - 1
        self.public_gradient([*parameters.values(), self.offset], [*gradients, surplus])

    def _divergence(self) -> Tensor:
        """Weighted divergence of uniform nodes from the prior, per edge of the graphs."""
        nodes = torch.randint(len(self.rows), (self.hparams["public_pairs"],), device=self.device)
        divergence = kl_divergence(*self.encoder(self._scaled(self.rows[nodes]))).mean()
        self.log("train/divergence_per_node", divergence.detach(), batch_size=1)
        return self._kl_weight() * divergence * len(self.rows) / self._total_edges

    def _node_step(self) -> None:
        """Algorithm 1: decoder by clipped gradients of nodes, all else without protection."""
        blocks = self._random_blocks()
        adjacency = self._adjacency(blocks)
        mean, log_variance = self.encoder(self.features[blocks.nodes], adjacency)
        latent = reparametrized(mean, log_variance, torch.randn_like(mean))
        max_grad_norm = self.hparams["max_grad_norm"] * self.hparams["clip_decay"] ** (
            self.current_epoch
        )
        DPSGD(float(self.noise_multiplier), max_grad_norm).backward(
            partial(self._node_sum, blocks, adjacency, latent.detach()),
            dict(self.decoder.named_parameters()),
            ledger=self.ledger,
            entry=self.unprotected(
                "gradient of nodes",
                "one edge moves the gradients of many nodes, each of which is clipped alone, and "
                "networks without noise remember it",
            ),
            noise=self.noise,
            expected_size=self.sample_rate * int(self.sizes.sum()),
        )
        loss = self._reconstruction(blocks, adjacency, self.decoder.logits(latent))
        divergence = kl_divergence(mean, log_variance)[blocks.mask].sum()
        loss = (loss + self.hparams["kl_weight"] * divergence) / blocks.mask.sum()
        self.public_backward(loss, list(self.encoder.parameters()))

    def _node_sum(
        self, blocks: DenseBlocks, adjacency: Tensor, latent: Tensor, max_grad_norm: float
    ) -> dict[str, Tensor]:
        """Sum of each node's clipped share of the decoder's gradient.

        The share of node i is what reaches the weights through its vector f(z_i): the shares add
        up to the gradient, also of a loss that is one number for a graph.
        """
        vectors = self.decoder(latent).detach().requires_grad_()
        logits = vectors @ vectors.mT
        loss = self._reconstruction(blocks, adjacency, logits) + self._fooling(blocks, logits)
        (slopes,) = torch.autograd.grad(loss, vectors)
        return ghost_clipped_gradient_sum(
            self.decoder,
            lambda latent, slopes: (self.decoder(latent) * slopes).sum(-1),
            latent[blocks.mask],
            max_grad_norm,
            others=(slopes[blocks.mask],),
        )

    def _reconstruction(self, blocks: DenseBlocks, adjacency: Tensor, logits: Tensor) -> Tensor:
        """L_rec: cross entropy of all pairs in both orders, Eq. (4)."""
        pairs = blocks.pairs
        return 2 * binary_cross_entropy_with_logits(
            logits[pairs], adjacency[pairs], reduction="sum"
        )

    def _fooling(self, blocks: DenseBlocks, logits: Tensor) -> Tensor:
        """The generator's part of the GAN: none."""
        return logits.new_zeros(())


def _resize_rows(module: nn.Module, state: dict[str, Tensor], prefix: str, *_: object) -> None:
    """Give the released rows the number of nodes of the state."""
    if prefix + "rows" in state:
        module.rows = torch.empty_like(state[prefix + "rows"])
